"""Define the counts of pairs of levels of one configuration; its measures are computed from these
counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.arrays import Array, Floats, Ints
from aegis.errors import InternalError
from aegis.measures.by_fold import PartCounts
from aegis.measures.counted import UNPOOLED, Counted
from aegis.measures.information import pair_information

Divided = PartCounts | Callable[[], PartCounts]
"""Counts by fold, or a function that counts them."""


class Coding(StrEnum):
    """The way in which masked numbers and dates are encoded for a score. Other values are always
    encoded as indicators.
    """

    NAMES = "names"
    """One indicator for each masked value."""
    THRESHOLDS = "thresholds"
    """One indicator for each "at least this value"; tree models split in this way."""
    NUMBERS = "numbers"
    """The number itself, as linear models use it."""


class Need(StrEnum):
    """What a measure needs to know in addition to how many rows have both levels (masked values) of
    each pair.
    """

    PAIRS = "pairs"
    """The information of every pair of attributes: `Cooccurrence.pairs`."""
    ORDER = "order"
    """Levels in the order of their values: `Cooccurrence.order`."""
    POOLED = "pooled"
    """The loss because several values share a level: `Cooccurrence.pooled`."""
    PARTS = "parts"
    """Counts by fold and class: `Cooccurrence.parts`."""
    COLUMNS = "columns"
    """Counts of all columns by fold, and the weight of each column: `Cooccurrence.columns`."""


@dataclass(frozen=True, eq=False)
class ColumnCounts:
    """A function that counts the rows of all columns by fold, and the weight of each column in the
    mean of their scores.

    Attributes
    ----------
    count
        Function that counts the columns; columns with an order are encoded as thresholds.
    weights
        Weight of each of m columns in the mean, shape (m,). Columns that almost determine each
        other share the weight of a single column. Columns that cannot be predicted have weight 0.
    """

    count: Callable[[], PartCounts]
    weights: Floats


@dataclass(frozen=True, eq=False)
class OrderedCounts:
    """How many rows have both levels of each pair, with levels (masked values) in the order of
    their values.

    Attributes
    ----------
    total, joint, offsets
        The rows that have both levels of each pair, (d, d), the rows per level and class, (d, C),
        and the start of each attribute's levels, (m + 1,), for d levels, C classes and m
        attributes.
    ordered
        For each of the m attributes, whether its levels are ordered.
    chance
        For counts that are means over the noise of masks: how much more the counts vary after the
        noise is drawn, as a matrix with k columns, shape (d, k). None without noise.
    """

    total: Array
    joint: Array
    offsets: Ints
    ordered: Sequence[bool]
    chance: Floats | None = None

    def __post_init__(self) -> None:
        if len(self.ordered) != len(self.offsets) - 1:
            raise InternalError(
                f"`ordered` has {len(self.ordered)} entries for {len(self.offsets) - 1} attributes."
            )


@dataclass(frozen=True, eq=False)
class Cooccurrence:
    """How many rows have both levels of each pair, for the masked attributes of one configuration.

    A level is a masked value. The levels of all m attributes form one sequence of d levels, in
    which attribute i has the levels `offsets[i]:offsets[i + 1]`. Levels without rows are allowed;
    every measure skips them. C is the number of label classes. In theory.md, the counts of class y
    are S' G_y S.

    Attributes
    ----------
    n
        Number of rows that are counted.
    joint
        Number of rows by level and class, shape (d, C).
    counted
        The matrix `total`, or a function that counts it, because some measures, such as the
        expected AUC, do not need it.
    offsets
        Start of the levels of each attribute, shape (m + 1,), from 0 to d.
    chance
        A matrix B with k columns, shape (d, k), if the counts are means over the noise of masks;
        else None. If the label is independent of the attributes, the covariance of `joint` after
        the noise is drawn is larger, by B B' times the variance of a class. So a fit to drawn
        values is slightly better by chance; corrected and held-out measures subtract this.
    pairs
        Corrected mutual information I(A_i, A_j; Y) in bits of each pair of attributes with the
        label Y, as `pair_information` computes it, shape (m, m), symmetric.
    order
        The counts of the same rows with levels in the order of their values. None: no attribute
        counts as ordered.
    pooled
        For each ridge penalty of `UNPOOLED`, the change (at most 0) of Pillai's trace on held-out
        rows if models have a coefficient for each rare value that a level pools, summed over
        attributes. None: no level counts as pooled.
    parts
        The counts by fold and class in each coding of numbers and dates, or a function that counts
        them. They need much memory and are used only once, to compute scores. Codings with equal
        counts share one object.
    tables_of_pairs
        Function that counts every pair of attributes by fold and class, and returns the gain of
        each pair (`pair_gains`). Only measures of interactions call it.
    columns
        The counts of all columns together, by fold, and the weight of each column.
    """

    n: float
    joint: Array
    counted: Counted
    offsets: Ints
    chance: Floats | None = None
    pairs: Floats | None = None
    order: OrderedCounts | None = None
    pooled: Floats | None = None
    parts: Mapping[Coding, Divided] | None = None
    tables_of_pairs: Callable[[], Floats] | None = None
    columns: ColumnCounts | None = None

    def __post_init__(self) -> None:
        levels = len(self.joint)
        offsets = np.asarray(self.offsets)
        shape = (levels, levels) if callable(self.counted) else self.counted.shape
        if self.joint.ndim != 2 or shape != (levels, levels):
            raise InternalError(
                f"Co-occurrence of shape {shape} does not fit a joint of shape {self.joint.shape}."
            )
        if offsets[0] != 0 or offsets[-1] != levels or (np.diff(offsets) < 1).any():
            raise InternalError(f"Offsets {offsets.tolist()} do not divide {levels} levels.")

    @classmethod
    def of(cls, by_class: Array, offsets: npt.ArrayLike) -> Cooccurrence:
        """Build the counts from the number of rows that have both levels (masked values) of each
        pair, by class, shape (C, d, d), for C classes and d levels. `offsets` has the start of each
        attribute's levels.
        """
        bounds = np.asarray(offsets, dtype=np.int64)
        joint = np.ascontiguousarray(np.diagonal(by_class, axis1=1, axis2=2).T)
        n = float(joint[: bounds[1]].sum()) if len(bounds) > 1 else 0.0
        count = len(bounds) - 1
        pairs = np.zeros((count, count))
        for i, j in combinations(range(count), 2):
            rows, columns = slice(*bounds[i : i + 2]), slice(*bounds[j : j + 2])
            pairs[i, j] = pairs[j, i] = pair_information(by_class[:, rows, columns])
        return cls(n, joint, by_class.sum(axis=0), bounds, pairs=pairs)

    @property
    def attributes(self) -> int:
        """The number m of attributes."""
        return len(self.offsets) - 1

    @cached_property
    def total(self) -> Array:
        """How many rows have both levels (masked values) of each pair, in all classes together,
        shape (d, d), symmetric.

        The diagonal has the number of rows of each level. Two levels of the same attribute never
        occur together, so their entry is 0.
        """
        return self.counted() if callable(self.counted) else self.counted

    def by_part(self, coding: Coding = Coding.NAMES) -> PartCounts:
        """Return the counts by fold, with numbers and dates encoded as `coding` says.

        Raises
        ------
        InternalError
            The counts by fold are missing.
        """
        if self.parts is None:
            raise InternalError("The counts by part were not filled in.")
        divided = self.parts[coding]
        return divided() if callable(divided) else divided

    def same_as(self, coding: Coding) -> Coding:
        """Return the first coding of numbers and dates whose counts by fold equal those of
        `coding`.

        Codings differ only for attributes with an order (numbers, dates). If there are no such
        attributes, all codings share their counts. If there are no counts by fold, the result is
        `coding` itself.
        """
        parts = self.parts or {}
        return next((c for c in parts if parts[c] is parts[coding]), coding)

    @cached_property
    def pair_gains(self) -> Floats:
        """How much better each pair of attributes predicts the label together than by the sum of
        their effects. The shape is (M, T, 1 + K), for M pairs and T classes that are compared with
        all other classes; on the last axis, first over all K folds, then without each fold.

        Raises
        ------
        InternalError
            The tables of pairs are missing.
        """
        if self.tables_of_pairs is None:
            raise InternalError("The tables of pairs by part were not filled in.")
        return self.tables_of_pairs()

    @property
    def in_order(self) -> OrderedCounts:
        """The counts with levels (masked values) in the order of their values."""
        if self.order is not None:
            return self.order
        unordered = [False] * self.attributes
        return OrderedCounts(self.total, self.joint, self.offsets, unordered)

    @property
    def losses(self) -> Floats:
        """For each ridge penalty of `UNPOOLED`, the change (at most 0) of Pillai's trace on
        held-out rows if models have a coefficient for each rare value that a level (masked value)
        pools.
        """
        return np.zeros(len(UNPOOLED)) if self.pooled is None else self.pooled

    def extended(self, **more: Any) -> Cooccurrence:
        """Return a copy of the counts in which the fields `more` are set; the copy keeps the cached
        results.
        """
        other = replace(self, **more)
        results = {name: own for name, own in self.__dict__.items() if name not in other.__dict__}
        other.__dict__.update(results)
        return other

    def lacks(self, needs: Collection[Need]) -> list[Need]:
        """Return those entries of `needs` that these counts do not contain."""
        always = Need.ORDER, Need.POOLED
        return [need for need in needs if need not in always and getattr(self, need) is None]

    @cached_property
    def class_totals(self) -> Array:
        """The number of rows in each of C classes, shape (C,), summed over the levels (masked
        values) of the first attribute.
        """
        first = int(self.offsets[1]) if self.attributes else 0
        totals: Array = self.joint[:first].sum(axis=0)
        return totals
