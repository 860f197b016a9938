"""`aegis worker`: work on the background jobs of a catalog."""

from __future__ import annotations

import threading
from typing import Annotated

import typer

from aegis.cli.options import Quiet
from aegis.cli.output import Output

EXAMPLES = (
    "aegis worker --database catalog.db",
    "aegis worker --database postgresql://aegis@db/catalog --objects s3://releases",
)


def command(
    database: Annotated[
        str,
        typer.Option(
            "--database", metavar="FILE", help="SQLite file of the catalog, or postgresql://... ."
        ),
    ] = "aegis-catalog.db",
    objects: Annotated[
        str | None,
        typer.Option(
            "--objects",
            metavar="FOLDER",
            help="Folder or URL (s3://...) of files; by default beside the SQLite file.",
            show_default=False,
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Stop when no job is waiting.")] = False,
    job_seconds: Annotated[
        float,
        typer.Option("--job-seconds", metavar="SECONDS", min=1, help="Most seconds of one job."),
    ] = 900.0,
    job_memory: Annotated[
        float,
        typer.Option(
            "--job-memory", metavar="GIB", min=0.5, help="Most memory of one job, in GiB (Linux)."
        ),
    ] = 4.0,
    quiet: Quiet = False,
) -> None:
    """Search and audit the protected summaries of a catalog.

    In: the catalog's database and files. Out: for each request that an operator has
    searched the candidates that an agent then checks beside the data, and for each
    new summary what it gives away. `aegis serve` runs a worker by itself; more of
    them share the jobs. Ends with Ctrl-C.
    """
    from aegis.catalog import Catalog, Limits
    from aegis.catalog.limited import WorkLimits
    from aegis.service.worker import Worker

    shell = Output(quiet=quiet)
    limits = Limits(work=WorkLimits(job_seconds, int(job_memory * (1 << 30))))
    own = Worker(Catalog.open(database, objects, limits=limits))
    shell.say(f"Working as {own.name} (Ctrl-C ends it)")
    pause = threading.Event()
    while True:
        worked = own.once()
        if not worked and once:
            return
        if not worked:
            pause.wait(0.5)
