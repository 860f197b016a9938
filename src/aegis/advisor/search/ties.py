"""Among configurations that score about the same, recommend the one that masks least.

Scores within a stated margin of the best score count as equal, because trained models show no
difference on new rows. If the search scored a list, the whole list is compared. If the score has a
bound, a second search finds the configuration that masks least among all configurations within the
margin.
"""

from __future__ import annotations

from aegis.advisor.preference import Prefer, hidden_share, tie_margin, why_first
from aegis.advisor.search.branch import BranchAndBound, Found
from aegis.advisor.search.clock import Clock
from aegis.advisor.search.feasibility import Feasibility
from aegis.advisor.search.objective import Objective
from aegis.advisor.search.objectives import Additive
from aegis.advisor.search.problem import Box, Problem, Variable
from aegis.advisor.search.searcher import Searcher

_RIVALS = 9
"""Largest number of configurations with equal masking to compare by their suppressed rows."""
_ROUNDING = 1e-9
"""A difference up to this share of a score counts as rounding."""
_NODES = 64
"""Largest number of boxes to split in the search for less masking; a good result is enough."""


def masking(variable: Variable, candidate: int) -> float:
    """Return which share of the entropy of an attribute's values a candidate mask hides, from 0 to
    1. `candidate` is the index of the mask.
    """
    channel = variable.channels.get(candidate)
    return hidden_share(variable.attribute, variable.candidates[candidate], channel)


class Masking(Additive):
    """An objective: how much a configuration masks. It is the mean, over attributes, of the share
    of entropy that the mask hides.

    If `sign` is -1, the search minimises the masking.
    """

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
    """Checks whether configurations meet the rule and also reach a given score.

    Parameters
    ----------
    inner
        The check of the rule.
    score
        The score as an objective, with an upper bound for each box (set of configurations).
    least
        The score that a configuration must reach, negated if smaller scores are better.
    """

    def __init__(self, inner: Feasibility, score: Objective, least: float) -> None:
        self._inner = inner
        self._score = score
        self._least = least

    def narrow(self, box: Box) -> Box | None:
        """Return a box (a set of candidate masks for each attribute) without the candidates that
        cannot meet the rule.

        The result is None if an attribute has no candidate left, or if no configuration in the box
        can reach the score.
        """
        if self._score.bound(box) < self._least:
            return None
        narrowed = self._inner.narrow(box)
        if narrowed is None or self._score.bound(narrowed) < self._least:
            return None
        return narrowed

    def admits(self, box: Box) -> bool:
        """Return whether a configuration meets the rule and also reaches the score."""
        return self._score.bound(box) >= self._least and self._inner.admits(box)


def put_first(
    searcher: Searcher, outcome: Found, prefer: Prefer, top: int, clock: Clock
) -> str | None:
    """Move the configuration that the user prefers, among those that score about the same, to the
    front of `outcome.best`. Shorten this list to `top` entries.

    Return the reason for this choice; None if the configuration has the best score.
    """
    first, why = outcome.best[0][1], None
    scorer, measure = searcher.scorer, searcher.measure
    if searcher.objective.name == measure.name:
        unmasked = scorer.value(scorer.unmasked, measure)
        best = scorer.value(searcher.problem.choice(first), measure)
        error = searcher.error(first, clock)
        margin = tie_margin(measure, unmasked, best, error, scorer.label_rows)
        first, why = prefer_among_ties(searcher, outcome, prefer, margin, clock)
    others = [(value, box) for value, box in outcome.best if box != first]
    outcome.best = [(searcher.objective.bound(first), first), *others][:top]
    return why


def prefer_among_ties(
    searcher: Searcher, outcome: Found, prefer: Prefer, margin: float, clock: Clock
) -> tuple[Box, str | None]:
    """Return the configuration to recommend, and a reason if another configuration scores higher
    (else None).

    All configurations whose score is within `margin` of the best score count as equal. If the
    search has a proof, a second search looks for the preferred one among all of them. If not, all
    configurations that were scored are compared. In both cases, the number of configurations that
    you request does not change the result.

    Parameters
    ----------
    searcher
        Searches all combinations under the rule. Its objective must be the measure by which
        `outcome` is sorted.
    outcome
        The results of the first search, best first.
    prefer
        Which of the configurations that count as equal to recommend.
    margin
        Distance below the best score within which scores count as equal.
    clock
        Time limit of the second search. If time runs out, the choice is among the configurations
        scored so far.
    """
    value, best = outcome.best[0]
    if prefer is Prefer.SCORE:
        return best, None
    objective = searcher.objective
    amount = Masking(searcher.problem, prefer.sign, divides=objective.divides)
    # Equal where only the last digits differ.
    least = value - margin - _ROUNDING * max(abs(value), 1.0)
    if objective.bounded:
        ties = [best, *_rivals(searcher, best, amount, least, clock)]
    else:
        ties = [box for score, box in outcome.best if score >= least]
    masked = [round(-prefer.sign * amount.share(box), 9) for box in ties]
    alike = [box for box, share in zip(ties, masked, strict=True) if share == min(masked)]
    first = best if best in alike else alike[0]
    if best not in alike and len(alike) > 1:
        rule = searcher.plan.rule
        first = min(alike, key=lambda box: searcher.verdict(box, rule).suppressed_rows)
    if first == best:
        return best, None
    score = objective.sign * value
    return first, why_first(prefer, score, margin, amount.share(first), amount.share(best))


def _rivals(
    searcher: Searcher, best: Box, amount: Masking, least: float, clock: Clock
) -> list[Box]:
    """Return some configurations that meet the rule and whose score is at least `least`. Here, a
    score that is minimised is multiplied by -1. Configurations that mask less (or more, if that is
    preferred) come first.

    `best` is the configuration to start from. `amount` is the amount of masking, the objective of
    this second search.
    """
    rule = searcher.plan.rule
    feasibility = AboveScore(searcher.feasibility(rule, clock), searcher.objective, least)
    with searcher.progress.step("Looking for less masking at the same score") as step:
        within = BranchAndBound(
            searcher.problem,
            amount,
            feasibility,
            top=_RIVALS,
            clock=clock,
            step=step,
            most_nodes=_NODES,
        ).run((best,))
    return [box for _, box in within.best]
