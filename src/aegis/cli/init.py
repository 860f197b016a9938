"""`aegis init`: a first policy, to edit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from aegis.cli.files import YAML, check_outputs, next_step, written
from aegis.cli.options import Force, Quiet, Table
from aegis.cli.output import Output, write
from aegis.cli.progress import reporting

EXAMPLES = (
    "aegis init table.csv --label income -o policy.yaml",
    "aegis init 'parts/*.parquet' --label price > policy.yaml",
)


def command(
    table: Table,
    label: Annotated[
        str,
        typer.Option(
            "--label", "-l", metavar="COLUMN", help="The column to predict.", show_default=False
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The policy to write (YAML); by default it is printed.",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Propose a first policy for a table: roles, candidate masks, a privacy rule.

    In: a table and the column that is to be predicted from the others.
    Out: a policy as commented YAML that says what was found on every column and
    why each mask is proposed. It is a guess: read it, edit it, then use it.
    """
    from aegis.files import write_text
    from aegis.policy.suggest import init_policy

    check_outputs([(output, YAML)], force=force)
    with reporting(quiet=quiet) as progress:
        proposed = init_policy(table, label=label, progress=progress)
    if output is None:
        write(sys.stdout, proposed.yaml)
        return
    write_text(output, proposed.yaml)
    page = Output(quiet=quiet)
    page.say(*written([output]))
    page.suggest(
        *next_step(
            "read and edit the policy, then rank what it allows",
            *("aegis", "advise", table, "--policy", output, "-o", output.with_name("best.yaml")),
        )
    )
