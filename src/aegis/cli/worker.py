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
    quiet: Quiet = False,
) -> None:
    """Search for requests of a catalog, from protected summaries.

    In: the catalog's database and files. Out: for each request that an operator has
    searched the candidates that an agent then checks beside the data. `aegis serve`
    runs a worker by itself; more of them share the jobs. Ends with Ctrl-C.
    """
    from aegis.catalog import Catalog
    from aegis.service.worker import Worker

    shell = Output(quiet=quiet)
    own = Worker(Catalog.open(database, objects))
    shell.say(f"Working as {own.name} (Ctrl-C ends it)")
    pause = threading.Event()
    while True:
        worked = own.once()
        if not worked and once:
            return
        if not worked:
            pause.wait(0.5)
