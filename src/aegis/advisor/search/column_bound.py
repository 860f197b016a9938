"""Bound how well every column is predicted from the others, over a box of configurations."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import numpy.typing as npt

from aegis.advisor.encodings import CodedMasks
from aegis.advisor.fold_counts import PartBlocks
from aegis.advisor.scoring import Scorer
from aegis.advisor.search.auc_bound import MaskNumbers, finest
from aegis.advisor.search.objective import OfMeasure
from aegis.advisor.search.problem import Box, Ints, Problem, Variable, is_leaf, members
from aegis.advisor.search.trace import seconds_of
from aegis.measures import Measure, explained_by_others, weighted

_REMEMBERED = 256
"""Finest masks of boxes whose explained scatter is kept: boxes often share them."""
Floats = npt.NDArray[np.float64]


class EveryColumn(OfMeasure):
    """The mean over columns of how well the other columns predict each, as an objective.

    Errors on held-out rows are no smaller than least-squares errors on all rows. The latter are
    smallest if the other columns have their finest masks in the box. Then only the mask of the
    predicted column varies: the explained scatter is grouped for each candidate, and the best
    candidate counts. So the bound is a sum of maxima, one for each column, and needs one matrix
    inverse.
    """

    bounded = True
    divides = True

    def __init__(self, problem: Problem, scorer: Scorer, measure: Measure) -> None:
        super().__init__(problem, scorer, measure)
        self._variables = problem.variables[: len(problem.summary.attributes)]
        roles = scorer.column_roles
        self._weights = np.array([roles[v.attribute.name].weight for v in self._variables])
        self._blocks: PartBlocks | None = None
        self._numbers = MaskNumbers()
        self._known: OrderedDict[tuple[int, ...], list[Floats]] = OrderedDict()
        self._groups: dict[tuple[int, int], tuple[Floats, Floats]] = {}

    def bound(self, box: Box) -> float:
        """Return an upper bound for a box; for a single configuration, its exact value."""
        if is_leaf(box):
            return self._scorer.value(self._problem.choice(box), self._measure)
        levels = finest(self._problem, box)
        if levels is None:
            return 1.0
        keys = self._numbers.of(levels)
        explained = self._explained(keys, levels)
        each = [
            max(self._reached(i, keys[i], levels[i], c, explained[i]) for c in members(domain))
            for i, domain in enumerate(box[: len(levels)])
        ]
        return float(weighted(np.array(each), self._weights))

    def effort(self, box: Box) -> float:
        """Return the approximate seconds that the fits take."""
        return seconds_of(self._problem, box)

    def _explained(self, keys: tuple[int, ...], levels: list[Ints]) -> list[Floats]:
        """Return for each column the scatter of its finest levels that the other columns explain."""
        if keys not in self._known:
            if self._blocks is None:
                self._blocks = PartBlocks(self._problem.summary.pairs)
            coded = CodedMasks(levels, keys, [None] * len(levels))
            counts = self._blocks.in_one_piece(range(len(levels)), coded)
            self._known[keys] = explained_by_others(counts)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return self._known[keys]

    def _reached(
        self, index: int, key: int, level: Ints, candidate: int, explained: Floats
    ) -> float:
        """Return an upper bound of V / (1 + V) for one candidate of a column.

        V is the explained scatter of the candidate's groups, each divided by its rows. The report
        of a noise mask is a random function of the finest levels, so its V is no larger.
        """
        if not len(explained):
            return 0.0
        if (key, candidate) not in self._groups:
            self._groups[key, candidate] = self._grouped(self._variables[index], level, candidate)
        groups, rows = self._groups[key, candidate]
        value = max(float((((explained @ groups) * groups).sum(axis=0) / rows).sum()), 0.0)
        return value / (1 + value)

    def _grouped(self, variable: Variable, level: Ints, place: int) -> tuple[Floats, Floats]:
        """Return the 0/1 matrix of finest levels by group of a candidate, shape (L, g), and rows,
        shape (g,).
        """
        pairs, candidate = self._problem.summary.pairs, variable.candidates[place]
        atoms = pairs.joints[pairs.names.index(variable.attribute.name)].sum(axis=1)
        counted = np.bincount(level, weights=atoms)
        there = np.flatnonzero(counted)
        rows: Floats = counted[there].astype(np.float64)
        if candidate.noise is not None:
            return np.eye(len(rows)), rows
        shown, numbers = self._scorer.order(variable.attribute, candidate)
        shown = candidate.levels if numbers is None else shown
        first = np.zeros(int(level.max()) + 1, dtype=np.int64)
        first[level] = np.arange(len(level))
        groups = shown[first[there]]
        indicators = np.eye(int(groups.max()) + 1)[groups]
        indicators = indicators[:, indicators.any(axis=0)]
        return indicators, rows @ indicators
