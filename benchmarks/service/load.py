"""Users in parallel who browse the catalog and request data.

A user reads what came before clicking on: the pause between two calls is drawn from a negative
exponential distribution, as TPC-W (clause 5.3.1.1) draws it with a mean of seven seconds. Here the mean is
five seconds. All users begin within one such pause.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from benchmarks.measure import Figure, SkipError
from benchmarks.postgres import running_server
from benchmarks.processes import seconds_of
from benchmarks.service.catalog import fill, served

if TYPE_CHECKING:
    import httpx

    from benchmarks.tasks import Settings

SECONDS = 40.0
PAUSE = 5.0
"""Seconds between two calls of one user, on average."""
DATA_SETS = 200


def service_load(settings: Settings) -> Iterator[Figure]:
    """Answer 50 users from SQLite by one process, and 200 users from PostgreSQL by two."""
    yield from _loaded(settings, "SQLite", 50, 1)
    try:
        with running_server() as server:
            yield from _loaded(settings, "PostgreSQL", 200, 2, server.new_database())
    except SkipError as why:
        print(f"service_load: PostgreSQL skipped, {why}")


def _loaded(
    settings: Settings, engine: str, users: int, processes: int, database: str | None = None
) -> Iterator[Figure]:
    words, tokens = fill(settings.folder, users, DATA_SETS, 0, database)
    with served(*words, "--processes", processes) as (url, process):
        # What a service loads with its first calls is no part of the figures.
        asyncio.run(_load(url, tokens[:8], 3.0, 0.2))
        before = seconds_of(process)
        answers = asyncio.run(_load(url, tokens[:users], SECONDS, PAUSE))
        spent = seconds_of(process) - before
    milliseconds = [1000 * seconds for seconds, _ in answers]
    cuts = statistics.quantiles(milliseconds, n=100, method="inclusive")
    errors = sum(status >= 400 for _, status in answers)
    how = f"{users} users, {engine}, {processes} process{'es' if processes > 1 else ''}"
    note = f"{len(answers)} calls, a pause of {PAUSE:g} s between two calls of a user"
    for name, value, unit in (
        ("p95", cuts[94], "ms"),
        ("p50", cuts[49], "ms"),
        ("errors", errors, ""),
        ("calls", len(answers) / SECONDS, "1/s"),
        ("processor time a call", 1000 * spent / len(answers), "ms"),
    ):
        yield Figure("service_load", f"{how}, {name}", value, unit, note=note)


class OverError(Exception):
    """The time is over: a call that is under way is waited for, none is begun."""


async def _user(
    url: str, token: str, seed: int, seconds: float, pause: float, answers: list[tuple[float, int]]
) -> None:
    """Browse, look at a data set, request it, look at one's requests.

    Each user calls from an address of its own: all calls of one address together are limited, too.
    """
    import httpx

    draw = random.Random(seed)
    headers = {"Authorization": f"Bearer {token}"}
    end = time.monotonic() + seconds
    # Without `verify` each of the transports would read all certificate authorities, which are not asked.
    own = httpx.AsyncHTTPTransport(local_address=f"127.0.1.{seed + 1}", verify=False)
    async with httpx.AsyncClient(
        base_url=url, headers=headers, timeout=60, transport=own, trust_env=False
    ) as caller:

        async def call(method: str, path: str, body: object = None) -> httpx.Response:
            await asyncio.sleep(draw.expovariate(1 / pause))
            if time.monotonic() > end:
                raise OverError
            began = time.perf_counter()
            answer = await caller.request(method, path, json=body)
            answers.append((time.perf_counter() - began, answer.status_code))
            return answer

        while True:
            name = f"set-{draw.randrange(DATA_SETS)}"
            await call("GET", f"/?words={name}")
            await call("GET", f"/data-sets/{name}")
            await call("GET", f"/api/v1/data-sets/{name}/costs")
            body = {"data_set": name, "purpose": "A study", "terms_accepted": True}
            made = await call("POST", "/api/v1/requests", body)
            if made.status_code == 200:
                await call("POST", f"/api/v1/requests/{made.json()['id']}/submit", {})
            await call("GET", "/requests")


async def _load(
    url: str, tokens: list[str], seconds: float, pause: float
) -> list[tuple[float, int]]:
    """Return seconds and status of each call, of so many seconds."""
    answers: list[tuple[float, int]] = []
    users = (_user(url, token, n, seconds, pause, answers) for n, token in enumerate(tokens))
    for ended in await asyncio.gather(*users, return_exceptions=True):
        if isinstance(ended, BaseException) and not isinstance(ended, OverError):
            raise ended
    return answers
