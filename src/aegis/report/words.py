"""Format figures, and text from the data, for the report."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from aegis import words
from aegis.words import amount, counted

if TYPE_CHECKING:
    from markupsafe import Markup

NONE = "–"
"""The text that replaces an undefined figure."""

_SPACE = "\u00a0"
"""Keeps a number and its unit on one line."""

_CODE = re.compile("`([^`]+)`")

_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the direction of the text that follows them, outside their own name."""


def clean(text: object, *, limit: int | None = None) -> str:
    """Return text from the data in a form that is safe to display.

    Control characters, lone surrogates, non-characters and direction marks become U+FFFD, so that
    they are visible and cannot affect the text around them. Each white space character becomes a
    space. HTML is escaped by the template, not here.

    Parameters
    ----------
    text
        A name or value from the data, which may be hostile.
    limit
        Largest number of characters; longer text ends in "…".
    """
    visible = "".join(_visible(character) for character in str(text))
    if limit is not None and len(visible) > limit:
        return visible[: limit - 1] + "…"
    return visible


def sentence(text: str) -> str:
    """Return text from outside as a sentence: safe to display, with a capital letter."""
    visible = clean(text, limit=600)
    return visible if visible[1:2] == "-" else visible[:1].upper() + visible[1:]


def prose(text: str) -> Markup:
    """Return a text as a sentence of HTML; words between backticks are marked as code."""
    from markupsafe import Markup, escape

    visible = sentence(text)
    ended = visible if visible.endswith((".", "…")) else f"{visible}."
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(ended))))


def lines(text: str) -> str:
    """Return text from the data in a safe form, like `clean`, but with its line breaks."""
    return "\n".join(clean(line) for line in text.split("\n"))


def _visible(character: str) -> str:
    if character in "\t\n\r\x0b\x0c\u2028\u2029":
        return " "
    odd = unicodedata.category(character) in ("Cc", "Cs") or ord(character) & 0xFFFE == 0xFFFE
    if odd or character in _DIRECTIONS:
        return "\ufffd"
    return character


def percent(value: float | None, digits: int = 1) -> str:
    """Return a percentage such as "93.4 %", without a line break; a dash for None."""
    return NONE if value is None else _unbroken(words.percent(value, digits))


def _unbroken(text: str) -> str:
    return text.replace(" ", _SPACE)


def share(number: int, total: int) -> str:
    """Return `number` as a percentage of `total`; a dash if the total is 0."""
    return portion(number / total if total else None)


def portion(value: float | None) -> str:
    """Return a share or a risk from 0 to 1 as a percentage; a dash for None."""
    return NONE if value is None else _unbroken(words.portion(value))


def part(number: int, total: int) -> str:
    """Return a number of rows with its share of `total`, such as "398 (1.2 %)"; 0 alone."""
    return f"{number:,} ({share(number, total)})" if number and total else f"{number:,}"


def few(number: int, least: int, total: int = 0) -> str:
    """Return a number of rows as `part` does; below `least`, only say so."""
    return f"fewer than {least}" if 0 < number < least else part(number, total)


def figure(value: float | None) -> str:
    """Return a number as text with four significant digits, if possible without an exponent."""
    if value is None:
        return NONE
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2e}" if abs(value) < 1e-4 else f"{value:.4g}"


def measured(value: float | None) -> str:
    """Return the value of a measure with a fixed number of decimals, so that columns align."""
    if value is None:
        return NONE
    digits = 4 if abs(value) < 10 else 2 if abs(value) < 1000 else 0
    return f"{round(value, digits) + 0.0:,.{digits}f}"


def count(value: int | None) -> str:
    """Return an integer with separators of thousands."""
    return NONE if value is None else amount(value)


def rows(value: int) -> str:
    """Return "1 row" or "2,000 rows"."""
    return counted(value, "row")
