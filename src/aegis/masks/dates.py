"""Masks of dates and times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from aegis.masks import parameters
from aegis.masks.base import Kind, Mask

if TYPE_CHECKING:
    import ibis.expr.types as ir

UNITS = {"day": "D", "week": "W", "month": "M", "quarter": "Q", "year": "Y"}


@dataclass(frozen=True)
class Truncate(Mask):
    """The first day of the day, week, month, quarter or year in which a date or time falls.

    A week starts on Monday (ISO 8601). The result is a date. A timestamp with a time zone is read
    in the time zone of the engine's connection, which Ibis sets to UTC on the embedded engine.
    """

    name: ClassVar[str] = "truncate"
    summary: ClassVar[str] = "Shows the first day of the week, month, quarter or year of a date."
    fits: ClassVar[frozenset[Kind]] = frozenset({Kind.DATE})
    example: ClassVar[str] = "{truncate: {unit: month}}"

    unit: str = field(metadata={"doc": "day, week, month, quarter or year"})

    def __post_init__(self) -> None:
        parameters.one_of(self.name, "unit", self.unit, tuple(UNITS))

    def output_kind(self, kind: Kind) -> Kind:
        """Return `kind`: dates stay dates."""
        return kind

    def expression(self, column: ir.Column) -> ir.Value:
        """Return the first day of the unit."""
        day = column if column.type().is_date() else column.cast("date")
        if self.unit == "day":
            return day
        # Engines truncate a date to a time, which Ibis does not know: a cast to what it takes the
        # result for already would be left out as superfluous.
        return day.truncate(UNITS[self.unit]).cast("timestamp").cast("date")
