"""Propose a few candidate masks for a column, from fine to coarse, by its distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from aegis.errors import PolicyError
from aegis.masks import Kind, Mask, parse_mask
from aegis.policy.model import Role
from aegis.policy.suggest.facts import ColumnFacts, merged
from aegis.policy.suggest.names import AGE, POSTCODE
from aegis.policy.suggest.roles import (
    FEWEST_FOR_UNIQUE,
    MOSTLY_ALIKE,
    doubt_of,
    is_amount,
    is_code,
    is_numbered_date,
)
from aegis.words import percent

MOST_MASKS = 7
"""Largest number of candidates of one attribute."""
INTERVALS = 12
"""Number of intervals of the narrowest proposed width that cover most of the values."""
FEW = 5
"""If there are no more values than this, they are not grouped by frequency, unless one of them
dominates.
"""
ROWS_PER_VALUE = 20
"""A quasi-identifier with fewer rows per value than this does not get `identity`, because classes
would be too small.
"""
RISKY_SHARE = 0.5
"""A column that the rule does not cover is nearly a key if it has at least this many different
values per row.
"""
FREQUENT = (2, 5, 10, 20, 50)
"""Possible numbers of frequent values that a proposed mask keeps."""
OLDEST_AGE = 90
"""Lowest age of the oldest group: all ages above 89 are one group (45 CFR 164.514(b)(2)(i)(C))."""

_UNITS = (
    (31, ("day", "week")),
    (366, ("week", "month", "quarter")),
    (1830, ("month", "quarter", "year")),
)
_LONG_LIFE = 20 * 366
"""Dates over more days than this are not grouped by quarter, but by five and ten years."""
_LONG_UNITS = ("month", "quarter", "year")

Spec = str | dict[str, Any]


@dataclass(frozen=True)
class Candidates:
    """The masks that Aegis proposes for one column, from fine to coarse, the reason for them as
    part of a sentence, and masks that fit but are left out, each with the reason.
    """

    masks: tuple[Mask, ...] = ()
    reason: str = ""
    unused: tuple[tuple[Mask, str], ...] = ()


def propose_masks(facts: ColumnFacts, role: Role) -> Candidates:
    """Return the candidate masks that Aegis proposes for a column with the given role.

    Identifiers and ignored columns get no masks. Features and sensitive attributes do not form
    classes, so masking them lowers utility and does not help to meet the rule. They get only
    `identity`, except risky columns (`_risky`). A quasi-identifier gets `identity` (unless it has
    fewer than `ROWS_PER_VALUE` rows per value), some coarser masks and `suppress`.
    """
    if role is Role.IDENTIFIER:
        token = parse_mask({"tokenise": {"key_env": "AEGIS_TOKEN_KEY"}})
        return Candidates(
            unused=((token, "releases a keyed token instead of dropping the column"),)
        )
    if role is Role.IGNORE:
        return Candidates()
    specs, reason = _coarser(facts)
    masks = _parse(specs, facts)
    if role is not Role.QUASI_IDENTIFIER:
        return _outside_the_rule(facts, masks)
    identity, suppress = parse_mask("identity"), parse_mask("suppress")
    if doubt_of(facts) is not None:
        shown_anyway = "shows frequent values, which may be those of a person with many rows"
        return Candidates(
            (suppress,),
            "not shown unless you say so",
            tuple((mask, shown_anyway) for mask in masks[:1]),
        )
    unused: list[tuple[Mask, str]] = []
    if facts.distinct * ROWS_PER_VALUE > facts.values and masks:
        unused.append((identity, "so many values leave classes of single rows"))
    else:
        masks.insert(0, identity)
    return Candidates((*masks[: MOST_MASKS - 1], suppress), reason, tuple(unused))


def _outside_the_rule(facts: ColumnFacts, masks: Sequence[Mask]) -> Candidates:
    """Return candidates: `identity`, or coarser masks if nearly every row has a different value."""
    identity = parse_mask("identity")
    rounded = _rounded(facts)
    if _risky(facts) and is_amount(facts):
        return Candidates(
            (parse_mask("suppress"),),
            f"{_differing(facts)}, and as texts they cannot be rounded: have them read as numbers",
            ((identity, "the exact values are nearly keys"),),
        )
    if not (rounded and _risky(facts)):
        unused = tuple(
            (mask, "outside the rule, so not masked unless you say so") for mask in masks[:1]
        )
        return Candidates((identity,), "", unused)
    finest = _parse(rounded, facts)
    return Candidates(
        tuple(finest),
        f"{_differing(facts)}, so it is rounded",
        ((identity, "the exact values are nearly keys"),),
    )


def _differing(facts: ColumnFacts) -> str:
    share = percent(100 * facts.unique_share, 0)
    return f"{share} of the values differ: somebody who knows one finds its row"


def _risky(facts: ColumnFacts) -> bool:
    """Return whether a column alone distinguishes nearly every row from the others."""
    return facts.unique_share > RISKY_SHARE and facts.values >= FEWEST_FOR_UNIQUE


def _rounded(facts: ColumnFacts) -> list[Spec]:
    """Return masks that round numbers, so that exact values are lost but order and size remain."""
    if not facts.numeric or facts.categorical:
        return []
    if facts.kind is Kind.INTEGER and abs((facts.quantiles or {}).get(0.5, 0.0)) < 100:
        return []
    return [{"round": {"digits": 2}}]


def _parse(specs: Sequence[Spec], facts: ColumnFacts) -> list[Mask]:
    """Return the masks of `specs` that fit the numbers of the column."""
    masks: list[Mask] = []
    for spec in specs:
        try:
            mask = parse_mask(spec)
            if facts.kind is not None:
                mask.check(facts.kind, facts.name)
        except PolicyError:
            # Widths near the limits of exact arithmetic are refused by the mask, which knows them.
            continue
        masks.append(mask)
    return masks


def _coarser(facts: ColumnFacts) -> tuple[list[Spec], str]:
    """Return masks between `identity` and `suppress`, from fine to coarse, and the reason."""
    concept = facts.concept
    postcode = concept is not None and concept.name == POSTCODE
    if facts.distinct < 3:
        return [], "too few values to group"
    if facts.kind is Kind.DATE:
        return _dates(facts)
    if facts.ranges:
        sizes = [size for size in (2, 3, 4, 6) if size < len(facts.ranges)]
        return [merged(facts.ranges, size) for size in sizes], "neighbouring ranges are merged"
    if is_code(facts) or (postcode and facts.kind in (Kind.TEXT, Kind.INTEGER)):
        return _codes(facts)
    if facts.shape("year_first") > MOSTLY_ALIKE:
        return [{"blur": {"keep": 7}}, {"blur": {"keep": 4}}], "texts of dates show month or year"
    if is_numbered_date(facts):
        periods = (100, 10_000, 100_000)[: _spans(facts)]
        specs: list[Spec] = [{"bucketize": {"width": width}} for width in periods]
        return specs, "of dates YYYYMMDD, a width of 100 is a month, 10,000 a year"
    if facts.categorical:
        return _categories(facts)
    if facts.numeric:
        return _numbers(facts, is_age=concept is not None and concept.name == AGE)
    return [], "too few values to group"


def _spans(facts: ColumnFacts) -> int:
    """Return how many of month, year and decade are shorter than the range of whole-number dates."""
    return sum(facts.low // width < facts.high // width for width in (100, 10_000, 100_000))


def _dates(facts: ColumnFacts) -> tuple[list[Spec], str]:
    low, high = _day(facts.low), _day(facts.high)
    if low is None or high is None:
        return [], "no range of dates"
    days = (high - low).days
    units: tuple[str, ...] = next((named for most, named in _UNITS if days <= most), _LONG_UNITS)
    if not facts.dtype.startswith("date") and "day" not in units:
        units = ("day", *units)
    if days > _LONG_LIFE:
        units = tuple(unit for unit in units if unit != "quarter")
    specs: list[Spec] = [
        {"truncate": {"unit": unit}} for unit in units if _period(low, unit) != _period(high, unit)
    ]
    specs += [
        {"truncate": {"unit": "year", "count": years, **show}}
        for years, show in ((5, {}), (10, {"show": "decade"}))
        if days > 2 * years * 366
    ]
    by_year = "year" in units and low.year != high.year
    shows = "; unit year shows 2014-01-01, or 2014 with `show: year`" if by_year else ""
    return specs, f"the dates span {days:,} days{shows}"


def _day(value: Any) -> date | None:
    """Return the day of `value`, a date or a time; a time is read in UTC, as masks do."""
    if isinstance(value, datetime):
        return (value if value.tzinfo is None else value.astimezone(UTC)).date()
    return value if isinstance(value, date) else None


def _period(day: date, unit: str) -> tuple[int, ...]:
    """Return numbers that identify the period (`unit`) that contains a day."""
    return {
        "day": (day.toordinal(),),
        "week": day.isocalendar()[:2],
        "month": (day.year, day.month),
        "quarter": (day.year, (day.month - 1) // 3),
        "year": (day.year,),
    }[unit]


def _codes(facts: ColumnFacts) -> tuple[list[Spec], str]:
    if facts.lengths is not None and facts.lengths[0] == facts.lengths[1]:
        length = facts.lengths[0]
        keeps = [keep for keep in (length - 1, length - 2, length - 3) if keep > 0]
        return [{"blur": {"keep": keep}} for keep in keeps], "a prefix of a code is a larger area"
    longest = facts.lengths[1] if facts.lengths is not None else len(str(facts.high))
    hides = [hide for hide in (1, 2, 3) if hide < longest]
    return [{"blur": {"hide": hide}} for hide in hides], "the front of a code is a larger area"


def _categories(facts: ColumnFacts) -> tuple[list[Spec], str]:
    dominated = facts.top_share >= 0.5
    counts = [count for count in FREQUENT if count < facts.distinct - 1]
    if facts.distinct <= FEW:
        counts = [] if dominated else counts[:1]
    counts = counts[-3:]
    if not counts and not dominated:
        return [], "too few values to group"
    if dominated:
        counts.insert(0, 1)
    specs: list[Spec] = [{"keep_frequent": {"count": count}} for count in reversed(counts)]
    return specs, "rare categories are grouped"


def _numbers(facts: ColumnFacts, *, is_age: bool) -> tuple[list[Spec], str]:
    if facts.low is None or facts.low == facts.high:
        return [], "no range of numbers"
    if facts.distinct <= FEW:
        return [{"quantiles": {"count": 2}}], "few values, halved"
    top = _top(facts, is_age=is_age)
    if _skewed(facts):
        return [*top, *_skewed_specs(facts)], "skewed, so cut by share of rows instead of width"
    widths = _widths(facts)
    if not widths:
        return [*top, {"quantiles": {"count": 4}}], "no round width fits, so cut by share of rows"
    specs: list[Spec] = [{"bucketize": {"width": width}} for width in widths]
    specs.append({"quantiles": {"count": 4}})
    return [*top, *specs], "round widths for the bulk of the values, and quarters of the rows"


def _skewed(facts: ColumnFacts) -> bool:
    """Return whether quartiles are equal or Kelly's skewness exceeds 1/2 in absolute value."""
    cuts = facts.quantiles or {}
    if len(cuts) < 7:
        return False
    low, middle, high = cuts[0.1], cuts[0.5], cuts[0.9]
    if cuts[0.25] == cuts[0.75] or high == low:
        return True
    return abs((high - middle) - (middle - low)) > 0.5 * (high - low)


def _skewed_specs(facts: ColumnFacts) -> list[Spec]:
    specs: list[Spec] = []
    if facts.kind is Kind.INTEGER and facts.distinct <= 20:
        # Counts such as children in a household: the few large ones become "so many or more".
        at = max(int((facts.quantiles or {}).get(0.9, facts.low)), facts.low + 1)
        specs += [{"top_code": {"at": at}}] if at < facts.high else []
    upper = abs((facts.quantiles or {}).get(0.99, 0.0))
    if facts.kind is Kind.INTEGER and 1000 <= upper < 1e18:
        specs.append({"erase_digits": {"digits": len(str(int(upper))) - 2}})
    if facts.distinct > 20 and upper >= 20:
        specs.append({"round": {"digits": 1}})
    specs += [{"quantiles": {"count": count}} for count in (10, 4) if count < facts.distinct]
    return specs


def _top(facts: ColumnFacts, *, is_age: bool) -> list[Spec]:
    """Return a top code if the maximum is farther from the 99 % quantile than this is from the median;
    else an empty list. Ages are always cut at `OLDEST_AGE`.
    """
    if is_age and facts.high > OLDEST_AGE:
        return [{"top_code": {"at": OLDEST_AGE}}]
    cuts = facts.quantiles or {}
    if facts.distinct <= 20 or 0.99 not in cuts:
        return []
    at = _round_up(cuts[0.99])
    long = float(facts.high) - cuts[0.99] > max(cuts[0.99] - cuts[0.5], 0.0)
    return [{"top_code": {"at": at}}] if long and at < facts.high else []


def _round_up(value: float) -> int | float:
    """Round `value` up to two significant digits, to an integer if it is at least 10."""
    rounded = Context(prec=2, rounding=ROUND_CEILING).create_decimal(Decimal(repr(value)))
    return int(rounded) if rounded == rounded.to_integral_value() else float(rounded)


def _widths(facts: ColumnFacts) -> list[int | float]:
    """Return up to three widths (1, 2, 5, 10, ...) that suit the range of the middle 98 %."""
    cuts = facts.quantiles or {}
    low, high = float(facts.low), float(facts.high)
    bulk = cuts.get(0.99, high) - cuts.get(0.01, low)
    span = bulk if bulk > 0 else high - low
    if not math.isfinite(span) or span <= 0:
        return []
    # Two neighbouring values at least must share an interval, or nothing is coarser.
    aim = max(span / INTERVALS, 2 * span / facts.distinct)
    rung = round(3 * math.log10(aim))
    if facts.kind is Kind.INTEGER:
        rung = max(rung, 1)
    widths = [_ladder(rung + step) for step in range(3)]
    least = 1 if facts.kind is Kind.INTEGER else 0
    return [w for w in widths if least < w < span and math.floor(low / w) != math.floor(high / w)]


def _ladder(rung: int) -> int | float:
    """Return number `rung` of the series ..., 0.5, 1, 2, 5, 10, ..., in which 1 is number 0."""
    power, step = divmod(rung, 3)
    digit = (1, 2, 5)[step]
    return digit * 10**power if power >= 0 else float(f"{digit}e{power}")
