"""Hold the facts about a column that a first policy needs: measured figures and conclusions from
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aegis.masks import Kind
from aegis.policy.suggest.names import Concept, find_concept, names_codes

FEWEST_KEYS = 10
"""A column with fewer values than this is not considered a key of persons."""
NEARLY_ALL = 0.95
"""A column is nearly unique if it has at least this many different values per row."""
EVEN = 1.5
"""Largest evenness of a key of persons.

The evenness is the probability that two rows have the same value, divided by this probability if
all values had equally many rows. A study follows its persons for about the same time, so their
evenness is near 1; counts and measurements have larger figures.
"""


@dataclass(frozen=True)
class ColumnFacts:
    """The facts that Aegis measured on one column.

    Attributes
    ----------
    name, dtype
        The column and its Ibis data type as text.
    spoken
        The name of the column, without the prefix that all columns of the table share.
    kind
        Kind of the values in the column, on which masks depend; None if no mask accepts the column.
    rows, nulls
        Number of rows of the table, and number of rows in which the column is null.
    distinct
        Number of different values; null does not count, and NaN counts once. 0 if `kind` is None.
    exact
        Whether `distinct` was counted, not estimated from a sample (`estimate_distinct`).
    low, high
        For numbers and dates, the smallest and the largest finite value; None for other kinds, or
        if there are no values.
    special
        Number of rows with NaN or an infinity.
    quantiles
        For numbers, the quantiles of finite values, by share of the rows (`SHARES`); empty for
        other kinds.
    frequent
        The most frequent values as text, and their shares of all sampled rows, most frequent first.
        Only values with at least `FEWEST_ROWS` rows are listed.
    shapes
        For texts, the share of values that have each form in `SHAPES`.
    lengths
        For texts, the smallest and the largest number of characters.
    peak
        The share of the most frequent value among rows that are not null; only for texts, whole
        numbers, dates and flags.
    separation
        The share of pairs of rows whose values differ, which shows how well the column alone
        distinguishes rows.
    ranges
        If all texts are ranges of numbers, these ranges, from low to high; else empty.
    round_share
        For whole numbers, the share of multiples of 10. It is about a tenth for record numbers, and
        larger for amounts that people state.
    fixes
        Names of the columns with lifelong traits of persons (`Concept.trait`) that this column
        determines: they are constant for each value of this column, although its values repeat.
    once_each
        Name of a column of times in which no time occurs twice with the same value of this column;
        None if there is none.
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
        """The number of rows in which the column is not null."""
        return self.rows - self.nulls

    @property
    def unique_share(self) -> float:
        """The number of different values divided by the number of rows that are not null, from 0 to
        1.
        """
        return min(1.0, self.distinct / self.values) if self.values else 0.0

    @property
    def top_share(self) -> float:
        """The share of all rows that have the column's most frequent value; 0 if Aegis did not
        count it.
        """
        return self.frequent[0][1] if self.frequent else 0.0

    @property
    def coded(self) -> bool:
        """Whether the values are categories: texts, or whole numbers in a column whose name says
        that they are codes.
        """
        return self.kind is Kind.TEXT or (self.kind is Kind.INTEGER and self.coded_name)

    @property
    def concept(self) -> Concept | None:
        """The concept to which the column's name refers, such as a date of birth; None if Aegis
        knows no such concept.
        """
        return find_concept(self.spoken, self.kind) or find_concept(self.name, self.kind)

    @property
    def coded_name(self) -> bool:
        """Whether the column's name says that its whole numbers are codes, whose order has no
        meaning.
        """
        return names_codes(self.spoken)

    @property
    def even(self) -> bool:
        """Whether each number or code occurs in about equally many rows, as persons do in a study
        with repeated measurements.
        """
        form = self.kind is Kind.INTEGER or self.shape("code") > NEARLY_ALL
        return form and 0 < (1 - self.separation) * self.distinct <= EVEN

    @property
    def fractional(self) -> bool:
        """Whether some numbers of the column have a fractional part. Aegis infers this from the
        bounds and the number of values.

        Numbers that identify persons have no fractions, even if nulls turned them into floats.
        """
        if self.kind is not Kind.NUMBER or self.low is None:
            return False
        low, high = self.low, self.high
        return low != int(low) or high != int(high) or self.distinct > int(high) - int(low) + 2

    def shape(self, name: str) -> float:
        """Return the share of the column's texts that have the form `name`, which is one of
        `SHAPES`.
        """
        return (self.shapes or {}).get(name, 0.0)
