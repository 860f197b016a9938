"""`aegis protect`: a summary that may leave the house."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aegis.cli.files import check_outputs, next_step, unused, written, written_dict
from aegis.cli.opening import DEFAULT, Opening, opens_table
from aegis.cli.options import (
    Force,
    Format,
    FormatOption,
    PolicyFile,
    Quiet,
    RuleOverride,
    TableOrBundle,
    VerifyKey,
    split_names,
)
from aegis.cli.output import Output
from aegis.cli.progress import reporting
from aegis.errors import DataError, PolicyError
from aegis.safe import PROTECTED

if TYPE_CHECKING:
    from aegis.safe.protect import ProtectedSummary

SCHEMA = 1
"""Version of the JSON form; it changes when a field changes its meaning."""
EXAMPLES = (
    "aegis protect table.csv -p policy.yaml -o table.protected --epsilon 1 --delta 1e-6",
    "aegis protect table.csv -p policy.yaml -o table.protected --epsilon 1 --delta 1e-6 "
    "--ledger house.ledger --population patients",
    "aegis protect table.aegis -p policy.yaml -o table.protected --level counts --key-file secret.key",
)
Epsilon = Annotated[
    float | None,
    typer.Option(
        "--epsilon",
        metavar="E",
        help="How much level noise may give away of one row or person (differential privacy;"
        " smaller is safer), with --delta.",
    ),
]
Delta = Annotated[
    float | None,
    typer.Option(
        "--delta",
        metavar="D",
        help="The chance that the promise of --epsilon does not hold: less than 1 / rows.",
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        metavar="FILE",
        help="The secret that seeds level counts: a file of at least 16 random bytes.",
    ),
]
LedgerFile = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        metavar="FILE",
        help="Spend from this ledger, with --population: refused where the budget is spent.",
    ),
]
NewVersion = Annotated[
    bool,
    typer.Option(
        "--new-version",
        help="The table is a new version of the one that the ledger knows under this population; "
        "level counts then needs a new key.",
    ),
]
PopulationName = Annotated[
    str | None,
    typer.Option("--population", metavar="NAME", help="The population whose budget is spent."),
]


@opens_table
def command(
    table: TableOrBundle,
    policy: PolicyFile,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The protected summary to write (.protected)."
        ),
    ],
    level: Annotated[
        str,
        typer.Option(
            "--level",
            metavar="LEVEL",
            help="noise (differential privacy) or counts (perturbed small cells).",
        ),
    ] = "noise",
    epsilon: Epsilon = None,
    delta: Delta = None,
    unit: Annotated[
        str, typer.Option("--unit", metavar="UNIT", help="What noise protects: rows or persons.")
    ] = "rows",
    rows_per_person: Annotated[
        int,
        typer.Option(
            "--rows-per-person", metavar="N", help="Most rows of one person, with --unit persons."
        ),
    ] = 1,
    person: Annotated[
        str | None,
        typer.Option(
            "--person",
            metavar="COLUMN",
            help="Column that identifies persons; refused where one has more rows than --rows-"
            "per-person.",
        ),
    ] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(
            "--public",
            metavar="A,B,...",
            help="Attributes whose values and cuts are public knowledge; '*' for all. The "
            "values of others are drawn from the table, which takes part of the budget.",
        ),
    ] = None,
    key_file: KeyFile = None,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="NAME",
            help="How --level counts changes counts: cell-keys or rounding.",
        ),
    ] = "cell-keys",
    threshold: Annotated[
        int, typer.Option("--threshold", metavar="N", help="Cells of fewer rows count as small.")
    ] = 10,
    step: Annotated[
        int | None,
        typer.Option(
            "--step",
            metavar="N",
            help="Base of rounding, or largest change of a cell key; by default the threshold.",
        ),
    ] = None,
    variance: Annotated[
        float | None,
        typer.Option(
            "--variance",
            metavar="V",
            help="Variance of what cell keys add to a count; by default half of the threshold.",
        ),
    ] = None,
    configurations: Annotated[
        Path | None,
        typer.Option(
            "--configurations",
            metavar="FILE",
            help="State in the file whether these configurations (YAML) meet the rule.",
        ),
    ] = None,
    verdicts: Annotated[
        int | None,
        typer.Option(
            "--verdicts",
            metavar="N",
            help="State for every combination of masks whether it meets the rule, where there "
            "are at most N.",
        ),
    ] = None,
    ledger: LedgerFile = None,
    population: PopulationName = None,
    new_version: NewVersion = False,
    rule_override: RuleOverride = False,
    verify_key: VerifyKey = None,
    opening: Opening = DEFAULT,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Protect a summary, so that it may leave the house.

    In: a table, or its exact summary, and a policy. Out: one file (.protected) from
    which `aegis advise` ranks and searches. It has no values, pairs or frequency
    table in it. Level noise promises differential privacy: with epsilon at delta,
    per row or per person. Level counts perturbs label tables so that linear
    programming derives no small cell; it makes no formal promise, and is refused
    where its own audit fails.
    """
    from aegis.policy import load_configurations, load_policy
    from aegis.safe.protect import release_protected

    check_outputs([(output, (PROTECTED,))], force=force, inputs=(table, policy))
    declared = load_policy(policy)
    listed: Any = ()
    if configurations is not None and verdicts is not None:
        raise PolicyError(
            "Both --configurations and --verdicts were given.", hint="Give one of them."
        )
    if configurations is not None:
        listed = load_configurations(configurations, declared)
    elif verdicts is not None:
        listed = verdicts
    subject = opening.subject(table, declared, quiet=quiet, verify_key=verify_key)
    options = {
        "level": level,
        "epsilon": epsilon,
        "delta": delta,
        "unit": unit,
        "rows_per_person": rows_per_person,
        "person": person,
        "public": split_names(public) or (),
        "key": read_key(key_file),
        "method": method,
        "threshold": threshold,
        "step": step,
        "variance": variance,
        "verdicts": listed,
        "rule_override": rule_override,
    }
    shell = Output(format, quiet)
    with reporting(quiet=quiet) as progress:
        made = release_protected(
            subject,
            declared,
            output,
            ledger=ledger,
            population=population,
            new_version=new_version,
            force=force,
            progress=progress,
            **options,
        )
    head = None
    if ledger is not None:
        from aegis.safe.ledger import Ledger

        head = Ledger(ledger).head
    print_protected(shell, made, output, policy, head=head)


def read_key(path: Path | None) -> bytes | None:
    """Return the secret in a file; None without one."""
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(
            f"Cannot read the key file {path}: {error.strerror}.", hint="Check the path."
        ) from error


def print_protected(
    shell: Output, made: ProtectedSummary, output: Path, policy: Path, *, head: str | None = None
) -> None:
    """Print what left, in the format that was asked for; `head` is that of the ledger."""
    figures = made.to_dict() | ({} if head is None else {"ledger_head": head})
    if shell.format is Format.JSON:
        shell.json({"schema": SCHEMA} | figures | {"files": written_dict([output])})
        return
    names = ("attribute", "role", "cells", "masks")
    rows = [
        [name, entry["role"], entry["cells"], len(entry["candidates"])]
        for name, entry in figures["attributes"].items()
    ]
    if shell.format is Format.CSV:
        shell.csv(names, rows)
        return
    from aegis.cli.tables import Column, line, number, table

    shell.show(line(_overview(made)), line(""))
    columns = (Column(names[0], wraps=True), Column(names[1]), number(names[2]), number(names[3]))
    shell.show(table(columns, ([*r[:2], *(f"{n:,}" for n in r[2:])] for r in rows)))
    shell.warn(made.notes)
    if head is not None:
        shell.show(line(note_of_head(head)))
    shell.say(*written([output]))
    shell.suggest(
        *next_step(
            "rank configurations from what may leave the house",
            "advise",
            output,
            "--policy",
            policy,
            "-o",
            unused("best.yaml"),
        )
    )


def note_of_head(head: str) -> str:
    """Return what to do with the head of a ledger."""
    return (
        f"Ledger head {head}: note it elsewhere, and check it with aegis ledger FILE verify --head"
    )


def _overview(made: ProtectedSummary) -> str:
    said = made.protection
    if said.epsilon is None:
        promise = (
            f"counts: {said.method}, threshold {said.threshold}; no formal promise, and no small "
            "cell follows by linear programming"
        )
    else:
        whom = (
            "one row"
            if said.unit == "rows"
            else f"one person of at most {said.rows_per_person} rows"
        )
        promise = f"noise: epsilon {said.epsilon:g} at delta {said.delta:g} (rho {said.rho:.4g}) for {whom}"
    moments = (
        "no moments of codes"
        if made.moments is None
        else f"correlations of codes by {made.moments.error:.4f}"
    )
    return (
        f"About {made.rows:,.0f} labelled rows; label {made.label}\n"
        f"Protected by {promise}\n"
        f"Counts err by {made.cell_error:.1f}, {moments}; verdicts on {len(made.verdicts):,} "
        "configurations"
    )
