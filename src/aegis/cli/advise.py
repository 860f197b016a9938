"""`aegis advise`: rank masking configurations by the predictive value that they keep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aegis.cli.advice import print_advice
from aegis.cli.files import HTML, YAML, check_outputs, is_bundle, next_step, open_subject, written
from aegis.cli.options import (
    Configurations,
    Force,
    Format,
    FormatOption,
    Generate,
    Measure,
    PolicyFile,
    Quiet,
    Seed,
    TableOrBundle,
)
from aegis.cli.output import Output
from aegis.cli.progress import reporting

if TYPE_CHECKING:
    from rich.console import RenderableType

EXAMPLES = (
    "aegis advise table.csv -p policy.yaml -o best.yaml --report report.html",
    "aegis advise table.csv -p policy.yaml --generate 200 --seed 1 --top 5",
    "aegis advise table.aegis -p policy.yaml --measure cmim --format json",
)


def command(
    table: TableOrBundle,
    policy: PolicyFile,
    configurations: Configurations = None,
    generate: Generate = None,
    measure: Measure = None,
    top: Annotated[
        int,
        typer.Option("--top", min=0, metavar="N", help="How many to show; 0 shows all."),
    ] = 10,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the best configuration (YAML), for aegis apply.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="FILE", help="Write a report (one HTML file).", show_default=False
        ),
    ] = None,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Rank masking configurations by the predictive value that they keep.

    In: a table, or its summary, and a policy. Out: configurations, admissible ones
    first and the best first among them, each with its score, the utility kept
    (percent of the unmasked score), the predictive utility deviation (PUD), the
    smallest class and the rows to suppress; then the best one, mask by mask.
    Exit code 1 when none meets the privacy rule; what came closest is said.
    """
    from aegis.cli.figures import advise_with_report
    from aegis.files import write_text
    from aegis.policy import dump_configurations, load_configurations, load_policy

    check_outputs([(output, YAML), (report, HTML)], force=force)
    rules = load_policy(policy)
    listed = None if configurations is None else load_configurations(configurations, rules)
    subject = open_subject(table)
    with reporting(quiet=quiet) as progress:
        advice, page = advise_with_report(
            subject,
            rules,
            configurations=listed,
            generate_count=generate,
            measure=measure,
            seed=seed,
            progress=progress,
            render_report=report is not None,
        )
    best = advice.best
    if report is not None and page is not None:
        write_text(report, page)
    if output is not None and best is not None:
        write_text(output, dump_configurations({best.name: best.configuration}))
    shell = Output(format, quiet)
    print_advice(shell, advice, table, rules, top or None)
    made = output if best is not None else None
    shell.say(*written([made, report]))
    if best is None:
        advice.require_best()
    shell.say(*_next(table, policy, made))


def _next(table: str, policy: Path, made: Path | None) -> list[RenderableType]:
    if made is None:
        return next_step(
            "write the best configuration, for aegis apply",
            *("aegis", "advise", table, "--policy", policy, "-o", "best.yaml"),
        )
    return next_step(
        "mask the table, and have the result verified and certified",
        *("aegis", "apply", "TABLE" if is_bundle(table) else table, "--policy", policy),
        *("--configuration", made, "-o", made.with_name("masked.parquet")),
        *("--certificate", made.with_name("certificate.json")),
    )
