"""Compute Pillai's trace as an objective: an exact value for a configuration, a bound for a box of
configurations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aegis.advisor.grouping import RowGroups, group_classes, stacked_grouping
from aegis.advisor.search.objective import CUBED, Objective, seconds_of
from aegis.advisor.search.problem import Box, Problem, Variable, is_leaf
from aegis.array_cache import Remembered, remembered
from aegis.arrays import Array, Integers, Ints
from aegis.measures import pillai_trace
from aegis.measures.partial_trace import Given, GroupedLevels
from aegis.measures.pillai import PillaiFit

Key = tuple[int, ...]
"""A key of groupings: for each variable, the number of its grouping."""
_LEVELS = 1024
"""Largest number of levels, of all attributes together, for which a box is fitted before it is split."""
_FIT = 3e-4
"""Work of a fit in any case."""
_CACHED = 1 << 27
"""Size of the cache of grouped attributes, in bytes."""
_DENSE = 1 << 11
"""Largest number of levels whose counts are stored in a dense array."""


class Pillai(Objective):
    """An objective: Pillai's trace of the attributes' indicators (0 or 1 for each level) and the
    label, without correction (plug-in) or adjusted for chance. A box is a set of candidate masks
    for each attribute.

    The plug-in trace V cannot grow when indicators are grouped, because the column space shrinks.
    So a bound for a box is the V of its finest grouping, in which each variable has the common
    refinement of its candidates. The adjusted trace is

        V - (L - V) d / (N - d - 1),

    where L is the number of classes minus one, d the rank of the indicators, and N the number of
    rows. L and d are smallest for the coarsest grouping of the box. So a bound is V - max(0, L - V)
    d / (N - d - 1), with the V of the finest grouping, and the L and d of the coarsest grouping.
    For a single configuration, the bound is exact.

    A noise mask counts as the unmasked atoms in the finest grouping, and as one level in the
    coarsest grouping. Given the atoms, the noisy values are independent of everything else, so they
    cannot increase V. The rank d, before its reduction for noise, cannot fall below the rank of the
    other attributes alone. No trace exceeds the number of classes minus one; this is the bound of a
    box whose finest grouping has too many levels to fit.
    """

    sign = 1
    divides = True

    def __init__(self, problem: Problem, name: str, *, adjusted: bool) -> None:
        self.name = name
        self._problem = problem
        self._adjusted = adjusted
        self._rows = problem.summary.pairs.n
        self._noisy = [j for j, variable in enumerate(problem.variables) if variable.channels]
        self._bounds: dict[Box, float] = {}
        self._corners = _Corners(problem)

    def bound(self, box: Box) -> float:
        """Return an upper bound of the trace over a box (a set of candidate masks for each
        attribute). For a single configuration, the result is exact.
        """
        if box not in self._bounds:
            self._bounds[box] = self._bound(box)
        return self._bounds[box]

    def effort(self, box: Box) -> float:
        """Return about how many seconds `bound` takes for a box (a set of candidate masks for each
        attribute); 0 if its result is cached.
        """
        return 0.0 if box in self._bounds else seconds_of(self._problem, box)

    def _bound(self, box: Box) -> float:
        """Return the upper bound of the trace, computed from the finest and the coarsest grouping
        of a box (a set of candidate masks for each attribute).
        """
        levels = self._corners.levels(box)
        if levels > _LEVELS and not is_leaf(box):
            return float(self._problem.summary.pairs.classes - 1)  # no trace is larger
        self._problem.work.add(_FIT + CUBED * float(levels) ** 3)
        fine, _ = self._corners.fit(box, finest=True)
        if not self._adjusted:
            return fine.trace
        if is_leaf(box):
            return fine.adjusted
        coarse, classes = self._corners.fit(box, finest=False)
        freedom = self._rows - coarse.rank - 1
        if freedom <= 0:
            return fine.trace
        bound = fine.trace - max(0.0, classes - 1 - fine.trace) * coarse.rank / freedom
        # A configuration without a degree of freedom left counts as 0 (see PillaiFit).
        undecided = (j for j in self._noisy if box[j] & (box[j] - 1))
        noise = sum(self._problem.variables[j].most_levels(box[j]) for j in undecided)
        return bound if self._rows - fine.rank - noise - 1 > 0 else max(bound, 0.0)


@dataclass(frozen=True)
class _Counts:
    """Counts of the attributes whose masks a search chooses, by the levels that some candidate
    distinguishes.

    All counts that a search needs are sums of these, and there are fewer of them than of pairs of
    atoms in the summary. Attributes with a single candidate are eliminated, unless that loses
    precision.

    Attributes
    ----------
    counts
        Sums of the counts, or what the eliminated attributes do not explain of them.
    offsets
        Index of each attribute's first level, shape (m + 1,).
    atoms
        For each attribute, one atom of the summary for each of its levels.
    places
        Indices of the variables of the search among all, shape (m,).
    """

    counts: RowGroups | Given
    offsets: Ints
    atoms: tuple[Integers, ...]
    places: tuple[int, ...]

    @classmethod
    def of(cls, problem: Problem) -> _Counts:
        """Return the counts of a problem, after the elimination."""
        attributes = problem.variables[: len(problem.summary.attributes)]
        levels = [_told_apart(variable) for variable in attributes]
        grouping, offsets = stacked_grouping(levels)
        pairs = problem.summary.pairs
        total = (grouping.T @ pairs.total) @ grouping
        if not isinstance(total, np.ndarray) and offsets[-1] <= _DENSE:
            total = total.toarray()
        if isinstance(total, np.ndarray):
            total = np.ascontiguousarray(total)
        atoms = tuple(np.unique(own, return_index=True)[1] for own in levels)
        joint = grouping.T @ pairs.stacked_joint
        chosen = len(problem.variables) > len(attributes) or any(v.channels for v in attributes)
        stays = np.array([len(variable.candidates) == 1 for variable in attributes])
        if not chosen and isinstance(total, np.ndarray):
            for fixed in (stays, np.zeros_like(stays)):
                given = Given.of(total, joint, pairs.n, offsets, fixed)
                if given is not None:
                    places = tuple(np.flatnonzero(~fixed).tolist())
                    starts = np.concatenate([[0], np.cumsum(np.diff(offsets)[~fixed])])
                    return cls(given, starts, tuple(atoms[place] for place in places), places)
        groups = RowGroups(lambda: total, joint, offsets)
        return cls(groups, offsets, atoms, tuple(range(len(problem.variables))))


def _told_apart(variable: Variable) -> Integers:
    """Return the level of each of A atoms under the common refinement of a variable's candidates,
    shape (A,). An atom is a set of values that all candidates treat in the same way.

    If a candidate adds noise, every atom is a level.
    """
    if variable.channels:
        return np.arange(len(variable.candidates[0].levels))
    return variable.level_join(variable.full)


class _Corners:
    """Computes Pillai's trace for the finest and the coarsest grouping of a box (a set of candidate
    masks for each attribute).

    Different boxes may have the same grouping, so fits are cached by grouping.
    """

    def __init__(self, problem: Problem) -> None:
        counts = _Counts.of(problem)
        self._variables = problem.variables
        self._counts, self._atoms, self._places = counts.counts, counts.atoms, counts.places
        self._offsets = counts.offsets
        self._grouped: Remembered[int, GroupedLevels] = Remembered(
            _CACHED, lambda groups: groups.covariances.nbytes + groups.indicators.nbytes
        )
        self._rows = problem.summary.pairs.n
        self._known: dict[tuple[int, bytes], int] = {}
        self._levels: list[Array] = []
        self._sizes: list[int] = []

    def fit(self, box: Box, *, finest: bool) -> tuple[PillaiFit, int]:
        """Return the fit of Pillai's trace for the finest grouping of a box (a set of candidate
        masks for each attribute), and the number of label classes. If `finest` is False, use the
        coarsest grouping.
        """
        numbers = enumerate(self._places)
        return self._fitted(tuple([self._number(j, box[place], finest) for j, place in numbers]))

    @remembered
    def _fitted(self, key: Key) -> tuple[PillaiFit, int]:
        """Return the fit of Pillai's trace, and the number of label classes. `key` has the index of
        each attribute's grouping in the list `_levels`, then the index of the label's grouping if
        it has candidates.

        The fit uses the counts of all pairs of groups; with noise masks, the expected counts.
        """
        numbers, label = key[: len(self._atoms)], key[len(self._atoms) :]
        counts = self._counts
        if isinstance(counts, Given):
            groups = [self._groups_of(counts, i, number) for i, number in enumerate(numbers)]
            return counts.fit(groups), counts.classes
        grouped = counts.counts([self._levels[number] for number in numbers])
        joint = group_classes(grouped.joint, self._levels[label[0]]) if label else grouped.joint
        fit = pillai_trace(grouped.total, joint, self._rows, grouped.offsets, grouped.chance)
        return fit, int(joint.any(axis=0).sum())

    def _groups_of(self, counts: Given, index: int, number: int) -> GroupedLevels:
        """Return the groups of an attribute's levels in a grouping."""
        levels = slice(*self._offsets[index : index + 2].tolist())
        return self._grouped.get(number, lambda: counts.grouped(levels, self._levels[number]))

    def levels(self, box: Box) -> int:
        """Return the size of the matrix that must be factorised to fit the trace for the finest
        masks of a box (a set of candidate masks for each attribute): the number of their levels
        (masked values).
        """
        places = enumerate(self._places[: len(self._atoms)])
        return sum(self._sizes[self._number(j, box[place], True)] for j, place in places)

    @remembered
    def _number(self, index: int, domain: int, finest: bool) -> int:
        """Return a number that identifies the common grouping of a set of candidates; equal
        groupings have equal numbers.

        `index` is the position of the variable in the counts. `domain` is the set as a bit mask.
        The grouping is their common refinement if `finest` is True, else their common coarsening.
        """
        levels = self._grouping(index, domain, finest)
        number = self._known.setdefault((index, levels.tobytes()), len(self._levels))
        if number == len(self._levels):
            self._levels.append(levels)
            size = levels.shape[1] if levels.ndim == 2 else levels.max(initial=-1) + 1
            self._sizes.append(int(size))
        return number

    def _grouping(self, index: int, domain: int, finest: bool) -> Array:
        """Return the common refinement of a set of candidates if `finest` is True, else their
        common coarsening.

        `index` is the position of the variable in the counts, and `domain` is the set as a bit
        mask. The result has the group of each level of the counts; for the label, the group of each
        class. For a single noise mask, it has the probability of each noisy value for each level, a
        matrix.
        """
        variable = self._variables[self._places[index]]
        if index >= len(self._atoms):
            return variable.join(domain) if finest else variable.meet(domain)
        levels = variable.level_join(domain) if finest else variable.level_meet(domain)
        levels = levels[self._atoms[index]]
        return levels if levels.ndim == 2 else np.unique(levels, return_inverse=True)[1]
