"""Add noise to dates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from aegis.arrays import Floats, Ints
from aegis.errors import InternalError
from aegis.masks import parameters
from aegis.masks.base import Kind, Mask, ValueCounts, described
from aegis.masks.bounds import LEARNS, shared_range
from aegis.masks.noise.base import NoiseMask, is_null, learnt_field, take

MOST_DAYS = 100_000
"""Largest number of days that a noise mask on dates may show."""


@dataclass(frozen=True)
class DateNoise(NoiseMask):
    """Moves a date by a random whole number of days, uniform in -days..days.

    A time of day is dropped. Days beyond the bounds are shown as the bound. If `lower` and `upper`
    are not given, the bounds are fitted to the data. Null stays null. The noise guarantees no
    differential privacy.
    """

    name: ClassVar[str] = "date_noise"
    summary: ClassVar[str] = "Moves a date at random, by at most a number of days."
    fits: ClassVar[frozenset[Kind]] = frozenset({Kind.DATE})
    example: ClassVar[str] = "{date_noise: {days: 14}}"
    keeps_kind: ClassVar[bool] = True
    fitted_by: ClassVar[str | None] = "lower"
    ordered: ClassVar[bool] = True
    learns: ClassVar[str | None] = LEARNS

    days: int = described("largest number of days that a date moves, 1 to 36500")
    lower: str | None = learnt_field("first day to show (ISO 8601)")
    upper: str | None = learnt_field("last day to show (ISO 8601)")

    def __post_init__(self) -> None:
        parameters.whole(self.name, "days", self.days, at_least=1, at_most=36_500)
        hint = "Give both, or neither: they are then taken from the data."
        parameters.together(f"Mask {self.name!r}", hint, lower=self.lower, upper=self.upper)
        for name in ("lower", "upper"):
            given: Any = getattr(self, name)
            if isinstance(given, date):  # YAML reads an unquoted day as a date
                object.__setattr__(self, name, given.isoformat()[:10])
            elif given is not None:
                _day(self.name, name, given)
        if self.fitted:
            first, last = self._ends()
            if not 0 <= last - first < MOST_DAYS:
                raise parameters.wrong(
                    self.name,
                    "upper",
                    self.upper,
                    f"a day from {self.lower} on, within {MOST_DAYS:,} days",
                )

    def _learn(self, data: ValueCounts) -> Mask:
        """Return the mask with bounds that span all moved dates. Each bound comes from a date that
        enough rows share.
        """
        present = ~is_null(data.values)
        days, place = np.unique(_day_numbers(data.values)[present], return_inverse=True)
        low, high = 0, 0
        if len(days):
            rows = np.bincount(place, weights=data.counts[present])
            low, high = map(int, shared_range(days.astype(np.float64), rows, data.shared_rows))
        first, last = _EPOCH + timedelta(low - self.days), _EPOCH + timedelta(high + self.days)
        return replace(self, lower=first.isoformat(), upper=last.isoformat())

    def reports(self, data: ValueCounts) -> pa.Array:
        """Return every day from lower to upper, and null if the data has nulls."""
        days = self._days()
        return pa.concat_arrays([days, pa.nulls(1, days.type)]) if data.values.null_count else days

    def channel(self, data: ValueCounts, rows: slice = slice(None)) -> Floats:
        """Return the probability that true date i is shown as day j, for V dates and R days, shape
        (V, R), or only the lines `rows`. Days beyond a bound become the bound.

        Each day within `days` of the true one has the probability 1 / (2 days + 1).
        """
        first, last = self._ends()
        every = is_null(data.values)
        missing, numbers = every[rows], _day_numbers(data.values)[rows]
        size = last - first + 1
        chances = np.zeros((len(numbers), size + int(every.any())))
        share = 1.0 / (2 * self.days + 1)
        for i, day in enumerate(numbers.tolist()):
            if missing[i]:
                chances[i, -1] = 1.0
                continue
            reach = np.clip(np.arange(day - self.days, day + self.days + 1), first, last) - first
            chances[i, :size] = np.bincount(reach, minlength=size) * share
        return chances

    def draw(self, column: pa.Array, random: np.random.Generator) -> pa.Array:
        """Move each date by a separately drawn number of days."""
        first, last = self._ends()
        moved = _day_numbers(column) + random.integers(-self.days, self.days + 1, len(column))
        return take(self._days(), np.clip(moved, first, last) - first, is_null(column))

    def _ends(self) -> tuple[int, int]:
        if self.lower is None or self.upper is None:
            raise InternalError(f"Mask {str(self)!r} has not been fitted.")
        return _day(self.name, "lower", self.lower), _day(self.name, "upper", self.upper)

    def _days(self) -> pa.Array:
        first, last = self._ends()
        return pa.array(range(first, last + 1), pa.int32()).cast(pa.date32())


_EPOCH = date(1970, 1, 1)


def _day(mask: str, parameter: str, given: object) -> int:
    """Return the number of days from 1970-01-01 to a day written in ISO 8601."""
    try:
        return (date.fromisoformat(str(given)) - _EPOCH).days
    except ValueError:
        raise parameters.wrong(mask, parameter, given, "a day as 2024-01-31") from None


def _day_numbers(values: pa.Array) -> Ints:
    """Return dates and times as days from 1970-01-01, null as 0."""
    days = values.cast(pa.date32(), safe=False).cast(pa.int32()).fill_null(0)
    numbers: Ints = days.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
