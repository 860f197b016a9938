"""`aegis risk`: the risk of single records of any table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aegis.cli import completion
from aegis.cli.files import check_outputs, open_subject, shown, written, written_dict
from aegis.cli.opening import DEFAULT, Opening, opens_table
from aegis.cli.options import (
    Force,
    Format,
    FormatOption,
    QuasiIdentifiers,
    Quiet,
    Table,
    column_names,
)
from aegis.cli.output import Output
from aegis.cli.pages.risk import print_risk
from aegis.cli.progress import reporting
from aegis.errors import PolicyError

if TYPE_CHECKING:
    from aegis.release import RecordRisk

EXAMPLES = (
    "aegis risk table.csv --quasi-identifiers age,sex,zip --weight price",
    "aegis risk table.csv --quasi-identifiers age,sex,zip --special --fraction 0.02",
    "aegis risk table.csv --quasi-identifiers age,sex --missing wildcard -o records.csv",
    "aegis risk table.csv --quasi-identifiers sex --original table.csv --compare age,price",
)
FORMATS = (".csv", ".parquet")


@opens_table
def command(
    table: Table,
    quasi_identifiers: QuasiIdentifiers = None,
    weight: Annotated[
        str | None,
        typer.Option(
            "--weight",
            metavar="COLUMN",
            autocompletion=completion.columns,
            help="Column that says how many people each record stands for. Without it each stands "
            "for itself.",
        ),
    ] = None,
    missing: Annotated[
        str,
        typer.Option(
            "--missing",
            metavar="value|wildcard",
            help="What a missing value says: it is a value of its own, or agrees with any.",
        ),
    ] = "value",
    approximate: Annotated[
        bool,
        typer.Option(
            "--approximate",
            help="Take the approximation of the risk that sdcMicro takes by default.",
        ),
    ] = False,
    special: Annotated[
        bool,
        typer.Option(
            "--special",
            help="Find special uniques as well (SUDA): records that few of their values single out.",
        ),
    ] = False,
    largest: Annotated[
        int | None,
        typer.Option(
            "--largest",
            metavar="N",
            min=1,
            help="Look for sets of at most so many columns on which a record is alone; by default "
            "all of them.",
        ),
    ] = None,
    fraction: Annotated[
        float,
        typer.Option(
            "--fraction",
            metavar="SHARE",
            help="Share of the population that the table is a sample of, for the chances of special "
            "uniques.",
        ),
    ] = 0.01,
    original: Annotated[
        str | None,
        typer.Option(
            "--original",
            metavar="TABLE",
            help="The table before masking, the same records in the same order, to compare numbers.",
        ),
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            "--compare",
            metavar="A,B,...",
            autocompletion=completion.columns,
            help="Columns of numbers to compare with those of --original.",
        ),
    ] = None,
    interval: Annotated[
        float,
        typer.Option(
            "--interval",
            metavar="SHARE",
            help="How close an original number is to be found, in standard deviations of the masked "
            "column.",
        ),
    ] = 0.05,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the figures of each record, in the order of the table (.csv, .parquet).",
        ),
    ] = None,
    force: Force = False,
    opening: Opening = DEFAULT,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
    quiet: Quiet = False,
) -> None:
    """Measure the risk of single records: of a sample, of special uniques, of masked numbers.

    In: a table and its quasi-identifiers; a column of sampling weights where there is
    one. Out: the chance to find the person behind each record in the population, how
    many are found if all are tried, and on request special uniques (SUDA) and how close
    masked numbers are to the original ones.
    """
    from aegis.release import record_risk
    from aegis.sources import Source

    check_outputs([(output, FORMATS)], force=force, inputs=(table, original))
    with reporting(quiet=quiet) as progress:
        subject = opening.subject(table, quiet=quiet)
        if not isinstance(subject, Source):
            raise PolicyError(
                f"{table} is a summary, which holds no records.", hint="Give the table itself."
            )
        measured = record_risk(
            subject,
            quasi_identifiers=column_names(quasi_identifiers) or (),
            weight=weight,
            missing=missing,
            approximate=approximate,
            special=special,
            largest=largest,
            fraction=fraction,
            original=None if original is None else open_subject(original),
            numbers=column_names(compare) or (),
            interval=interval,
            progress=progress,
        )
    if output is not None:
        _write(measured, output)
    shell = Output(format, quiet)
    if measured.missing == "wildcard" and not measured.unknown:
        shell.warn(
            ["No value of the quasi-identifiers is missing. If one is written NA: --null NA"]
        )
    print_risk(shell, measured, shown(table), written_dict([output]))
    shell.say(*written([output]))


def _write(measured: RecordRisk, path: Path) -> None:
    """Write the figures of each record."""
    import pyarrow.csv as arrow_csv
    import pyarrow.parquet as parquet

    from aegis.files import replacing

    with replacing(path) as temporary:
        if path.suffix.lower() == ".parquet":
            parquet.write_table(measured.records(), temporary)
        else:
            arrow_csv.write_csv(measured.records(), temporary)
