"""Propose reading options for a text file, and tell the user which options were assumed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from aegis.sources.delimited.column_types import batched
from aegis.sources.delimited.files import answers
from aegis.sources.dialect import EncodingError, Reading
from aegis.sources.embedded import literal, quoted
from aegis.sources.open import open_table
from aegis.sources.source import Source
from aegis.words import joined

_ABSENT = (
    "NA",
    "N/A",
    "N.A.",
    "n/a",
    "n.a.",
    "k.A.",
    "k. A.",
    "NaN",
    "nan",
    "NULL",
    "null",
    "None",
    "Unknown",
    "unknown",
    "UNKNOWN",
)
_NULLS = (*_ABSENT, "?", "-", ".")
"""Texts that people write for a missing value."""
_AT_ONCE = 100
"""Number of aggregates of a query: the engine compares all aggregates of a query with each other."""
_COMMA = "[+-]?([0-9]+|[0-9]{1,3}([.][0-9]{3})+)(,[0-9]+)?"
_POINT = "[+-]?[0-9]+([.][0-9]+)?"
_BETWEEN = ",'’ \u00a0\u202f"
"""Thousands separators, in addition to the point, which `_COMMA` handles."""
_SIGNS = "$€£¥₹%"
"""Units that are proposed."""
_FIGURE = f"[0-9][0-9.{_BETWEEN}]*"
_SIGN_BEFORE = f"[+-]? ?([{_SIGNS}]) ?[+-]?{_FIGURE}"
_SIGN_BEHIND = f"[+-]?{_FIGURE} ?([{_SIGNS}])"
_GROUPED = f"[+-]?([0-9]+|[1-9][0-9]{{0,2}}([{_BETWEEN}][0-9]{{3}})+)([.,][0-9]+)?"


def open_proposing(table: Any, reading: Reading | None = None) -> Source:
    """Open a table as `open_table` does, and propose those reading options that the user did not
    give.

    Aegis proposes the encoding of a file that is not UTF-8; the decimal comma and the thousands
    separator of columns of numbers; currency and percent signs that all numbers of a column have;
    and the texts for missing values in columns of numbers (and ? in any column). `Source.notes`
    lists the proposals. To open the table again, use the options in `Source.reading`.
    """
    reading = reading or Reading()
    if not isinstance(table, str | Path):
        return open_table(table, reading=reading)
    notes = []
    try:
        source = open_table(table, reading=reading)
    except EncodingError as error:
        if reading.encoding is not None:
            raise
        reading = replace(reading, encoding=error.likely)
        source = open_table(table, reading=reading)
        notes.append(f"{table} is not UTF-8, and read as {error.likely}.")
    if source.dialect is None:
        return source
    if source.collect(source.table.limit(1)).num_rows == 0:
        return source  # and of twenty thousand columns nothing is to be asked
    units = _units(source, reading)
    if units != reading.units:
        reading = replace(reading, units=units)
        source = open_table(table, reading=reading)
        notes.append(f"{table} is read with units {', '.join(units)}.")
    more, number_notes = _more(source, reading)
    if more:
        reading = replace(reading, **more)
        source = open_table(table, reading=reading)
        notes += [f"{table} is read with {_in_words(name, value)}." for name, value in more.items()]
    if source.dialect is not None and source.dialect.delimiter != ",":
        reading = replace(reading, delimiter=source.dialect.delimiter)
    notes += number_notes
    return replace(source, reading=reading.or_none(), notes=(*notes, *source.notes))


def _in_words(name: str, value: str | Sequence[str]) -> str:
    """Describe the reading option `name` with this value in words, such as "'NA' and '?' as null"."""
    if isinstance(value, str):
        mark = {"decimal": "as the decimal mark", "thousands": "between thousands"}[name]
        return f"{value!r} {mark}"
    return f"{joined(map(repr, value))} as {name}"


def _more(source: Source, reading: Reading) -> tuple[dict[str, Any], list[str]]:
    """Return options that text columns suggest beyond `reading` (decimal mark, thousands separator, null),
    and notes on numbers that stay text.
    """
    texts = _texts(source, reading)
    if not texts or source.dialect is None:
        return {}, []
    columns = dict(zip(texts, _counts(source, texts, reading.units), strict=True))
    delimiter = source.dialect.delimiter
    more: dict[str, Any] = {}
    with_comma = [column for column in columns.values() if column.has_decimal_comma]
    comma = bool(with_comma) and reading.decimal is None and delimiter != ","
    if comma and reading.thousands is None and any(column.points for column in with_comma):
        more["thousands"] = "."
    if comma:
        more["decimal"] = ","
    split = {column.marks for column in columns.values() if column.marks is not None}
    more = _thousands(split, more.get("decimal", reading.decimal), delimiter, reading) | more
    null = dict.fromkeys((*reading.null, *(n for c in columns.values() for n in c.nulls)))
    if null.keys() != set(reading.null):
        more["null"] = tuple(null)
    mixed = [name for name, column in columns.items() if column.is_mixed]
    pointed = _pointed(source, more.get("thousands", reading.thousands)) if comma else ()
    return more, [*map(_two_marks, mixed), *map(_other_mark, pointed)]


def _thousands(
    split: Set[tuple[str | None, str]], decimal: str | None, delimiter: str, reading: Reading
) -> dict[str, str]:
    """Return the options for numbers with these pairs of decimal mark and separator; empty if they
    disagree.
    """
    decimals = ({point for point, _ in split} | {decimal}) - {None}
    between = {mark for _, mark in split}
    if len(between) != 1 or len(decimals) > 1 or (decimals == {","} and delimiter == ","):
        return {}
    options = {"thousands": between.pop()} | ({"decimal": ","} if decimals == {","} else {})
    return {name: mark for name, mark in options.items() if getattr(reading, name) is None}


def _marks(signs: Sequence[str]) -> tuple[str | None, str] | None:
    """Return decimal mark and thousands separator, from the signs between the digits of numbers.

    None if they are ambiguous: in 1,234 alone the comma may be either.
    """
    for decimal, mark in itertools.product(".,", _BETWEEN):
        form = re.compile(f"{mark}*[{decimal}]?")
        sure = any(mark in sign and (mark != "," or len(sign) > 1) for sign in signs)
        if mark != decimal and sure and all(map(form.fullmatch, signs)):
            return (decimal if any(decimal in sign for sign in signs) else None), mark
    return None


def _pointed(source: Source, thousands: str | None) -> list[str]:
    """Return the columns with decimal points, which a decimal comma would turn into texts; none if
    the point separates `thousands`.
    """
    if thousands == ".":
        return []
    return [
        name
        for name, dtype in source.table.schema().items()
        if dtype.is_floating() or dtype.is_decimal()
    ]


def _two_marks(name: str) -> str:
    return (
        f"{name}: some numbers have a decimal comma and others a decimal point, so the column "
        "is read as text. Write them one way in the file."
    )


def _other_mark(name: str) -> str:
    return (
        f"{name}: its numbers have a decimal point, and the file is read with decimal ',', so the "
        "column is read as text. --decimal . reads it as numbers, and those with a comma as text."
    )


def _texts(source: Source, reading: Reading) -> list[str]:
    """Return the columns of texts that the user did not ask to read as texts."""
    kinds = source.table.schema().items()
    return [name for name, kind in kinds if kind.is_string() and name not in reading.text]


def _units(source: Source, reading: Reading) -> tuple[str, ...]:
    """Return the units in `reading`, and the signs next to all numbers of a text column."""
    texts = _texts(source, reading)
    listed = ", ".join(map(literal, _NULLS))
    aggregates = []
    for text in (f"trim({quoted(name)})" for name in texts):
        not_null = f"{text} NOT IN ({listed}, '')"
        aggregates.append(f"coalesce(count_if({not_null}), 0)")
        for pattern in (_SIGN_BEFORE, _SIGN_BEHIND):
            sign = f"regexp_extract({text}, {literal(pattern)}, 1)"
            meets = f"{not_null} AND regexp_full_match({text}, {literal(pattern)})"
            aggregates.append(f"coalesce(count_if({meets}), 0)")
            aggregates.append(f"list_sort(list(DISTINCT {sign}) FILTER ({meets}))")
    units = list(reading.units)
    for filled, before, first, behind, last in batched(_answers(source, aggregates), 5):
        for number, signs in ((before, first), (behind, last)):
            if filled and number == filled and len(signs) == 1:
                units += signs
    return tuple(dict.fromkeys(units))


def _answers(source: Source, aggregates: Sequence[str]) -> list[Any]:
    """Compute SQL aggregates over a table, a few per query."""
    return answers(aggregates, f"({source.backend.compile(source.table)})", _AT_ONCE)


class _TextCounts(NamedTuple):
    """The forms of the values in a column of texts.

    Attributes
    ----------
    filled
        Number of values that are not null.
    with_point, with_comma, with_either
        Number of values that are numbers with a decimal point, with a decimal comma, and with
        either.
    commas, points, grouped
        Number of values that contain a comma, a point, and groups of three digits.
    signs, missing
        The signs other than digits, and the texts that mean null; None if there are none.
    """

    filled: int
    with_point: int
    with_comma: int
    with_either: int
    commas: int
    points: int
    grouped: int
    signs: Sequence[str] | None
    missing: Sequence[str] | None

    @property
    def has_decimal_comma(self) -> bool:
        """Whether all values are numbers, some of them with a decimal comma."""
        return self.filled == self.with_comma and self.commas > 0

    @property
    def is_mixed(self) -> bool:
        """Whether some numbers have a decimal comma, and others a decimal point."""
        both = self.commas > 0 and self.points > 0
        return self.filled == self.with_either and both and not self.has_decimal_comma

    @property
    def marks(self) -> tuple[str | None, str] | None:
        """The decimal mark and the thousands separator of numbers with groups of three digits; None
        if the values are no such numbers, or if the marks are ambiguous.
        """
        if self.filled != self.grouped or self.has_decimal_comma:
            return None
        return _marks(self.signs or ())

    @property
    def nulls(self) -> list[str]:
        """The texts that mean null; if the other values are no numbers, only the question mark."""
        numeric = self.filled == self.with_point or self.has_decimal_comma or self.marks is not None
        return [n for n in self.missing or () if n == "?" or (numeric and self.filled > 0)]


def _counts(source: Source, texts: Sequence[str], units: Sequence[str] = ()) -> list[_TextCounts]:
    """Count the forms of the values in columns of text, without `units` next to numbers."""
    listed = ", ".join(map(literal, _NULLS))
    aggregates = [sql for name in texts for sql in _aggregates(_without_units(name, units), listed)]
    answers = _answers(source, aggregates)
    return [_TextCounts(*counts) for counts in batched(answers, len(_TextCounts._fields))]


def _without_units(name: str, units: Sequence[str]) -> str:
    """Return the SQL of the texts in the column `name`, without the `units` next to numbers."""
    text = f"trim({quoted(name)})"
    if not units:
        return text
    listed = "|".join(map(re.escape, units))
    before = (
        f"regexp_replace({text}, {literal(f'^([+-]?) ?({listed}) ?')}, {literal(chr(92) + '1')})"
    )
    return f"regexp_replace({before}, {literal(f' ?({listed})$')}, '')"


def _aggregates(text: str, null: str) -> list[str]:
    """Return the SQL aggregates that `_counts` needs of the SQL `text`; `null` lists texts for
    null.
    """
    not_null = f"{text} NOT IN ({null}, '')"
    grouped = f"regexp_full_match({text}, {literal(_GROUPED)})"
    return [
        f"coalesce(count_if({not_null}), 0)",
        f"coalesce(count_if({not_null} AND regexp_full_match({text}, '{_POINT}')), 0)",
        f"coalesce(count_if({not_null} AND regexp_full_match({text}, '{_COMMA}')), 0)",
        f"coalesce(count_if({not_null} AND regexp_full_match({text}, '{_COMMA}|{_POINT}')), 0)",
        f"coalesce(count_if({not_null} AND {text} LIKE '%,%'), 0)",
        f"coalesce(count_if({not_null} AND {text} LIKE '%.%'), 0)",
        f"coalesce(count_if({not_null} AND {grouped}), 0)",
        f"list_sort(list(DISTINCT regexp_replace({text}, '[-+0-9]', '', 'g')) FILTER ({not_null} AND {grouped}))",
        f"list_sort(list(DISTINCT {text}) FILTER ({text} IN ({null})))",
    ]
