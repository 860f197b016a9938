"""`aegis ledger`: show and charge the privacy budget of each population."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from aegis.cli.output import Column, Output, line, number, table
from aegis.cli.parameters import Format, FormatOption, Quiet, takes_records
from aegis.errors import PolicyError, require_known
from aegis.options import option
from aegis.safe.commands.protect import note_of_head
from aegis.safe.requests import DELTA, EPSILON
from aegis.words import json_fields

SCHEMA = 1
"""Version of the JSON form; it changes if a field changes its meaning."""
ACTIONS = ("open", "show", "reserve", "commit", "cancel", "list", "verify")
PANEL = "Work from counts instead of rows"
"""Group of the command in the help."""
EXAMPLES = (
    "aegis ledger house.ledger open visitors --epsilon 3 --delta 1e-6",
    "aegis ledger house.ledger show",
    "aegis ledger house.ledger reserve patients --epsilon 1 --delta 1e-6 --note 'survey of May'",
    "aegis ledger house.ledger verify",
)


Epsilon = Annotated[float | None, typer.Option("--epsilon", metavar="E", help=EPSILON)]
Delta = Annotated[float | None, typer.Option("--delta", metavar="D", help=DELTA)]


@dataclass(frozen=True, kw_only=True)
class StatedCost:
    """A cost or a ceiling that the user states: an epsilon with a delta, or a rho (the unit of
    zero-concentrated differential privacy).
    """

    epsilon: Epsilon = None
    delta: Delta = None
    rho: float | None = option(
        None, "The cost in rho (zero-concentrated differential privacy), instead of epsilon.", "R"
    )

    @property
    def spent(self) -> float:
        """The cost converted to rho, the unit of zero-concentrated differential privacy."""
        from aegis.safe.protect import budget_of

        if (self.rho is None) == (self.epsilon is None):
            raise PolicyError(
                "You gave no cost, or two: a cost is an epsilon with a delta, or a rho.",
                hint="Give --epsilon and --delta, or --rho.",
            )
        if self.rho is not None:
            return self.rho
        if self.epsilon is None or self.delta is None:
            raise PolicyError(
                "You gave an epsilon without a delta.", hint="Add --delta, for example 1e-6."
            )
        return budget_of(self.epsilon, self.delta)


@dataclass(frozen=True, kw_only=True)
class LedgerCommand:
    """Options and arguments of `aegis ledger`."""

    ledger: Annotated[Path, typer.Argument(metavar="FILE", help="The ledger (SQLite).")]
    action: Annotated[
        str,
        typer.Argument(
            metavar="ACTION",
            help="show or verify; with the name of a population: open, reserve or list; with the "
            "number of an entry: commit or cancel.",
        ),
    ] = "show"
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|NUMBER", help="Name of the population, or number of the entry."
        ),
    ] = None
    cost: StatedCost
    unit: str = option("rows", "What is protected: rows or persons.", "UNIT")
    digest: str = option(
        "", "For commit and list: the SHA-256 digest of the output file.", "SHA256"
    )
    note: str = option("", "A note on the purpose of the work.", "TEXT")
    head: str | None = option(
        None,
        "For verify: the digest of the last event that you noted earlier. Aegis checks that "
        "it is still in the ledger.",
        "SHA256",
    )
    format: FormatOption = Format.TABLE
    quiet: Quiet = False


@takes_records
def command(options: LedgerCommand) -> None:
    """Keep the privacy budgets of populations, and reserve the cost of work before it
    begins.

    A population keeps its budget when its table changes. `open` sets the budget.
    `reserve` refuses a cost that exceeds it. `commit` records that you gave out a
    result; `cancel` refunds a reservation that you never used. `list` adds an entry for a
    release without differential privacy. `verify` finds entries that somebody changed.
    Each action prints the budgets and their entries."""
    from aegis.safe.ledger import Ledger, Spend

    action, subject = options.action, options.subject
    require_known("action", action, ACTIONS)
    shell = Output(options.format, options.quiet)
    book = Ledger(options.ledger, create=action == "open")
    if action == "verify":
        _verify(shell, book, options.head)
        return
    if action == "show":
        _show(shell, book, subject)
        return
    if subject is None:
        raise PolicyError(
            f"{action} needs a population or the number of an entry.",
            hint=f"Write: aegis ledger {options.ledger} {action} NAME.",
        )
    if action in ("commit", "cancel"):
        if action == "commit":
            book.commit(_number(subject), options.digest)
        else:
            book.cancel(_number(subject))
    elif action == "list":
        book.list_release(subject, options.note, options.digest)
    else:
        cost, delta = options.cost.spent, options.cost.delta
        if action == "open":
            at = 1e-6 if delta is None else delta
            book.open_population(subject, ceiling=cost, delta=at, unit=options.unit)
        else:
            book.reserve(subject, Spend("declared", cost, options.unit), note=options.note)
    _show(shell, book, None if action in ("commit", "cancel") else subject)


def _number(text: str) -> int:
    if not text.isdigit():
        raise PolicyError(
            f"{text!r} is not the number of an entry.", hint="See aegis ledger FILE show."
        )
    return int(text)


def _verify(shell: Output, book: Any, head: str | None) -> None:
    events = book.verify(head)
    if shell.format is Format.TABLE:
        shell.show(line(f"{events:,} events, all unchanged. Ledger head: {book.head}"))
    else:
        figures = {"schema": SCHEMA, "events": events, "head": book.head}
        shell.as_data(figures)


def _show(shell: Output, book: Any, name: str | None) -> None:
    from aegis.safe.protect import epsilon_of

    names = [p.name for p in book.populations()] if name is None else [name]
    balances = [book.balance(name) for name in names]
    populations = [
        {
            "name": b.population.name,
            "unit": b.population.unit,
            "delta": b.population.delta,
            "ceiling": b.population.ceiling,
            "spent": b.spent,
            "left": b.remaining,
            "epsilon_spent": epsilon_of(b.spent, b.population.delta),
            "epsilon_ceiling": epsilon_of(b.population.ceiling, b.population.delta),
        }
        for b in balances
    ]
    entries = [json_fields(entry) for entry in book.entries(name)]
    if shell.format is Format.JSON:
        figures = {"schema": SCHEMA, "populations": populations, "entries": entries}
        shell.json(figures | {"head": book.head})
        return
    columns = ("number", "population", "state", "rho", "time", "mechanism", "digest", "note")
    rows = [_entry(e) for e in entries]
    if shell.format is Format.CSV:
        shell.csv(columns, rows)
        return
    for p in populations:
        shell.show(
            line(
                f"{p['name']}: spent epsilon {p['epsilon_spent']:.4g} of {p['epsilon_ceiling']:.4g} at delta "
                f"{p['delta']:g}, for each {'row' if p['unit'] == 'rows' else 'person'} "
                f"(rho {p['spent']:.4g} of {p['ceiling']:.4g})"
            )
        )
    if rows:
        heads = (number(columns[0]), Column(columns[1]), Column(columns[2]), number(columns[3]))
        texts = ([str(r[0]), r[1], r[2], r[3], _minute(r[4]), r[7] or r[5]] for r in rows)
        shell.show(
            line(""),
            table((*heads, Column("time (UTC)"), Column("purpose", wraps=True)), texts),
        )
    shell.show(line(""), line(note_of_head(book.head)))


def _minute(time: str) -> str:
    """Return a time such as 2026-11-30T15:24:57.059+00:00 without seconds, as people write it."""
    return time[:16].replace("T", " ")


def _entry(entry: dict[str, Any]) -> list[Any]:
    spend = entry["spend"]
    return [
        entry["number"],
        entry["population"],
        entry["state"],
        "" if spend is None else f"{spend['rho']:.6g}",
        entry["time"],
        "outside of differential privacy" if spend is None else spend["mechanism"],
        entry["digest"],
        entry["note"],
    ]
