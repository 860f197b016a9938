"""Print the risk of single records, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from aegis.cli.output import Output
from aegis.words import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aegis.release import MaskedNumbers, RecordRisk


def print_risk(
    shell: Output, measured: RecordRisk, origin: str, files: Sequence[dict[str, Any]]
) -> None:
    """Print all figures that describe how much risk single records have."""
    data = measured.to_dict() | {"written": list(files)}
    if shell.as_data(data):
        return
    shell.show(*_head(data, origin), *_risk(data))
    if data["special_uniques"] is not None:
        shell.show(*_special(data["special_uniques"], data["rows"]))
    if measured.numbers is not None:
        shell.show(*_numbers(measured.numbers))


def _head(data: dict[str, Any], origin: str) -> Iterator[RenderableType]:
    from aegis.cli.tables import figure, pairs

    weight = data["weight"]
    stand = (
        "each represents itself"
        if weight is None
        else f"{weight}; {figure(data['people'], 9)} people in all"
    )
    yield pairs(
        (
            ("Table", f"{origin}: {counted(data['rows'], 'row')}"),
            ("Quasi-identifiers", ", ".join(data["quasi_identifiers"])),
            ("Weight", stand),
            (
                "A missing value",
                {"value": "is a value", "wildcard": "agrees with any"}[data["missing"]],
            ),
        )
    )


def _risk(data: dict[str, Any]) -> Iterator[RenderableType]:
    from aegis.cli.tables import heading, pairs, portion, share

    rows, risk = data["rows"], data["risk"]
    yield heading("Can the person behind a record be found?")
    yield pairs(
        (
            ("records alone with their key", share(data["unique"], rows)),
            ("records in pairs", share(data["in_pairs"], rows)),
            ("risk of the worst record", portion(risk["maximum"])),
            ("average risk", portion(risk["average"])),
            ("people found if all are tried", f"{risk['expected']:,.1f}"),
            *((f"records at a risk above {t}", share(n, rows)) for t, n in risk["at_risk"].items()),
        )
    )


def _special(data: dict[str, Any], rows: int) -> Iterator[RenderableType]:
    from aegis.cli.tables import Column, figure, heading, number, pairs, percent, share, table

    yield heading("Special uniques (SUDA)")
    yield pairs(
        (
            ("records alone on some columns", share(data["records"], rows)),
            ("largest score", figure(data["largest_score"])),
            ("largest chance of a right match", figure(data["largest_chance"])),
            ("chance of any unique match", figure(data["match"])),
            *(
                (f"minimal sets of {counted(int(size), 'column')}", f"{total:,}")
                for size, total in data["by_size"].items()
            ),
        )
    )
    yield heading("What singles records out")
    ranked = sorted(data["contributions"].items(), key=lambda item: -item[1])
    yield table(
        (Column("column"), number("share of all scores")),
        ((name, percent(100 * share_)) for name, share_ in ranked),
    )


def _numbers(numbers: MaskedNumbers) -> Iterator[RenderableType]:
    from aegis.cli.tables import figure, heading, pairs, percent

    yield heading("Masked numbers")
    yield pairs(
        (
            ("columns", ", ".join(numbers.columns)),
            (
                f"records within {numbers.interval:g} standard deviations",
                percent(100 * numbers.interval_share),
            ),
            ("information loss IL1s", figure(numbers.il1s)),
            ("distance of eigenvalues", figure(numbers.eigenvalues)),
        )
    )
