"""Measurements of a column for a first policy, and conclusions from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aegis.masks import Kind
from aegis.policy.suggest.names import Concept, find_concept, names_codes

FEWEST_KEYS = 10
"""With fewer values a column is no key of persons."""
NEARLY_ALL = 0.95
"""Share of different values from which a column is near-unique."""
EVEN = 1.5
"""Times as likely as if all had equally many rows that two rows have one value: so even are the
persons of a study, whom it follows about equally long, and counts and measurements are not."""


@dataclass(frozen=True)
class ColumnFacts:
    """Measurements of one column.

    Attributes
    ----------
    name, dtype
        The column and its Ibis data type as text.
    spoken
        The name without a beginning that all columns of the table share.
    kind
        What it holds as far as masks care; None if no mask works on it.
    rows, nulls
        Rows of the table, and how many of them are null here.
    distinct
        Number of different values, null left out, NaN counted once; 0 where `kind` is None.
    exact
        Whether `distinct` was counted, not estimated from a sample (`estimate_distinct`).
    low, high
        Least and greatest finite value of numbers and dates; None otherwise, or without values.
    special
        Rows that hold NaN or an infinity.
    quantiles
        Of finite numbers, by share of the rows (`SHARES`); empty otherwise.
    frequent
        The most frequent values as text with their share of all sampled rows, most frequent
        first; only values that at least `FEWEST_ROWS` rows hold.
    shapes
        Of texts: the share of values that have each form of `SHAPES`.
    lengths
        Of texts: the least and the greatest number of characters.
    peak
        Share of the values that are the most frequent one; of texts, whole numbers, dates, flags.
    separation
        Share of the pairs of values that differ: how well the column alone distinguishes rows.
    ranges
        Of texts that are ranges of numbers: all of them, from low to high; empty otherwise.
    round_share
        Of whole numbers: the share of multiples of 10; about a tenth where they are numbers of
        records, more where people state amounts.
    fixes
        Names of the columns of what persons have for life (`Concept.trait`) that have one value for
        each value of this column, though its values come back.
    once_each
        Name of the column of time of which no value comes twice with one value of this column.
    """

    name: str
    spoken: str
    dtype: str
    kind: Kind | None
    rows: int
    nulls: int
    distinct: int = 0
    exact: bool = True
    low: Any = None
    high: Any = None
    special: int = 0
    quantiles: Mapping[float, float] | None = None
    frequent: tuple[tuple[str, float], ...] = ()
    shapes: Mapping[str, float] | None = None
    lengths: tuple[int, int] | None = None
    peak: float = 0.0
    separation: float = 0.0
    round_share: float = 0.0
    ranges: tuple[str, ...] = ()
    fixes: tuple[str, ...] = ()
    once_each: str | None = None

    @property
    def values(self) -> int:
        """Rows that are not null."""
        return self.rows - self.nulls

    @property
    def unique_share(self) -> float:
        """Different values per row that is not null, from 0 to 1."""
        return min(1.0, self.distinct / self.values) if self.values else 0.0

    @property
    def top_share(self) -> float:
        """Share of the rows that hold the most frequent value; 0 if it was not counted."""
        return self.frequent[0][1] if self.frequent else 0.0

    @property
    def coded(self) -> bool:
        """Whether values are categories: text, or whole numbers whose name says that they are codes."""
        return self.kind is Kind.TEXT or (self.kind is Kind.INTEGER and self.coded_name)

    @property
    def concept(self) -> Concept | None:
        """The concept that the column's name means."""
        return find_concept(self.spoken, self.kind) or find_concept(self.name, self.kind)

    @property
    def coded_name(self) -> bool:
        """Whether the name says that whole numbers are codes, without an order."""
        return names_codes(self.spoken)

    @property
    def even(self) -> bool:
        """Whether whole numbers or codes have about equally many rows, as persons of a study have."""
        form = self.kind is Kind.INTEGER or self.shape("code") > NEARLY_ALL
        return form and 0 < (1 - self.separation) * self.distinct <= EVEN

    @property
    def fractional(self) -> bool:
        """Whether numbers have fractions: their bounds have, or there are more values than whole
        numbers between the bounds.

        Numbers of persons have none, even where nulls have made floats of them.
        """
        if self.kind is not Kind.NUMBER or self.low is None:
            return False
        low, high = self.low, self.high
        return low != int(low) or high != int(high) or self.distinct > int(high) - int(low) + 2

    def shape(self, name: str) -> float:
        """Return the share of texts that have the form `name` of `SHAPES`."""
        return (self.shapes or {}).get(name, 0.0)
