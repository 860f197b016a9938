"""`aegis report`: advice as one HTML file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aegis.cli.files import REPORT, check_outputs, is_bundle, written
from aegis.cli.formats import SummaryRequest, format_of_summary
from aegis.cli.opening import DEFAULT, Opening, opens_table
from aegis.cli.options import (
    Configurations,
    Force,
    Generate,
    LeaveOut,
    Measure,
    Merit,
    Models,
    NoValues,
    Quiet,
    RuleOverride,
    Seed,
    VerifyKey,
    asked_measure,
    split_names,
)
from aegis.cli.output import Output
from aegis.cli.progress import reporting
from aegis.errors import DataError, PolicyError

if TYPE_CHECKING:
    from aegis import Study
    from aegis.advisor import Advice
    from aegis.policy import Policy
    from aegis.report import Reported

SPLITS = 3
"""How often the rows are divided for them."""
EXAMPLES = (
    "aegis report table.csv -p policy.yaml -o report.html",
    "aegis report table.aegis -p policy.yaml -o report.pdf --no-values",
    "aegis report table.csv -p policy.yaml -o report.html --evaluate lr,gbdt",
    "aegis report certificate.json -o release.html",
)


@opens_table
def command(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE|SUMMARY|CERTIFICATE",
            help="A table, its summary (.aegis, .protected) or masked tables (.published), for the report on advice; "
            "or the certificate of a release (.json), for the page on what was released.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The report to write: .html, or .pdf with an installed Chromium.",
        ),
    ],
    policy_file: Annotated[
        Path | None,
        typer.Option(
            "--policy", "-p", metavar="FILE", help="The policy (YAML); a certificate holds its own."
        ),
    ] = None,
    configurations: Configurations = None,
    generate: Generate = None,
    measure: Measure = None,
    merit: Merit = None,
    models: Models = None,
    rule_override: RuleOverride = False,
    verify_key: VerifyKey = None,
    leave_out: LeaveOut = None,
    evaluate: Annotated[
        str | None,
        typer.Option(
            "--evaluate",
            metavar="A,B,...",
            help="Also train these models (lr, svm, rf, sgd, nb, mlp, gbdt) on the best three and on "
            "the table as it is, and show what they reach: accuracy and AUC, means of three splits.",
        ),
    ] = None,
    opening: Opening = DEFAULT,
    no_values: NoValues = False,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write the report on a table's advice, or on a release: one file that works offline.

    In: a table, or its summary, and a policy. Out: the recommendation, the ranking,
    what each mask costs, privacy before and after, in charts and tables that a
    privacy officer can read. From a certificate: the page on what was released,
    with digests, the figures of the written file and a line to sign. Exit code 1 when no configuration meets the rule; the
    report is written all the same and names the one that comes closest.
    """
    from aegis import Study
    from aegis.policy import load_configurations, load_policy
    from aegis.study import ask

    check_outputs([(output, REPORT)], force=force, inputs=(table, policy_file, configurations))
    if table.lower().endswith(".json"):
        _report_release(Path(table), output)
        Output(quiet=quiet).say(*written([output]))
        return
    if policy_file is None:
        raise PolicyError("A table needs its policy.", hint="Add --policy FILE.")
    policy = load_policy(policy_file).without(split_names(leave_out) or ())
    names = [name.strip() for name in (evaluate or "").split(",") if name.strip()]
    if evaluate is not None:
        _check_training(table, policy)
    listed = None if configurations is None else load_configurations(configurations, policy)
    added = format_of_summary(table)
    if added is not None:
        added.advise(
            SummaryRequest(
                path=table,
                policy_file=policy_file,
                policy=policy,
                configurations=listed,
                search=not (configurations or generate or policy.configurations),
                options={
                    "--configurations": configurations,
                    "--generate": generate,
                    "--measure": measure,
                    "--merit": merit,
                    "--models": models,
                    "--evaluate": evaluate,
                    "--leave-out": split_names(leave_out),
                    "--verify-key": verify_key,
                    "--rule-override": rule_override or None,
                    "--seed": seed,
                    "--report": output,
                },
                shell=Output(quiet=quiet),
                printed=False,
            )
        )
        return
    with reporting(quiet=quiet) as progress:
        study = Study(
            opening.subject(table, policy, quiet=quiet, verify_key=verify_key),
            policy,
            seed=seed,
            progress=progress,
            rule_override=rule_override,
        )
        if evaluate is not None:
            ask("check_evaluation", study, models=names)
        advice = study.advise(
            listed,
            generate_count=generate,
            measure=asked_measure(measure, merit, models),
            explain_best=True,
        )
        shown = advice if evaluate is None else trained(study, advice, names)
        study.report(shown, output, values=not no_values, force=force)
    shell = Output(quiet=quiet)
    shell.warn(advice.warnings)
    shell.say(*written([output]))
    advice.require_best()


def _check_training(table: str, policy: Policy) -> None:
    """Raise for what no models can be trained on, before the table is read."""
    policy.require_label("--evaluate")
    if is_bundle(table):
        raise DataError(
            f"{table} is a summary: it holds no rows to train on.",
            hint="Give the table, or leave --evaluate out.",
        )


def trained(study: Study, advice: Advice, models: Sequence[str]) -> Reported:
    """Return the advice with what models reach on its first admissible entries, and unmasked."""
    evaluation: Reported = study.evaluate(
        advice, models=models, metric="roc_auc", splits=SPLITS, comparators=()
    )
    return evaluation


def _report_release(certificate: Path, output: Path) -> None:
    """Write the page on the release that a certificate states."""
    from aegis.report import render_certificate, write_page

    try:
        document = json.loads(certificate.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{certificate} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise DataError(
            f"{certificate} is not JSON: {error}.",
            hint="Give what `aegis apply --certificate` wrote.",
        ) from error
    if not isinstance(document, dict):
        raise DataError(f"{certificate} is no certificate.", hint="Give a JSON object.")
    write_page(output, render_certificate(document))
