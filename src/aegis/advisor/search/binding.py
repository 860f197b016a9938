"""The requirements that keep the best configuration from being finer, and the gain from relaxing
them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aegis.advisor.figures import Binding, FinerMask, Relaxation
from aegis.advisor.search.branch import Found
from aegis.advisor.search.climb import NEXT, next_finer
from aegis.advisor.search.clock import Clock
from aegis.advisor.search.problem import Box, Problem
from aegis.advisor.search.ties import masking
from aegis.privacy import PrivacyRule

if TYPE_CHECKING:
    from aegis.advisor.search.searcher import Searcher

SUPPRESSION_STEP = 0.01
"""One step of the suppression limit: one more percent of the rows."""


def explain(
    searcher: Searcher, outcome: Found, highest: tuple[float, Box], clock: Clock
) -> Binding:
    """Return the requirements that bind the best configuration.

    Parameters
    ----------
    searcher
        The search that found it.
    outcome
        What it found; at least one configuration, the preferred one first.
    highest
        The best by score, which need not be the preferred one: a weaker rule gains only what goes
        beyond it.
    clock
        Bounds the relaxed searches together.
    """
    value, box = outcome.best[0]
    return Binding(
        finer=tuple(_finer(searcher, box, value, clock)),
        relaxations=tuple(_relaxed(searcher, box, highest, clock)),
    )


def _finer(searcher: Searcher, box: Box, value: float, clock: Clock) -> list[FinerMask]:
    """Return, per attribute, the next finer candidates and what the rule says of them.

    Out of time, what is left is left out.
    """
    problem = searcher.problem
    finer = []
    for index, (variable, domain) in enumerate(zip(problem.variables, box, strict=True)):
        current = domain.bit_length() - 1
        others = [*next_finer(problem, index, current), *_hiding_less(problem, index, current)]
        for candidate in others:
            other = (*box[:index], 1 << candidate, *box[index + 1 :])
            if not clock.allows(2 * searcher.objective.effort(other)):
                continue
            verdict = searcher.plan.check(problem.choice(other))
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


def _hiding_less(problem: Problem, index: int, current: int) -> list[int]:
    """Return candidates that hide less than the current one and do not nest in it, at most `NEXT`.

    For example ranges of 7 years next to ranges of 10. Those that hide nearly as much come first.
    """
    variable = problem.variables[index]
    nested = variable.finer[current] | variable.coarser[current]
    hidden = [masking(variable, c) for c in range(len(variable.candidates))]
    less = [c for c, share in enumerate(hidden) if share < hidden[current] and not nested >> c & 1]
    return sorted(less, key=lambda c: (-hidden[c], c))[:NEXT]


def _relaxed(
    searcher: Searcher, box: Box, highest: tuple[float, Box], clock: Clock
) -> list[Relaxation]:
    """Return what the best configuration under each one-step weaker rule would gain."""
    finer = []
    value, leader = highest
    start = tuple(dict.fromkeys((leader, box)))
    for change, rule in relaxations(searcher.plan.rule):
        best, figures = searcher.run(
            rule, top=1, time_limit=clock.left(), start=start, briefly=True
        )
        if best.interrupted:
            clock.stop()
        # The best under the rule meets a weaker one, whatever a brief search found.
        entries = best.best[:1]
        if searcher.plan.under(rule).check(searcher.problem.choice(leader)).admissible:
            entries = [*entries, (searcher.objective_under(rule).bound(leader), leader)]
        if entries:
            score, other = max(entries, key=lambda entry: entry[0])
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
    """Return each rule that is one step weaker: by a model's own step, or 1 % more suppressed.

    A criterion that has no weaker step is left out: for example distinct l-diversity with l = 2.
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
