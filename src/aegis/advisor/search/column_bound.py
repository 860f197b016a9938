"""Bound how well every column is predicted from the others, over a box of configurations."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import numpy.typing as npt

from aegis.advisor.encodings import CodedMasks
from aegis.advisor.fold_counts import PartBlocks
from aegis.advisor.scoring import Scorer
from aegis.advisor.search.auc_bound import FinestMasks, work_at
from aegis.advisor.search.objective import OfMeasure
from aegis.advisor.search.problem import Box, Ints, Problem, Variable, members
from aegis.array_cache import Remembered
from aegis.measures import Measure, explained_by_others, weighted

_REMEMBERED = 256
"""Number of finest masks whose explained scatter is cached, because boxes often share them."""
Floats = npt.NDArray[np.float64]


class EveryColumn(OfMeasure):
    """An objective: how well each column is predicted by the other columns, averaged over columns.

    Errors on held-out rows are no smaller than least-squares errors on all rows. Least-squares
    errors are smallest if the other columns have the finest masks of the box. So for the bound,
    only the mask of the predicted column varies: the explained scatter is grouped by each
    candidate, and the best candidate counts. So the bound is a sum of maxima, one for each column,
    and needs only one matrix inverse.
    """

    divides = True

    def __init__(self, problem: Problem, scorer: Scorer, measure: Measure) -> None:
        super().__init__(problem, scorer, measure)
        self._variables = problem.variables[: len(problem.summary.attributes)]
        roles = scorer.column_roles
        self._weights = np.array([roles[v.attribute.name].weight for v in self._variables])
        self._blocks: PartBlocks | None = None
        self._masks = FinestMasks(problem)
        self._known: Remembered[tuple[Hashable, ...], list[Floats]] = Remembered(_REMEMBERED)
        self._groups: dict[tuple[Hashable, int], tuple[Floats, Floats]] = {}

    def _over(self, box: Box) -> float:
        return self.upper(box)

    def upper(self, box: Box) -> float:
        """Return an upper bound from least squares, which is quicker to compute than an exact
        value.
        """
        if box in self._scored:
            return self._scored[box]
        coded = self._masks.coded(box)
        if coded is None:
            return 1.0
        explained = self._explained(coded)
        each = [
            max(self._reached(i, coded, c, explained[i]) for c in members(box[i]))
            for i in range(len(explained))
        ]
        return float(weighted(np.array(each), self._weights))

    def _explained(self, coded: CodedMasks) -> list[Floats]:
        """Return for each column the scatter of its finest levels that the other columns explain."""

        def make() -> list[Floats]:
            if self._blocks is None:
                self._blocks = PartBlocks(self._problem.summary.pairs)
            self._problem.work.add(work_at(coded))
            return explained_by_others(self._blocks.counts(range(len(coded.keys)), coded))

        return self._known.get(tuple(coded.keys), make)

    def _reached(self, index: int, coded: CodedMasks, candidate: int, explained: Floats) -> float:
        """Return an upper bound of V / (1 + V) for one candidate of a column.

        V is the explained scatter of the candidate's groups, each divided by its rows. The report
        of a noise mask is a random function of the finest levels, so its V is no larger.
        """
        if not len(explained):
            return 0.0
        key = coded.keys[index], candidate
        if key not in self._groups:
            variable, level = self._variables[index], coded.levels[index]
            self._groups[key] = self._grouped(variable, level, candidate)
        groups, rows = self._groups[key]
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
