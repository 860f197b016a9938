"""Define what an objective of a search is, with the objectives that need their own bounds: expected
AUC and R2, and Pillai's trace.

A box has a domain of candidates for each variable, as a bit mask; a configuration is a box of
single candidates. An atom is a set of values that all candidates of an attribute treat in the same
way, and a level is a masked value. Values are signed: negated if smaller values are better.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np

from aegis.advisor.encodings import CodedMasks, RowGroups, group_classes, stacked_grouping
from aegis.advisor.fold_counts import FoldBlocks
from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.scoring import Scorer
from aegis.advisor.search.problem import Box, Problem, Variable, is_leaf, members
from aegis.arrays import Array, BoundedCache, Integers, cached_method
from aegis.masks import common_refinement
from aegis.measures import (
    MEASURES,
    CountsByFold,
    Direction,
    Expected,
    Learner,
    Measure,
    ModelMetric,
    pillai_trace,
)
from aegis.measures.pillai import GroupedLevels, PartialCovariances, PillaiFit
from aegis.registry import Registry

CUBED = 1e-10
"""A fit of n levels takes n ** 3 times this many seconds on a slow machine."""
_SCORE, _FITS = 5e-3, 2
"""The fixed work of a score, and the number of fits that a score by fold counts as."""
_COLUMNS = 8
"""The number of fits that a score of every column counts as."""
_INVERSE = 1e-3
"""The fixed work of a bound that needs a single inverse."""


class Objective(ABC):
    """A figure that a search maximises or minimises, with a bound for all configurations in a box."""

    name: str
    sign: int
    """1 if the search maximises the figure, -1 if it minimises the figure."""
    bounded = True
    """Whether the bound is good enough to find the best configuration by splitting boxes; if not,
    the search lists configurations by another objective.
    """
    loose = False
    """Whether an objective that is not `bounded` at least has a finite bound for each box."""
    divides = False
    """Whether a set of many masks that are not nested has a much weaker bound than each of the
    masks alone.
    """
    follows_rule = False
    """Whether the figure depends on the rule, for example if it penalises suppressed rows."""

    def under(self, plan: PrivacyPlan) -> Objective:  # noqa: ARG002 - others depend on it
        """Return the same objective for searches under the rule of another plan."""
        return self

    @abstractmethod
    def bound(self, box: Box) -> float:
        """Return an upper bound of `sign * figure` for all configurations in a box; for a single
        configuration, the exact value.
        """

    def upper(self, box: Box) -> float:
        """Return an upper bound that takes little time to compute. It is never below `bound`, which
        may take longer, and is exact for a single configuration.
        """
        return self.bound(box)

    def excludes(self, box: Box, value: float, within: Box) -> bool:  # noqa: ARG002 - others use it
        """Return True if an upper bound shows that no configuration in a box exceeds `value`. An
        objective that adds up several bounds may use those that it has computed for a larger box
        (`within`).
        """
        return self.upper(box) <= value

    def guess(self, box: Box) -> float:
        """Return a quick estimate of `upper`, by which the search chooses how to split a box.

        The search compares the estimates for a box and for its halves. Estimating the difference
        too high does less harm than estimating it too low.
        """
        return self.upper(box)

    def effort(self, box: Box) -> float:  # noqa: ARG002 - others depend on it
        """Return about how many seconds `bound` takes; 0 if the time is negligible."""
        return 0.0


@dataclass(frozen=True)
class ObjectiveType:
    """A registered objective that is not a measure, such as a loss that another tool minimises.

    Packages add objective types through the entry points `aegis.objectives`.

    Attributes
    ----------
    name
        The name by which users request it; options may follow in brackets.
    title, formula, reference
        What the objective is called in texts, its formula, and its source.
    make
        Function that creates the objective from the name with its options, the search space, and
        the plan with the privacy rule.
    check
        Function of the name with its options. It raises `PolicyError` if options are invalid,
        before the table is read.
    direction
        Whether the figure is minimised or maximised.
    of_label
        Whether the objective needs the label.
    """

    name: str
    title: str
    formula: str
    reference: str
    make: Callable[[str, Problem, PrivacyPlan], Objective]
    check: Callable[[str], object]
    direction: Direction = Direction.LOWER
    of_label: bool = False


OBJECTIVES: Registry[ObjectiveType] = Registry("objective")
"""Objectives other than measures, by name."""


class OfConfigurations(Objective):
    """An objective that computes the score of each configuration once, and caches it."""

    def __init__(self) -> None:
        self._scored: dict[Box, float] = {}

    def bound(self, box: Box) -> float:
        """Return an upper bound of the figure in a box; for a configuration, the exact value."""
        if box not in self._scored:
            if not is_leaf(box):
                return self._over(box)
            self._scored[box] = self._score(box)
        return self._scored[box]

    @abstractmethod
    def _score(self, box: Box) -> float:
        """Return the score of the only configuration of a box, negated if smaller values are better."""

    @abstractmethod
    def _over(self, box: Box) -> float:
        """Return an upper bound of the measure for all configurations in a box."""


class OfMeasure(OfConfigurations):
    """A measure of whole configurations as the objective of a search."""

    def __init__(self, problem: Problem, scorer: Scorer, measure: Measure) -> None:
        super().__init__()
        self.name = measure.name
        self.sign = measure.direction.sign
        self._problem = problem
        self._scorer = scorer
        self._measure = measure

    def _score(self, box: Box) -> float:
        self._problem.work.add(self._score_work(*levels_of(self._problem, box)))
        return self.sign * self._scorer.value(self._problem.choice(box), self._measure)

    def _score_work(self, chosen: int, settled: int) -> float:
        """Return about how many seconds a score takes, for the number of levels of attributes with
        several candidates (`chosen`) and of all others (`settled`).
        """
        return score_work(chosen, chosen + settled)

    def effort(self, box: Box) -> float:
        """Return about how many seconds it takes to score a configuration."""
        return seconds_of(self._problem, box)


def seconds_of(problem: Problem, box: Box) -> float:
    """Return about how many seconds it takes to score a configuration, or the finest masks of a
    box.
    """
    return CUBED * float(sum(levels_of(problem, box))) ** 3


def levels_of(problem: Problem, box: Box) -> tuple[int, int]:
    """Return how many levels a configuration has in attributes with several candidates, and in all
    others.
    """
    counts = [0, 0]
    for variable, domain in zip(problem.variables, box, strict=True):
        settled = len(variable.candidates) == 1
        counts[settled] += variable.candidates[domain.bit_length() - 1].n_levels
    return counts[0], counts[1]


def score_work(chosen: int, levels: int) -> float:
    """Return about how many seconds it takes to compute a score, or an upper bound of it, from
    counts by fold. `chosen` levels are of attributes whose masks vary; the matrix of all other
    `levels` is factorised only once for all scores.
    """
    return _SCORE + _FITS * CUBED * float(chosen) ** 2 * levels


def columns_work(levels: int) -> float:
    """Return about how many seconds it takes to predict each column from all others."""
    return _SCORE + _COLUMNS * CUBED * float(levels) ** 3


def inverse_work(levels: int) -> float:
    """Return about how many seconds it takes to compute a bound that inverts a matrix of levels."""
    return _INVERSE + _FITS * CUBED * float(levels) ** 3


_LEVELS = 1024
"""Largest number of levels, of all attributes together, for which a box is bounded."""


def has_reach(objective: str, problem: Problem) -> bool:
    """Return whether least squares give an upper bound of an objective: it is the expected AUC or
    R2 of linear scores, the label has only one mask, and the summary has counts by fold.
    """
    summary = problem.summary
    if objective not in MEASURES or summary.pairs.folds is None:
        return False
    what = getattr(MEASURES.get(objective).compute, "__self__", None)
    if not isinstance(what, Expected) or what.merit is not ModelMetric.AUC or what.interacting:
        return False
    return summary.label_attribute is None


def reads_names(measure: Measure) -> bool:
    """Return whether a measure treats each masked value of a number or date as a category of its
    own; only naive Bayes does.
    """
    return Learner.NB in getattr(getattr(measure.compute, "__self__", None), "learners", ())


class FinestMasks:
    """Computes the finest masks of a box: for each attribute, the mask that distinguishes
    everything that any candidate in the box distinguishes.

    A number or date shows its ranges (and, if `names`, also its masked values as categories), and a
    text its masked values. If a candidate adds noise, the finest mask shows the atoms, because the
    noisy value is a random function of the atom.
    """

    def __init__(self, problem: Problem, *, names: bool = False) -> None:
        self._variables = problem.variables[: len(problem.summary.attributes)]
        self._names = names
        self._numbers: dict[tuple[int, bytes], int] = {}

    def encoded(self, box: Box) -> CodedMasks | None:
        """Return the finest masks of a box, whose keys are numbers that identify each mask; None if
        they have more than 1,024 levels together.
        """
        masks = [self._of(i, box[i]) for i in range(len(self._variables))]
        if sum(size for _, _, size in masks) > _LEVELS:
            return None
        keys, levels, _ = zip(*masks, strict=True) if masks else ((), (), ())
        return CodedMasks(levels, keys, [None] * len(masks))

    @cached_method
    def _of(self, index: int, domain: int) -> tuple[int, Integers, int]:
        """Return the coarsest grouping that distinguishes all that any candidate in a domain
        distinguishes: a number that identifies it, the group of each atom, and the number of
        groups.
        """
        level = _refined(self._variables[index], domain, names=self._names)
        number = self._numbers.setdefault((index, level.tobytes()), len(self._numbers))
        return number, level, int(level.max(initial=0)) + 1


def levels_at(masks: CodedMasks) -> int:
    """Return how many levels (masked values) `masks`, one for each attribute, have together."""
    return sum(int(level.max(initial=0)) + 1 for level in masks.levels)


def _refined(variable: Variable, domain: int, *, names: bool) -> Integers:
    chosen = [variable.candidates[c] for c in members(domain)]
    atoms = len(chosen[0].levels)
    if any(candidate.noise is not None for candidate in chosen):
        return np.arange(atoms, dtype=np.int32)
    groupings = [c.ranges for c in chosen if c.ranges is not None]
    if names or len(groupings) < len(chosen):
        groupings.append(variable.level_join(domain))
    distinct = {grouping.tobytes(): grouping for grouping in groupings}
    return common_refinement(list(distinct.values()))


class FinestBound:
    """Computes an upper bound of the expected AUC (or R2) of all configurations in a box.

    The bound is computed for the finest masks of the box (`FinestMasks`). A coarser mask allows
    only some of the linear scores that a finer mask allows, so no configuration exceeds the bound.

    Parameters
    ----------
    problem
        The search space.
    most
        Function that returns the largest AUC or R2 of any score that is linear in the levels:
        `reachable_auc` or `explained_share`.
    names
        As in `FinestMasks`.
    """

    def __init__(
        self, problem: Problem, most: Callable[[CountsByFold], float], *, names: bool = False
    ) -> None:
        self._most, self._work = most, problem.work
        self._masks = FinestMasks(problem, names=names)
        self._blocks = FoldBlocks(problem.summary.pairs)
        self._bounds: dict[tuple[Hashable, ...], float] = {}

    def bound(self, box: Box) -> float:
        """Return an upper bound for a box: 1, which excludes nothing, if its finest masks have too
        many levels.
        """
        masks = self._masks.encoded(box)
        if masks is None:
            return 1.0
        keys = tuple(masks.keys)
        if keys not in self._bounds:
            levels = levels_at(masks)
            self._work.add(score_work(levels, levels))
            counts = self._blocks.counts(range(len(keys)), masks)
            self._bounds[keys] = self._most(counts)
        return self._bounds[keys]


Key = tuple[int, ...]
"""A key of groupings: for each variable, the number of its grouping."""
"""Largest number of levels, of all attributes together, for which a box is fitted before it is split."""
_FIT = 3e-4
"""Work of a fit in any case."""
_CACHED = 1 << 27
"""Size of the cache of grouped attributes, in bytes."""
_DENSE = 1 << 11
"""Largest number of levels whose counts are stored in a dense array."""


class Pillai(Objective):
    """An objective: Pillai's trace of the attributes' indicators (0 or 1 for each level) and the
    label, without correction (plug-in) or adjusted for chance.

    The plug-in trace V cannot grow when indicators are grouped, because the column space shrinks.
    So a bound for a box is the V of its finest grouping, in which each variable has the common
    refinement of its candidates. The adjusted trace is

        V - (L - V) d / (N - d - 1),

    where L is the number of classes minus one, d the rank of the indicators, and N the number of
    rows. L and d are smallest for the coarsest grouping of the box. So a bound is V - max(0, L - V)
    d / (N - d - 1), with the V of the finest grouping, and the L and d of the coarsest grouping.
    For a single configuration, the bound is exact.

    A noise mask counts as its unmasked atoms in the finest grouping, and as one level in the
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
        self._fits = _CornerFits(problem)

    def bound(self, box: Box) -> float:
        """Return an upper bound of the trace over a box; for a configuration, the exact value."""
        if box not in self._bounds:
            self._bounds[box] = self._bound(box)
        return self._bounds[box]

    def effort(self, box: Box) -> float:
        """Return about how many seconds `bound` takes; 0 if its result is cached."""
        return 0.0 if box in self._bounds else seconds_of(self._problem, box)

    def _bound(self, box: Box) -> float:
        """Return the upper bound, from the finest and the coarsest grouping of a box."""
        levels = self._fits.levels(box)
        if levels > _LEVELS and not is_leaf(box):
            return float(self._problem.summary.pairs.classes - 1)  # no trace is larger
        self._problem.work.add(_FIT + CUBED * float(levels) ** 3)
        fine, _ = self._fits.fit(box, finest=True)
        if not self._adjusted:
            return fine.trace
        if is_leaf(box):
            return fine.adjusted
        coarse, classes = self._fits.fit(box, finest=False)
        freedom = self._rows - coarse.rank - 1
        if freedom <= 0:
            return fine.trace
        bound = fine.trace - max(0.0, classes - 1 - fine.trace) * coarse.rank / freedom
        # A configuration without a degree of freedom left counts as 0 (see PillaiFit).
        undecided = (j for j in self._noisy if box[j] & (box[j] - 1))
        noise = sum(self._problem.variables[j].most_levels(box[j]) for j in undecided)
        return bound if self._rows - fine.rank - noise - 1 > 0 else max(bound, 0.0)


def _refined_levels(variable: Variable) -> Integers:
    """Return the level of each atom under the common refinement of a variable's candidates, shape
    (A,). If a candidate adds noise, every atom is a level.
    """
    if variable.channels:
        return np.arange(len(variable.candidates[0].levels))
    return variable.level_join(variable.full)


class _CornerFits:
    """Computes Pillai's trace for the finest and the coarsest grouping of a box. Fits are cached."""

    def __init__(self, problem: Problem) -> None:
        self._variables = problem.variables
        self._grouped: BoundedCache[int, GroupedLevels] = BoundedCache(
            _CACHED, lambda groups: groups.covariances.nbytes + groups.indicators.nbytes
        )
        self._rows = problem.summary.pairs.n
        self._numbers: dict[tuple[int, bytes], int] = {}
        self._levels: list[Array] = []
        self._sizes: list[int] = []
        self._count(problem)

    def _count(self, problem: Problem) -> None:
        """Count the attributes whose masks the search chooses, by level: values that no candidate
        distinguishes are one level.

        Attributes with a single candidate are eliminated, as in a Schur complement, unless that
        loses precision. `_atoms` then has one atom of each level of each other attribute, `_places`
        the indices of their variables, and `_offsets` the index of the first level of each, and the
        number of all levels.
        """
        attributes = problem.variables[: len(problem.summary.attributes)]
        levels = [_refined_levels(variable) for variable in attributes]
        grouping, self._offsets = stacked_grouping(levels)
        pairs = problem.summary.pairs
        total = (grouping.T @ pairs.total) @ grouping
        if not isinstance(total, np.ndarray) and self._offsets[-1] <= _DENSE:
            total = total.toarray()
        if isinstance(total, np.ndarray):
            total = np.ascontiguousarray(total)
        atoms = [np.unique(level, return_index=True)[1] for level in levels]
        joint = grouping.T @ pairs.stacked_joint
        chosen = len(problem.variables) > len(attributes) or any(v.channels for v in attributes)
        stays = np.array([len(variable.candidates) == 1 for variable in attributes])
        self._counts: RowGroups | PartialCovariances
        self._counts = RowGroups(lambda: total, joint, self._offsets)
        self._atoms, self._places = atoms, list(range(len(problem.variables)))
        if chosen or not isinstance(total, np.ndarray):
            return
        for fixed in (stays, np.zeros_like(stays)):
            residuals = PartialCovariances.of(total, joint, pairs.n, self._offsets, fixed)
            if residuals is not None:
                self._counts, self._places = residuals, np.flatnonzero(~fixed).tolist()
                self._atoms = [atoms[index] for index in self._places]
                widths = np.diff(self._offsets)[~fixed]
                self._offsets = np.concatenate([[0], np.cumsum(widths)])
                return

    def fit(self, box: Box, *, finest: bool) -> tuple[PillaiFit, int]:
        """Return the fit for the finest (or coarsest) grouping of a box, and the number of label
        classes.
        """
        numbers = enumerate(self._places)
        return self._fitted(tuple([self._number(j, box[index], finest) for j, index in numbers]))

    @cached_method
    def _fitted(self, key: Key) -> tuple[PillaiFit, int]:
        """Return the fit, and the number of label classes. `key` has the index of each attribute's
        grouping in `_levels`, then that of the label's grouping if it has candidates. With noise
        masks, the counts are expected counts.
        """
        numbers, label = key[: len(self._atoms)], key[len(self._atoms) :]
        counts = self._counts
        if isinstance(counts, PartialCovariances):
            groups = [self._groups_of(counts, i, number) for i, number in enumerate(numbers)]
            return counts.fit(groups), counts.classes
        grouped = counts.counts([self._levels[number] for number in numbers])
        joint = group_classes(grouped.joint, self._levels[label[0]]) if label else grouped.joint
        fit = pillai_trace(grouped.total, joint, self._rows, grouped.offsets, grouped.chance)
        return fit, int(joint.any(axis=0).sum())

    def _groups_of(self, counts: PartialCovariances, index: int, number: int) -> GroupedLevels:
        """Return the group of each level of the attribute at `index` under a grouping."""
        levels = slice(*self._offsets[index : index + 2].tolist())
        return self._grouped.get(number, lambda: counts.grouped(levels, self._levels[number]))

    def levels(self, box: Box) -> int:
        """Return the number of levels of the finest masks of a box; a fit factorises a matrix of
        this size.
        """
        places = enumerate(self._places[: len(self._atoms)])
        return sum(self._sizes[self._number(j, box[index], True)] for j, index in places)

    @cached_method
    def _number(self, index: int, domain: int, finest: bool) -> int:
        """Return a number that identifies the common refinement (or coarsening) of a domain. Equal
        groupings have equal numbers. `index` is the position of the variable in the counts.
        """
        levels = self._grouping(index, domain, finest)
        number = self._numbers.setdefault((index, levels.tobytes()), len(self._levels))
        if number == len(self._levels):
            self._levels.append(levels)
            size = levels.shape[1] if levels.ndim == 2 else levels.max(initial=-1) + 1
            self._sizes.append(int(size))
        return number

    def _grouping(self, index: int, domain: int, finest: bool) -> Array:
        """Return the common refinement (or coarsening) of a domain, as the group of each level of
        the counts; for the label, of each class. For a single noise mask, return the probability of
        each noisy value for each level.
        """
        variable = self._variables[self._places[index]]
        if index >= len(self._atoms):
            return variable.join(domain) if finest else variable.meet(domain)
        levels = variable.level_join(domain) if finest else variable.level_meet(domain)
        levels = levels[self._atoms[index]]
        return levels if levels.ndim == 2 else np.unique(levels, return_inverse=True)[1]
