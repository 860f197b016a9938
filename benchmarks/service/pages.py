"""Pages of a large catalog, as a consumer and as an auditor."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Figure
from benchmarks.service.catalog import fill, served

if TYPE_CHECKING:
    from benchmarks.tasks import Settings

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
DATA_SETS, REQUESTS = 10_000, 100_000


def service_pages(settings: Settings) -> Iterator[Figure]:
    """Open each page of a catalog of 10,000 data sets and 100,000 requests, twenty times."""
    import httpx

    requests = min(settings.rows // 100, REQUESTS)
    words, tokens = fill(settings.folder, 50, min(requests // 10, DATA_SETS), requests)
    medians = {}
    with served(*words) as (url, _):
        for who, token in (("consumer", tokens[0]), ("auditor", tokens[-1])):
            headers = {"Authorization": f"Bearer {token}"}
            with httpx.Client(base_url=url, headers=headers, timeout=60) as caller:
                for path in PAGES:
                    medians[f"{path} as {who}"] = _median(caller, path)
    slowest, quickest = (choose(medians, key=medians.__getitem__) for choose in (max, min))
    name = f"slowest page of {requests:,} requests, median of {CALLS} calls"
    note = f"{slowest}; the quickest: {medians[quickest]:.0f} ms"
    yield Figure("service_pages", name, medians[slowest], "ms", note=note)


def _median(caller: Any, path: str) -> float:
    """Return the median of some calls in milliseconds."""
    taken = []
    for _ in range(CALLS):
        began = time.perf_counter()
        answer = caller.get(path)
        taken.append(1000 * (time.perf_counter() - began))
        answer.raise_for_status()
    return statistics.median(taken)
