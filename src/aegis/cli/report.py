"""`aegis report`: write advice as one HTML file."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aegis.cli.files import (
    REPORT,
    YAML,
    Opening,
    check_outputs,
    is_bundle,
    opens_table,
    written,
)
from aegis.cli.output import Output, reporting, shown_location
from aegis.cli.parameters import (
    Configurations,
    Force,
    Generate,
    LeaveOut,
    MeasureOptions,
    NoValues,
    Quiet,
    RuleOverride,
    Seed,
    VerifyKey,
    split_names,
)
from aegis.errors import DataError, PolicyError
from aegis.options import option

if TYPE_CHECKING:
    from aegis.advisor import Advice
    from aegis.policy import Configuration, Policy
    from aegis.report import Reported
    from aegis.study import Study

SPLITS = 3
"""Number of times that the rows are divided into training and test rows."""
EXAMPLES = (
    "aegis report table.csv -p policy.yaml -o report.html",
    "aegis report table.aegis -p policy.yaml -o report.pdf --no-values",
    "aegis report table.csv -p policy.yaml -o report.html --evaluate lr,gbdt",
    "aegis report certificate.json -o release.html",
)


@dataclass(frozen=True, kw_only=True)
class ReportedAdvice:
    """Options for the advice that a report shows."""

    policy_file: Path | None = option(
        None, "The policy (YAML). Not needed for a certificate.", "FILE", name="policy", short="-p"
    )
    configurations: Configurations = None
    generate: Generate = None
    measured: MeasureOptions
    rule_override: RuleOverride = False
    verify_key: VerifyKey = None
    leave_out: LeaveOut = None
    evaluate: str | None = option(
        None,
        "Also train these models (lr, svm, rf, sgd, nb, mlp, gbdt) on the three best "
        "releases and on the unmasked table. The report shows accuracy and AUC, as means of "
        "three splits.",
        "A,B,...",
    )

    @property
    def models(self) -> list[str]:
        """The names of the models to train."""
        return [name.strip() for name in (self.evaluate or "").split(",") if name.strip()]


@dataclass(frozen=True, kw_only=True)
class ReportCommand:
    """All options of `aegis report`."""

    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE|SUMMARY|CERTIFICATE",
            help="For a report on advice: a table, its summary (.aegis, .protected) or masked tables "
            "(.published). For a page on a release: its certificate (.json).",
        ),
    ]
    output: Path = option(
        MISSING,
        "The report to write: .html, or .pdf with an installed Chromium.",
        "FILE",
        short="-o",
    )
    advice: ReportedAdvice
    opening: Opening
    no_values: NoValues = False
    seed: Seed = 0
    force: Force = False
    quiet: Quiet = False


@opens_table
def command(options: ReportCommand) -> None:
    """Write a report on advice or on a release: one file that works offline.

    You give a table or its summary, and a policy. The report shows the recommendation,
    the ranking, the cost of each mask, and privacy before and after masking, in charts
    and tables for a privacy officer. If no configuration meets the rule, the report
    names the closest one, and the exit code is 1. If you give a certificate, Aegis
    writes a page on the release instead: digests, the figures of the written file, and
    a line to sign."""
    from aegis.policy import load_configurations, load_policy

    table, output, request = options.table, options.output, options.advice
    inputs = (table, request.policy_file, request.configurations)
    check_outputs([(output, REPORT)], force=options.force, inputs=inputs)
    if table.lower().endswith(".json"):
        from aegis.report import render_certificate, write_page

        write_page(output, render_certificate(Path(table)))
        Output(quiet=options.quiet).say(*written([output]))
        return
    policy_file = _required_policy(table, output, request.policy_file)
    policy = load_policy(policy_file).without(split_names(request.leave_out) or ())
    if request.evaluate is not None:
        policy.require_label("--evaluate", number=True)
        if is_bundle(table):
            raise DataError(
                f"{table} is a summary: it holds no rows to train on.",
                hint="Give the table, or leave --evaluate out.",
            )
    listed = None
    if request.configurations is not None:
        listed = load_configurations(request.configurations, policy)
    advice = _reported(options, policy, listed)
    shell = Output(quiet=options.quiet)
    shell.warn(advice.warnings)
    shell.say(*written([output]))
    advice.require_best()


def _required_policy(table: str, output: Path, policy: Path | None) -> Path:
    """Return the path of the policy; without policy or table, an error states what to type."""
    listed = table.lower().endswith(YAML)
    if policy is not None and not listed:
        return policy
    message = "A report on a table needs its policy."
    if listed:
        message = f"{table} is no table: a report needs the table and its policy."
    words = ["report", "TABLE" if listed else shown_location(table), "-p", policy or "policy.yaml"]
    words += ["--configurations", table] if listed and policy is None else []
    command = shlex.join(["aegis", *map(str, words), "-o", str(output)])
    raise PolicyError(message, hint=f"Type: {command}")


def _reported(
    options: ReportCommand, policy: Policy, listed: Mapping[str, Configuration] | None
) -> Advice:
    """Write the report on an advice that ranks the `listed` configurations; return the advice."""
    from aegis.study import Study, ask

    request = options.advice
    subject = options.opening.study_subject(
        options.table, policy, request, quiet=options.quiet, verify_key=request.verify_key
    )
    with reporting(quiet=options.quiet) as progress:
        study = Study(
            subject,
            policy,
            seed=options.seed,
            progress=progress,
            rule_override=request.rule_override,
        )
        if request.evaluate is not None:
            ask("check_evaluation", study, models=request.models)
        advice = study.advise(
            listed,
            generate_count=request.generate,
            measure=request.measured.name,
            explain_best=True,
        )
        reported = advice if request.evaluate is None else trained(study, advice, request.models)
        study.report(reported, options.output, values=not options.no_values, force=options.force)
    return advice


def trained(study: Study, advice: Advice, models: Sequence[str]) -> Reported:
    """Return, for the report, an evaluation with models that are trained on the first admissible
    entries of an advice and on the unmasked table.
    """
    evaluation: Reported = study.evaluate(
        advice, models=models, metric="roc_auc", splits=SPLITS, comparators=()
    )
    return evaluation
