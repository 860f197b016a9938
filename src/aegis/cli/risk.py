"""`aegis risk`: measure the risk of single records of any table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aegis.cli.files import (
    Opening,
    check_outputs,
    open_subject,
    opens_table,
    written,
    written_dict,
)
from aegis.cli.output import (
    Column,
    Output,
    PrintOptions,
    figure,
    heading,
    number,
    pairs,
    percent,
    portion,
    reporting,
    share,
    shown_location,
    table,
)
from aegis.cli.parameters import Force, QuasiIdentifiers, Table, column_names
from aegis.files import replacing
from aegis.options import option
from aegis.requests import RiskRequest
from aegis.words import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aegis.release import MaskedNumbers, RecordRisk


def print_risk(
    shell: Output, measured: RecordRisk, origin: str, files: Sequence[dict[str, Any]]
) -> None:
    """Print how much risk single records of the table `origin` have, and list the written `files`."""
    data = measured.to_dict() | {"written": list(files)}
    if shell.as_data(data):
        return
    shell.show(*_head(data, origin), *_risk(data))
    if data["special_uniques"] is not None:
        shell.show(*_special(data["special_uniques"], data["rows"]))
    if measured.numbers is not None:
        shell.show(*_numbers(measured.numbers))


def _head(data: dict[str, Any], origin: str) -> Iterator[RenderableType]:
    weight = data["weight"]
    stand = (
        "none: each record counts once"
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
                {"value": "is a separate value", "wildcard": "equals any value"}[data["missing"]],
            ),
        )
    )


def _risk(data: dict[str, Any]) -> Iterator[RenderableType]:
    rows, risk = data["rows"], data["risk"]
    yield heading("Can the person behind a record be found?")
    yield pairs(
        (
            ("records that are unique", share(data["unique"], rows)),
            ("records in pairs", share(data["in_pairs"], rows)),
            ("risk of the worst record", portion(risk["maximum"])),
            ("average risk", portion(risk["average"])),
            ("persons found by trying all", f"{risk['expected']:,.1f}"),
            *((f"records at a risk above {t}", share(n, rows)) for t, n in risk["at_risk"].items()),
        )
    )


def _special(data: dict[str, Any], rows: int) -> Iterator[RenderableType]:
    yield heading("Special uniques (SUDA)")
    yield pairs(
        (
            ("unique by some of their values", share(data["records"], rows)),
            ("largest SUDA score", figure(data["largest_score"])),
            ("largest chance that a match is right", figure(data["largest_chance"])),
            ("chance that any unique match is right", figure(data["match"])),
            *(
                (f"smallest unique sets of {counted(int(size), 'column')}", f"{total:,}")
                for size, total in data["by_size"].items()
            ),
        )
    )
    yield heading("Columns that make records unique")
    ranked = sorted(data["contributions"].items(), key=lambda item: -item[1])
    yield table(
        (Column("column"), number("share of the SUDA scores")),
        ((name, percent(100 * share_)) for name, share_ in ranked),
    )


def _numbers(numbers: MaskedNumbers) -> Iterator[RenderableType]:
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


EXAMPLES = (
    "aegis risk table.csv --quasi-identifiers age,sex,zip --weight price",
    "aegis risk table.csv -p policy.yaml --special --fraction 0.02",
    "aegis risk table.csv --quasi-identifiers age,sex --missing wildcard -o records.csv",
    "aegis risk table.csv --quasi-identifiers sex --original table.csv --compare age,price",
)
FORMATS = (".csv", ".parquet")


@dataclass(frozen=True, kw_only=True)
class RiskCommand(PrintOptions):
    """All options of `aegis risk`."""

    table: Table
    quasi_identifiers: QuasiIdentifiers = None
    request: RiskRequest
    output: Path | None = option(
        None,
        "Write the risk of each record, in the order of the table (.csv, .parquet).",
        "FILE",
        short="-o",
    )
    force: Force = False
    opening: Opening


@opens_table
def command(options: RiskCommand) -> None:
    """Measure the risk of single records: how likely it is that somebody finds their persons.

    You give a table and name its quasi-identifiers and, if it is a survey, its column of
    sampling weights. You name them by options or in a policy. For each record, Aegis
    prints the probability that somebody finds its person in the population. It also
    prints how many persons somebody finds who tries all records. On request, Aegis also
    lists records with unusual values (special uniques, SUDA), and measures how close
    masked numbers are to the original ones.
    """
    from aegis.policy import load_policy
    from aegis.release import record_risk

    request, output = options.request, options.output
    policy = None if request.policy is None else load_policy(request.policy)
    numbers = None if request.numbers is None else list(request.numbers)
    inputs = (options.table, request.original)
    check_outputs([(output, FORMATS)], force=options.force, inputs=inputs)
    with reporting(quiet=options.quiet) as progress:
        measured = record_risk(
            options.opening.source(options.table, policy, quiet=options.quiet),
            request,
            policy=policy,
            quasi_identifiers=column_names(options.quasi_identifiers) or (),
            original=None if request.original is None else open_subject(request.original),
            numbers=column_names(numbers) or (),
            progress=progress,
        )
    if output is not None:
        _write(measured, output)
    shell = options.shell
    if measured.missing == "wildcard" and not measured.unknown:
        shell.warn(
            ["No value of the quasi-identifiers is missing. If one is written NA: --null NA"]
        )
    print_risk(shell, measured, shown_location(options.table), written_dict([output]))
    shell.say(*written([output]))


def _write(measured: RecordRisk, path: Path) -> None:
    """Write a file with the risk figures of each record."""
    import pyarrow.csv as arrow_csv
    import pyarrow.parquet as parquet

    with replacing(path, private=True) as temporary:
        if path.suffix.lower() == ".parquet":
            parquet.write_table(measured.records(), temporary)
        else:
            arrow_csv.write_csv(measured.records(), temporary)
