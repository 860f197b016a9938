"""Bound the expected AUC and R2 over a box: a set of candidate masks for each attribute."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from aegis.advisor.encodings import CodedMasks
from aegis.advisor.fold_counts import PartBlocks
from aegis.advisor.search.problem import Box, Ints, Problem, Variable, members
from aegis.masks import common_refinement
from aegis.measures import MEASURES, Expected, Merit, PartCounts
from aegis.measures.split import SplitCounts

_LEVELS = 1024
"""Levels of all attributes together from which on a box is not looked into."""


def has_reach(objective: str, problem: Problem) -> bool:
    """Return whether `reachable_auc` bounds an objective.

    It does if the objective is the expected AUC of linear scores, the label has no choice of masks,
    and the summary has folds.
    """
    summary = problem.summary
    if objective not in MEASURES or summary.pairs.folds is None:
        return False
    what = getattr(MEASURES.get(objective).compute, "__self__", None)
    if not isinstance(what, Expected) or what.merit is not Merit.AUC or what.interacting:
        return False
    return summary.label_attribute is None


class FinestBound:
    """Bounds the expected AUC, or R2, of all configurations in a box from above.

    The bound is computed for the finest masks of the box: for each attribute, the common refinement
    of the levels and ranges of its candidates. A coarser mask allows only some of the linear scores
    that a finer mask allows, so no configuration exceeds the bound. If a candidate adds noise, the
    atoms are used instead, because the noisy value is a random function of them. All boxes share
    the counts of pairs of attributes, and boxes with the same finest masks share the bound.

    Parameters
    ----------
    problem
        The search space.
    most
        Returns the largest figure of any score that is linear in the counted levels:
        `reachable_auc` or `explained_share`.
    """

    def __init__(self, problem: Problem, most: Callable[[PartCounts | SplitCounts], float]) -> None:
        self._problem = problem
        self._most = most
        self._blocks = PartBlocks(problem.summary.pairs)
        self._numbers = MaskNumbers()
        self._known: dict[tuple[int, ...], float] = {}

    def bound(self, box: Box) -> float:
        """Return an upper bound for a box; 1, which bounds nothing, above 1,024 levels."""
        levels = finest(self._problem, box)
        if levels is None:
            return 1.0
        keys = self._numbers.of(levels)
        if keys not in self._known:
            coded = CodedMasks(levels, keys, [None] * len(levels))
            self._known[keys] = self._most(self._blocks.counts(range(len(levels)), coded))
        return self._known[keys]


class MaskNumbers:
    """Numbers the finest masks of boxes: an attribute has equal numbers where its masks are equal."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, bytes], int] = {}

    def of(self, levels: Sequence[Ints]) -> tuple[int, ...]:
        """Return a number for each attribute's level of each atom."""
        return tuple(
            self._numbers.setdefault((index, level.tobytes()), len(self._numbers))
            for index, level in enumerate(levels)
        )


def finest(problem: Problem, box: Box) -> list[Ints] | None:
    """Return for each attribute the level of each atom at the finest masks of a box.

    None if these have more than 1,024 levels together.
    """
    attributes = problem.variables[: len(problem.summary.attributes)]
    levels = [_refined(variable, domain) for variable, domain in zip(attributes, box, strict=False)]
    many = sum(int(level.max(initial=0)) + 1 for level in levels) > _LEVELS
    return None if many else levels


def _refined(variable: Variable, domain: int) -> Ints:
    chosen = [variable.candidates[c] for c in members(domain)]
    atoms = len(chosen[0].levels)
    if any(candidate.noise is not None for candidate in chosen):
        return np.arange(atoms, dtype=np.int32)
    groupings = [variable.level_join(domain)]
    groupings += [candidate.ranges for candidate in chosen if candidate.ranges is not None]
    distinct = {grouping.tobytes(): grouping for grouping in groupings}
    return common_refinement(list(distinct.values()))
