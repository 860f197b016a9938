"""Convert numbers to text for people, and records to JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from operator import attrgetter
from pathlib import PurePath
from typing import Any

_DIGITS = 15
"""Digits of the largest number that anybody reads."""
MOST_CHARACTERS = 40
"""Largest number of characters of a column's name in a list on the screen."""
MOST_NAMED = 12
"""Largest number of names in one line of output."""
_ROUNDING_ERROR = 1e-9
"""A percentage that is below 100 by no more than this is 100, up to the rounding of floats."""
_MOST_SHOWN = 120
"""Most characters of a value that somebody gave, in a message."""


def predicted(summary: Mapping[str, Any]) -> str:
    """Return the names of the labels in a mapping that `Summary.to_dict` made, or the empty text.

    >>> predicted({"label": None, "labels": {"income": {}, "hours": {}}})
    'income, hours'
    """
    return str(summary["label"] or ", ".join(summary.get("labels", {})))


def in_sentence(value: object) -> str:
    """Return a value as text within a sentence, in quotation marks if blanks would hide it.

    >>> from aegis.words import in_sentence
    >>> in_sentence("Yes"), in_sentence("No ")
    ('Yes', "'No '")
    """
    text = str(value)
    return text if text and text == text.strip() else repr(text)


class Quoting(str):
    """A sentence that quotes a value of the table or a small count, together with a sentence that
    says the same without it (`without_values`).

    >>> from aegis.words import Quoting, unquoted
    >>> said = Quoting("illness = HIV has 1 row", "a class of illness has few rows")
    >>> said, unquoted(said), unquoted("the table was sampled")
    ('illness = HIV has 1 row', 'a class of illness has few rows', 'the table was sampled')
    """

    __slots__ = ("without_values",)
    without_values: str

    def __new__(cls, text: str, without_values: str = "") -> Quoting:
        """Return the sentence `text`, which quotes values, with its form `without_values`."""
        sentence = super().__new__(cls, text)
        sentence.without_values = without_values
        return sentence


def unquoted(sentence: str) -> str:
    """Return a sentence in the form that quotes no value of the table."""
    return sentence.without_values if isinstance(sentence, Quoting) else sentence


def counted(number: int, singular: str, many: str | None = None) -> str:
    """Return a number from 0 on with its noun, such as "1 row" or "1,200 rows". By default, the
    plural (`many`) adds an s.
    """
    return f"{amount(number)} {singular if number == 1 else many or f'{singular}s'}"


def amount(number: int) -> str:
    """Return a whole number as text for people: in full if it has up to 15 digits, otherwise as a
    power of ten.

    Examples
    --------
    >>> from aegis.words import amount
    >>> amount(1_944_000), amount(9**2000)
    ('1,944,000', '10^1908 or more')
    """
    if number < 10**_DIGITS:
        return f"{number:,}"
    return f"10^{math.floor(math.log10(number))} or more"


def joined(names: Iterable[str], most: int | None = None) -> str:
    """Return a list of names as text within a sentence, with commas and "and". Of more than `most`
    names, the text has the first ones and the number of others.

    Examples
    --------
    >>> from aegis.words import joined
    >>> joined(["age", "sex", "race"]), joined(["age"])
    ('age, sex and race', 'age')
    >>> joined(["age", "sex", "race", "pay"], 2)
    'age, sex and 2 more'
    """
    *others, last = names
    if most is not None and len(others) >= most:
        others, last = others[:most], f"{len(others) + 1 - most:,} more"
    return f"{', '.join(others)} and {last}" if others else last


def cut(name: str, most: int = MOST_CHARACTERS) -> str:
    """Return a name with at most `most` characters. Of a longer one, such as a question of a survey,
    return the beginning and the end, because several questions often begin with the same words.

    Examples
    --------
    >>> from aegis.words import cut
    >>> cut("age"), cut("How satisfied are you with your pay?", 20)
    ('age', 'How satisfie...pay?')
    """
    if len(name) <= most:
        return name
    end = (most - 3) // 3
    return f"{name[: most - 3 - end].rstrip()}...{name[-end:].lstrip()}"


def short(value: float) -> str:
    """Return a measured number as text with four significant digits. Numbers from 1,000 on are
    shown as whole numbers.

    Examples
    --------
    >>> from aegis.words import short
    >>> short(4912.36), short(0.123456)
    ('4,912', '0.1235')
    """
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"


def alike(*values: float) -> tuple[str, ...]:
    """Return several measured numbers as texts with equally many decimals: as many as the largest
    number needs for four significant digits.

    Examples
    --------
    >>> from aegis.words import alike
    >>> alike(6.1017, 6.1002), alike(4912.36, 97.2)
    (('6.102', '6.100'), ('4,912', '97'))
    """
    largest = max(map(abs, values))
    decimals = min(max(3 - math.floor(math.log10(largest)), 0), _DIGITS) if largest else 0
    return tuple(f"{value:,.{decimals}f}" for value in values)


def with_rounded(value: float, rounded: float, digits: int) -> tuple[str, ...]:
    """Return two measured numbers as texts, of which the second is rounded to so many significant
    `digits`, unless the two are equal. The texts have as many decimals as with `alike`, but none
    that rounding removed. If rounding removed a digit that `alike` shows, the second text begins
    with "about".

    Examples
    --------
    >>> from aegis.words import with_rounded
    >>> with_rounded(208.97, 170.0, 2), with_rounded(0.7134, 0.6, 2), with_rounded(2093.4, 97.0, 2)
    (('209', 'about 170'), ('0.71', 'about 0.60'), ('2,093', '97'))
    >>> with_rounded(10.9612, 11.0, 4), with_rounded(2093.4, 1710.0, 3), with_rounded(12.5, 12.5, 2)
    (('10.96', '11.00'), ('2,093', 'about 1,710'), ('12.50', '12.50'))
    """
    texts = alike(value, rounded)
    if not rounded or math.isclose(value, rounded, rel_tol=1e-9):
        return texts
    decimals = digits - 1 - math.floor(math.log10(abs(rounded)))
    if decimals >= len(texts[1].partition(".")[2]):
        return texts
    figure = round(rounded, decimals)  # a certificate of an earlier version has all digits
    return f"{value:,.{max(decimals, 0)}f}", f"about {figure:,.{max(decimals, 0)}f}"


def portion(share: float) -> str:
    """Return a share between 0 and 1 as a percentage for people, with one decimal, or with two
    decimals below 1 %.

    Examples
    --------
    >>> from aegis.words import portion
    >>> portion(0.0144), portion(0.0042), portion(1)
    ('1.4 %', '0.42 %', '100.0 %')
    """
    return percent(100 * share, 2 if 0 < share < 0.00995 else 1)


def percent(value: float, decimals: int = 1) -> str:
    """Return a number of percent as text for people.

    If a value rounds to 0 % or 100 % but is not equal to it, it is shown as a bound, such as ">
    99.9 %".

    Examples
    --------
    >>> from aegis.words import percent
    >>> percent(93.44), percent(100 * 2 / 3, 0), percent(99.99), percent(100)
    ('93.4 %', '67 %', '> 99.9 %', '100.0 %')
    """
    smallest = 10.0**-decimals
    if 0 < value < smallest / 2:
        return f"< {smallest:.{decimals}f} %"
    if 100 - smallest / 2 <= value < 100 - _ROUNDING_ERROR:
        return f"> {100 - smallest:.{decimals}f} %"
    return f"{value + 0.0:.{decimals}f} %".replace("-0.0 ", "0.0 ")


def brief(value: object) -> str:
    """Return the `repr` of a value for use in a message; a long text is shortened."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        return "a number of thousands of digits"
    if len(text) <= _MOST_SHOWN:
        return text
    return f"{text[: _MOST_SHOWN // 2]}... ({len(text):,} characters)"


def default_value(value: object) -> str:
    """Return a default value as a policy file writes it; the empty text if there is no default.

    Examples
    --------
    >>> [default_value(value) for value in (None, False, (0.5, 0.05), (), "interval")]
    ['', 'false', '[0.5, 0.05]', '', 'interval']
    """
    if value in (None, "", [], (), {}):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(str, value))}]"
    return str(value)


def jsonable(value: Any) -> Any:
    """Convert a value to the types of JSON documents: records become mappings, other collections
    become lists.

    A record that has a method `to_dict` decides its own form.

    Examples
    --------
    >>> from pathlib import PurePosixPath
    >>> from aegis.words import jsonable
    >>> jsonable({"columns": ("age", "sex"), "path": PurePosixPath("m.csv")})
    {'columns': ['age', 'sex'], 'path': 'm.csv'}
    """
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return json_fields(value)
    if isinstance(value, Mapping):
        return {key: jsonable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(entry) for entry in value]
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return str(value) if isinstance(value, Enum | PurePath) else value


def json_fields(record: Any, *names: str) -> dict[str, Any]:
    """Return the named fields of a record (by default all fields), converted to the types of JSON
    documents.

    If the name in the document differs from the attribute of the record, write `name=attribute`.

    Examples
    --------
    >>> from fractions import Fraction
    >>> json_fields(Fraction(1, 3), "numerator", "parts=denominator")
    {'numerator': 1, 'parts': 3}
    """
    chosen = names or [field.name for field in fields(record)]
    pairs = (name.partition("=") for name in chosen)
    return {name: jsonable(attrgetter(source or name)(record)) for name, _, source in pairs}


def html_table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return an HTML table with a line of titles. The texts may contain any characters."""
    from html import escape

    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    lines = ("".join(f"<td>{escape(text)}</td>" for text in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def finite(data: Any) -> Any:
    """Convert nested data to values that JSON allows: NaN and infinities become None, mappings
    become dicts.

    Examples
    --------
    >>> from aegis.words import finite
    >>> finite({"bound": float("inf"), "scores": (0.5, float("nan"))})
    {'bound': None, 'scores': [0.5, None]}
    """
    if isinstance(data, Mapping):
        return {str(key): finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
