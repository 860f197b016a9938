"""Map each listed value to a target in one expression, converting between types and text.

Hierarchies, groups and frequent values all use this mapping. Times on DuckDB 1.5, one thread, 5
million rows of text: a simple CASE takes 0.17 s for 15 values, 0.5 s for 100 and 2.8 s for 1,000.
`IN` lists, one per target, take 0.6 s for 10 targets of 10 values and 6.6 s for 100 targets of 10
values. The engine runs a list of more than five values as a join, which changes the order of the
rows; a mask must never do that. From 1,000 values, MAP literals and list positions take about half
the time of the simple CASE, but every engine writes them differently in SQL. So text is mapped by a
simple CASE. Integers are mapped by bisection over runs of neighbouring values; the depth of the
expression is log2 of the number of runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import ibis

from aegis.masks.arithmetic import by_bisection, keep_null, limits

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

TRUE_FALSE = {"true": True, "false": False}


def text_of(value: object) -> str | None:
    """Return a value as the text that hierarchies and groups use for it; null stays None.

    Whole numbers of any type have no decimal point: 39.0 is "39". Booleans are "true" and "false",
    dates and times are in ISO 8601.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return str(int(value))
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    return str(value)


def among(text: str, shown: Collection[str]) -> bool:
    """Return whether a text is one of the texts in `shown`, or the same number as one of them in
    another notation.
    """
    number = _number(text)
    return text in shown or (number is not None and number in map(_number, shown))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _reader(dtype: dt.DataType) -> Callable[[str], object]:
    if dtype.is_integer():
        low, high = limits(dtype)
        return lambda text: _integer(text, low, high)
    if dtype.is_floating() or dtype.is_decimal():
        return _float
    if dtype.is_boolean():
        return lambda text: TRUE_FALSE[text.lower()]
    if dtype.is_date():
        return date.fromisoformat
    if dtype.is_timestamp():
        return datetime.fromisoformat
    return str


def _integer(text: str, low: int, high: int) -> int | None:
    value = int(text)
    return value if low <= value <= high and str(value) == text else None


def _float(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def keyed_by(targets: Mapping[str, Any], dtype: dt.DataType) -> dict[Any, Any]:
    """Convert the keys of `targets` to the type `dtype`; keys that cannot be converted are dropped."""
    read = _reader(dtype)
    if read is str:  # every value is its own text
        return {text: target for text, target in targets.items() if text is not None}
    keyed: dict[Any, Any] = {}
    for text, target in targets.items():
        try:
            key = read(text)
        except (ValueError, ArithmeticError, KeyError):
            continue  # no value of this type is spelt so
        if key is not None:
            keyed.setdefault(key, target)
    return keyed


def mapped(column: ir.Column, targets: Mapping[str, Any], otherwise: ir.Value) -> ir.Value:
    """Return the entry of `targets` for each value of `column`, or `otherwise` if it has none; null
    stays null.

    `targets` is keyed by the text of the values (`text_of`); all targets have the type of
    `otherwise`.
    """
    dtype = column.type()
    keyed = keyed_by(targets, dtype)
    if not keyed:
        return keep_null(column, otherwise)
    if dtype.is_integer():
        return keep_null(column, _by_runs(column, keyed, otherwise))
    if dtype.is_decimal():
        column = column.cast("float64")
    elif not (dtype.is_string() or dtype.is_boolean() or dtype.is_temporal() or dtype.is_numeric()):
        column = column.cast("string")
    return keep_null(column, column.cases(*keyed.items(), else_=otherwise))


def _by_runs(column: ir.IntegerValue, keyed: Mapping[int, Any], otherwise: ir.Value) -> ir.Value:
    """Return the entry of `keyed` for each integer, or `otherwise` if there is none, by bisection
    over runs of neighbouring integers with the same entry.
    """
    starts: list[int] = []
    targets: list[Any] = [otherwise]
    following: int | None = None
    for key in sorted(keyed):
        if following is not None and key != following:
            starts.append(following)
            targets.append(otherwise)
        if targets[-1] is otherwise or targets[-1] != keyed[key]:
            starts.append(key)
            targets.append(keyed[key])
        following = key + 1
    if following is not None and following <= limits(column.type())[1]:
        starts.append(following)
        targets.append(otherwise)
    begins = [ibis.literal(start, type=column.type()) for start in starts]
    return by_bisection(column, begins, targets)
