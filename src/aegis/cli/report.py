"""`aegis report`: advice as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aegis.cli.files import HTML, check_outputs, written
from aegis.cli.opening import DEFAULT, Opening, opens_table
from aegis.cli.options import (
    Configurations,
    Force,
    Generate,
    LeaveOut,
    Measure,
    PolicyFile,
    Quiet,
    Seed,
    TableOrBundle,
    VerifyKey,
    split_names,
)
from aegis.cli.output import Output
from aegis.cli.progress import reporting

EXAMPLES = (
    "aegis report table.csv -p policy.yaml -o report.html",
    "aegis report table.aegis -p policy.yaml --generate 200 -o report.html --force",
)


@opens_table
def command(
    table: TableOrBundle,
    policy_file: PolicyFile,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The report to write (.html).",
            show_default=False,
        ),
    ],
    configurations: Configurations = None,
    generate: Generate = None,
    measure: Measure = None,
    verify_key: VerifyKey = None,
    leave_out: LeaveOut = None,
    opening: Opening = DEFAULT,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write the report on a table's advice: one HTML file that works offline.

    In: a table, or its summary, and a policy. Out: the recommendation, the ranking,
    what each mask costs, privacy before and after, in charts and tables that a
    privacy officer can read. Exit code 1 when no configuration meets the rule; the
    report is written all the same and names the one that comes closest.
    """
    from aegis import Study
    from aegis.policy import load_configurations, load_policy

    check_outputs([(output, HTML)], force=force, inputs=(table, policy_file, configurations))
    policy = load_policy(policy_file).without(split_names(leave_out) or ())
    listed = None if configurations is None else load_configurations(configurations, policy)
    with reporting(quiet=quiet) as progress:
        study = Study(
            opening.subject(table, policy, quiet=quiet, verify_key=verify_key),
            policy,
            seed=seed,
            progress=progress,
        )
        advice = study.advise(listed, generate_count=generate, measure=measure)
        study.report(advice, output, force=force)
    shell = Output(quiet=quiet)
    shell.warn(advice.warnings)
    shell.say(*written([output]))
    advice.require_best()
