"""Define masks of texts, codes, identifiers and dates.

Replace identifiers by keyed tokens: equal values give equal tokens, which do not reveal the value.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import ibis

from aegis.errors import PolicyError
from aegis.masks import base
from aegis.masks.base import Kind, Mask, described
from aegis.sources.functions import engine_function

if TYPE_CHECKING:
    import ibis.expr.types as ir

SIDES = ("leading", "trailing")


@dataclass(frozen=True)
class Blur(Mask):
    """Hides characters of a text or code: 12345 with `keep: 3` becomes 123*.

    `keep` shows this many leading characters and hides the rest; `hide` hides this many trailing
    characters and shows the rest. `side` sets the end, leading or trailing, to which `keep` or
    `hide` applies. One symbol represents all hidden characters, regardless of their number; the
    mask shows the symbol even if nothing is hidden. So with `keep: 3` the codes E11, E11.9 and
    E11.65 form one group, E11*. A character is a Unicode code point. Whole numbers are read as
    their decimal digits; a minus sign is a character.
    """

    name: ClassVar[str] = "blur"
    summary: ClassVar[str] = "Hides leading or trailing characters of a text or code."
    fits: ClassVar[frozenset[Kind]] = frozenset({Kind.TEXT, Kind.INTEGER})
    example: ClassVar[str] = "{blur: {keep: 3}}"

    keep: int | None = described("characters to show, at least 0 (or give hide)", None)
    hide: int | None = described("characters to hide, at least 1 (or give keep)", None)
    side: str | None = described(
        '"leading" (default of keep) or "trailing" (default of hide)', None
    )
    symbol: str = described("the character that stands for all hidden characters", "*")

    def __post_init__(self) -> None:
        example = "{blur: {keep: 3}} or {blur: {hide: 2}}"
        base.either(self.name, example, keep=self.keep, hide=self.hide)
        if self.keep is not None:
            base.whole(self.name, "keep", self.keep)
        if self.hide is not None:
            base.whole(self.name, "hide", self.hide, at_least=1)
        if self.side is not None:
            base.one_of(self.name, "side", self.side, SIDES)
            if self.side == self._usual:
                # One spelling per mask, so that equal masks are equal.
                object.__setattr__(self, "side", None)
        base.text(self.name, "symbol", self.symbol)
        if len(self.symbol) != 1:
            raise base.wrong(self.name, "symbol", self.symbol, "one character")

    @property
    def _usual(self) -> str:
        return "trailing" if self.keep is None else "leading"

    @property
    def _shows_start(self) -> bool:
        leading = (self.side or self._usual) == "leading"
        return (self.keep is not None) == leading

    def shows(self, text: str) -> bool:
        """Return whether the mask can show a text: the symbol is at the hidden end, and no more
        characters than allowed are shown.
        """
        marked = text.endswith if self._shows_start else text.startswith
        return marked(self.symbol) and (
            self.keep is None or len(text) <= self.keep + len(self.symbol)
        )

    def expression(self, column: ir.Column) -> ir.Value:
        """Return the text; one symbol replaces all its hidden characters."""
        text = column if column.type().is_string() else column.cast("string")
        shows_start = self._shows_start
        symbol = ibis.literal(self.symbol)
        if self.keep is not None:
            return text.left(self.keep) + symbol if shows_start else symbol + text.right(self.keep)
        length = text.length()
        rest = length - self.hide
        blurred = text.left(rest) + symbol if shows_start else symbol + text.right(rest)
        return ibis.ifelse(length <= self.hide, symbol, blurred)


LEAST_KEY = 16
"""Smallest number of bytes of a key: 128 bits if they are random."""
BLOCK = 64
"""Block size of SHA-256 in bytes."""


HEX = engine_function("hex", ("string",), "string")
UNHEX = engine_function("unhex", ("string",), "binary")
SHA256 = engine_function("sha256", ("binary",), "string")


@dataclass(frozen=True)
class Tokenise(Mask):
    """Shows the first `length` hexadecimal digits of the value's HMAC-SHA256 with a secret key.

    The value is read as text in UTF-8. Equal values give equal tokens in every table masked with
    the same key, so joins keep working. Only someone who has the key can test whether a value has a
    certain token. 32 characters are 128 bits: among a billion values, two share a token with a
    probability of about 1e-21.

    The key is read from the environment or a file (without a trailing line break) when the
    expression is built. It is not part of the mask, its YAML or its text. It *is* part of the
    expression, as two constants: do not show or log the SQL of a tokenised column. Null stays null.

    Reference: Krawczyk, Bellare, Canetti, RFC 2104 (HMAC), section 2.
    """

    name: ClassVar[str] = "tokenise"
    summary: ClassVar[str] = (
        "Replaces an identifier by a token, made with a secret key. Equal values get equal "
        "tokens, so joins still work."
    )
    fits: ClassVar[frozenset[Kind]] = frozenset({Kind.TEXT, Kind.INTEGER})
    example: ClassVar[str] = "{tokenise: {key_env: AEGIS_TOKEN_KEY}}"

    key_env: str | None = described(
        "environment variable that holds the key (or give key_file)", None
    )
    key_file: str | None = described("file that holds the key (or give key_env)", None)
    length: int = described("characters of the token, 8 to 64", 32)

    def __post_init__(self) -> None:
        base.either(self.name, self.example, key_env=self.key_env, key_file=self.key_file)
        if self.key_env is not None:
            base.text(self.name, "key_env", self.key_env)
        if self.key_file is not None:
            base.text(self.name, "key_file", self.key_file)
        base.whole(self.name, "length", self.length, at_least=8, at_most=64)

    def expression(self, column: ir.Column) -> ir.Value:
        """Return the token of each value; raise `PolicyError` if the key is missing or empty."""
        key = self._key()
        if len(key) > BLOCK:
            key = hashlib.sha256(key).digest()
        key = key.ljust(BLOCK, b"\0")
        inner, outer = (bytes(byte ^ pad for byte in key).hex() for pad in (0x36, 0x5C))
        text = column if column.type().is_string() else column.cast("string")
        # Concatenated in hexadecimal, since engines differ in how they concatenate bytes.
        message = SHA256(UNHEX(ibis.literal(inner) + HEX(text)))
        return SHA256(UNHEX(ibis.literal(outer) + message)).left(self.length)

    def _key(self) -> bytes:
        if self.key_env is not None:
            key = os.environ.get(self.key_env, "").encode()
            source = f"environment variable {self.key_env!r}"
        else:
            source = f"file {self.key_file!r}"
            try:
                key = Path(self.key_file or "").read_bytes().rstrip(b"\r\n")
            except OSError as error:
                raise PolicyError(
                    f"Mask {self.name!r}: cannot read the key from {source}: {error.strerror}.",
                    hint="Check the path.",
                ) from error
        if not key:
            raise PolicyError(
                f"Mask {self.name!r}: there is no key in {source}.",
                hint="Put a long random secret there, for example the output of `openssl rand -hex 32`.",
            )
        if len(key) < LEAST_KEY:
            raise PolicyError(
                f"Mask {self.name!r}: the key in {source} has {len(key)} bytes, which can be guessed.",
                hint=f"Give at least {LEAST_KEY}, for example the output of `openssl rand -hex 32`.",
            )
        return key


_FAR = 1_000_000
"""A number of years that, times `count`, lies before year 0 on any engine."""
UNITS = {"day": "D", "week": "W", "month": "M", "quarter": "Q", "year": "Y"}


SHOWS = ("date", "year", "decade")
_DECADE = re.compile(r"(0|-?[1-9][0-9]*0)s")


@dataclass(frozen=True)
class Truncate(Mask):
    """Shows the first day of the day, week, month, quarter or year in which a date or time falls.

    `count` groups several years together, counted from year 0. For example, `count: 10` shows
    1987-05-14 as 1980-01-01. A group that would begin before year 1 begins at year 1. A week starts
    on Monday (ISO 8601). By default, the result is a date. With `show: year` it is the year as an
    integer, 1980; with `count: 10` and `show: decade` it is the text 1980s. A time with a time zone
    counts in this zone. PostgreSQL, Spark and database files of DuckDB do not store the zone of a
    column, so there it counts in UTC.
    """

    name: ClassVar[str] = "truncate"
    summary: ClassVar[str] = "Replaces a date by the first day of its week, month, quarter or year."
    fits: ClassVar[frozenset[Kind]] = frozenset({Kind.DATE})
    example: ClassVar[str] = "{truncate: {unit: month}}"

    unit: str = described(
        "day, week, month, quarter or year. A time with a time zone counts in this zone; "
        "PostgreSQL, Spark and database files do not store the zone: in UTC"
    )
    count: int = described("with unit year: how many years to group", 1)
    show: str = described(
        '"date": the first day, so unit year shows 2014 as 2014-01-01. With unit year also '
        '"year": 2014. With count 10 also "decade": 2010s',
        "date",
    )

    def __post_init__(self) -> None:
        base.one_of(self.name, "unit", self.unit, tuple(UNITS))
        base.whole(self.name, "count", self.count, at_least=1, at_most=1000)
        base.one_of(self.name, "show", self.show, SHOWS)
        if self.unit != "year" and (self.count, self.show) != (1, "date"):
            raise PolicyError(
                f"Mask {str(self)!r}: 'count' and 'show' go with unit year, not {self.unit}.",
                hint="For example {truncate: {unit: year, count: 10}}.",
            )
        if self.show == "decade" and self.count != 10:
            raise PolicyError(
                f"Mask {str(self)!r}: 'show' is 'decade', but 'count' is {self.count}.",
                hint="Write {truncate: {unit: year, count: 10, show: decade}}.",
            )

    def output_kind(self, kind: Kind) -> Kind:
        """Return the kind of the result: `kind` if the mask shows dates, an integer for years, text
        for decades.
        """
        return {"year": Kind.INTEGER, "decade": Kind.TEXT}.get(self.show, kind)

    @property
    def idempotent(self) -> bool:  # type: ignore[override]
        """Whether masking a value again leaves it unchanged, as it does if the mask shows dates."""
        return self.show == "date"

    def shows(self, text: str) -> bool | None:
        """Return whether a text is a decade; None if the mask shows no decades."""
        return _DECADE.fullmatch(text) is not None if self.show == "decade" else None

    def expression(self, column: ir.Column) -> ir.Value:
        """Return the first day of the unit, its year, or its decade as text."""
        day = column if column.type().is_date() else column.cast("date")
        if self.unit == "day":
            return day
        if (self.count, self.show) == (1, "date"):
            # Engines truncate a date to a time, which Ibis does not know: a cast to what it takes
            # the result for already would be left out as superfluous.
            return day.truncate(UNITS[self.unit]).cast("timestamp").cast("date")
        year = day.year().cast("int64")
        # Engines differ in the remainder of negative numbers: years before 0 are shifted above it.
        far = self.count * _FAR
        first = year - (year + far) % self.count
        if self.show == "decade":
            return first.cast("string") + "s"
        first = ibis.ifelse((year >= 1) & (first < 1), 1, first)
        if self.show == "year":
            return first
        return ibis.date(first.cast("int32"), 1, 1)
