"""Define masks of dates and times."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import ibis

from aegis.errors import PolicyError
from aegis.masks import parameters
from aegis.masks.base import Kind, Mask, described

if TYPE_CHECKING:
    import ibis.expr.types as ir

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
    integer, 1980; with `count: 10` and `show: decade` it is the text 1980s. A timestamp with a time
    zone is read in the time zone of the engine's connection, which Ibis sets to UTC on the embedded
    engine.
    """

    name: ClassVar[str] = "truncate"
    summary: ClassVar[str] = "Replaces a date by the first day of its week, month, quarter or year."
    fits: ClassVar[frozenset[Kind]] = frozenset({Kind.DATE})
    example: ClassVar[str] = "{truncate: {unit: month}}"

    unit: str = described(
        "day, week, month, quarter or year; a time with a time zone counts in UTC (on a "
        "server: in the time zone of the connection)"
    )
    count: int = described("with unit year: how many years to group", 1)
    show: str = described(
        '"date": the first day, so unit year shows 2014 as 2014-01-01. With unit year also '
        '"year": 2014. With count 10 also "decade": 2010s',
        "date",
    )

    def __post_init__(self) -> None:
        parameters.one_of(self.name, "unit", self.unit, tuple(UNITS))
        parameters.whole(self.name, "count", self.count, at_least=1, at_most=1000)
        parameters.one_of(self.name, "show", self.show, SHOWS)
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
        """Whether the mask shows dates."""
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
