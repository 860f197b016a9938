"""Complete words when the user presses the Tab key: names from registries, and columns of the
table.

`aegis --install-completion` installs completion in the shell. Completion scans no table: columns
come from the schema of a Parquet file, or from the first megabyte of a text file. If a file cannot
be read, nothing is offered.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import typer

from aegis.errors import AegisError
from aegis.files import format_of

_START = 1 << 20


def measures(incomplete: str) -> list[str]:
    """Offer the names of measures that complete what the user has typed."""
    from aegis.measures import MEASURES

    return starting(MEASURES.names(), incomplete)


def objectives(incomplete: str) -> list[str]:
    """Offer the names of search objectives that complete what the user has typed."""
    from aegis.advisor.search.search import objective_names

    return starting(objective_names(), incomplete)


def methods(incomplete: str) -> list[str]:
    """Offer the names of record-level methods that complete what the user has typed."""
    from aegis.anonymizers import ANONYMIZERS

    return starting(ANONYMIZERS.names(), incomplete)


def columns(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the columns of the table on the command line; after a comma, offer another column."""
    before, comma, last = incomplete.rpartition(",")
    # Behind an option that has no value yet, what came before it is still to be sorted out.
    table = context.params.get("table") or next(iter(context.args), "")
    listed = before.split(",")
    return [
        f"{before}{comma}{name}"
        for name in starting(_columns_of(Path(table)), last)
        if name not in listed
    ]


def _columns_of(path: Path) -> list[str]:
    """Return the names of a table's columns; empty if they cannot be read quickly."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from aegis.sources.delimited.files import names_of
    from aegis.sources.dialect import Reading, decide
    from aegis.sources.records import opened

    try:
        if not path.is_file():
            return []
        if format_of(path) == ".parquet":
            return list(pq.read_schema(path).names)
        with opened(path) as file:
            start = file.read(_START)
        reading, complete = Reading(header=True), len(start) < _START
        names, _ = names_of(
            start, complete, decide(start, complete, reading, path.name), reading, path.name
        )
    except (AegisError, OSError, pa.ArrowException):
        return []  # an error under the cursor helps nobody: the command will say what is wrong
    return names


def starting(names: Iterable[str], incomplete: str) -> list[str]:
    """Return those `names` that begin with what the user has typed (`incomplete`)."""
    return [name for name in names if name.startswith(incomplete)]
