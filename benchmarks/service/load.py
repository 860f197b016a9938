"""Users in parallel who browse and request: `python -m benchmarks.service.load USERS [OPTIONS]`.

A user reads what came before clicking on: the pause between two calls is drawn from a negative
exponential distribution, as TPC-W (clause 5.3.1.1) draws it with a mean of seven seconds. Here the mean is
five seconds, unless another one is given. All users begin within one such pause. Printed: calls, errors,
how long answers took, and what each took of processor time; who runs it says on which machine, and what
else it did.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

import httpx

from aegis.service.catalog import Catalog
from benchmarks.service.place import fill, processor_time, quantile, served

SECONDS = 40.0
PAUSE = 5.0
"""Seconds between two calls of one user, on average."""
DATA_SETS = 200


class OverError(Exception):
    """The time is over: a call that is under way is waited for, none is begun."""


async def user(
    url: str, token: str, seed: int, seconds: float, pause: float, told: list[tuple[float, int]]
) -> None:
    """Browse, look at a data set, request it, look at one's requests.

    Each user calls from an address of its own: all calls of one address together are limited, too.
    """
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
            told.append((time.perf_counter() - began, answer.status_code))
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


async def load(
    url: str, tokens: list[str], seconds: float, pause: float
) -> list[tuple[float, int]]:
    """Return seconds and status of each call, of so many seconds."""
    told: list[tuple[float, int]] = []
    users = (user(url, token, n, seconds, pause, told) for n, token in enumerate(tokens))
    for ended in await asyncio.gather(*users, return_exceptions=True):
        if isinstance(ended, BaseException) and not isinstance(ended, OverError):
            raise ended
    return told


def main() -> None:
    """Run it and print the figures."""
    given = options()
    with tempfile.TemporaryDirectory() as folder:
        database = given.database or str(Path(folder) / "catalog.db")
        objects = str(Path(folder) / "objects")
        catalog = Catalog.open(database, objects)
        tokens = fill(catalog, given.users, DATA_SETS, 0)[: given.users]
        catalog.database.close()
        processes = ("--processes", str(given.processes))
        with served("--database", database, "--objects", objects, "--no-worker", *processes) as url:
            asyncio.run(
                load(url, tokens[:8], 3.0, 0.2)
            )  # what a service loads with its first calls
            before = processor_time()
            told = asyncio.run(load(url, tokens, given.seconds, given.pause))
            spent = processor_time() - before
    seconds = [second for second, _ in told]
    print(f"{given.users} users, {given.pause:g} s between calls, {given.processes} processes")
    print(f"{len(told)} calls in {given.seconds:g} s: {len(told) / given.seconds:.0f} a second")
    print(f"statuses {dict(Counter(status for _, status in told))}")
    print(f"processor time of the service: {1000 * spent / len(told):.1f} ms a call")
    print(f"p50 {quantile(seconds, 0.5):.0f} ms, p95 {quantile(seconds, 0.95):.0f} ms")


def options() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("users", type=int)
    parser.add_argument(
        "--database", help="an empty PostgreSQL database; an SQLite file without it"
    )
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--pause", type=float, default=PAUSE)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
