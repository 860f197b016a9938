"""Reconstruction of a table of the size that the AEGIS paper names."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.measure import Figure

ROUNDS = 15
"""Number of rounds, whose median counts."""


def reconstruction(_: object) -> Iterator[Figure]:
    """Yield the time of a 1,200 x 2 table, by closed form and by the published IPF."""
    from aegis.papers.reconstruction import Evidence, MaskedJoint, Settings, reconstruct

    generator = np.random.default_rng(2)
    codes = np.arange(1200) // 60
    joint = np.stack([np.bincount(codes, generator.integers(0, 9, 1200)) for _ in range(2)], axis=1)
    masked = MaskedJoint("buckets of 60", codes, joint)
    evidence = Evidence(1200, 2, (masked,))
    settings = Settings(tolerance=1e-6, max_sweeps=1000)
    for method in ("closed-form", "ipf"):

        def work(method: str = method) -> Any:
            return reconstruct(evidence, method, settings=settings)

        spent = _median_seconds(work)
        yield Figure("reconstruction", f"1,200 x 2 table, {method}", spent * 1e3, "ms", 5)


def _median_seconds(work: Callable[[], Any], repeat: int = 5) -> float:
    """Return the median seconds of a work over `ROUNDS` rounds of `repeat` calls."""
    spent = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for _ in range(repeat):
            work()
        spent.append((time.perf_counter() - started) / repeat)
    return statistics.median(spent)
