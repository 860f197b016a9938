"""Second-order counts of one configuration, from which measures of a whole configuration are
computed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.errors import InternalError
from aegis.measures.by_fold import PartCounts
from aegis.measures.common_factors import Sharing
from aegis.measures.counted import UNPOOLED, Counted, Numbers, total_of
from aegis.measures.information import pair_information
from aegis.measures.split import SplitCounts

Divided = PartCounts | SplitCounts | Callable[[], PartCounts | SplitCounts]
"""Counts by part, or what counts them."""


class Coding(StrEnum):
    """How masked numbers and dates enter a score; all other values enter as names."""

    NAMES = "names"
    """As the name of each value."""
    THRESHOLDS = "thresholds"
    """As whether it is so much or more, as trees see it."""
    NUMBERS = "numbers"
    """As the number itself, as linear models see it."""


class Need(StrEnum):
    """Counts that a measure of a configuration needs in addition to the co-occurrence of all
    rows.
    """

    PAIRS = "pairs"
    """The information of every pair of attributes: `Cooccurrence.pairs`."""
    ORDER = "order"
    """Levels in the order of their values: `Cooccurrence.order`."""
    POOLED = "pooled"
    """What values that share a level cost: `Cooccurrence.pooled`."""
    PARTS = "parts"
    """Counts by part of the rows and class: `Cooccurrence.parts`."""


@dataclass(frozen=True, eq=False)
class OrderedCounts:
    """Second-order counts of one configuration whose levels are in the order of their values.

    Attributes
    ----------
    counted, joint, offsets
        As of `Cooccurrence`; the levels need not be the same ones, only the rows.
    ordered
        Per attribute whether its levels have an order, m in all.
    chance
        As of `Cooccurrence`.
    """

    counted: Counted
    joint: Numbers
    offsets: npt.NDArray[np.int64]
    ordered: Sequence[bool]
    chance: npt.NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if len(self.ordered) != len(self.offsets) - 1:
            raise InternalError(
                f"{len(self.ordered)} attributes are said to be in order or not, of"
                f" {len(self.offsets) - 1}."
            )

    @property
    def total(self) -> Numbers:
        """As of `Cooccurrence`."""
        return total_of(self.counted)


@dataclass(frozen=True, eq=False)
class Cooccurrence:
    """Second-order counts of the masked attributes of one configuration.

    These are S' G_y S of the theory: the levels of all m attributes are stacked, attribute i
    owns the levels `offsets[i]:offsets[i + 1]`, d in all. Levels that no row shows are allowed
    and skipped by every measure.

    Attributes
    ----------
    n
        Rows behind the counts.
    joint
        Level by class counts, shape (d, C).
    counted
        What `total` is taken from: itself, or the co-occurrence of the levels of several
        configurations.
    offsets
        Shape (m + 1,), from 0 to d.
    chance
        Where the counts are expected ones of rows yet to be drawn: B, shape (d, k). With a label
        that says nothing, the level by class counts of drawn rows vary by B B' (times the variance
        of a class) more than the expected ones do. So drawn rows fit a little better by chance,
        which is what corrected and held-out measures take off. None if the counts are of rows.
    pairs
        Corrected I(A_i, A_j; Y) in bits of each pair of attributes, as `pair_information` computes
        it, shape (m, m), symmetric.
    order
        The same rows with levels in the order of their values; without it no attribute is taken
        for ordered.
    pooled
        Sum over attributes of `pooled_losses`, for values that share a level, one figure per penalty
        of `UNPOOLED`; without it no level is taken for shared.
    parts
        The counts by part of the rows and class, under each coding, or what counts them: scores are made
        of them once, and they take much memory. Equal ones are one and the same.
    sharing
        What other configurations have too, so that it need not be solved again for this one. It
        changes no figure.
    tables_of_pairs
        What counts every pair of attributes by part and class, and says what the pairs add: it is
        asked by measures that look at interactions alone.
    """

    n: float
    joint: Numbers
    counted: Counted
    offsets: npt.NDArray[np.int64]
    chance: npt.NDArray[np.float64] | None = None
    pairs: npt.NDArray[np.float64] | None = None
    order: OrderedCounts | None = None
    pooled: npt.NDArray[np.float64] | None = None
    parts: Mapping[Coding, Divided] | None = None
    sharing: Sharing | None = None
    tables_of_pairs: Callable[[], npt.NDArray[np.float64]] | None = None

    def __post_init__(self) -> None:
        levels = len(self.joint)
        offsets = np.asarray(self.offsets)
        if self.joint.ndim != 2 or self.counted.shape != (levels, levels):
            raise InternalError(
                f"Co-occurrence of shape {self.counted.shape} beside a joint of {self.joint.shape}."
            )
        if offsets[0] != 0 or offsets[-1] != levels or (np.diff(offsets) < 1).any():
            raise InternalError(f"Offsets {offsets.tolist()} do not divide {levels} levels.")

    @classmethod
    def of(cls, by_class: Numbers, offsets: npt.ArrayLike) -> Cooccurrence:
        """Return the counts of a full stack of matrices, shape (C, d, d), one G_y per class."""
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
        """m, the number of attributes."""
        return len(self.offsets) - 1

    @cached_property
    def total(self) -> Numbers:
        """Co-occurrence over all classes, shape (d, d), symmetric.

        Its diagonal holds the counts of the levels; between levels of one attribute it is zero off
        the diagonal.
        """
        return total_of(self.counted)

    @cached_property
    def _remembered(self) -> dict[Hashable, Any]:
        return {}

    def remember(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """Return the result that is stored under a key; compute it the first time."""
        if key not in self._remembered:
            self._remembered[key] = compute()
        return self._remembered[key]

    def by_part(self, coding: Coding = Coding.NAMES) -> PartCounts | SplitCounts:
        """Return the counts by part of the rows, under one coding.

        Raises
        ------
        InternalError
            They were not filled in.
        """
        if self.parts is None:
            raise InternalError("The counts by part were not filled in.")
        divided = self.parts[coding]
        return divided() if callable(divided) else divided

    def same_as(self, coding: Coding) -> Coding:
        """Return the first encoding that shows the same as this one; without an order, all
        encodings do.
        """
        parts = self.parts or {}
        return next((c for c in parts if parts[c] is parts[coding]), coding)

    @cached_property
    def pair_gains(self) -> npt.NDArray[np.float64]:
        """The information of each pair of attributes beyond the sum of the two, shape (M, T, 1 +
        K).

        Raises
        ------
        InternalError
            The tables of pairs were not filled in.
        """
        if self.tables_of_pairs is None:
            raise InternalError("The tables of pairs by part were not filled in.")
        return self.tables_of_pairs()

    @property
    def in_order(self) -> OrderedCounts:
        """The counts with levels in the order of their values."""
        if self.order is not None:
            return self.order
        unordered = [False] * self.attributes
        return OrderedCounts(self.counted, self.joint, self.offsets, unordered)

    @property
    def losses(self) -> npt.NDArray[np.float64]:
        """The loss of a held-out trace because values share a level; see `pooled_losses`."""
        return np.zeros(len(UNPOOLED)) if self.pooled is None else self.pooled

    def extended(self, **more: Any) -> Cooccurrence:
        """Return the same counts with more fields filled in; results that were computed from
        them are kept.
        """
        other = replace(self, **more)
        names = ("total", "class_totals")
        other.__dict__.update({n: self.__dict__[n] for n in names if n in self.__dict__})
        known = self._remembered
        other._remembered.update({k: known[k] for k in ("fit", "traces") if k in known})
        return other

    def lacks(self, needs: Collection[Need]) -> list[Need]:
        """Return which of `needs` are not filled in."""
        filled = {
            Need.PAIRS: self.pairs is not None,
            Need.ORDER: True,
            Need.POOLED: True,
            Need.PARTS: self.parts is not None,
        }
        return [need for need in needs if not filled[need]]

    @cached_property
    def class_totals(self) -> Numbers:
        """Rows per class, shape (C,), as the first attribute counts them."""
        first = int(self.offsets[1]) if self.attributes else 0
        totals: Numbers = self.joint[:first].sum(axis=0)
        return totals
