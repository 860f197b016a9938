"""Pages of a catalog with 10,000 data sets and 100,000 requests: `python -m benchmarks.service.scale`.

Printed for each page: the median of twenty calls, as a consumer and as an auditor.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import httpx

from aegis.service.catalog import Catalog
from benchmarks.service.place import fill, quantile, served

PAGES = (
    "/",
    "/?words=Data+set+77",
    "/?words=education",
    "/?offset=9950",
    "/data-sets/set-77",
    "/requests",
    "/requests?state=submitted",
    "/requests?offset=1000",
    "/log",
)
CALLS = 20


def main() -> None:
    """Run it and print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        database = sys.argv[1] if len(sys.argv) > 1 else str(Path(folder) / "catalog.db")
        objects = str(Path(folder) / "objects")
        tokens = fill(Catalog.open(database, objects), 50, 10_000, 100_000)
        with served("--database", database, "--objects", objects, "--no-worker") as url:
            for who, token in (("consumer", tokens[0]), ("auditor", tokens[-1])):
                headers = {"Authorization": f"Bearer {token}"}
                with httpx.Client(base_url=url, headers=headers, timeout=60) as caller:
                    for path in PAGES:
                        print(f"{who:9} {path:28} {median(caller, path):6.0f} ms")


def median(caller: httpx.Client, path: str) -> float:
    """Return the median of some calls in milliseconds."""
    taken = []
    for _ in range(CALLS):
        began = time.perf_counter()
        answer = caller.get(path)
        taken.append(time.perf_counter() - began)
        answer.raise_for_status()
    return quantile(taken, 0.5)


if __name__ == "__main__":
    main()
