"""Bounds of the expected AUC and R2 over a box of configurations."""

from __future__ import annotations

import numpy as np

from aegis.advisor.encodings import CodedMasks
from aegis.advisor.fold_counts import PartBlocks
from aegis.advisor.search.problem import Box, Ints, Problem, Variable, members
from aegis.masks import common_refinement
from aegis.measures import MEASURES, Expected, Merit, explained_share, reachable_auc

_LEVELS = 1024
"""Levels of all attributes together from which on a box is not looked into."""


def has_reach(objective: str, problem: Problem) -> bool:
    """Whether `within_reach` bounds a measure: the AUC of linear scores, with an unmasked label."""
    summary = problem.summary
    if objective not in MEASURES or summary.pairs.folds is None:
        return False
    what = getattr(MEASURES.get(objective).compute, "__self__", None)
    if not isinstance(what, Expected) or what.merit is not Merit.AUC or what.interacting:
        return False
    return summary.label_attribute is None


def within_reach(problem: Problem, box: Box) -> float:
    """Return an upper bound of the expected AUC of every configuration in a box, for all learners
    that are linear in the attributes.

    The box is judged at the common refinement of the levels and ranges of its candidates: coarser
    masks leave fewer linear scores (see `reachable_auc`). A noise mask counts as its atoms, of which
    what it shows is a random function. An AUC is at most 1, and that is returned for a box of more
    than 1,024 levels.
    """
    levels = _finest(problem, box)
    if levels is None:
        return 1.0
    which = range(len(levels))
    coded = CodedMasks(levels, [(index, 0) for index in which], [None] * len(levels))
    return reachable_auc(PartBlocks(problem.summary.pairs).counts(which, coded))


class ExplainedBound:
    """An upper bound of the expected R2 in a box: least squares at its finest masks.

    Finest is the common refinement of the levels and ranges of its candidates. Boxes share counts of
    two attributes, and those that have the same finest masks share the bound.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._blocks = PartBlocks(problem.summary.pairs)
        self._numbers: dict[tuple[int, bytes], int] = {}
        self._known: dict[tuple[int, ...], float] = {}

    def bound(self, box: Box) -> float:
        """Return the bound; 1 for a box of more than 1,024 levels."""
        levels = _finest(self._problem, box)
        if levels is None:
            return 1.0
        keys = tuple(
            self._numbers.setdefault((index, level.tobytes()), len(self._numbers))
            for index, level in enumerate(levels)
        )
        if keys not in self._known:
            coded = CodedMasks(levels, keys, [None] * len(levels))
            counts = self._blocks.counts(range(len(levels)), coded)
            self._known[keys] = explained_share(counts)
        return self._known[keys]


def _finest(problem: Problem, box: Box) -> list[Ints] | None:
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
