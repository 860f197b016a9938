"""Bound measures that are a mean over pairs of attributes."""

from __future__ import annotations

from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from aegis.advisor.scoring import Scorer
from aegis.advisor.search.objective import OfMeasure
from aegis.advisor.search.problem import Box, Problem, members
from aegis.measures import Measure

_SECONDS_PER_CELL = 2e-8
"""Approximate time to read one cell of a pair of attributes."""


class Pairwise(OfMeasure):
    """An objective: the mean over pairs of attributes i and j of a value w_ij(a, b), if i has mask
    a and j has mask b.

    The value of a pair is divided equally between its two attributes. Attribute i with mask a
    contributes 1/2 sum_j w_ij(a, b_j), which is at most 1/2 sum_j max_b w_ij(a, b). The bound of a
    box takes, for each attribute i, the largest such value of the candidates a in its domain, and
    adds these values. It is exact for a single configuration. It is valid even if values do not
    grow with finer masks, and it needs no label.
    """

    def __init__(self, problem: Problem, scorer: Scorer, measure: Measure) -> None:
        super().__init__(problem, scorer, measure)
        self._variables = problem.variables[: len(problem.summary.attributes)]
        sizes = [len(v.candidates) for v in self._variables]
        self._starts = np.cumsum([0, *sizes])[:-1]
        self._owner = np.repeat(np.arange(len(sizes)), sizes)
        self._pairs = max(len(sizes) * (len(sizes) - 1), 2) / 2

    @cached_property
    def _halves(self) -> npt.NDArray[np.float64]:
        """Half of the signed value of each pair of candidates, shape (M, M)."""
        total = len(self._owner)
        halves = np.zeros((total, total))
        for i, j in combinations(range(len(self._variables)), 2):
            for a, first in enumerate(self._variables[i].candidates):
                for b, other in enumerate(self._variables[j].candidates):
                    value = self._scorer.pair((i, j), (first, other), self._measure)
                    at = self._starts[i] + a, self._starts[j] + b
                    halves[at] = halves[at[::-1]] = self.sign * value / 2
        return halves / self._pairs

    def _over(self, box: Box) -> float:
        left = np.zeros(len(self._owner), dtype=np.bool_)
        for start, domain in zip(self._starts, box, strict=False):
            left[start + np.array(members(domain))] = True
        # Of each candidate left: the best partner in each other attribute.
        partners = np.where(left, self._halves[left], -np.inf)
        best = np.maximum.reduceat(partners, self._starts, axis=1)
        own = self._owner[left]
        best[np.arange(len(own)), own] = 0.0
        return float(np.maximum.reduceat(best.sum(axis=1), _changes(own)).sum())

    def effort(self, box: Box) -> float:  # noqa: ARG002 - the protocol's signature
        """Return the approximate seconds to count all pairs; only the first configuration needs
        this.
        """
        cells = sum(map(len, self._problem.summary.pairs.index.values()))
        return _SECONDS_PER_CELL * cells


def _changes(own: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the index at which each run of equal numbers in `own` begins."""
    return np.flatnonzero(np.diff(own, prepend=-1))
