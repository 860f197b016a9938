"""Users in parallel who browse and request: `python -m benchmarks.service.load 50 [DATABASE]`.

Each user waits a second on average between two calls. Printed: calls, errors, and how long answers
took; who runs it says on which machine, and what else it did.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import httpx

from aegis.catalog import Catalog
from benchmarks.service.place import fill, processor_time, quantile, served

SECONDS = 30.0
DATA_SETS = 200


async def user(
    url: str, token: str, seed: int, seconds: float, told: list[tuple[float, int]]
) -> None:
    """Browse, look at a data set, request it, look at one's requests.

    Each user calls from an address of its own: all calls of one address together are limited, too.
    """
    draw = random.Random(seed)
    headers = {"Authorization": f"Bearer {token}"}
    end = time.monotonic() + seconds
    own = httpx.AsyncHTTPTransport(local_address=f"127.0.1.{seed + 1}")
    async with httpx.AsyncClient(
        base_url=url, headers=headers, timeout=60, transport=own
    ) as caller:

        async def call(method: str, path: str, body: object = None) -> httpx.Response:
            await asyncio.sleep(draw.expovariate(1.0))
            began = time.perf_counter()
            answer = await caller.request(method, path, json=body)
            told.append((time.perf_counter() - began, answer.status_code))
            return answer

        while time.monotonic() < end:
            name = f"set-{draw.randrange(DATA_SETS)}"
            await call("GET", f"/?words={name}")
            await call("GET", f"/data-sets/{name}")
            await call("GET", f"/api/v1/data-sets/{name}/costs")
            body = {"data_set": name, "purpose": "A study", "terms_accepted": True}
            made = await call("POST", "/api/v1/requests", body)
            if made.status_code == 200:
                await call("POST", f"/api/v1/requests/{made.json()['id']}/submit", {})
            await call("GET", "/requests")


async def load(url: str, tokens: list[str], seconds: float) -> list[tuple[float, int]]:
    """Return seconds and status of each call, of so many seconds."""
    told: list[tuple[float, int]] = []
    users = (user(url, token, n, seconds, told) for n, token in enumerate(tokens))
    await asyncio.gather(*users)
    return told


def main() -> None:
    """Run it and print the figures."""
    users = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        database = sys.argv[2] if len(sys.argv) > 2 else str(Path(folder) / "catalog.db")
        objects = str(Path(folder) / "objects")
        tokens = fill(Catalog.open(database, objects), users, DATA_SETS, 0)[:users]
        with served("--database", database, "--objects", objects, "--no-worker") as url:
            asyncio.run(load(url, tokens[:3], 3.0))  # what a service loads with its first calls
            before = processor_time()
            told = asyncio.run(load(url, tokens, SECONDS))
            spent = processor_time() - before
    seconds = [second for second, _ in told]
    print(f"{users} users, {len(told)} calls in {SECONDS:g} s")
    print(f"statuses {dict(Counter(status for _, status in told))}")
    print(f"processor time of the service: {1000 * spent / len(told):.1f} ms a call")
    print(f"p50 {quantile(seconds, 0.5):.0f} ms, p95 {quantile(seconds, 0.95):.0f} ms")


if __name__ == "__main__":
    main()
