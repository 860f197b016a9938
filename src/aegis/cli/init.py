"""`aegis init`: write a first policy, for you to edit."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aegis.cli import completion
from aegis.cli.files import (
    DEFAULT,
    YAML,
    Opening,
    check_outputs,
    next_step,
    opens_table,
    unused,
    written,
)
from aegis.cli.output import Output, heading, line, pairs, reporting, write
from aegis.cli.parameters import Force, Quiet, Table, output_file
from aegis.files import write_text
from aegis.words import counted, cut

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aegis.policy.suggest import ProposedPolicy

_NAMED = 50
"""Attributes of a role that are named; the policy has all."""

EXAMPLES = (
    "aegis init table.csv --label income -o policy.yaml",
    "aegis init 'parts/*.parquet' --label price > policy.yaml",
    "aegis init survey.csv --label income --label hours -o policy.yaml",
    "aegis init survey.csv -o policy.yaml",
    "aegis init survey.csv --label vote --weight pw -o policy.yaml",
)


@opens_table
def command(
    table: Table,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            "-l",
            metavar="COLUMN",
            autocompletion=completion.columns,
            help="The column to predict. Repeat the option for several. Without a label, Aegis "
            "predicts each column from the others.",
        ),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(
            "--weight",
            metavar="COLUMN",
            autocompletion=completion.columns,
            help="The column of survey weights. Without it, Aegis asks you about a likely one.",
        ),
    ] = None,
    output: Annotated[
        Path | None, output_file("The policy to write (YAML). By default, Aegis prints it.")
    ] = None,
    opening: Opening = DEFAULT,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Propose a first policy for a table: roles, candidate masks, a privacy rule.

    You give a table and, if there is one, the column to predict. Aegis writes a policy
    as commented YAML. The comments say what it found in each column and why it proposes
    each mask. The policy is a guess, so read and edit it before you use it.
    """
    from aegis.policy.suggest import init_policy

    check_outputs([(output, YAML)], force=force, inputs=(table,))
    with reporting(quiet=quiet) as progress:
        proposed = init_policy(
            opening.source(table, quiet=quiet, proposing=True),
            label=label or None,
            weight=weight,
            path=output or "policy.yaml",
            progress=progress,
        )
    shell = Output(quiet=quiet)
    shell.warn(proposed.warnings)
    if output is None:
        write(sys.stdout, proposed.yaml)
        return
    write_text(output, proposed.yaml)
    _print(shell, proposed, output, [table, *opening.words()])


def _print(shell: Output, proposed: ProposedPolicy, output: Path, read: Sequence[str]) -> None:
    """Print the proposed roles, and the next command; `read` has the words that open the table."""
    shell.say(*_roles(proposed))
    shell.say(*written([output]))
    shell.suggest(
        *next_step(
            "read and edit the policy, then rank what it allows",
            "advise",
            *read,
            policy=output,
            o=unused(output.with_name("best.yaml")),
        )
    )


def _named(names: Sequence[str]) -> str:
    """Return names as a text that fits a list: if many, the first ones and how many more."""
    more = f", and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(map(cut, names[:_NAMED])) + more


def _roles(proposed: ProposedPolicy) -> Iterator[RenderableType]:
    """Yield the attributes of each proposed role, and what you must add to the rule."""
    from aegis.policy import Role
    from aegis.privacy.report import UNPROTECTED

    policy = proposed.policy
    yield heading("Proposed roles")
    named = ((role, [a.name for a in policy.with_role(role)]) for role in Role)
    roles = [(str(role), _named(names)) for role, names in named if names]
    if policy.person is not None:
        roles.append(("person", f"{policy.person} (several rows each: the rule counts persons)"))
    if policy.weight is not None:
        roles.append(("weight", f"{policy.weight} (weights scores and models; not released)"))
    yield pairs(roles)
    if not policy.quasi_identifiers:
        yield line(f"{UNPROTECTED}.")
    if proposed.unmasked:
        yield line(
            f"{counted(len(proposed.unmasked), 'feature')} keep{'s' if len(proposed.unmasked) == 1 else ''} "
            f"all values in the release{_alone(proposed)}. If others may know what a feature says of a "
            "person, make it a quasi-identifier."
        )


def _alone(proposed: ProposedPolicy) -> str:
    """Return how many rows have unmasked values that no other has; empty if not counted."""
    if proposed.alone is None:
        return ""
    if not proposed.alone:
        return f"; no row stands out by {'it' if len(proposed.unmasked) == 1 else 'them'} alone"
    rows = next(iter(proposed.profiles.values())).facts.rows
    others = "others" if proposed.person is None else "rows of other persons"
    return f", and by them alone {proposed.alone:,} of {rows:,} rows differ from all {others}"
