"""Parse columns for level `noise` value by value, so that no single row decides a column's type.

An engine gives a whole column one type, and a single value can change this type: 30.5 turns
integers into numbers, "n/a" turns them into texts. So the policy declares the type, or a noisy vote
of the rows chooses it, which costs budget. Then every value is parsed separately as this type. A
value that cannot be parsed is in no named cell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aegis.arrays import Flags, Floats, Ints
from aegis.errors import PolicyError
from aegis.masks import Kind
from aegis.masks.categories import text_of
from aegis.policy import ValueType
from aegis.sources.delimited.column_types import DATES_WITH_MONTHS
from aegis.summary import AttributeSummary
from aegis.summary.codes import encode, settle

CLEAR_VOTES = 4.0
"""A type is assumed to occur if its noisy votes exceed this multiple of their standard error."""
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_MOST = 1 << 63
_WITH_MONTH = re.compile(
    r"(?i)[a-z0-9][-a-z0-9, ]*(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[-a-z0-9, ]*\d{4}"
    r"|(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[-a-z0-9, ]*\d{4}"
)
_IN_DIGITS = re.compile(r"\d+([./])\d+\1\d+( \d\d:\d\d(:\d\d)?)?")
_DAYS_IN_DIGITS = ("%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y")
"""Formats of dates that are unambiguous, unlike 03/04/2024."""
_TIMES_OF_DAY = ("", " %H:%M:%S", " %H:%M")


class ColumnType(StrEnum):
    """The type of a single value, such as integer, date or text."""

    BOOLEAN = "boolean"
    DATE = "date"
    TIME = "time"
    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"

    @property
    def kind(self) -> Kind:
        """The kind of values that have this type; it determines which masks accept them."""
        return Kind.DATE if self is ColumnType.TIME else Kind(self.value)


TYPES = tuple(ColumnType)
_COVERS = {
    ColumnType.TIME: {ColumnType.DATE, ColumnType.TIME},
    ColumnType.NUMBER: {ColumnType.INTEGER, ColumnType.NUMBER},
    ColumnType.TEXT: set(TYPES),
}
"""For each type, the other types whose values can also be parsed as it."""
_ARROW = {
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.DATE: pa.date32(),
    ColumnType.TIME: pa.timestamp("us"),
    ColumnType.INTEGER: pa.int64(),
    ColumnType.NUMBER: pa.float64(),
    ColumnType.TEXT: pa.string(),
}


@dataclass(frozen=True, eq=False)
class TypedColumn:
    """The values of a column, each parsed as a value of the same type.

    Attributes
    ----------
    attribute
        The attribute in the exact summary.
    kind
        The kind of the values.
    values
        The U distinct values, shape (U,), ascending, null last. They are the values of the table,
        or all values that the policy declares, and null.
    value_index
        For each of the V distinct values of the table, the index in `values`, shape (V,); -1 if the
        value is not in `values`.
    """

    attribute: AttributeSummary
    kind: Kind
    values: pa.Array
    value_index: Ints

    @property
    def joint(self) -> Ints:
        """The number of labelled rows for each of the U values and C classes, shape (U, C)."""
        parsed = self.value_index >= 0
        joint = np.zeros((len(self.values), self.attribute.joint.shape[1]), dtype=np.int64)
        np.add.at(joint, self.value_index[parsed], self.attribute.joint[parsed])
        return joint


def type_of(value: Any) -> ColumnType:
    """Return the type of a value, from this value alone."""
    if isinstance(value, bool):
        return ColumnType.BOOLEAN
    if isinstance(value, int):
        return ColumnType.INTEGER
    if isinstance(value, (float, Decimal)):
        is_integer = abs(float(value)) < _MOST and value == int(value)
        return ColumnType.INTEGER if is_integer else ColumnType.NUMBER
    if isinstance(value, datetime):
        midnight = value.time() == time() and value.tzinfo is None
        return ColumnType.DATE if midnight else ColumnType.TIME
    if isinstance(value, date):
        return ColumnType.DATE
    return _type_of_text(str(value))


def _type_of_text(text: str) -> ColumnType:
    if _INTEGER.fullmatch(text):
        return ColumnType.INTEGER
    if _NUMBER.fullmatch(text):
        return type_of(float(text))
    if text.lower() in ("true", "false"):
        return ColumnType.BOOLEAN
    moment = _moment_of(text)
    return ColumnType.TEXT if moment is None else type_of(moment)


def _moment_of(text: str) -> datetime | None:
    """Parse a text as a date with time; return None if that fails."""
    forms: tuple[str, ...] = ()
    if text[4:5] == "-":
        with suppress(ValueError):
            return datetime.fromisoformat(text)
    elif _IN_DIGITS.fullmatch(text):
        forms = tuple(day + clock for day in _DAYS_IN_DIGITS for clock in _TIMES_OF_DAY)
    elif _WITH_MONTH.fullmatch(text):
        forms = DATES_WITH_MONTHS
    for form in forms:
        with suppress(ValueError):
            return datetime.strptime(text, form)
    return None


def plain_text(text: str) -> str:
    """Return a text as it would be shown if all values of its column had the same type.

    A single "n/a" turns all values into texts. Then 2.50 must be shown as 2.5, as among numbers.
    """
    column_type = _type_of_text(text)
    if column_type is ColumnType.TEXT or _INTEGER.fullmatch(text):
        return text
    reader = _as_number if column_type is ColumnType.INTEGER else _READERS[column_type]
    return text_of(reader(text)) or text


def votes_of(attribute: AttributeSummary) -> Ints:
    """Return how many rows have a value of each type in `TYPES`, without nulls, shape (6,)."""
    values, counts = attribute.values, attribute.counts
    votes = np.zeros(len(TYPES), dtype=np.int64)
    if pa.types.is_integer(values.type):
        valid = pc.is_valid(values).to_numpy(zero_copy_only=False)
        votes[TYPES.index(ColumnType.INTEGER)] = counts[valid].sum()
        return votes
    for value, count in zip(values.to_pylist(), counts.tolist(), strict=True):
        if value is not None:
            votes[TYPES.index(type_of(value))] += count
    return votes


def agreed_type(votes: Ints, sigma: float, allowed: Collection[ColumnType]) -> ColumnType:
    """Choose the narrowest allowed type that fits noisy numbers of rows with values of each type.

    `votes` has these numbers for `TYPES`, shape (6,), and `sigma` their standard error. `allowed`
    are the types, at least one, that fit the candidate masks.
    """
    cast = {t for t, n in zip(TYPES, votes.tolist(), strict=True) if n > CLEAR_VOTES * sigma}
    cast = cast or {TYPES[int(votes.argmax())]}
    rows = dict(zip(TYPES, votes.tolist(), strict=True))
    listed = [t for t in TYPES if t in allowed]
    fitting = [t for t in listed if cast <= _covered(t)]
    return fitting[0] if fitting else max(listed, key=lambda t: sum(rows[c] for c in _covered(t)))


def _covered(column_type: ColumnType) -> set[ColumnType]:
    return _COVERS.get(column_type, {column_type})


def types_allowed(
    attribute: AttributeSummary, declared: ValueType | None
) -> tuple[ColumnType, ...]:
    """Return the types that the candidate masks and the declared type (None: any) allow."""
    return tuple(
        t
        for t in TYPES
        if (declared is None or t.kind == Kind(declared.value))
        and all(_fits(c.declared, t.kind) for c in attribute.candidates)
    )


def _fits(mask: Any, kind: Kind) -> bool:
    try:
        mask.check(kind, "")
    except PolicyError:
        return False
    return True


def implied_type(values: Sequence[Any]) -> ValueType | None:
    """Return the type that declared values have; None if no values are declared."""
    if not values:
        return None
    kinds = {type_of(v) if not isinstance(v, str) else ColumnType.TEXT for v in values}
    if kinds <= {ColumnType.INTEGER, ColumnType.NUMBER}:
        integers = all(isinstance(v, int) for v in values)
        return ValueType.INTEGER if integers else ValueType.NUMBER
    return ValueType.BOOLEAN if kinds == {ColumnType.BOOLEAN} else ValueType.TEXT


def as_stored(attribute: AttributeSummary) -> TypedColumn:
    """Return a column with the values and the type that the database engine gave it."""
    places = np.arange(len(attribute.values), dtype=np.int64)
    return TypedColumn(attribute, attribute.kind, attribute.values, places)


def read_column(
    attribute: AttributeSummary, column_type: ColumnType, declared: Sequence[Any] = ()
) -> TypedColumn:
    """Parse each value of an attribute as `column_type`.

    `declared` has all values that the column can have, without null; if empty, the table's values
    are used. Raise `PolicyError` if a declared value is not of the type.
    """
    values, fits = _read(attribute.values, column_type)
    value_index = np.full(len(values), -1, dtype=np.int64)
    if not declared:
        codes, distinct = encode(values.filter(pa.array(fits.tolist(), pa.bool_())))
        value_index[fits] = codes
        return TypedColumn(attribute, column_type.kind, distinct, value_index)
    listed, sound = _read(pa.array([text_of(v) for v in declared], pa.string()), column_type)
    if not sound.all():
        wrong = declared[int(np.flatnonzero(~sound)[0])]
        raise PolicyError(
            f"The declared value {wrong!r} of {attribute.name!r} is not of the type {column_type.kind}.",
            hint="Declare values of one type. If they differ from the column's type, also declare `type`.",
        )
    distinct = encode(pa.concat_arrays([listed, pa.nulls(1, listed.type)]))[1]
    declared_at = pc.index_in(settle(values), value_set=distinct).fill_null(-1)
    value_index[fits] = declared_at.to_numpy(zero_copy_only=False).astype(np.int64)[fits]
    return TypedColumn(attribute, column_type.kind, distinct, value_index)


def _read(values: pa.Array, column_type: ColumnType) -> tuple[pa.Array, Flags]:
    """Return the values as `column_type`, else null; and whether each was parsed, or null before."""
    goal = _ARROW[column_type]
    fits = np.ones(len(values), dtype=bool)
    if values.type == goal and column_type is not ColumnType.TEXT:
        return values, fits
    reader = _READERS[column_type]
    read = [None if v is None else reader(v) for v in values.to_pylist()]
    missing = [r is None for r in read]
    fits = ~np.array(missing, dtype=bool) | ~pc.is_valid(values).to_numpy(zero_copy_only=False)
    return pa.array(read, goal), fits


def numbers_one_by_one(values: pa.Array) -> Floats:
    """Parse each value separately as a number; NaN for nulls and values that are not numbers."""
    distinct = values.dictionary_encode()
    read = _read(distinct.dictionary, ColumnType.NUMBER)[0]
    column = read.take(distinct.indices).cast(pa.float64())
    numbers: Floats = column.to_numpy(zero_copy_only=False)
    return numbers


def _as_integer(value: Any) -> int | None:
    """Return the integer part of a number, so that 30.5 counts as 30 among integers."""
    number = _as_number(value)
    if number is None or not abs(number) < _MOST:
        return None
    is_integer = isinstance(value, int) or (isinstance(value, str) and _INTEGER.fullmatch(value))
    return int(value) if is_integer else int(number)


def _as_number(value: Any) -> float | None:
    if isinstance(value, bool) or (
        isinstance(value, str) and not (_INTEGER.fullmatch(value) or _NUMBER.fullmatch(value))
    ):
        return None
    return float(value) if isinstance(value, (int, float, Decimal, str)) else None


def _as_time(value: Any) -> datetime | None:
    if isinstance(value, str):
        value = _moment_of(value)
    if isinstance(value, datetime):
        return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    return datetime.combine(value, time()) if isinstance(value, date) else None


def _as_date(value: Any) -> date | None:
    moment = _as_time(value)
    return None if moment is None else moment.date()


def _as_boolean(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    text = str(value).lower()
    return text == "true" if text in ("true", "false") else None


def _as_text(value: Any) -> str | None:
    text = text_of(value)
    return None if text is None else plain_text(text)


_READERS: dict[ColumnType, Callable[[Any], Any]] = {
    ColumnType.BOOLEAN: _as_boolean,
    ColumnType.DATE: _as_date,
    ColumnType.TIME: _as_time,
    ColumnType.INTEGER: _as_integer,
    ColumnType.NUMBER: _as_number,
    ColumnType.TEXT: _as_text,
}
