"""Reconstruction: IPF against ipfn on its own example, and the size that the AEGIS paper names."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.measure import Figure

ROUNDS = 15
"""Turns of the two programs; each turn runs both, so both see the same load."""


@dataclass(frozen=True)
class Problem:
    """A table to be fitted to margins, and how often it is fitted in a turn."""

    name: str
    seed: np.ndarray[Any, np.dtype[np.float64]]
    margins: tuple[tuple[tuple[int, ...], Any], ...]
    repeat: int
    target: float | None = None


def example() -> Problem:
    """Return the example of ipfn's README: 2 x 4 x 3 cells, five margins."""
    seed = np.array(
        [
            [[1, 2, 1], [3, 5, 5], [6, 2, 2], [1, 7, 2]],
            [[5, 4, 2], [5, 5, 5], [3, 8, 7], [2, 7, 6]],
        ],
        dtype=np.float64,
    )
    margins = (
        ((0,), np.array([52.0, 48.0])),
        ((1,), np.array([20.0, 30.0, 35.0, 15.0])),
        ((2,), np.array([35.0, 40.0, 25.0])),
        ((0, 1), np.array([[9.0, 17, 19, 7], [11, 13, 16, 8]])),
        ((1, 2), np.array([[7.0, 9, 4], [8, 12, 10], [15, 12, 8], [5, 7, 3]])),
    )
    return Problem("2 x 4 x 3, the example of ipfn's README", seed, margins, 200, 10)


def two_way(atoms: int, labels: int) -> Problem:
    """Return a random seed with the two margins of a random table."""
    generator = np.random.default_rng(1)
    truth = generator.integers(1, 50, (atoms, labels)).astype(np.float64)
    seed = generator.random((atoms, labels)) + 0.1
    margins = (((0,), truth.sum(axis=1)), ((1,), truth.sum(axis=0)))
    return Problem(f"{atoms:,} x {labels}, two margins", seed, margins, 20)


def fit(problem: Problem, tolerance: float) -> Any:
    """Fit with Aegis; the margins are checked and converted each time."""
    from aegis.papers.reconstruction import Margin, ipf

    shape = problem.seed.shape
    families = [Margin(str(axes), shape, axes, totals) for axes, totals in problem.margins]
    return ipf(problem.seed, families, tolerance=tolerance).table


def reconstruction(_: object) -> Iterator[Figure]:
    """Compare with ipfn, and time the size that the paper's experiment has."""
    yield from _paper()
    try:
        from ipfn import ipfn
    except ModuleNotFoundError:
        print("reconstruction: ipfn is not installed (pip install ipfn); no comparison")
        return
    for problem in (example(), two_way(1000, 5), two_way(1200, 2)):
        dimensions = [list(axes) for axes, _totals in problem.margins]

        def theirs(problem: Problem = problem, dimensions: list[list[int]] = dimensions) -> Any:
            # It changes what it is given, so it gets copies, as its users must make them.
            totals = [totals.copy() for _axes, totals in problem.margins]
            seed = problem.seed.copy()
            return ipfn.ipfn(seed, totals, dimensions, convergence_rate=1e-6).iteration()

        reached = _residual(problem, theirs())
        tolerance = 1e-7
        while _residual(problem, fit(problem, tolerance)) > reached:
            tolerance /= 2

        def ours(problem: Problem = problem, tolerance: float = tolerance) -> Any:
            return fit(problem, tolerance)

        slow, quick = in_turns((theirs, ours), problem.repeat)
        yield Figure(
            "reconstruction",
            f"times faster than ipfn, {problem.name}",
            slow / quick,
            "x",
            problem.target,
            False,
            note=f"{slow * 1e6:,.0f} / {quick * 1e6:,.0f} us; off by at most {reached:.1e} and "
            f"{_residual(problem, ours()):.1e} rows",
        )


def _paper() -> Iterator[Figure]:
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

        (spent,) = in_turns((work,), 5)
        yield Figure("reconstruction", f"1,200 x 2 table, {method}", spent * 1e3, "ms", 5)


def in_turns(works: Sequence[Callable[[], Any]], repeat: int) -> list[float]:
    """Return the median seconds of each work, run in turns of `repeat` calls."""
    spent: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for own, work in zip(spent, works, strict=True):
            started = time.perf_counter()
            for _ in range(repeat):
                work()
            own.append((time.perf_counter() - started) / repeat)
    return [statistics.median(own) for own in spent]


def _residual(problem: Problem, table: Any) -> float:
    every = range(problem.seed.ndim)
    return max(
        float(np.abs(table.sum(axis=tuple(a for a in every if a not in axes)) - totals).max())
        for axes, totals in problem.margins
    )
