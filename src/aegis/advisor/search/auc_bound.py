"""Bounds of the expected AUC and R2 over a box of configurations."""

from __future__ import annotations

from collections.abc import Callable

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
    """Whether `reachable_auc` bounds a measure: an AUC of linear scores, of a label that stays as it is."""
    summary = problem.summary
    if objective not in MEASURES or summary.pairs.folds is None:
        return False
    what = getattr(MEASURES.get(objective).compute, "__self__", None)
    if not isinstance(what, Expected) or what.merit is not Merit.AUC or what.interacting:
        return False
    return summary.label_attribute is None


class FinestBound:
    """What no expected AUC, or R2, of a box exceeds: the most that its finest masks can show.

    Finest is the common refinement of the levels and ranges of the candidates of each attribute:
    coarser masks leave fewer linear scores. A noise mask counts as its atoms, because what it shows is a
    random function of these. Boxes share the counts of two attributes, and boxes with the same
    finest masks share the bound.

    Parameters
    ----------
    problem
        The search space.
    most
        Returns what no scores that are linear in the counted levels exceed: `reachable_auc` or
        `explained_share`.
    """

    def __init__(self, problem: Problem, most: Callable[[PartCounts | SplitCounts], float]) -> None:
        self._problem = problem
        self._most = most
        self._blocks = PartBlocks(problem.summary.pairs)
        self._numbers: dict[tuple[int, bytes], int] = {}
        self._known: dict[tuple[int, ...], float] = {}

    def bound(self, box: Box) -> float:
        """Return the bound; 1 for a box of more than 1,024 levels."""
        levels = finest(self._problem, box)
        if levels is None:
            return 1.0
        keys = tuple(
            self._numbers.setdefault((index, level.tobytes()), len(self._numbers))
            for index, level in enumerate(levels)
        )
        if keys not in self._known:
            coded = CodedMasks(levels, keys, [None] * len(levels))
            self._known[keys] = self._most(self._blocks.counts(range(len(levels)), coded))
        return self._known[keys]


def finest(problem: Problem, box: Box) -> list[Ints] | None:
    """Return per attribute the level of each atom at the finest masks of a box; None of too many."""
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
