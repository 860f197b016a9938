"""Choose types for columns of texts, so that different values stay different.

A column becomes numbers, dates or Booleans if all its texts can be converted and no two different
texts would become one value. Codes such as 01234, 1.0 next to 1, and integers beyond 64 bits stay
text. Numbers may have blanks around them, and an empty text in quotation marks may represent a
missing number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from typing import Any, TypeVar

from aegis.sources.dialect import TextDialect
from aegis.sources.embedded import literal, quoted

T = TypeVar("T")
SAMPLE = 20_480
"""Number of first rows that determine the possible types."""
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_CODE = r"[+-]?0[0-9].*|\+.*|-?[0-9]{19,}"
"""Numbers that are codes: leading zeros, a plus sign, or more digits than 64 bits hold."""
_EXACT = 15
"""Number of decimal digits that doubles represent exactly."""
_STAMP = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
_UTC = "(Z|[+-]00(:?00)?)"
_OFFSET = "(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
_ORDERS = {
    "day-first": ("%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y"),
    "month-first": ("%m/%d/%Y", "%m-%d-%Y"),
    "year-first": ("%Y/%m/%d", "%Y.%m.%d"),
}
"""Dates with points always begin with the day."""
_WEEKDAYS = ("", "%A, ", "%a, ", "%A ", "%a ")
_DAYS = ("%d-%b-%Y", "%d%b%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y")
_MONTHS = ("%b-%Y", "%b %Y", "%B-%Y", "%B %Y")
DATES_WITH_MONTHS = (*_MONTHS, *(weekday + day for weekday, day in product(_WEEKDAYS, _DAYS)))
"""Forms of dates with the English name of a month. A month without a day is read as its first day.
"""
_BOOLEANS = (("true", "false"), ("True", "False"), ("TRUE", "FALSE"))
_TIMELY = re.compile(r"[0-9][-0-9/.:TZ+ ]+")
_WITH_NAMES = re.compile(r"[A-Za-z0-9][-A-Za-z0-9, ]*[0-9]{4}")
_TIMES = ("", " %H:%M:%S", " %H:%M")
_AS_WRITTEN = "times are read as they are written, without their offset from UTC."


OTHER_SPELLING = "aegis: a text of another type"
"""The error message of the engine if a text does not match the guard of its column."""


@dataclass(frozen=True)
class CsvColumn:
    """One column of a text file: its type, and the SQL expression that converts its texts to this
    type.

    Attributes
    ----------
    name
        Name of the column.
    type
        Type in the embedded engine.
    value
        SQL expression that computes the value from the column of texts.
    guard
        SQL condition that each text must meet, if only the first rows were examined; else empty.
    note
        Message to the user about the column, without its name; empty if there is none.
    by_context
        Whether other values decide how each value is read: the order of day and month, or the marks
        and units of numbers.
    """

    name: str
    type: str
    value: str
    guard: str = ""
    note: str = ""
    by_context: bool = False

    @classmethod
    def text(cls, name: str, note: str = "") -> CsvColumn:
        """Return a column whose texts are not converted."""
        return cls(name, "VARCHAR", quoted(name), note=note)

    def select(self) -> str:
        """Return the SQL of the column, which raises an error at a text that breaks the `guard`."""
        value = self.value
        if self.guard:
            valid = f"{_trimmed(self.name)} IS NULL OR ({self.guard})"
            value = f"CASE WHEN {valid} THEN {value} ELSE error({literal(OTHER_SPELLING)}) END"
        return f"{value} AS {quoted(self.name)}"


Ask = Callable[[Sequence[str], bool], list[Any]]
"""A function that computes SQL aggregates over the texts, of the first `SAMPLE` rows or of all
rows.
"""


@dataclass(frozen=True)
class _Form:
    """A type that a column may have, with the SQL that checks and converts its texts.

    Attributes
    ----------
    type
        Type in the embedded engine.
    value
        SQL expression of the value of a text.
    meets
        SQL condition that each text must meet.
    order
        For dates: which of day and month comes first, if both orders are possible.
    doubtful
        Whether two different texts may have the same value.
    note
        Message to the user about the column, without its name; empty if there is none.
    """

    type: str
    value: str
    meets: str
    order: str = ""
    doubtful: bool = False
    note: str = ""


def types_of(
    first: Mapping[str, Sequence[str | None]],
    dialect: TextDialect,
    ask: Ask,
    *,
    guarded: bool,
    text: Iterable[str] = (),
    numbers: Iterable[str] = (),
) -> list[CsvColumn]:
    """Choose the type of each column of a text file, and the way to convert its texts.

    Parameters
    ----------
    first
        The columns and the texts of their first rows.
    dialect
        How numbers and dates are written.
    ask
        Function that computes SQL aggregates over the columns as texts.
    guarded
        Whether a column whose first rows leave no doubt about its type is accepted at once; its
        `guard` then raises an error if a later text does not fit. Otherwise, all rows are checked
        first.
    text, numbers
        Columns that are read as text, and columns that are read as numbers, whatever they contain.
    """
    characters = set(text)
    types = {name: _forms(name, values, dialect) for name, values in first.items()}
    turns = {
        name: _in_turn(forms) for name, forms in types.items() if forms and name not in characters
    }
    likely, empty = _first_met(turns, ask, first_rows=True)
    columns = {name: CsvColumn.text(name) for name in first}
    # Of columns that are empty at first all forms are asked at once.
    waiting = {name: [types[name]] for name in empty}
    for name, (turn, forms) in likely.items():
        if guarded and not _open(forms):
            columns[name] = replace(_settled(name, forms[:1], dialect), guard=forms[0].meets)
        else:
            waiting[name] = turns[name][turn:]
    met = {name: forms for name, (_, forms) in _first_met(waiting, ask)[0].items()}
    merging = _merging(
        {n: f[0] for n, f in met.items() if f[0].doubtful and n not in numbers}, dialect, ask
    )
    for name, forms in met.items():
        columns[name] = _merged(name) if name in merging else _settled(name, forms, dialect)
    return list(columns.values())


def _open(forms: Sequence[_Form]) -> bool:
    """Return whether the types (`forms`) that fit the first rows leave open how to read a column."""
    return forms[0].doubtful or len({form.order for form in forms if form.order}) > 1


def _in_turn(forms: Sequence[_Form]) -> list[list[_Form]]:
    """Return the possible types as tests, one after the other: each by itself, but dates in any order of
    day and month together, last.
    """
    ordered = [form for form in forms if form.order]
    rest = [[form] for form in forms if not form.order]
    return [*rest, ordered] if ordered else rest


def _first_met(
    waiting: Mapping[str, list[list[_Form]]], ask: Ask, *, first_rows: bool = False
) -> tuple[dict[str, tuple[int, list[_Form]]], set[str]]:
    """Test the types of each column in the order of `waiting`. Return, by column, the index of the first
    test that it passes and the types that fit all its values; and the columns without values.

    A query tests all columns that are still undecided; with `first_rows`, on the first rows only.
    """
    by_column: dict[str, tuple[int, list[_Form]]] = {}
    without: set[str] = set()
    turn = 0
    while tests := {
        name: turns[turn]
        for name, turns in waiting.items()
        if name not in by_column and name not in without and turn < len(turns)
    }:
        met, empty = _meeting(tests, ask, first_rows)
        without |= empty
        by_column |= {n: (turn, forms) for n, forms in met.items() if forms and n not in empty}
        turn += 1
    return by_column, without


def batched(items: Sequence[T], number: int) -> Iterator[Sequence[T]]:
    """Yield the items in lists of `number` items each; the last list may have fewer."""
    for start in range(0, len(items), number):
        yield items[start : start + number]


def _trimmed(name: str) -> str:
    return f"nullif(trim({quoted(name)}), '')"


def _meeting(
    forms: Mapping[str, Sequence[_Form]], ask: Ask, first_rows: bool
) -> tuple[dict[str, list[_Form]], set[str]]:
    """Return for each column the types that fit all its values, and the columns without values."""
    if not forms:
        return {}, set()
    listed = [(name, form) for name in forms for form in forms[name]]
    aggregates = [f"count({_trimmed(name)})" for name in forms]
    answers = ask([*aggregates, *(f"count_if({form.meets})" for _, form in listed)], first_rows)
    values = dict(zip(forms, answers, strict=False))
    met: dict[str, list[_Form]] = {name: [] for name in forms}
    for (name, form), number in zip(listed, answers[len(forms) :], strict=True):
        if number == values[name]:
            met[name].append(form)
    return met, {name for name, number in values.items() if number == 0}


def _forms(name: str, first: Sequence[str | None], dialect: TextDialect) -> list[_Form]:
    """Return the types that a column may have, judging from its first values, the strictest first."""
    values = [value.strip(" ") for value in first if value is not None and value.strip(" ")]
    marks = re.escape(dialect.decimal + dialect.thousands)
    number = re.compile(rf"[-+0-9.eE{marks}]+|nan", re.IGNORECASE)
    text = _trimmed(name)
    forms: list[_Form] = []
    if all(map(number.fullmatch, values)):
        forms += _numbers(_plain_number(text, dialect), values)
    for unit, before in product(dialect.units, (True, False)):
        bare = [_without(value, unit, before) for value in values]
        if values and all(rest is not None and number.fullmatch(rest) for rest in bare):
            plain = _plain_number(_bare(text, unit, before), dialect)
            forms += _numbers(plain, [rest for rest in bare if rest is not None])
    if all(value.lower() in ("true", "false") for value in values):
        forms += [
            _Form("BOOLEAN", f"CAST({text} AS BOOLEAN)", f"{text} IN ('{yes}', '{no}')")
            for yes, no in _BOOLEANS
        ]
    if all(map(_TIMELY.fullmatch, values)):
        forms += _times(text)
        for order, formats in _ORDERS.items():
            fitting = [day for day in formats if not values or day[2] in values[0]]
            forms += [form for day in fitting for form in _dates(text, order, day)]
    if values and all(map(_WITH_NAMES.fullmatch, values)):
        written = [form for form in DATES_WITH_MONTHS if _is_written(values[0], form)]
        forms += [named for form in written for named in _named_dates(text, form)]
    return forms


def _is_written(value: str, form: str) -> bool:
    """Return whether a text is a date in a form such as %d-%b-%Y; days need no leading zero."""
    try:
        datetime.strptime(value, form)
    except ValueError:
        return False
    return True


def _named_dates(text: str, form: str) -> Iterator[_Form]:
    """Yield the types for dates with the name of a month, written as `form`. Under each, a date has only
    one spelling, so no two texts of a column become the same date.
    """
    parsed = f"try_strptime({text}, {literal(form)})"
    for spelling in dict.fromkeys((form, form.replace("%d", "%-d"))):
        written = f"strftime({parsed}, {literal(spelling)})"
        for spelled in (written, f"upper({written})"):
            meets = f"{parsed} IS NOT NULL AND {text} = {spelled}"
            yield _Form("DATE", f"CAST({parsed} AS DATE)", meets)


def _without(value: str, unit: str, before: bool) -> str | None:
    """Return a number without the unit `before` or after it; None if it has no such unit."""
    pattern = _unit_before(unit) if before else _unit_behind(unit)
    stripped, replaced = re.subn(pattern, r"\1" if before else "", value)
    return stripped if replaced else None


def _bare(text: str, unit: str, before: bool) -> str:
    """Return SQL that removes the unit before or after a text; NULL if the text has no such unit."""
    pattern = literal(_unit_before(unit) if before else _unit_behind(unit))
    sign = literal("\\1" if before else "")
    stripped = f"regexp_replace({text}, {pattern}, {sign})"
    return f"CASE WHEN regexp_matches({text}, {pattern}) THEN {stripped} END"


def _unit_before(unit: str) -> str:
    return f"^([+-]?) ?{re.escape(unit)} ?"


def _unit_behind(unit: str) -> str:
    return f" ?{re.escape(unit)}$"


def _numbers(plain: str, first: Sequence[str]) -> list[_Form]:
    """Return the types, with the SQL that reads them, that a column of numbers may have: first
    those under which each number has one spelling, then one that allows any spelling.

    One spelling is the shortest, with .0 after all integers or after none, or a fixed number of
    decimals. `plain` is the SQL of the texts, and `first` has the texts of the first rows.
    """
    number, integer = f"TRY_CAST({plain} AS DOUBLE)", f"TRY_CAST({plain} AS BIGINT)"
    shortest = f"CAST({number} AS VARCHAR)"
    decimals = max(
        (len(value) - value.rfind(".") - 1 for value in first if "." in value), default=0
    )
    fixed = f"-?(0|[1-9][0-9]{{0,{_EXACT - 1 - decimals}}})\\.[0-9]{{{decimals}}}"
    any_number = (
        f"isfinite({number}) AND regexp_full_match({plain}, '{_NUMBER}') "
        f"AND NOT regexp_full_match({plain}, '{_CODE}') OR lower({plain}) = 'nan'"
    )
    forms = [
        _Form("BIGINT", integer, f"CAST({integer} AS VARCHAR) = {plain}"),
        _Form("DOUBLE", number, f"{shortest} = {plain}"),
        _Form(
            "DOUBLE", number, f"{shortest} IN ({plain}, {plain} || '.0') AND {plain} NOT LIKE '%.0'"
        ),
    ]
    if 0 < decimals < _EXACT:
        forms.append(_Form("DOUBLE", number, f"regexp_full_match({plain}, '{fixed}')"))
    return [*forms, _Form("DOUBLE", number, any_number, doubtful=True)]


def _times(text: str) -> list[_Form]:
    patterns = {
        "DATE": "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}",
        "TIMESTAMP": _STAMP,
        "TIMESTAMPTZ": f"{_STAMP}{_UTC}",
        "TIME": "[0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,6})?)?",
    }
    valid = "TRY_CAST({text} AS {kind}) IS NOT NULL AND regexp_full_match({text}, '{pattern}')"
    forms = [
        _Form(
            kind,
            f"CAST({text} AS {kind})",
            valid.format(text=text, kind=kind, pattern=pattern),
        )
        for kind, pattern in patterns.items()
    ]
    meets = valid.format(text=text, kind="TIMESTAMPTZ", pattern=_STAMP + _OFFSET)
    return [*forms, _Form("TIMESTAMP", as_written(text), meets, note=_AS_WRITTEN)]


def has_offset(text: str) -> str:
    """Return SQL that is true for a text with a time and an offset from UTC other than 0."""
    return (
        f"regexp_full_match({text}, '{_STAMP}{_OFFSET}') "
        f"AND NOT regexp_full_match({text}, '{_STAMP}{_UTC}')"
    )


def as_written(text: str) -> str:
    """Return SQL that reads a text such as 2024-01-01 00:30+01:00 as the time that it shows."""
    return f"CAST(regexp_replace({text}, '{_OFFSET}$', '') AS TIMESTAMP)"


def _dates(text: str, order: str, day: str) -> list[_Form]:
    """Return the types for dates written as `day` (such as %d.%m.%Y), with and without times."""
    forms = []
    for time in _TIMES:
        parsed = f"try_strptime({text}, '{day}{time}')"
        kind = "TIMESTAMP" if time else "DATE"
        # Without the years of two or five digits that the engine takes, too.
        meets = f"{parsed} IS NOT NULL AND year({parsed}) BETWEEN 1000 AND 9999"
        forms.append(_Form(kind, f"CAST({parsed} AS {kind})", meets, order))
    return forms


def _plain_number(text: str, dialect: TextDialect) -> str:
    """Return SQL that writes a number as the engine does: decimal point, no separators."""
    if not dialect.thousands and dialect.decimal == ".":
        return text
    between = dialect.thousands and f"[{dialect.thousands}]"
    mark = f"[{dialect.decimal}]"
    grouped = f"[+-]?[0-9]{{1,3}}({between}[0-9]{{3}})+({mark}[0-9]+)?|" if between else ""
    pattern = f"{grouped}[+-]?[0-9]*({mark}[0-9]+)?([eE][+-]?[0-9]+)?"
    bare = f"replace({text}, {literal(dialect.thousands)}, '')" if between else text
    return (
        f"CASE WHEN regexp_full_match({text}, {literal(pattern)}) "
        f"THEN replace({bare}, {literal(dialect.decimal)}, '.') END"
    )


def _settled(name: str, met: Sequence[_Form], dialect: TextDialect) -> CsvColumn:
    """Return how to read a column of the types `met`; as text if day and month are ambiguous."""
    orders = {form.order: form for form in reversed(met) if form.order}
    if len(orders) < 2 or dialect.dates in orders:
        form = orders.get(dialect.dates, met[0])
        by_context = _by_context(form, dialect)
        return CsvColumn(name, form.type, form.value, note=form.note, by_context=by_context)
    return CsvColumn.text(
        name,
        "dates that may begin with the day or with the month are read as text; say which with "
        "--dates day-first or --dates month-first.",
    )


def _by_context(form: _Form, dialect: TextDialect) -> bool:
    """Return whether other values of the column decide what a value means, as for day and month."""
    if form.order:
        return form.order != "year-first" and "%d.%m.%Y" not in form.value
    if form.type not in ("BIGINT", "DOUBLE"):
        return False
    marked = form.type == "DOUBLE" and dialect.decimal != "."
    return bool(marked or dialect.thousands or dialect.units)


def _merged(name: str) -> CsvColumn:
    return CsvColumn.text(
        name,
        "numbers in several spellings (such as 1 and 1.0), or of more digits than a number keeps, "
        "are read as text, so that no two of them merge; name the column after --numbers to read "
        "them as numbers.",
    )


def _merging(forms: Mapping[str, _Form], dialect: TextDialect, ask: Ask) -> list[str]:
    """Return the columns in which two texts would become the same number if they are read as the
    types `forms`; the sign of zero does not count, nor does a zero before the point (.2 is 0.2).
    """
    aggregates = []
    for name, form in forms.items():
        plain = _plain_number(_trimmed(name), dialect)
        text = f"regexp_replace({plain}, '^([+-]?)\\.', '\\10.')"
        signless = f"CASE WHEN {form.value} = 0 THEN ltrim({text}, '-') ELSE {text} END"
        not_nan = f"FILTER (NOT isnan({form.value}))"
        aggregates += [
            f"count(DISTINCT {signless}) {not_nan}",
            f"count(DISTINCT {form.value} + 0) {not_nan}",
        ]
    answers = ask(aggregates, False) if aggregates else []
    return [name for i, name in enumerate(forms) if answers[2 * i] > answers[2 * i + 1]]
