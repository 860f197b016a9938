"""Compute the Pareto front of privacy and utility: the best configuration for each of several
values of a parameter of the rule. The searches for these values share work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aegis.advisor.figures import Front, FrontPoint
from aegis.advisor.search.clock import Clock
from aegis.advisor.search.objective import Objective
from aegis.advisor.search.problem import Box
from aegis.errors import PolicyError
from aegis.privacy import MODELS, ModelParameter, PrivacyRule
from aegis.privacy.rule import rule_at
from aegis.privacy.strength import larger_is_stronger
from aegis.requests import Span

if TYPE_CHECKING:
    from aegis.advisor.search.searcher import Searcher

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
    whole
        Whether only whole numbers are allowed.
    counts
        Whether a range such as 2..50 is divided into whole numbers instead of even steps.
    larger_is_stronger
        Whether a larger value is stricter.
    """

    low: float
    high: float
    whole: bool = False
    counts: bool = False
    larger_is_stronger: bool = False


_OF_RULES = {"risk": Varied(1e-9, 1), "suppression": Varied(0, 0.999999)}
"""Parameters that can vary in addition to those of privacy models."""


def varying() -> dict[str, Varied]:
    """Return the parameters that a front can vary, by name, with their allowed values. A front has
    the best configuration for each of several values of one parameter of the rule.

    A parameter that several privacy models have is left out if larger values are stricter in some
    of them and weaker in others.
    """
    varied: dict[str, list[tuple[ModelParameter, bool | None]]] = {}
    for model in MODELS:
        for parameter in model.parameters:
            larger = larger_is_stronger(model, parameter)
            varied.setdefault(parameter.name, []).append((parameter, larger))
    return {
        name: Varied(
            min(p.low for p, _ in known),
            min(max(p.high for p, _ in known), _LARGEST),
            all(p.whole for p, _ in known),
            any(p.whole for p, _ in known),
            larger is True,
        )
        for name, known in varied.items()
        for larger in [known[0][1]]
        if larger is not None and all(other is larger for _, other in known)
    } | _OF_RULES


@dataclass(frozen=True)
class FrontRange:
    """The parameter of the rule that a front varies, and its values from the weakest to the
    strictest. A front has the best configuration for each value.
    """

    parameter: str
    values: tuple[float, ...]

    @classmethod
    def of(cls, given: Span | str) -> FrontRange:
        """Return the range of a front from a text such as "k=2..50", or from an object with the
        fields `parameter` and `values`.
        """
        return cls.parse(given) if isinstance(given, str) else cls(given.parameter, given.values)

    @classmethod
    def parse(cls, text: str) -> FrontRange:
        """Read the range of a front from text: "k=2..50" means at most 12 rounded values in this
        range, "k=2,5,10" means exactly these values.

        Raises
        ------
        PolicyError
            The text has neither form, the parameter is unknown, or a value is out of range.
        """
        name, equals, given = text.partition("=")
        name = name.strip()
        known = varying()
        if not equals:
            raise PolicyError(
                f"The front {text!r} does not name a parameter.",
                hint=f'Write "k=2..50" or "k=2,5,10". Possible parameters: {", ".join(known)}.',
            )
        if name not in known:
            raise PolicyError.unknown("parameter of a front", name, known)
        try:
            if ".." in given:
                low, high = (float(part) for part in given.split(".."))
                values = _between(name, low, high)
            else:
                values = [float(part) for part in given.split(",")]
        except ValueError as error:
            raise PolicyError(
                f"The front {text!r} cannot be read.", hint='Write "k=2..50" or "k=2,5,10".'
            ) from error
        return cls(name, tuple(_checked(name, values)))


def _between(name: str, low: float, high: float) -> list[float]:
    """Return values of the parameter `name` from `low` to `high`: at most 12 rounded whole numbers
    for a count, eleven even steps for a share.
    """
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError
    if varying()[name].counts:
        _checked(name, [math.ceil(low), math.floor(high)])
        whole = range(math.ceil(low), math.floor(high) + 1)
        if len(whole) <= _MOST:
            return [float(v) for v in whole]
        ladder = {int(step * 10**power) for power in range(9) for step in _LADDER}
        inner = sorted(v for v in ladder if low < v < high)
        stride = max(1, math.ceil(len(inner) / (_MOST - 2)))
        return [float(v) for v in (whole[0], *inner[::stride], whole[-1])]
    return [round(low + (high - low) * i / 10, 10) for i in range(11)] if high > low else [low]


def _checked(name: str, values: Sequence[float]) -> list[float]:
    varied = varying()[name]
    wrong = [
        v for v in values if not varied.low <= v <= varied.high or (varied.whole and v != int(v))
    ]
    if wrong or not values:
        kind = "whole numbers" if varied.whole else "numbers"
        raise PolicyError(
            f"The front over {name} has values out of range: {wrong}."
            if wrong
            else f"The front over {name} has no values.",
            hint=f"Give {kind} from {varied.low:g} to {varied.high:g}.",
        )
    return sorted(set(values), reverse=not varied.larger_is_stronger)


def rules_of(span: Span | str, rule: PrivacyRule) -> list[PrivacyRule]:
    """Return the privacy rule for each value that a front gives to the varied parameter. `span` is
    a text such as "k=2..50", or a parameter with its values.
    """
    values = FrontRange.of(span)
    return [rule_at(rule, values.parameter, value) for value in values.values]


def check_span(span: FrontRange, rule: PrivacyRule, rows: int, values: Mapping[str, int]) -> None:
    """Raise an error before any search starts if no masks can meet the rule at any point of a
    front. A front varies one parameter of the rule.

    Parameters
    ----------
    span
        The varied parameter and its values.
    rule
        The rule of the policy.
    rows
        Number of rows of the table.
    values
        Number of distinct values of each sensitive attribute.

    Raises
    ------
    PolicyError
        The parameter does not fit the rule, or such a table cannot meet the rule for any of the
        values.
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


@dataclass
class _FrontStrength:
    """One value of the parameter of the rule that a front varies, with the rule and the objective
    for this value. `box` is the best configuration so far (None: there is none). `bound` is an
    upper bound of the objective, which is negated if smaller values are better.
    """

    value: float
    rule: PrivacyRule
    objective: Objective
    bound: float = math.inf
    """No configuration that is admissible for this value has a larger signed objective."""
    box: Box | None = None

    @property
    def reached(self) -> float:
        """The objective of the best configuration so far, negated if smaller values are better;
        -inf if there is no configuration.
        """
        return -math.inf if self.box is None else self.objective.bound(self.box)

    @property
    def proven(self) -> bool:
        """Whether the best configuration so far is proven to be the best for this value of the
        parameter.
        """
        return self.bound <= self.reached + _SAME


def trace_front(
    searcher: Searcher,
    span: FrontRange,
    clock: Clock,
    known: Sequence[Box] = (),
    bound: float = math.inf,
) -> Front:
    """Return the best configuration for each value of a parameter of the rule: the points of a
    front.

    The search goes from the weakest rule to the strictest, and reuses results. A stricter monotone
    rule admits fewer configurations. So unless the objective depends on the rule, an upper bound
    for one point is valid for every stricter point. If a known configuration is admissible at a
    point and reaches the bound of this point, it is the best there, and no search is necessary.

    Each search first tries all configurations from earlier points. At the end, each point without a
    proof gets the best known configuration that its rule admits. A configuration that meets a
    stricter rule also meets a weaker one. So no point is worse than a stricter point, even if there
    is little time.

    Parameters
    ----------
    searcher
        The searcher, with the search space, the objective and the rule.
    span
        The parameter and its values.
    clock
        Time limit for all searches together. The remaining time is divided equally among the
        remaining points.
    known
        Configurations to try first.
    bound
        Upper bound of the objective (negated if minimised) over all admissible configurations.
    """
    strengths: list[_FrontStrength] = []
    values = list(known)
    with searcher.progress.step(
        f"Tracing the front over {span.parameter}", len(span.values)
    ) as step:
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
    points = [_point(searcher, strength) for strength in strengths]
    marked = _mark_dominated(points, searcher.objective.sign)
    return Front(span.parameter, tuple(marked), _knee(span.parameter, marked))


def _strength(
    searcher: Searcher, parameter: str, value: float, weaker: Sequence[_FrontStrength]
) -> _FrontStrength:
    """Return a point of a front (one value of a varied parameter of the rule), still without a
    configuration. If the upper bound of the next weaker point is valid here, the new point begins
    with this bound.

    `value` is the point's value of the varied parameter. `weaker` is empty or has the next weaker
    point.
    """
    rule = rule_at(searcher.plan.rule, parameter, value)
    if rule.shortage(searcher.summary.rows, searcher.plan.values):
        return _FrontStrength(value, rule, searcher.objective, bound=-math.inf)
    strength = _FrontStrength(value, rule, searcher.objective_under(rule))
    if weaker and rule.monotone and not searcher.objective.follows_rule:
        strength.bound = weaker[0].bound
    return strength


def _settle(
    searcher: Searcher, strength: _FrontStrength, known: Sequence[Box], clock: Clock, parts: int
) -> None:
    """Find the best configuration for a point of a front (one value of a varied parameter of the
    rule), among `known` configurations or by a search. The point (`strength`) receives it.

    The search may use the share 1 / `parts` of the remaining time.
    """
    if math.isfinite(strength.bound):
        strength.box = _best_of(searcher, strength, known, strength.bound - 2 * _SAME)
    if strength.proven:
        return
    outcome, figures = searcher.run(
        strength.rule,
        top=1,
        time_limit=clock.part(1 / parts),
        start=tuple(reversed(known)),
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
    searcher: Searcher, strength: _FrontStrength, known: Sequence[Box], above: float
) -> Box | None:
    """Return the best known configuration that meets the rule of a point of a front. Return None if
    none has a value larger than `above`; values are negated if smaller ones are better.
    """
    values = [(strength.objective.bound(box), box) for box in known]
    # The classes of few are counted: those of the best until one is admissible.
    for value, box in sorted(values, key=lambda entry: (-entry[0], entry[1])):
        if value <= above + _SAME:
            return None
        if searcher.verdict(box, strength.rule).admissible:
            return box
    return None


def _point(searcher: Searcher, strength: _FrontStrength) -> FrontPoint:
    if strength.box is None:
        return FrontPoint(strength.value, None, None, None, {}, 0, 0, strength.proven)
    ranked = searcher.ranked(f"{strength.value:g}", strength.box, strength.reached)
    verdict = searcher.verdict(strength.box, strength.rule)
    return FrontPoint(
        value=strength.value,
        score=ranked.score,
        objective=ranked.objective,
        utility_kept=ranked.utility_kept,
        configuration=ranked.configuration,
        declared=ranked.declared,
        smallest_class=verdict.smallest_class,
        suppressed_rows=verdict.suppressed_rows,
        proven=strength.proven,
    )


def _mark_dominated(points: Sequence[FrontPoint], sign: int) -> list[FrontPoint]:
    """Return the points of a front: the best configurations under ever stricter rules. Mark each
    point for which a point with a stricter rule has at least the same utility.

    `points` begin with the weakest rule. `sign` is -1 if smaller values of the objective are
    better.
    """
    marked = []
    best_later = -math.inf
    for point in reversed(points):
        value = -math.inf if point.reached is None else sign * point.reached
        marked.append(replace(point, dominated=-math.inf < value <= best_later + _SAME))
        best_later = max(best_later, value)
    return marked[::-1]


def _knee(parameter: str, points: Sequence[FrontPoint]) -> float | None:
    """Return the value of the varied `parameter` of the rule at the knee of a front: the point of
    the curve of utility with the largest distance from the straight line between its ends.

    The method is by Satopaa et al., Finding a kneedle in a haystack, ICDCS Workshops 2011. Counts
    and risk are on a logarithmic scale. The result is None with fewer than three points, or if the
    front does not bend outwards.
    """
    front = [p for p in points if p.reached is not None and not p.dominated]
    if len(front) < 3:
        return None
    logarithmic = parameter == "risk" or varying()[parameter].counts
    scale = [math.log(p.value) if logarithmic else p.value for p in front]
    scores = [p.reached or 0.0 for p in front]
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
