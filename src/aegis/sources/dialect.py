"""Determine the dialect of a text file once, before any row is read."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

from aegis.errors import DataError, PolicyError
from aegis.words import json_fields

DELIMITERS = ",;\t|"
"""Delimiters that Aegis detects; the user must state any other delimiter."""
DATE_ORDERS = ("day-first", "month-first")
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte-order marks. If a mark begins with another mark, the longer mark comes first."""
_WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
"""Encodings that write ASCII with zero bytes."""
_UNIT = 8
"""Largest number of characters of a unit."""
_MARKS = frozenset("0123456789+-.,'\"\r\n\0")
"""Characters that occur in numbers and line ends, and so in no unit."""
_SAMPLE_RECORDS = 200
_PREAMBLE = 32
"""Largest number of lines before the header that are examined."""


class EncodingError(DataError):
    """Raised if a file turns out to have another encoding than the one with which Aegis reads it.

    Attributes
    ----------
    likely
        The likely encoding.
    """

    def __init__(self, message: str, likely: str) -> None:
        super().__init__(
            message,
            hint=f"It looks like {likely}: give --encoding {likely}, or save the file as UTF-8.",
        )
        self.likely = likely


@dataclass(frozen=True)
class Reading:
    """What the user states about the format of a text file. Aegis finds out all fields that are
    None.

    Attributes
    ----------
    encoding
        Name of the encoding as in Python: utf-8, cp1252, latin-1, utf-16, ...
    delimiter
        The character between fields; `tab` for a tab.
    quote
        The character around fields; `none` if fields are not quoted.
    escape
        The character before a quote within a quoted field; by default, the quote itself.
    header
        Whether the first line names the columns.
    decimal, thousands
        The decimal mark and the thousands separator of numbers.
    units
        Texts before or after numbers that are not part of the number, such as $ and %.
    null
        Unquoted texts that mean a missing value, in addition to the empty text.
    dates
        How to read a date such as 03/04/2024: day-first or month-first.
    text, numbers
        Columns that are read as text, and columns that are read as numbers even if different
        spellings merge (1.0 next to 1).
    sheet
        The sheet to read from a workbook.

    Raises
    ------
    PolicyError
        A value is not allowed, or two values contradict each other.
    """

    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    escape: str | None = None
    header: bool | None = None
    decimal: str | None = None
    thousands: str | None = None
    units: tuple[str, ...] = ()
    null: tuple[str, ...] = ()
    dates: str | None = None
    text: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    sheet: str | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None:
            object.__setattr__(self, "encoding", known_encoding(self.encoding))
        if self.delimiter is not None and self.delimiter.lower() in ("tab", "\\t"):
            object.__setattr__(self, "delimiter", "\t")
        if self.quote is not None and self.quote.lower() == "none":
            object.__setattr__(self, "quote", "")
        for name in ("delimiter", "quote", "escape", "decimal", "thousands"):
            _check_character(name, getattr(self, name))
        for unit in self.units:
            _check_unit(unit)
        if self.dates is not None and self.dates not in DATE_ORDERS:
            raise PolicyError.unknown("order of dates", self.dates, DATE_ORDERS)
        _check_apart(self)
        both = sorted({*self.text} & {*self.numbers})
        if both:
            raise PolicyError(
                f"The column {both[0]!r} is to be read as text and as numbers.",
                hint="Name it in one of the two options.",
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a mapping, without those that are None."""
        entries = {k: v for k, v in json_fields(self).items() if v is not None and v != []}
        return entries | ({"quote": "none"} if entries.get("quote") == "" else {})

    def or_none(self) -> Reading | None:
        """Return this object; None if all its fields are None, so that the user states nothing."""
        return None if self == Reading() else self

    def over(self, other: Reading | None) -> Reading:
        """Return a copy in which each field that is None is as in `other`."""
        return self if other is None else Reading(**{**_settings(other), **_settings(self)})


@dataclass(frozen=True)
class TextDialect:
    """Everything that Aegis must know to read a text file: separators, encoding, and how values are
    written.

    Attributes
    ----------
    delimiter, quote, escape
        One character each. `quote` and `escape` are empty if the file has none.
    header
        Whether the first line of the table names the columns.
    encoding
        Name of the encoding.
    skip
        Number of lines before the table, such as `sep=;` or a title above the header.
    decimal, thousands
        One character each. `thousands` is empty if there is no separator.
    units
        Texts before or after the numbers of a column.
    null
        Unquoted texts that are null.
    dates
        How to read dates such as 03/04/2024, as stated by the user; empty if the user states
        nothing.
    """

    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    header: bool = True
    encoding: str = "utf-8"
    skip: int = 0
    decimal: str = "."
    thousands: str = ""
    null: tuple[str, ...] = ("",)
    dates: str = ""
    units: tuple[str, ...] = ()


def known_encoding(name: str) -> str:
    """Return Python's name of a text encoding; raise `PolicyError` if there is none."""
    try:
        codec = codecs.lookup(name)
        if "".encode(name) is None or not getattr(codec, "_is_text_encoding", True):
            raise LookupError(name)
    except (LookupError, ValueError, UnicodeError) as error:
        raise PolicyError(
            f"Unknown encoding {name!r}.",
            hint="Allowed: utf-8, cp1252 (Windows, western Europe), latin-1, cp1250 (Windows, "
            "central Europe), utf-16, and all others that Python knows.",
        ) from error
    return codec.name


def decide(start: bytes, complete: bool, reading: Reading, name: str) -> TextDialect:
    """Find out the dialect of the file `name`, from what the user states and from its first bytes,
    decompressed; they are the whole file if `complete`.

    Raises
    ------
    DataError
        The bytes cannot be decoded.
    """
    encoding = reading.encoding or marked_encoding(start)
    text = decoded(start, encoding, name)
    named, skip = _named_delimiter(text)
    quote = '"' if reading.quote is None else reading.quote
    delimiter = reading.delimiter or named or _likely_delimiter(text, quote, complete)
    if named is None:
        skip = _preamble(text, delimiter, quote, complete)
        if comments := _comments(text):
            table = "".join(text.splitlines(keepends=True)[comments:])
            likely = reading.delimiter or _likely_delimiter(table, quote, complete)
            if _only_comments(text, table, likely, quote):
                delimiter, skip = likely, comments
    return TextDialect(
        delimiter=delimiter,
        quote=quote,
        escape=quote if reading.escape is None else reading.escape,
        header=True if reading.header is None else reading.header,
        encoding=encoding,
        skip=skip,
        decimal=reading.decimal or ".",
        thousands=reading.thousands or "",
        null=tuple(dict.fromkeys(("", *reading.null))),
        dates=reading.dates or "",
        units=reading.units,
    )


def marked_encoding(start: bytes) -> str:
    """Return the encoding that a byte-order mark or zero bytes reveal, else UTF-8."""
    marked = next((encoding for mark, encoding in MARKS if start.startswith(mark)), None)
    return marked or _wide_encoding(start) or "utf-8"


def _wide_encoding(start: bytes) -> str | None:
    """Return the wide encoding (such as UTF-16) that gives most ASCII; None if few bytes are zero."""
    if start.count(0) <= len(start) / 8:
        return None
    ascii_characters = {}
    for encoding in _WIDE:
        with suppress(UnicodeDecodeError):
            text = codecs.getincrementaldecoder(encoding)().decode(start)
            if "\0" not in text:
                ascii_characters[encoding] = sum(map(str.isascii, text))
    likely = max(ascii_characters, key=lambda encoding: ascii_characters[encoding], default=None)
    return likely if likely is not None and ascii_characters[likely] else None


def likely_encoding(start: bytes) -> str:
    """Return the most likely encoding of bytes that are not valid UTF-8."""
    wide = _wide_encoding(start)
    if wide is not None:
        return wide
    try:
        start.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"


def records_of(text: str, dialect: TextDialect) -> list[list[str]]:
    """Return the first records in a text, leaving out empty lines."""
    return _parsed(text, dialect.delimiter, dialect.quote, dialect.escape)


def _parsed(text: str, delimiter: str, quote: str, escape: str | None = None) -> list[list[str]]:
    records: list[list[str]] = []
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, **csv_options(delimiter, quote, escape))
    try:
        for fields_ in reader:
            if fields_:
                records.append(fields_)
            if len(records) == _SAMPLE_RECORDS:
                break
    except csv.Error:
        return records
    return records


def csv_options(delimiter: str, quote: str, escape: str | None = None) -> dict[str, Any]:
    """Return the options with which Python's `csv` module reads this dialect."""
    csv.field_size_limit(1 << 30)  # long texts are no error
    if not quote:
        return {"delimiter": delimiter, "quoting": csv.QUOTE_NONE, "quotechar": None}
    if escape in (None, "", quote):
        return {"delimiter": delimiter, "quotechar": quote}
    return {
        "delimiter": delimiter,
        "quotechar": quote,
        "escapechar": escape,
        "doublequote": False,
    }


def decoded(start: bytes, encoding: str, name: str) -> str:
    """Return the first bytes of the file `name` as text. The bytes may end within a character."""
    decoder = codecs.getincrementaldecoder("utf-8-sig" if encoding == "utf-8" else encoding)()
    try:
        return decoder.decode(start)
    except UnicodeDecodeError as error:
        raise not_of_encoding(name, encoding, error.object, error.start) from error


def not_of_encoding(
    name: str, encoding: str, data: bytes, position: int, lines: int = 0
) -> EncodingError:
    """Return the error for bytes that do not have the expected encoding; it names the likely one.

    `position` is that of the first byte of `data` that cannot be decoded, and `lines` precede `data`.
    """
    likely = likely_encoding(data)
    line = lines + data.count(b"\n", 0, position) + 1
    return EncodingError(
        f"Cannot read {name}: line {line:,} is not text in "
        f"{encoding.upper()} (byte 0x{data[position]:02X}).",
        likely,
    )


def _named_delimiter(text: str) -> tuple[str | None, int]:
    """Return the delimiter of a first line such as `sep=;` (or None), and the lines to skip."""
    first = text.split("\n", 1)[0].strip("\r").strip('"')
    if first.lower().startswith("sep=") and len(first) == 5:
        return first[4], 1
    return None, 0


def _likely_delimiter(text: str, quote: str, complete: bool) -> str:
    """Return the delimiter with which most records have the same number of fields; among several, the one
    with most fields, then by the first line.
    """

    def fit(delimiter: str) -> tuple[float, int, int]:
        records = _whole_records(_parsed(text, delimiter, quote), complete)
        if not records:
            return (0.0, 0, 0)
        width, number = Counter(map(len, records)).most_common(1)[0]
        return (number / len(records) if width > 1 else 0.0, width, len(records[0]))

    return max(DELIMITERS, key=fit)


def _whole_records(records: list[list[str]], complete: bool) -> list[list[str]]:
    """Return the records of a sample without the last one if it may be incomplete."""
    return records if complete or len(records) in (1, _SAMPLE_RECORDS) else records[:-1]


def _preamble(text: str, delimiter: str, quote: str, complete: bool) -> int:
    """Count the lines before the table: empty ones, and those of one field if all others have more."""
    lines = text.split("\n")
    empty = next((i for i, line in enumerate(lines) if line.strip("\r")), 0)
    records = _whole_records(_parsed(text, delimiter, quote), complete)
    widths = [len(record) for record in records]
    first = next((i for i, width in enumerate(widths[:_PREAMBLE]) if width > 1), 0)
    rest = widths[first:]
    if first == 0 or len(set(rest)) != 1 or len(rest) < 2:
        return empty
    filled = 0
    for number, line in enumerate(lines):
        if line.strip("\r"):
            if filled == first:
                return number
            filled += 1
    return empty


def _comments(text: str) -> int:
    """Count the first lines that are empty or begin with `#`; 0 if no other line follows."""
    for number, line in enumerate(text.splitlines()):
        if line and not line.startswith("#"):
            return number
    return 0


def _only_comments(text: str, table: str, delimiter: str, quote: str) -> bool:
    """Return whether no line above `table` has as many fields as its first line, so that `#` is no
    data.
    """
    width = len(next(iter(_parsed(table, delimiter, quote)), []))
    above = text.removesuffix(table).splitlines()
    return width > 1 and all(line.count(delimiter) + 1 != width for line in above)


def _check_character(name: str, value: str | None) -> None:
    allowed_empty = name in ("quote", "escape", "thousands")
    if value is None or (value == "" and allowed_empty):
        return
    if len(value) != 1 or value in "\r\n\0":
        raise PolicyError(
            f"The {name} {value!r} is not one character.",
            hint="Give one character"
            + (", or `tab`." if name == "delimiter" else ", or `none`." * (name == "quote") or "."),
        )
    if name in ("delimiter", "quote", "escape") and ord(value) > 126:
        raise PolicyError(
            f"The {name} {value!r} is not a character of ASCII.",
            hint='For example: , ; | "',
        )


def _check_unit(unit: str) -> None:
    if not unit.strip() or len(unit) > _UNIT or not _MARKS.isdisjoint(unit):
        raise PolicyError(
            f"{unit!r} cannot be a unit.",
            hint=f"Give what is before or behind numbers, such as $, % or kg: up to {_UNIT} "
            "characters, without digits, signs, points, commas and quotes.",
        )


def _check_apart(reading: Reading) -> None:
    pairs = (("delimiter", "quote"), ("delimiter", "escape"), ("decimal", "thousands"))
    for first, other in pairs:
        value = getattr(reading, first)
        if value and value == getattr(reading, other):
            raise PolicyError(
                f"{first} and {other} are both {value!r}.", hint="Give each its own character."
            )
    if reading.decimal is not None and reading.decimal not in (".", ","):
        raise PolicyError(
            f"The decimal mark {reading.decimal!r} is unknown.", hint="Allowed: . and ,"
        )


def _settings(reading: Reading) -> dict[str, Any]:
    values = {field.name: getattr(reading, field.name) for field in fields(reading)}
    return {name: value for name, value in values.items() if value is not None and value != ()}
