"""What each mask shows of one value, in plain Python: the definition that the engine is compared with."""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from aegis.masks.base import number_text
from aegis.masks.categories import text_of

Shown = Callable[[Any, Any], Any]
Chance = Callable[[Any, Any, Any, Any], float]


def _plain(number: Fraction) -> int | float:
    return int(number) if number.denominator == 1 else float(number)


def _exact(value: Any) -> Fraction:
    return Fraction(str(value))


def _bucketize(mask: Any, value: Any) -> str:
    width, origin = _exact(mask.width), _exact(mask.origin)
    low = (_exact(value) - origin) // width * width + origin
    return f"[{number_text(_plain(low))}, {number_text(_plain(low + width))}["


def _between_cuts(mask: Any, value: Any) -> str:
    below = [edge for edge in mask.edges if edge <= value]
    above = [edge for edge in mask.edges if edge > value]
    low = f"[{number_text(below[-1])}" if below else "]-inf"
    return f"{low}, {number_text(above[0]) if above else 'inf'}["


def _round(mask: Any, value: Any) -> int | float:
    step = _exact(mask.step)
    return _plain(math.floor(_exact(value) / step + Fraction(1, 2)) * step)


def _erase(mask: Any, value: Any) -> int:
    unit = 10**mask.digits
    return math.trunc(_exact(value) / unit) * unit


def _group(mask: Any, value: Any) -> str:
    own = [name for name, values in mask.groups if text_of(value) in map(text_of, values)]
    return own[0] if own else {"error": "*", "other": "other"}[mask.rest]


def _level(mask: Any, value: Any) -> str:
    rows = {row[0]: row for row in mask.hierarchy.rows}
    return rows[text_of(value)][mask.level] if text_of(value) in rows else "*"


def _compose(mask: Any, value: Any) -> Any:
    """Return what a top code and then intervals show: the interval of the bound has no upper end."""
    top, intervals = mask.masks
    shown = SHOWN["bucketize"](intervals, SHOWN["top_code"](top, value))
    last = SHOWN["bucketize"](intervals, top.at)
    return f"{last.partition(', ')[0]}, inf[" if shown == last else shown


KEY = "0123456789abcdef"
"""The key of `tokenise` in these tests."""


def _token(mask: Any, value: Any) -> str:
    return hmac.new(KEY.encode(), str(value).encode(), hashlib.sha256).hexdigest()[: mask.length]


SHOWN: dict[str, Shown] = {
    "identity": lambda _, value: value,
    "suppress": lambda _, __: "*",
    "bucketize": _bucketize,
    "equal_width": _between_cuts,
    "quantiles": _between_cuts,
    "round": _round,
    "top_code": lambda mask, value: min(value, mask.at),
    "bottom_code": lambda mask, value: max(value, mask.at),
    "erase_digits": _erase,
    "truncate": lambda _, day: day.replace(day=1),
    "blur": lambda mask, value: str(value)[: mask.keep] + "*",
    "keep_frequent": lambda mask, value: (
        text_of(value) if text_of(value) in map(text_of, mask.values) else mask.other
    ),
    "group": _group,
    "level": _level,
    "compose": _compose,
    "tokenise": _token,
}
"""By mask that draws nothing: the masked value, with the parameters of the mask's example."""


def _cell(points: list[float], report: float) -> tuple[float, float]:
    """Return the ends of the numbers that move to a grid point."""
    place = points.index(report)
    low = -math.inf if place == 0 else (points[place - 1] + report) / 2
    high = math.inf if place == len(points) - 1 else (points[place + 1] + report) / 2
    return low, high


def _laplace_below(number: float, scale: float) -> float:
    if math.isinf(number):
        return float(number > 0)
    half = math.exp(-abs(number) / scale) / 2
    return half if number < 0 else 1 - half


def _laplace(mask: Any, value: Any, report: Any, reports: Any) -> float:
    scale = (mask.upper - mask.lower) / mask.epsilon
    low, high = _cell(reports, report)
    value = min(max(value, mask.lower), mask.upper)
    return _laplace_below(high - value, scale) - _laplace_below(low - value, scale)


def _geometric(mask: Any, value: Any, report: Any, _: Any) -> float:
    ratio = math.exp(-mask.epsilon / (mask.upper - mask.lower))
    value = min(max(value, mask.lower), mask.upper)
    if report in (mask.lower, mask.upper):  # all beyond the bound are shown as the bound
        return ratio ** abs(report - value) / (1 + ratio)
    return (1 - ratio) / (1 + ratio) * ratio ** abs(report - value)


def _uniform(reach: float, value: Any, report: Any, reports: Any) -> float:
    low, high = _cell(reports, report)
    if reach == 0:
        return float(low <= value < high)
    inside = min(high, value + reach) - max(low, value - reach)
    return max(inside, 0.0) / (2 * reach)


def _date(mask: Any, value: dt.date, report: dt.date, _: Any) -> float:
    first, last = dt.date.fromisoformat(mask.lower), dt.date.fromisoformat(mask.upper)
    moved = (value + dt.timedelta(days) for days in range(-mask.days, mask.days + 1))
    shown = [min(max(day, first), last) for day in moved]
    return shown.count(report) / len(shown)


def _response(mask: Any, value: Any, report: Any, _: Any) -> float:
    return math.exp(mask.epsilon * (value == report)) / (
        math.exp(mask.epsilon) + len(mask.values) - 1
    )


CHANCES: dict[str, Chance] = {
    "laplace": _laplace,
    "geometric": _geometric,
    "add_uniform": lambda mask, value, *of: _uniform(mask.amount, value, *of),
    "scale_uniform": lambda mask, value, *of: _uniform(abs(value) * mask.ratio, value, *of),
    "date_noise": _date,
    "randomised_response": _response,
    "pram": lambda mask, value, report, _: mask.matrix[mask.values.index(value)][
        mask.values.index(report)
    ],
    "shuffle": lambda _, __, report, reports: 1 / len(reports),
}
"""By mask that draws: the probability of a report for a value that occurs once, as each other value does."""
