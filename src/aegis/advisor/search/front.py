"""The Pareto front of privacy against utility, sharing work between its points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aegis.advisor.figures import Front, FrontPoint
from aegis.advisor.search.clock import Clock
from aegis.advisor.search.problem import Box
from aegis.errors import PolicyError
from aegis.privacy import PrivacyRule

if TYPE_CHECKING:
    from aegis.advisor.search.search import Searcher

PARAMETERS = ("k", "risk", "l", "suppression")
_MOST = 12
"""Most points of a front that is given as a range."""
_ALLOWED = {
    "k": (1, 1e12, True),
    "l": (1, 1e6, False),
    "risk": (1e-9, 1, False),
    "suppression": (0, 0.999999, False),
}
"""Per parameter the smallest and largest value, and whether it is a whole number."""
_SAME = 1e-12
"""Scores closer than this are the same."""
_LADDER = (1, 1.5, 2, 3, 4, 5, 7)


@dataclass(frozen=True)
class FrontRange:
    """A parameter of the rule and the values that a front visits, from weakest to strictest."""

    parameter: str
    values: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> FrontRange:
        """Read "k=2..50" (a range, at most 12 rounded values) or "k=2,5,10" (exactly these).

        Raises
        ------
        PolicyError
            The text is neither, the parameter is unknown, or a value is out of range.
        """
        name, _, given = text.partition("=")
        name = name.strip()
        if name not in PARAMETERS:
            raise PolicyError.unknown("parameter of a front", name, PARAMETERS)
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
    """Return round values from `low` to `high`: whole ones for k and l, even steps for shares."""
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError
    if name in ("k", "l"):
        whole = list(range(math.ceil(low), math.floor(high) + 1))
        if len(whole) <= _MOST:
            return [float(v) for v in whole]
        ladder = {int(step * 10**power) for power in range(9) for step in _LADDER}
        inner = sorted(v for v in ladder if low < v < high)
        stride = max(1, math.ceil(len(inner) / (_MOST - 2)))
        return [float(v) for v in (whole[0], *inner[::stride], whole[-1])]
    return [round(low + (high - low) * i / 10, 10) for i in range(11)] if high > low else [low]


def _checked(name: str, values: Sequence[float]) -> list[float]:
    low, high, whole = _ALLOWED[name]
    wrong = [v for v in values if not low <= v <= high or (whole and v != int(v))]
    if wrong or not values:
        kind = "whole numbers" if whole else "numbers"
        raise PolicyError(
            f"The front over {name} visits {wrong or 'nothing'}.",
            hint=f"Give {kind} from {low:g} to {high:g}.",
        )
    return sorted(set(values), reverse=name in ("risk", "suppression"))


def rule_at(rule: PrivacyRule, parameter: str, value: float) -> PrivacyRule:
    """Return `rule` with one parameter set.

    Raises
    ------
    PolicyError
        The parameter is `l` and the rule has no l-diversity.
    """
    if parameter == "suppression":
        return replace(rule, suppression=value)
    if parameter == "l":
        found = [c for c in rule.criteria if c.model.key == "l_diversity"]
        if not found:
            raise PolicyError(
                "A front over l needs l-diversity in the privacy rule.",
                hint="Add `l_diversity: {attribute: NAME, l: 2}` to the policy.",
            )
        criteria = [c.with_parameter("l", value) if c in found else c for c in rule.criteria]
        return replace(rule, criteria=tuple(criteria))
    k = int(value) if parameter == "k" else math.ceil(1 / value - 1e-9)
    others = tuple(c for c in rule.criteria if c.model.name != "k")
    return replace(rule, criteria=(*PrivacyRule.parse({"k": k}).criteria, *others))


def trace_front(searcher: Searcher, span: FrontRange, clock: Clock) -> Front:
    """Return the best configuration for each value of a parameter of the rule.

    Points are visited from the weakest rule to the strictest. A proven best configuration that
    also meets the next, stricter rule is the best there as well, because a monotone rule admits
    ever fewer configurations (unless the objective itself depends on the rule); otherwise every
    configuration found so far is tried first.

    Parameters
    ----------
    searcher
        Holds the space, the objective and the rule.
    span
        What varies.
    clock
        Bounds the searches of all points together.
    """
    points: list[FrontPoint] = []
    known: list[Box] = []
    proven_box: Box | None = None
    with searcher.progress.step(
        f"Tracing the front over {span.parameter}", len(span.values)
    ) as step:
        for value in span.values:
            rule = rule_at(searcher.plan.rule, span.parameter, value)
            if rule.minimum_size > searcher.summary.rows:
                points.append(FrontPoint(value, None, None, None, {}, 0, 0, proven=True))
                continue
            box, proven = proven_box, True
            shared = rule.monotone and not searcher.rule_matters
            if box is None or not shared or not _meets(searcher, rule, box):
                found, figures = searcher.run(
                    rule, top=1, time_limit=clock.left(), start=tuple(reversed(known))
                )
                box = found.best[0][1] if found.best else None
                proven = figures.optimal or (found.complete and box is None)
            if box is not None and box not in known:
                known.append(box)
            proven_box = box if proven else None
            points.append(_point(searcher, rule, value, box, proven))
            step.advance()
    marked = _mark_dominated(points, searcher.objective.sign)
    return Front(span.parameter, tuple(marked), _knee(span.parameter, marked))


def _meets(searcher: Searcher, rule: PrivacyRule, box: Box) -> bool:
    return searcher.plan.under(rule).check(searcher.problem.choice(box)).admissible


def _point(
    searcher: Searcher, rule: PrivacyRule, value: float, box: Box | None, proven: bool
) -> FrontPoint:
    if box is None:
        return FrontPoint(value, None, None, None, {}, 0, 0, proven)
    reached = searcher.objective_under(rule).bound(box)
    ranked = searcher.ranked(f"{value:g}", box, reached)
    verdict = searcher.plan.under(rule).check(searcher.problem.choice(box))
    return FrontPoint(
        value=value,
        score=ranked.score if ranked.objective is None else ranked.objective,
        kept=ranked.kept,
        configuration=ranked.configuration,
        declared=ranked.declared,
        smallest_class=verdict.smallest_class,
        suppressed_rows=verdict.suppressed_rows,
        proven=proven,
    )


def _mark_dominated(points: Sequence[FrontPoint], sign: int) -> list[FrontPoint]:
    """Mark points whose utility a later, stricter point reaches as well."""
    marked = []
    best_later = -math.inf
    for point in reversed(points):
        value = -math.inf if point.score is None else sign * point.score
        marked.append(replace(point, dominated=-math.inf < value <= best_later + _SAME))
        best_later = max(best_later, value)
    return marked[::-1]


def _knee(parameter: str, points: Sequence[FrontPoint]) -> float | None:
    """Return the value with the largest distance from the chord between the ends of the front.

    Satopaa et al., Finding a kneedle in a haystack, ICDCS Workshops 2011; k, l and risk on a
    logarithmic scale. None with fewer than three points, or where the front does not bend
    outwards.
    """
    front = [p for p in points if p.score is not None and not p.dominated]
    if len(front) < 3:
        return None
    scale = [p.value if parameter == "suppression" else math.log(p.value) for p in front]
    scores = [p.score or 0.0 for p in front]
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
