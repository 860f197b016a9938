"""Compute the Pareto front of privacy and utility (the best configuration for each of several
values of a parameter of the rule), choose among configurations that score about the same, and
explain why the best is not finer and how much a weaker rule would gain. Boxes and signed values are
those of `objective`.

Scores within a stated margin of the best score count as equal, because trained models show no
difference on new rows. If the search scored a list, the whole list is compared. If the score has a
bound, a second search finds the configuration that masks least among all configurations within the
margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from aegis.advisor.confidence import Prefer, tie_margin
from aegis.advisor.figures import Binding, FinerMask, FirstByMasking, Front, FrontPoint, Relaxation
from aegis.advisor.search.branch import BranchAndBound, Found
from aegis.advisor.search.feasibility import Feasibility
from aegis.advisor.search.neighbours import hiding_less, masking, next_finer
from aegis.advisor.search.objective import Objective
from aegis.advisor.search.objectives import Additive
from aegis.advisor.search.problem import Box, Clock, Problem, replaced
from aegis.advisor.search.searcher import Searcher
from aegis.advisor.utility import UtilityFigure
from aegis.errors import PolicyError, require_known
from aegis.policy.terms import OwnerRule
from aegis.privacy import MODELS, ModelParameter, PrivacyRule
from aegis.privacy.rule import Strength, larger_is_stronger, rule_at
from aegis.privacy.rule import strength as strength_of
from aegis.requests import Span

_MOST = 12
"""Largest number of points of a front over a range."""
_LARGEST = 1e12
"""Largest value of a parameter on a front."""
_SAME = 1e-12
"""Scores closer than this are the same."""
_LADDER = (1, 1.5, 2, 3, 4, 5, 7)


@dataclass(frozen=True)
class Varied:
    """The values that a parameter of the rule may have, and whether larger or smaller values are
    stricter.

    Attributes
    ----------
    low, high
        Smallest and largest value.
    integer
        Whether only whole numbers are allowed.
    counts
        Whether a range such as 2..50 is divided into round whole numbers instead of even steps.
    larger_is_stronger
        Whether a larger value is stricter.
    """

    low: float
    high: float
    integer: bool = False
    counts: bool = False
    larger_is_stronger: bool = False


_OF_RULES = {"risk": Varied(1e-9, 1), "suppression": Varied(0, 0.999999)}
"""Parameters that can vary in addition to those of privacy models."""


def varying() -> dict[str, Varied]:
    """Return the parameters that a front can vary, by name, with their allowed values. A parameter
    that several privacy models have is left out if larger values are stricter in some and weaker in
    others.
    """
    varied: dict[str, list[tuple[ModelParameter, bool | None]]] = {}
    for model in MODELS:
        for parameter in model.parameters:
            larger = larger_is_stronger(model, parameter)
            varied.setdefault(parameter.name, []).append((parameter, larger))
    return {
        name: Varied(
            min(p.low for p, _ in parameters),
            min(max(p.high for p, _ in parameters), _LARGEST),
            all(p.whole for p, _ in parameters),
            any(p.whole for p, _ in parameters),
            larger is True,
        )
        for name, parameters in varied.items()
        for larger in [parameters[0][1]]
        if larger is not None and all(other is larger for _, other in parameters)
    } | _OF_RULES


@dataclass(frozen=True)
class FrontRange:
    """The parameter that a front varies, and its values from the weakest to the strictest. `weaker`
    is a sentence on the values that are left out because the owner's rule is stricter.
    """

    parameter: str
    values: tuple[float, ...]
    weaker: str = ""

    @classmethod
    def of(cls, span: Span | str) -> FrontRange:
        """Return the range from a text such as "k=2..50", or from an object with `parameter` and
        `values`.
        """
        if isinstance(span, FrontRange):
            return span
        return cls.parse(span) if isinstance(span, str) else cls(span.parameter, span.values)

    @classmethod
    def parse(cls, text: str) -> FrontRange:
        """Read a range from text. "k=2..50" means 2, 50 and round numbers between them, at most 12
        in all; "k=2,5,10" means exactly these values. A range of shares is divided into eleven even
        steps.

        Raises
        ------
        PolicyError
            The text has neither form, the parameter is unknown, or a value is out of range.
        """
        name, equals, listed = text.partition("=")
        name = name.strip()
        parameters = varying()
        if not equals:
            raise PolicyError(
                f"The front {text!r} does not name a parameter.",
                hint=f'Write "k=2..50" or "k=2,5,10". Possible parameters: {", ".join(parameters)}.',
            )
        require_known("parameter of a front", name, parameters)
        try:
            if ".." in listed:
                low, high = (float(part) for part in listed.split(".."))
                values = _between(name, low, high)
            else:
                values = [float(part) for part in listed.split(",")]
        except ValueError as error:
            raise PolicyError(
                f"The front {text!r} cannot be read.", hint='Write "k=2..50" or "k=2,5,10".'
            ) from error
        return cls(name, tuple(_checked(name, values)))


def _between(name: str, low: float, high: float) -> list[float]:
    """Return values from `low` to `high`: at most 12 round whole numbers (such as 2, 5, 10) for a
    count, eleven even steps for a share.
    """
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError
    if varying()[name].counts:
        _checked(name, [math.ceil(low), math.floor(high)])
        numbers = range(math.ceil(low), math.floor(high) + 1)
        if len(numbers) <= _MOST:
            return [float(v) for v in numbers]
        ladder = {int(step * 10**power) for power in range(9) for step in _LADDER}
        inner = sorted(v for v in ladder if low < v < high)
        stride = max(1, math.ceil(len(inner) / (_MOST - 2)))
        return [float(v) for v in (numbers[0], *inner[::stride], numbers[-1])]
    return [round(low + (high - low) * i / 10, 10) for i in range(11)] if high > low else [low]


def _checked(name: str, values: Sequence[float]) -> list[float]:
    varied = varying()[name]
    wrong = [
        v for v in values if not varied.low <= v <= varied.high or (varied.integer and v != int(v))
    ]
    if wrong or not values:
        kind = "whole numbers" if varied.integer else "numbers"
        raise PolicyError(
            f"The front over {name} has values out of range: {wrong}."
            if wrong
            else f"The front over {name} has no values.",
            hint=f"Give {kind} from {varied.low:g} to {varied.high:g}.",
        )
    return sorted(set(values), reverse=not varied.larger_is_stronger)


def rules_of(span: Span | str, rule: PrivacyRule) -> list[PrivacyRule]:
    """Return copies of a privacy rule for the values of a range, from the weakest to the strictest."""
    values = FrontRange.of(span)
    return [rule_at(rule, values.parameter, value) for value in values.values]


def check_span(span: FrontRange, rule: PrivacyRule, rows: int, values: Mapping[str, int]) -> None:
    """Raise an error before any search starts if no masks can meet the rule at any point of a
    front. `values` has the number of distinct values of each sensitive attribute.

    Raises
    ------
    PolicyError
        The parameter does not fit the rule, or such a table cannot meet the rule for any value.
    """
    lacking = [rule_at(rule, span.parameter, value).shortage(rows, values) for value in span.values]
    weakest = lacking[0]
    if weakest is None or not all(lacking):
        return
    remedy = f"No mask can fix this: {weakest.remedy}."
    if span.parameter in weakest.parameters:
        remedy = f"Choose values of {span.parameter} that the table can meet."
    raise PolicyError(
        f"Every point of the front over {span.parameter} requires {weakest}.", hint=remedy
    )


def front_under_owner(
    owner: OwnerRule | None, span: FrontRange, rule: PrivacyRule, *, override: bool
) -> FrontRange:
    """Return the part of a range that is no weaker than the rule that the owner put into a summary.
    If `override`, the user accepts weaker rules, but a locked summary allows none.

    Raises
    ------
    PolicyError
        Every value gives a weaker rule.
    """
    if owner is None or (override and not owner.locked):
        return span
    weaker = [strength_of(at, owner.rule) is Strength.WEAKER for at in rules_of(span, rule)]
    if not any(weaker):
        return span
    named = ", ".join(f"{value:g}" for value, out in zip(span.values, weaker, strict=True) if out)
    below = f"{span.parameter} = {named}, which {'are' if ',' in named else 'is'} weaker than the rule of the summary's owner, {owner.rule}"
    remedy = "the summary is locked, so it allows no weaker rule"
    if not owner.locked:
        remedy = (
            "to trace weaker rules on purpose, add --rule-override (in Python, rule_override=True)"
        )
    if all(weaker):
        raise PolicyError(
            f"The front has only values that the summary does not allow: {below}.",
            hint=f"Choose stricter values; {remedy}.",
        )
    stays = tuple(value for value, out in zip(span.values, weaker, strict=True) if not out)
    return FrontRange(span.parameter, stays, f"The front leaves out {below}; {remedy}.")


Recommend = Callable[[Searcher, Box], tuple[Box, UtilityFigure, bool]]
"""A function that returns the configuration to recommend in place of the best one, the utility of
its release, and whether it was chosen by its release. Its searcher has the rule.
"""


@dataclass
class _FrontStrength:
    """One value of the parameter that a front varies, with the rule and the objective for this
    value, and the best configuration so far (`box`).
    """

    value: float
    rule: PrivacyRule
    objective: Objective
    bound: float = math.inf
    """No configuration that is admissible for this value has a larger signed objective."""
    box: Box | None = None

    @property
    def reached(self) -> float:
        """The signed objective of the best configuration so far; -inf if there is none."""
        return -math.inf if self.box is None else self.objective.bound(self.box)

    @property
    def proven(self) -> bool:
        """Whether the best configuration so far is proven to be the best for this value."""
        return self.bound <= self.reached + _SAME


def trace_front(
    searcher: Searcher,
    span: FrontRange,
    clock: Clock,
    boxes: Sequence[Box] = (),
    bound: float = math.inf,
    recommend: Recommend | None = None,
) -> Front:
    """Return the front: the configuration to recommend for each value of a parameter of the rule.

    The search goes from the weakest rule to the strictest. A stricter monotone rule admits fewer
    configurations. So unless the objective depends on the rule, an upper bound for one point is
    valid for every stricter point. If a known configuration is admissible at a point and reaches
    the bound of this point, it is the best there, and no search is necessary.

    Each search first tries all configurations from earlier points. At the end, each point without a
    proof gets the best known configuration that its rule admits. A weaker rule admits it, too, so
    no point has a worse best score than a stricter point, even if there is little time.

    Parameters
    ----------
    searcher
        The searcher, with the search space, the objective and the rule.
    span
        The parameter and its values.
    clock
        Time limit for all searches together. The remaining time is divided equally among the
        remaining points.
    boxes
        Configurations to try first.
    bound
        Upper bound of the signed objective over all admissible configurations.
    recommend
        Chooses the configuration at a point. None: the best by score, without measuring releases.
    """
    strengths: list[_FrontStrength] = []
    values = list(boxes)
    title = f"Tracing the front over {span.parameter}"
    with searcher.progress.step(title, len(span.values)) as step:
        for done, value in enumerate(span.values):
            strength = _strength(searcher, span.parameter, value, strengths[-1:])
            if strength.rule == searcher.plan.rule:
                strength.bound = min(strength.bound, bound)
            _settle(searcher, strength, values, clock, len(span.values) - done)
            if strength.box is not None and strength.box not in values:
                values.append(strength.box)
            strengths.append(strength)
            step.advance()
        # Easy points leave time over for those that were not.
        hard = [strength for strength in strengths if not strength.proven]
        for done, strength in enumerate(hard):
            if clock.left():
                _settle(searcher, strength, values, clock, len(hard) - done)
    values += [strength.box for strength in strengths if strength.box is not None]
    for strength in strengths:
        if not strength.proven:
            strength.box = _best_of(searcher, strength, values, strength.reached) or strength.box
    points = [_point(searcher, strength, recommend) for strength in strengths]
    return front_of(span, points, searcher.objective.sign)


def _strength(
    searcher: Searcher, parameter: str, value: float, weaker: Sequence[_FrontStrength]
) -> _FrontStrength:
    """Return a new point of a front, without a configuration. `weaker` is empty or has the next
    weaker point; the new point begins with its bound, if this is also valid here.
    """
    rule = rule_at(searcher.plan.rule, parameter, value)
    if rule.shortage(searcher.summary.rows, searcher.plan.values):
        return _FrontStrength(value, rule, searcher.objective, bound=-math.inf)
    strength = _FrontStrength(value, rule, searcher.objective_under(rule))
    if weaker and rule.monotone and not searcher.objective.follows_rule:
        strength.bound = weaker[0].bound
    return strength


def _settle(
    searcher: Searcher, strength: _FrontStrength, boxes: Sequence[Box], clock: Clock, parts: int
) -> None:
    """Find the best configuration under the rule of one point, among `boxes` or by a search, which
    may use the share 1 / `parts` of the remaining time.
    """
    if math.isfinite(strength.bound):
        strength.box = _best_of(searcher, strength, boxes, strength.bound - 2 * _SAME)
    if strength.proven:
        return
    outcome, figures = searcher.run(
        strength.rule,
        top=1,
        time_limit=clock.part(1 / parts),
        start=tuple(reversed(boxes)),
        briefly=True,
    )
    if outcome.interrupted:
        clock.stop()
    if figures.exact:
        strength.bound = min(strength.bound, outcome.bound)
    if outcome.best:
        strength.box = outcome.best[0][1]
    elif outcome.complete:
        strength.box = None
    else:
        strength.box = searcher.closest(strength.rule, clock.part(1 / parts))


def _best_of(
    searcher: Searcher, strength: _FrontStrength, boxes: Sequence[Box], above: float
) -> Box | None:
    """Return the best of the configurations `boxes` that meet the rule of a point; None if none has
    a signed value larger than `above`.
    """
    values = [(strength.objective.bound(box), box) for box in boxes]
    # The classes of few are counted: those of the best until one is admissible.
    for value, box in sorted(values, key=lambda entry: (-entry[0], entry[1])):
        if value <= above + _SAME:
            return None
        if searcher.verdict(box, strength.rule).admissible:
            return box
    return None


def _point(searcher: Searcher, strength: _FrontStrength, recommend: Recommend | None) -> FrontPoint:
    box, figure, by_release = strength.box, None, False
    if box is None:
        return FrontPoint(strength.value, None, None, None, {}, 0, 0, strength.proven)
    if recommend is not None:
        under = searcher.under(searcher.plan.under(strength.rule), searcher.progress)
        box, figure, by_release = recommend(under, box)
    ranked = searcher.ranked(f"{strength.value:g}", box, strength.objective.bound(box))
    verdict = searcher.verdict(box, strength.rule)
    return FrontPoint(
        value=strength.value,
        score=ranked.score,
        objective=ranked.objective,
        utility_kept=ranked.utility_kept if figure is None else figure.utility_kept,
        configuration=ranked.configuration,
        declared=ranked.declared,
        smallest_class=verdict.smallest_class,
        suppressed_rows=verdict.suppressed_rows,
        proven=strength.proven and not by_release,
        utility=figure,
    )


def front_of(span: FrontRange, points: Sequence[FrontPoint], sign: int) -> Front:
    """Return the front over a range, with its knee. Mark each point for which a point with a
    stricter rule has at least the same utility. `sign` is -1 if smaller values of the objective are
    better.
    """
    marked: list[FrontPoint] = []
    best_later = -math.inf
    for point in reversed(points):
        value = _worth(point, sign)
        marked.insert(0, replace(point, dominated=-math.inf < value <= best_later + _SAME))
        best_later = max(best_later, value)
    return Front(span.parameter, tuple(marked), _knee(span.parameter, marked), span.weaker)


def _worth(point: FrontPoint, sign: int) -> float:
    """Return the figure by which a point is compared with the others; larger is better. It is the
    utility of its release, unless the search optimised something else. -inf if it has no
    configuration.
    """
    if point.reached is None:
        return -math.inf
    if point.objective is None and point.utility is not None and point.utility_kept is not None:
        return point.utility_kept
    return sign * point.reached


def _knee(parameter: str, points: Sequence[FrontPoint]) -> float | None:
    """Return the value of the parameter at the knee of a front: the point of the curve of utility
    with the largest distance from the straight line between its ends.

    The method is by Satopaa et al., Finding a kneedle in a haystack, ICDCS Workshops 2011. Counts
    and risk are on a logarithmic scale. The result is None with fewer than three points, or if the
    front does not bend outwards.
    """
    front = [p for p in points if p.reached is not None and not p.dominated]
    if len(front) < 3:
        return None
    logarithmic = parameter == "risk" or varying()[parameter].counts
    scale = [math.log(p.value) if logarithmic else p.value for p in front]
    scores = [_worth(p, 1) for p in front]
    width, height = scale[-1] - scale[0], scores[-1] - scores[0]
    if width == 0 or height == 0:
        return None
    # Along the front privacy rises from 0 to 1 and utility falls from 1 to 0; the chord joins the ends.
    above = [
        (x - scale[0]) / width - (y - scores[0]) / height
        for x, y in zip(scale, scores, strict=True)
    ]
    best = max(range(len(above)), key=lambda i: above[i])
    return front[best].value if above[best] > 1e-9 else None


_RIVALS = 9
"""Largest number of configurations with equal masking to compare by their suppressed rows."""
_ROUNDING = 1e-9
"""A difference up to this share of a score counts as rounding."""
_NODES = 64
"""Largest number of boxes to split in the search for less masking; a good result is enough."""


class Masking(Additive):
    """An objective: how much a configuration masks, as the mean, over attributes, of the share of
    entropy that the mask hides. If `sign` is -1, the search minimises the masking.
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
        """Return how much a configuration masks, from 0 to 1."""
        return max(0.0, self.sign * self.bound(box))


class AboveScore:
    """Checks whether configurations meet the rule (`inner`), and whether their value of the
    objective `score`, signed, is at least `least`.
    """

    def __init__(self, inner: Feasibility, score: Objective, least: float) -> None:
        self._inner = inner
        self._score = score
        self._least = least

    def narrow(self, box: Box) -> Box | None:
        """Return a box without the candidates that cannot meet the rule; None if no configuration
        in it can do so, or can reach the score.
        """
        narrowed = self._inner.narrow(box)
        if narrowed is None or self._score.bound(narrowed) < self._least:
            return None
        return narrowed

    def admits(self, box: Box) -> bool:
        """Return whether a configuration meets the rule and reaches the score."""
        return self._inner.admits(box) and self._score.bound(box) >= self._least


def put_first(
    searcher: Searcher, outcome: Found, prefer: Prefer, top: int, clock: Clock
) -> FirstByMasking | None:
    """Move the configuration that the user prefers, among those that score about the same, to the
    front of `outcome.best`, which is shortened to `top` entries. Return why it comes first; None if
    it has the best score.
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
) -> tuple[Box, FirstByMasking | None]:
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
    hidden, other = amount.share(first), amount.share(best)
    return first, FirstByMasking(str(prefer), score, margin, hidden, other)


def _rivals(
    searcher: Searcher, best: Box, amount: Masking, least: float, clock: Clock
) -> list[Box]:
    """Return some configurations that meet the rule and whose signed score is at least `least`,
    those that mask least first (or most, as `amount` says), by a search that starts from the
    configuration `best`.
    """
    feasibility: Feasibility | AboveScore = searcher.feasibility(searcher.plan.rule, clock)
    worst = searcher.measure.worst(searcher.scorer.label_rows)
    if least > searcher.objective.sign * worst:  # else all scores are alike: none beats a constant
        feasibility = AboveScore(feasibility, searcher.objective, least)
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


SUPPRESSION_STEP = 0.01
"""One step of the suppression limit, as a share of the rows: 1 %."""


def explain(
    searcher: Searcher, outcome: Found, highest: tuple[float, Box], clock: Clock
) -> Binding:
    """Explain why the best configuration is not finer: return which finer masks the rule excludes,
    and how much utility weaker rules would gain.

    `outcome` has the recommended configuration first. `highest` is the best score with its
    configuration; the gains of weaker rules are relative to this score. `clock` limits the time of
    all searches under weaker rules together.
    """
    value, box = outcome.best[0]
    return Binding(
        finer=tuple(_finer(searcher, box, value, clock)),
        relaxations=tuple(_relaxed(searcher, box, highest, clock)),
    )


def _finer(searcher: Searcher, box: Box, value: float, clock: Clock) -> list[FinerMask]:
    """Return the next finer candidates of each attribute, with the score that the best
    configuration would gain over `value` and the requirements that it would violate. If time runs
    out, the remaining candidates are left out.
    """
    problem = searcher.problem
    finer = []
    for index, (variable, domain) in enumerate(zip(problem.variables, box, strict=True)):
        current = domain.bit_length() - 1
        others = [*next_finer(variable, current), *hiding_less(variable, current)]
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


def _relaxed(
    searcher: Searcher, box: Box, highest: tuple[float, Box], clock: Clock
) -> list[Relaxation]:
    """Return, for each rule that is one step weaker than the policy's rule, the best configuration
    under it: its score, its gain over `highest`, and which masks differ from the recommended `box`.
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
    """Return each rule that is one step weaker, with a description of the step: the next weaker
    value that a privacy model defines, or 1 % more suppression. If a criterion has no weaker value,
    such as distinct l-diversity with l = 2, the step removes it.
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
