"""Maximise Pillai's trace: exact for a configuration, bounded for a box of configurations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aegis.advisor.grouping import group_classes, group_counts, stacked_grouping
from aegis.advisor.search.objective import CUBED, Objective, seconds_of
from aegis.advisor.search.problem import (
    Box,
    Ints,
    Levels,
    Problem,
    Variable,
    is_leaf,
)
from aegis.array_cache import RememberedArrays
from aegis.measures import PillaiFit, pillai_trace
from aegis.measures.partial_trace import Given, GroupedLevels
from aegis.summary import Matrix

Key = tuple[int, ...]
"""The number of each variable's grouping."""
_LEVELS = 1024
"""Largest number of levels, of all attributes together, for which a box is fitted before it is split."""
_FIT = 3e-4
"""Work of a fit in any case."""
_STAYING = 16
"""Smallest number of levels of attributes with one candidate to factorise once for all boxes."""
_DENSE = 1 << 11
"""Largest number of levels whose counts are stored in a dense array."""


class Pillai(Objective):
    """Pillai's trace, plug-in or adjusted, with an exact bound.

    The plug-in trace V cannot grow when indicators are grouped, because the column space shrinks.
    So V with each domain at the common refinement of its candidates bounds a box. The adjusted form
    is V - (L - V) d / (N - d - 1), where L is the number of classes minus one, d the rank of the
    indicators, and N the number of rows. L and d are smallest at the coarsest grouping of a box. So
    a bound is V at the finest grouping, minus max(0, L - V) d / (N - d - 1) with L and d at the
    coarsest grouping.

    A noise mask counts as its atoms in the finest grouping and as one level in the coarsest. Given
    the atoms, the noisy values are independent of everything else, so they cannot increase V. And
    d, without the chance of drawn rows, cannot fall below that of the other attributes. No trace
    exceeds the number of classes minus one. This bounds a box whose finest grouping has too many
    levels to fit.
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
        counts = _Counts.of(problem)
        self._finest = _Corner(problem, counts, finest=True)
        self._coarsest = _Corner(problem, counts, finest=False)

    def bound(self, box: Box) -> float:
        """Return the bound of a box; the class docstring explains it."""
        if box not in self._bounds:
            self._bounds[box] = self._bound(box)
        return self._bounds[box]

    def effort(self, box: Box) -> float:
        """Return the seconds that the fit takes; 0 if it is cached."""
        return 0.0 if box in self._bounds else seconds_of(self._problem, box)

    def _bound(self, box: Box) -> float:
        """Compute the bound from the finest and the coarsest grouping of a box."""
        levels = self._finest.levels(box)
        if levels > _LEVELS and not is_leaf(box):
            return float(self._problem.summary.pairs.classes - 1)  # no trace is larger
        self._problem.work.add(_FIT + CUBED * float(levels) ** 3)
        fine, _ = self._finest.fit(box)
        if not self._adjusted:
            return fine.trace
        if is_leaf(box):
            return fine.adjusted
        coarse, classes = self._coarsest.fit(box)
        freedom = self._rows - coarse.rank - 1
        if freedom <= 0:
            return fine.trace
        bound = fine.trace - max(0.0, classes - 1 - fine.trace) * coarse.rank / freedom
        # A configuration without a degree of freedom left counts as 0 (see PillaiFit).
        undecided = (j for j in self._noisy if box[j] & (box[j] - 1))
        noise = sum(self._problem.variables[j].most_levels(box[j]) for j in undecided)
        return bound if self._rows - fine.rank - noise - 1 > 0 else max(bound, 0.0)


@dataclass(frozen=True)
class _Grouping:
    """A grouping of an attribute's levels in the reduced counts, or of the label's classes.

    Attributes
    ----------
    levels
        Group of each level, or P(group | level) of a channel; for the label, the group of each
        class.
    rows
        Indices of the levels among those of all attributes, group by group.
    starts
        Index in `rows` at which each group starts.
    """

    levels: Levels
    rows: Ints
    starts: Ints

    @property
    def size(self) -> int:
        """Number of groups."""
        return self.levels.shape[1] if self.levels.ndim == 2 else len(self.starts)

    @classmethod
    def make(cls, levels: Levels, offset: int) -> _Grouping:
        """Return the grouping of levels whose first one has the index `offset`."""
        if levels.ndim == 2:
            return cls(levels, np.arange(0), np.arange(0))
        order = np.argsort(levels, kind="stable")
        starts = np.flatnonzero(np.diff(levels[order], prepend=-1))
        return cls(levels, order + offset, starts)


@dataclass(frozen=True)
class _Reduced:
    """Counts of the level pairs that some candidate distinguishes.

    All counts that a search needs are sums of these, and there are fewer of them than of pairs of
    atoms in the summary.

    Attributes
    ----------
    total
        Co-occurrence between the levels of all attributes, shape (D, D); sparse if there are many.
    stacked_joint
        Rows per level and class, shape (D, C).
    offsets
        Index of each attribute's first level, shape (m + 1,).
    atoms
        For each attribute, one atom of the summary for each of its levels.
    """

    total: Matrix
    stacked_joint: npt.NDArray[np.float64]
    offsets: npt.NDArray[np.int64]
    atoms: tuple[Ints, ...]

    @classmethod
    def of(cls, problem: Problem) -> _Reduced:
        """Return the reduced counts of a problem."""
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
        return cls(total, grouping.T @ pairs.stacked_joint, offsets, atoms)


@dataclass(frozen=True)
class _Counts:
    """Counts of the attributes whose masks a search chooses.

    Attributes with a single candidate are eliminated if that saves time: if they have many levels.

    Attributes
    ----------
    reduced
        The counts; after an elimination, `total` is the Schur complement, which the other
        attributes do not explain.
    given
        The eliminated attributes, factorised; without an elimination, the centred counts. None if
        the counts are sparse, or there are none.
    places
        Indices of the variables of the search among all, shape (m,).
    """

    reduced: _Reduced
    given: Given | None
    places: tuple[int, ...]

    @classmethod
    def of(cls, problem: Problem) -> _Counts:
        """Return the counts of a problem, after the elimination if it saves time."""
        reduced = _Reduced.of(problem)
        rest = cls._eliminated(problem, reduced)
        every = tuple(range(len(problem.variables)))
        return rest or cls(reduced, _alone(problem, reduced), every)

    @classmethod
    def _eliminated(cls, problem: Problem, reduced: _Reduced) -> _Counts | None:
        """Eliminate the attributes with one candidate; None if that saves little time or loses
        precision.
        """
        attributes = problem.variables[: len(reduced.atoms)]
        chosen = len(problem.variables) > len(attributes) or any(v.channels for v in attributes)
        stays = np.array([len(variable.candidates) == 1 for variable in attributes])
        sizes = np.diff(reduced.offsets)
        sparse = not isinstance(reduced.total, np.ndarray)
        if chosen or sparse or stays.all() or sizes[stays].sum() < _STAYING:
            return None
        rows = problem.summary.pairs.n
        given = Given.of(reduced.total, reduced.stacked_joint, rows, reduced.offsets, stays)
        if given is None:
            return None
        places = tuple(np.flatnonzero(~stays).tolist())
        offsets = np.concatenate([[0], np.cumsum(sizes[~stays])])
        atoms = tuple(reduced.atoms[place] for place in places)
        return cls(_Reduced(given.total, given.joint, offsets, atoms), given, places)


def _told_apart(variable: Variable) -> Ints:
    """Return the level of each atom in the common refinement of a variable's candidates.

    If a candidate adds noise, every atom is a level.
    """
    if variable.channels:
        return np.arange(len(variable.candidates[0].levels))
    return variable.level_join(variable.full)


class _Corner:
    """The finest or the coarsest groupings of boxes, with their fits.

    Different boxes may have the same corner, so fits are cached by grouping. The covariances of all
    levels with each attribute's groups are cached, too. For a box, they only have to be put side by
    side, and their rows summed.
    """

    def __init__(self, problem: Problem, counts: _Counts, *, finest: bool) -> None:
        self._variables = problem.variables
        self._finest = finest
        self._reduced, self._given, self._places = counts.reduced, counts.given, counts.places
        self._count = len(self._reduced.atoms)
        self._rows = problem.summary.pairs.n
        self._numbers: dict[tuple[int, int], int] = {}
        self._known: dict[tuple[int, bytes], int] = {}
        self._groupings: list[_Grouping] = []
        self._grouped: dict[int, GroupedLevels] = {}
        self._columns = RememberedArrays()
        self._fits: dict[Key, tuple[PillaiFit, int]] = {}

    def fit(self, box: Box) -> tuple[PillaiFit, int]:
        """Return the fit of Pillai's trace for a box, and the number of label classes."""
        key = tuple([self._number(j, box[place]) for j, place in enumerate(self._places)])
        if key not in self._fits:
            noisy = any(self._groupings[number].levels.ndim == 2 for number in key)
            general = noisy or self._given is None
            self._fits[key] = self._counted(key) if general else self._fitted(key)
        return self._fits[key]

    def _counted(self, key: Key) -> tuple[PillaiFit, int]:
        """Return the fit from counts between all groups: expected ones, or sparse ones."""
        groupings = [self._groupings[number] for number in key]
        counts = group_counts(self._reduced, [own.levels for own in groupings[: self._count]])
        joint = counts.joint
        if len(key) > self._count:
            joint = group_classes(joint, groupings[-1].levels)
        total = counts.total
        fit = pillai_trace(total, joint, self._rows, counts.offsets, counts.chance)
        return fit, int(joint.any(axis=0).sum())

    def _fitted(self, key: Key) -> tuple[PillaiFit, int]:
        """Return the fit from the covariances of the groups of each attribute, which are cached."""
        assert self._given is not None
        numbers, of_class = key[: self._count], None
        groups = [self._groups(number) for number in numbers]
        if len(key) > self._count:
            seen = np.flatnonzero(self._reduced.stacked_joint.any(axis=0))
            of_class = np.unique(self._groupings[key[-1]].levels[seen], return_inverse=True)[1]
        columns = [self._columns_of(number) for number in numbers]
        fit = self._given.fit(groups, columns, of_class)
        classes = len(groups[0].classes) if of_class is None else int(of_class.max()) + 1
        return fit, classes

    def _groups(self, number: int) -> GroupedLevels:
        """Return the groups of one grouping as they enter a fit."""
        if number not in self._grouped:
            assert self._given is not None
            grouping = self._groupings[number]
            self._grouped[number] = self._given.grouped(grouping.rows, grouping.starts)
        return self._grouped[number]

    def _columns_of(self, number: int) -> npt.NDArray[np.float64]:
        """Return the covariance of all levels with the groups of one grouping, (D, groups)."""
        given = self._given
        assert given is not None
        return self._columns.get(number, lambda: given.columns(self._groups(number)))

    def levels(self, box: Box) -> int:
        """Return the number of levels that are factorised to fit a box."""
        places = list(self._places)[: self._count]
        numbers = [self._number(j, box[place]) for j, place in enumerate(places)]
        return sum(self._groupings[number].size for number in numbers)

    def _number(self, index: int, domain: int) -> int:
        """Return a number for the grouping of a domain; equal groupings have equal numbers.

        `index` is the position of the variable in the counts.
        """
        place = (index, domain)
        if place not in self._numbers:
            levels = self._levels(index, self._variables[self._places[index]], domain)
            content = (index, levels.tobytes())
            if content not in self._known:
                self._known[content] = len(self._groupings)
                offset = int(self._reduced.offsets[index])
                self._groupings.append(_Grouping.make(levels, offset))
            self._numbers[place] = self._known[content]
        return self._numbers[place]

    def _levels(self, index: int, variable: Variable, domain: int) -> Levels:
        """Return the group of each level of the reduced counts, or a noise mask's channel."""
        if index >= self._count:
            return variable.join(domain) if self._finest else variable.meet(domain)
        levels = variable.level_join(domain) if self._finest else variable.level_meet(domain)
        levels = levels[self._reduced.atoms[index]]
        return levels if levels.ndim == 2 else np.unique(levels, return_inverse=True)[1]


def _alone(problem: Problem, reduced: _Reduced) -> Given | None:
    """Return the centred counts of all attributes; None if they are sparse, or there are none."""
    rows = problem.summary.pairs.n
    if rows <= 0 or not len(reduced.atoms) or not isinstance(reduced.total, np.ndarray):
        return None
    return Given.alone(reduced.total, reduced.stacked_joint, rows, int(reduced.offsets[1]))
