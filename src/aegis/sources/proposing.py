"""Propose reading options for a text file, and tell the user which options were assumed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

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
    """Return options that text columns suggest, in addition to `reading`, and notes on numbers that
    stay text.

    The options are the decimal mark, the thousands separator and the texts for null.
    """
    texts = _texts(source, reading)
    if not texts or source.dialect is None:
        return {}, []
    answers = _counts(source, texts, reading.units)
    more: dict[str, Any] = {}
    mixed, pointed = [], []
    null = list(reading.null)
    comma = False
    split: set[tuple[str | None, str]] = set()
    for name, (filled, point, with_comma, either, commas, points, grouped, signs, missing) in zip(
        texts, answers, strict=True
    ):
        is_comma = filled == with_comma and commas > 0
        if filled == either and commas and points and not is_comma:
            mixed.append(name)
        if is_comma and reading.decimal is None and source.dialect.delimiter != ",":
            comma = True
            if points and reading.thousands is None:
                more["thousands"] = "."
        marks = _marks(signs or ()) if filled == grouped and not is_comma else None
        split |= set() if marks is None else {marks}
        numeric = filled > 0 and (filled == point or is_comma or marks is not None)
        null += [text for text in missing or () if numeric or text == "?"]
    if comma:
        more["decimal"] = ","
    decimal = more.get("decimal", reading.decimal)
    more = _thousands(split, decimal, source.dialect.delimiter, reading) | more
    if set(null) != set(reading.null):
        more["null"] = tuple(dict.fromkeys(null))
    if comma:
        pointed = _pointed(source, more.get("thousands", reading.thousands))
    return more, [*map(_two_marks, mixed), *map(_other_mark, pointed)]


def _thousands(
    split: Set[tuple[str | None, str]], decimal: str | None, delimiter: str, reading: Reading
) -> dict[str, str]:
    """Return the reading options that numbers need whose marks are `split`: pairs of decimal mark
    (or None) and thousands separator. The result is empty if the pairs disagree.
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
    """Return the columns of numbers with decimal points, which would become text if the decimal
    mark were a comma; none if the point is the `thousands` separator.
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
    """Return the units in `reading`, and the signs that all numbers of a text column have next to
    them.
    """
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


def _counts(source: Source, texts: Sequence[str], units: Sequence[str] = ()) -> list[Sequence[Any]]:
    """Count the forms of the values in columns of text.

    Return a list for each column. It has the numbers of values that are not null, that are numbers
    with a point, with a comma, and with either, and that contain a comma, a point, and groups of
    three digits. Then come the signs other than digits, and the texts that mean null.
    """
    listed = ", ".join(map(literal, _NULLS))
    aggregates = [sql for name in texts for sql in _aggregates(_without_units(name, units), listed)]
    return list(batched(_answers(source, aggregates), len(aggregates) // len(texts)))


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
    """Return the SQL aggregates that `_counts` needs of a column whose texts are the SQL `text`;
    `null` is the SQL list of the texts that mean null.
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
