"""Options that `serve`, `worker` and `catalog` share: the location of a catalog, and limits of a job."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aegis.cli.parameters import file_option
from aegis.errors import DataError

if TYPE_CHECKING:
    from aegis.service.catalog.limited import WorkLimits

CATALOG = "aegis-catalog.db"
JOB_SECONDS = 900.0
JOB_MEMORY = 4.0
"""Default limit of the memory of a job, in GiB."""
MOST_DAYS = 36_500

Database = Annotated[
    str,
    file_option(
        "--database",
        text="The catalog's database: a SQLite file, or the URL of a PostgreSQL database "
        "(postgresql://...).",
    ),
]
Objects = Annotated[
    str | None,
    typer.Option(
        "--objects",
        metavar="FOLDER",
        help="Folder or URL (s3://...) of files; by default next to the SQLite file.",
    ),
]
JobSeconds = Annotated[
    float,
    typer.Option(
        "--job-seconds", metavar="SECONDS", min=1, help="Time limit of a job, in seconds."
    ),
]
JobMemory = Annotated[
    float,
    typer.Option(
        "--job-memory", metavar="GIB", min=0.5, help="Memory limit of a job, in GiB (Linux)."
    ),
]
KeepDays = Annotated[
    float | None,
    typer.Option(
        "--keep-days",
        metavar="DAYS",
        min=0,
        max=MOST_DAYS,
        help="Remove the file of a release this many days after the release ended. Without this "
        "option, files stay.",
    ),
]


def require_catalog(database: str) -> None:
    """Raise `DataError` if the catalog is an SQLite file that does not exist."""
    if "://" not in database and not Path(database).exists():
        raise DataError(
            f"There is no catalog {database}.",
            hint="Name its file with --database. `aegis serve` and `aegis catalog account` make a new one.",
        )


def work_limits(seconds: float | None, gib: float | None) -> WorkLimits | None:
    """Return the limits of one job, in seconds and in GiB of memory; None without any."""
    from aegis.service.catalog.limited import WorkLimits

    if seconds is None and gib is None:
        return None
    most = None if gib is None else int(gib * (1 << 30))
    return WorkLimits(math.inf if seconds is None else seconds, most)
