"""Ties go to the data: of what a score cannot tell apart, the configuration that masks least.

A score has a standard error, and many configurations lie within it. Which of them comes first by
a hair is chance; how much each of them masks is not. So the space is searched a second time, for
the least masking among configurations whose score reaches the best one's less what chance alone
makes of it, and those that a paired test tells from the best are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aegis.advisor.confidence import COMPARED, with_confidence
from aegis.advisor.preference import Prefer, hidden_share, preferred, why_first
from aegis.advisor.ranked import Ranked
from aegis.advisor.search.branch import BranchAndBound, Found
from aegis.advisor.search.clock import Clock
from aegis.advisor.search.feasibility import Feasibility
from aegis.advisor.search.objective import Objective
from aegis.advisor.search.objectives import Additive
from aegis.advisor.search.problem import Box, Problem, Variable

if TYPE_CHECKING:
    from aegis.advisor.search.searcher import Searcher

_DEVIATIONS = 2.0
"""Standard errors below the best score from which on nothing is looked at."""
_NODES = 64
"""Boxes that are split while looking for less masking: what is not proven best is good."""


def masking(variable: Variable, candidate: int) -> float:
    """Return the share of an attribute's entropy that a candidate mask hides, from 0 to 1."""
    channel = variable.channels.get(candidate)
    return hidden_share(variable.attribute, variable.candidates[candidate], channel)


class Masking(Additive):
    """How much a configuration masks: the mean over attributes of `masking`, as an objective."""

    def __init__(self, problem: Problem, sign: int, *, divides: bool) -> None:
        self.divides = divides
        count = len(problem.variables)
        values = [
            [sign * masking(variable, c) / count for c in range(len(variable.candidates))]
            for variable in problem.variables
        ]
        super().__init__("masking", sign, [values])

    def share(self, box: Box) -> float:
        """Return how much a single configuration masks, from 0 to 1."""
        return max(0.0, self.sign * self.bound(box))


class AboveScore:
    """Feasibility of what meets the rule and reaches a score.

    Parameters
    ----------
    inner
        The rule.
    score
        The score, with a bound over boxes.
    least
        The signed score that a configuration must reach.
    """

    def __init__(self, inner: Feasibility, score: Objective, least: float) -> None:
        self._inner = inner
        self._score = score
        self._least = least

    @property
    def checked(self) -> int:
        """Class counts that were held against the rule."""
        return self._inner.checked

    def possible(self, box: Box) -> bool:
        """Return whether anything in the box may meet the rule and reach the score."""
        return self._score.bound(box) >= self._least and self._inner.possible(box)

    def narrow(self, box: Box) -> Box | None:
        """Return the box without what cannot be admissible; None when nothing is left."""
        if self._score.bound(box) < self._least:
            return None
        narrowed = self._inner.narrow(box)
        if narrowed is None or self._score.bound(narrowed) < self._least:
            return None
        return narrowed

    def admits(self, box: Box) -> bool:
        """Return whether a configuration meets the rule and reaches the score."""
        return self._score.bound(box) >= self._least and self._inner.admits(box)


@dataclass(frozen=True)
class Settled:
    """What became of ties.

    Attributes
    ----------
    ranking, boxes
        The preferred configuration first, then the others by score.
    note
        Why it comes first, where it has not the best score; else None.
    """

    ranking: list[Ranked]
    boxes: list[tuple[float, Box]]
    note: str | None = None


def settle_ties(
    searcher: Searcher, outcome: Found, ranking: Sequence[Ranked], prefer: Prefer, clock: Clock
) -> Settled:
    """Return what was found with the preferred one first of those that cannot be told apart.

    Parameters
    ----------
    searcher
        Holds the space, the score and the rule; its objective is its measure.
    outcome, ranking
        What was found and its ranking, with standard errors where there was time for them.
    prefer
        What decides.
    clock
        Ends the second search; then the preferred one of what is known comes first.
    """
    boxes = list(outcome.best)
    amount = Masking(
        searcher.problem,
        prefer.sign,
        divides=searcher.objective.divides,
    )
    shown = [replace(r, masking=amount.share(b)) for r, (_, b) in zip(ranking, boxes, strict=True)]
    error = shown[0].stderr
    if prefer is Prefer.SCORE or error is None:
        return Settled(shown, boxes)
    top = len(shown)
    rivals = _rivals(searcher, outcome, amount, boxes[0][0] - _DEVIATIONS * error, clock)
    for box in rivals:
        if len(boxes) < max(COMPARED, top) and box not in [known for _, known in boxes]:
            value = searcher.objective.bound(box)
            boxes.append((value, box))
            shown.append(replace(searcher.ranked("rival", box, value), masking=amount.share(box)))
    choices = [searcher.problem.choice(box) for _, box in boxes]
    if len(boxes) > top and clock.allows(len(rivals) * searcher.objective.effort(boxes[0][1])):
        shown = with_confidence(shown, choices, searcher.scorer, searcher.measure)
    tied = [i for i, ranked in enumerate(shown) if i == 0 or ranked.tied_with_best]
    first = preferred(shown, tied, prefer)
    rest = sorted((i for i in range(len(shown)) if i != first), key=lambda i: -boxes[i][0])
    chosen = [first, *rest][:top]
    named = [
        replace(shown[i], configuration=replace(shown[i].configuration, name=f"best-{place + 1}"))
        for place, i in enumerate(chosen)
    ]
    note = None if first == 0 else why_first(prefer, shown[first], shown[0])
    return Settled(named, [boxes[i] for i in chosen], note)


def _rivals(
    searcher: Searcher, outcome: Found, amount: Masking, least: float, clock: Clock
) -> list[Box]:
    """Return configurations that reach a score, the preferred ones first."""
    rule = searcher.plan.rule
    feasibility = AboveScore(searcher.feasibility(rule, clock), searcher.objective, least)
    with searcher.progress.step("Looking for less masking at the same score") as step:
        within = BranchAndBound(
            searcher.problem,
            amount,
            feasibility,
            top=COMPARED - 1,
            clock=clock,
            step=step,
            most_nodes=_NODES,
        ).run(tuple(box for _, box in outcome.best))
    return [box for _, box in within.best]
