"""Bound the expected AUC and R2 over a box: a set of candidate masks for each attribute."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from aegis.advisor.encodings import CodedMasks
from aegis.advisor.fold_counts import PartBlocks
from aegis.advisor.search.objective import score_work
from aegis.advisor.search.problem import Box, Problem, Variable, members
from aegis.array_cache import remembered
from aegis.arrays import Integers
from aegis.masks import common_refinement
from aegis.measures import MEASURES, Expected, Learner, Measure, Merit, PartCounts

_LEVELS = 1024
"""Largest number of levels, of all attributes together, for which a box is bounded."""


def has_reach(objective: str, problem: Problem) -> bool:
    """Return whether an upper bound of an objective can be computed from least squares
    (`reachable_auc` or `explained_share`).

    This is so if the objective is the expected AUC or R2 of linear scores, the label has only one
    mask, and the summary has counts by fold.
    """
    summary = problem.summary
    if objective not in MEASURES or summary.pairs.folds is None:
        return False
    what = getattr(MEASURES.get(objective).compute, "__self__", None)
    if not isinstance(what, Expected) or what.merit is not Merit.AUC or what.interacting:
        return False
    return summary.label_attribute is None


def reads_names(measure: Measure) -> bool:
    """Return whether a measure reads each level of a number or date; only naive Bayes does."""
    return Learner.NB in getattr(getattr(measure.compute, "__self__", None), "learners", ())


class FinestMasks:
    """The finest masks in each box: for each attribute, the mask that shows everything that any
    candidate in the box shows.

    A number or date shows its ranges, and a text its levels. If a candidate adds noise, the finest
    mask shows the atoms, because the noisy value is a random function of the atom. Boxes with the
    same domain of an attribute share its finest mask.

    Parameters
    ----------
    problem
        The search space.
    names
        Whether the measure also reads the levels of numbers and dates, as naive Bayes does.
    """

    def __init__(self, problem: Problem, *, names: bool = False) -> None:
        self._variables = problem.variables[: len(problem.summary.attributes)]
        self._names = names
        self._numbers: dict[tuple[int, bytes], int] = {}

    def coded(self, box: Box) -> CodedMasks | None:
        """Return the level of each value (atom) of each attribute under the finest masks of a box,
        and a number that identifies each mask; equal numbers mean equal masks.

        A box has a set of candidate masks for each attribute. The result is None if the masks
        together have more than 1,024 levels.
        """
        masks = [self._of(i, box[i]) for i in range(len(self._variables))]
        if sum(size for _, _, size in masks) > _LEVELS:
            return None
        keys, levels, _ = zip(*masks, strict=True) if masks else ((), (), ())
        return CodedMasks(levels, keys, [None] * len(masks))

    @remembered
    def _of(self, index: int, domain: int) -> tuple[int, Integers, int]:
        """Return the coarsest grouping of values that distinguishes all that any candidate mask in
        a set distinguishes. The result is a number that identifies the grouping, its group for each
        of A atoms, shape (A,), and the number of groups.

        `index` is the attribute. `domain` codes the set: bit i is 1 if candidate i is in the set.
        An atom is a set of attribute values that all candidates treat in the same way.
        """
        level = _refined(self._variables[index], domain, names=self._names)
        number = self._numbers.setdefault((index, level.tobytes()), len(self._numbers))
        return number, level, int(level.max(initial=0)) + 1


def levels_at(coded: CodedMasks) -> int:
    """Return how many levels these finest masks have together."""
    return sum(int(level.max(initial=0)) + 1 for level in coded.levels)


def _refined(variable: Variable, domain: int, *, names: bool) -> Integers:
    chosen = [variable.candidates[c] for c in members(domain)]
    atoms = len(chosen[0].levels)
    if any(candidate.noise is not None for candidate in chosen):
        return np.arange(atoms, dtype=np.int32)
    groupings = [own.ranges for own in chosen if own.ranges is not None]
    if names or len(groupings) < len(chosen):
        groupings.append(variable.level_join(domain))
    distinct = {grouping.tobytes(): grouping for grouping in groupings}
    return common_refinement(list(distinct.values()))


class FinestBound:
    """Computes an upper bound of the expected AUC (or R2) of all configurations in a box.

    The bound is computed for the finest masks of the box (`FinestMasks`). A coarser mask allows
    only some of the linear scores that a finer mask allows, so no configuration exceeds the bound.
    All boxes share the counts of pairs of attributes, and boxes with the same finest masks share
    the bound.

    Parameters
    ----------
    problem
        The search space.
    most
        Function that returns the largest AUC or R2 of any score that is linear in the levels:
        `reachable_auc` or `explained_share`.
    names
        See `FinestMasks`.
    """

    def __init__(
        self, problem: Problem, most: Callable[[PartCounts], float], *, names: bool = False
    ) -> None:
        self._most, self._work = most, problem.work
        self._masks = FinestMasks(problem, names=names)
        self._blocks = PartBlocks(problem.summary.pairs)
        self._known: dict[tuple[Hashable, ...], float] = {}

    def bound(self, box: Box) -> float:
        """Return an upper bound of the AUC (or R2) of all configurations in a box (a set of
        candidate masks for each attribute). If the finest masks have more than 1,024 levels, the
        bound is 1, which excludes nothing.
        """
        coded = self._masks.coded(box)
        if coded is None:
            return 1.0
        keys = tuple(coded.keys)
        if keys not in self._known:
            levels = levels_at(coded)
            self._work.add(score_work(levels, levels))
            counts = self._blocks.counts(range(len(keys)), coded)
            self._known[keys] = self._most(counts)
        return self._known[keys]
