"""Explain why the best configuration is not finer, and how much a weaker rule would gain."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aegis.advisor.figures import Binding, FinerMask, Relaxation
from aegis.advisor.search.branch import Found
from aegis.advisor.search.clock import Clock
from aegis.advisor.search.neighbours import NEXT, next_finer
from aegis.advisor.search.problem import Box, Variable, replaced
from aegis.advisor.search.ties import masking
from aegis.privacy import PrivacyRule

if TYPE_CHECKING:
    from aegis.advisor.search.searcher import Searcher

SUPPRESSION_STEP = 0.01
"""One step of the suppression limit, as a share of the rows: 1 %."""


def explain(
    searcher: Searcher, outcome: Found, highest: tuple[float, Box], clock: Clock
) -> Binding:
    """Explain why the best configuration is not finer: return which finer masks the rule excludes,
    and how much utility weaker rules would gain.

    Parameters
    ----------
    searcher
        The searcher that found the best configuration.
    outcome
        The result of its search, with at least one configuration. The recommended one is first.
    highest
        The best score with its configuration, which need not be the recommended one. The gains of
        weaker rules are relative to this score.
    clock
        Time limit for all searches under weaker rules together.
    """
    value, box = outcome.best[0]
    return Binding(
        finer=tuple(_finer(searcher, box, value, clock)),
        relaxations=tuple(_relaxed(searcher, box, highest, clock)),
    )


def _finer(searcher: Searcher, box: Box, value: float, clock: Clock) -> list[FinerMask]:
    """Return the next finer candidate masks of each attribute, with the rule's verdict on each.

    `box` is the best configuration, and `value` its score (negated if smaller scores are better),
    with which the scores under finer masks are compared. If time runs out, the remaining candidates
    are left out.
    """
    problem = searcher.problem
    finer = []
    for index, (variable, domain) in enumerate(zip(problem.variables, box, strict=True)):
        current = domain.bit_length() - 1
        others = [*next_finer(variable, current), *_hiding_less(variable, current)]
        for candidate in others:
            other = replaced(box, index, 1 << candidate)
            if not clock.allows(searcher.objective.effort(other), times=2):
                continue
            verdict = searcher.verdict(other, searcher.plan.rule)
            finer.append(
                FinerMask(
                    attribute=variable.name,
                    current=str(variable.candidates[current].declared),
                    mask=str(variable.candidates[candidate].declared),
                    gain=searcher.objective.bound(other) - value,
                    utility_kept=searcher.utility_kept(other),
                    smallest_class=verdict.smallest_before,
                    rows_failing=verdict.suppressed_rows,
                    allowed_rows=verdict.allowed_rows,
                    violations=verdict.violations,
                )
            )
    return finer


def _hiding_less(variable: Variable, current: int) -> list[int]:
    """Return the indices of up to 8 candidates that hide less than the candidate at index `current`
    and are not nested in it, such as ranges of 7 years instead of 10.

    The list starts with the candidate that hides most.
    """
    nested = variable.finer[current] | variable.coarser[current]
    hidden = [masking(variable, c) for c in range(len(variable.candidates))]
    less = [c for c, share in enumerate(hidden) if share < hidden[current] and not nested >> c & 1]
    return sorted(less, key=lambda c: (-hidden[c], c))[:NEXT]


def _relaxed(
    searcher: Searcher, box: Box, highest: tuple[float, Box], clock: Clock
) -> list[Relaxation]:
    """Return, for each rule that is one step weaker than the policy's rule, the best configuration
    under it: its score, its gain, and which masks differ.

    `box` is the recommended configuration; masks are compared with it. `highest` is the best score
    under the policy's rule with its configuration; the gain is the score minus this score. `clock`
    limits the time.
    """
    finer = []
    value, leader = highest
    start = tuple(dict.fromkeys((leader, box)))
    for change, rule in relaxations(searcher.plan.rule):
        best, figures = searcher.run(
            rule, top=1, time_limit=clock.part(), start=start, briefly=True
        )
        if best.interrupted:
            clock.stop()
        for score, other in best.best[:1]:
            finer.append(
                Relaxation(
                    change=change,
                    score=searcher.objective.sign * score,
                    gain=score - value,
                    utility_kept=searcher.utility_kept(other),
                    proven=figures.optimal,
                    masks=_differences(searcher, box, other),
                )
            )
    return finer


def relaxations(rule: PrivacyRule) -> list[tuple[str, PrivacyRule]]:
    """Return each rule that is one step weaker than the given rule, with a description of the step.

    A step is the next weaker value that a privacy model defines, or 1 % more suppression. If a
    criterion has no weaker value, for example distinct l-diversity with l = 2, the step removes the
    criterion.
    """
    weaker = []
    for index, criterion in enumerate(rule.criteria):
        step, lower = criterion.model.weakening, criterion.weaker()
        before, after = rule.criteria[:index], rule.criteria[index + 1 :]
        if step is not None and lower is not None:
            name = step.parameter
            text = f"{name} = {lower[name]:g} instead of {criterion[name]:g}"
            weaker.append((text, replace(rule, criteria=(*before, lower, *after))))
        elif before or after:
            weaker.append((f"without {criterion}", replace(rule, criteria=(*before, *after))))
    limit = rule.suppression + SUPPRESSION_STEP
    if rule.criteria and limit < 1:
        text = f"{100 * limit:g} % of the rows suppressed instead of {100 * rule.suppression:g} %"
        weaker.append((text, replace(rule, suppression=limit)))
    return weaker


def _differences(searcher: Searcher, box: Box, two: Box) -> dict[str, str]:
    return {
        variable.name: str(variable.candidates[b.bit_length() - 1].declared)
        for variable, a, b in zip(searcher.problem.variables, box, two, strict=True)
        if a != b
    }
