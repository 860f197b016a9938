"""Commands of `aegis catalog` on jobs, and on the state of the service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from aegis.cli.output import Output, clean
from aegis.service.commands.catalog.options import SHORT
from aegis.service.commands.catalog.verb import Facts, Rows

if TYPE_CHECKING:
    from aegis.service.client import Client

Worked = Annotated[
    str,
    typer.Argument(
        metavar="NUMBER",
        help="Number of a request, for its newest job; with --job, number of a job.",
    ),
]
ByJob = Annotated[bool, typer.Option("--job", help="NUMBER is the number of a job.")]


def job(
    client: Client,
    number: Worked,
    by_job: ByJob = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Show the progress until the job ends.")
    ] = False,
) -> Facts:
    """Show the progress of a job: a search, a check, a release or a summary.

    You give a request, or with --job a job. Aegis prints its state, its progress and,
    if it failed, the reason.
    """
    matched = client.job(_job_of(client, number, by_job=by_job))
    for state in client.follow(matched["id"]) if follow else ():
        if state["progress"].get("step"):
            Output().say(f"{state['state']}: {clean(state['progress']['step'])}")
        matched = state
    keys = ("id", "kind", "state", "attempt", "progress", "error", "created", "ended")
    return {key: matched[key] for key in keys}


def cancel(client: Client, number: Worked, by_job: ByJob = False) -> None:
    """Stop a job. If the job was making a release, the release fails, and you can retry
    it.

    You give a request, or with --job a job.
    """
    ended = client.cancel(_job_of(client, number, by_job=by_job))
    Output().say(f"State of the {ended['kind']}: {ended['state']}")


def retry(client: Client, number: Worked, by_job: ByJob = False) -> None:
    """Retry a job that failed or was cancelled: a release, a search, a check or a
    summary.

    You give a request, or with --job a job. The job then waits for its agent or for a
    worker.
    """
    if not by_job and client.shown(number)["state"] == "failed":
        moved = client.step(number, "retry")
        Output().say(f"State of request {number[:SHORT]}: {moved['state']}")
        return
    again = client.retry(_job_of(client, number, by_job=by_job))
    Output().say(f"State of the {again['kind']}: {again['state']} (job {again['id'][:SHORT]})")


def _job_of(client: Client, number: str, *, by_job: bool) -> str:
    from aegis.service.catalog.errors import NotThere

    if by_job:
        return number
    matched: dict[str, Any] | None = client.shown(number)["job"]
    if matched is None:
        raise NotThere(f"Request {number} has no job.", hint="See its state: aegis catalog status.")
    return str(matched["id"])


def health(client: Client) -> None:
    """Say whether the service, its database and its files answer.

    The exit code is 2 if one of them does not.
    """
    client.health()
    Output().show("The service, its database and its files answer.")


def programs(client: Client) -> Rows:
    """List agents and workers, and when each was last seen, as an admin or auditor.

    A program that was not seen for long was killed or lost its connection. A worker
    that you stopped is not listed."""
    return client.programs()


def metrics(client: Client) -> None:
    """Show the figures of the service, as an admin or auditor.

    Aegis prints calls, jobs and requests as numbers, in the text format of Prometheus.
    """
    Output().show(client.metrics().rstrip())
