"""`aegis worker`: work on the background jobs of a catalog."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from aegis.cli.output import Output
from aegis.cli.parameters import Quiet
from aegis.service.commands.service_options import (
    CATALOG,
    JOB_MEMORY,
    JOB_SECONDS,
    Database,
    JobMemory,
    JobSeconds,
    KeepDays,
    Objects,
    require_catalog,
    work_limits,
)

PANEL = "Serve a catalog"
"""Group of the command in the help."""
EXAMPLES = (
    "aegis worker --database catalog.db",
    "aegis worker --database postgresql://aegis@db/catalog --objects s3://releases",
)


def command(
    database: Database = CATALOG,
    objects: Objects = None,
    once: Annotated[bool, typer.Option("--once", help="Stop when no job is waiting.")] = False,
    job_seconds: JobSeconds = JOB_SECONDS,
    job_memory: JobMemory = JOB_MEMORY,
    keep_days: KeepDays = None,
    quiet: Quiet = False,
) -> None:
    """Find good configurations from the protected summaries of a catalog, and list what each reveals.

    You give the catalog's database and files. When an operator starts a search, the
    worker finds candidates, which an agent then checks on the data. When a new summary
    arrives, the worker lists what the summary reveals. `aegis serve` runs a worker by
    itself. Further workers share the jobs. Ctrl-C ends a worker.
    """
    from aegis.service.catalog import Catalog, UploadLimits
    from aegis.service.worker import Worker

    shell = Output(quiet=quiet)
    require_catalog(database)
    limits = UploadLimits(work=work_limits(job_seconds, job_memory))
    keep = None if keep_days is None else timedelta(days=keep_days)
    worker = Worker(Catalog.open(database, objects, limits=limits), keep=keep)
    shell.say(f"Working as {worker.name} (Ctrl-C ends it)")
    if once:
        while worker.once():
            continue
        worker.leave(shell.say)
        return
    try:
        worker.run(shell.say)
    except KeyboardInterrupt:  # the way to end it
        shell.say("Stopped. Start a worker again to continue.")
