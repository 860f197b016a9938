"""`aegis risk`: measure the risk of single records of any table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aegis.cli.files import check_outputs, open_subject, shown, written, written_dict
from aegis.cli.opening import Opening, opens_table
from aegis.cli.options import (
    Force,
    QuasiIdentifiers,
    Table,
    column_names,
)
from aegis.cli.output import PrintOptions
from aegis.cli.pages.risk import print_risk
from aegis.cli.progress import reporting
from aegis.errors import PolicyError
from aegis.options import option
from aegis.requests import RiskRequest

if TYPE_CHECKING:
    from aegis.release import RecordRisk

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
    asked: RiskRequest
    output: Path | None = option(
        None,
        "Write the risk of each record, in the order of the table (.csv, .parquet).",
        "FILE",
        short="-o",
    )
    force: Force = False
    opening: Opening


@opens_table
def command(given: RiskCommand) -> None:
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
    from aegis.sources import Source

    request, output = given.asked, given.output
    policy = None if request.policy is None else load_policy(request.policy)
    numbers = None if request.numbers is None else list(request.numbers)
    inputs = (given.table, request.original)
    check_outputs([(output, FORMATS)], force=given.force, inputs=inputs)
    with reporting(quiet=given.quiet) as progress:
        subject = given.opening.subject(given.table, policy, quiet=given.quiet)
        if not isinstance(subject, Source):
            raise PolicyError(
                f"{given.table} is a summary, which holds no records.",
                hint="Give the table itself.",
            )
        measured = record_risk(
            subject,
            request,
            policy=policy,
            quasi_identifiers=column_names(given.quasi_identifiers) or (),
            original=None if request.original is None else open_subject(request.original),
            numbers=column_names(numbers) or (),
            progress=progress,
        )
    if output is not None:
        _write(measured, output)
    shell = given.shell
    if measured.missing == "wildcard" and not measured.unknown:
        shell.warn(
            ["No value of the quasi-identifiers is missing. If one is written NA: --null NA"]
        )
    print_risk(shell, measured, shown(given.table), written_dict([output]))
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
