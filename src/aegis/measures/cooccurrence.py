"""Second-order counts of one configuration: what measures of a whole configuration read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.errors import InternalError
from aegis.measures.held_out import UNPOOLED, held_out_traces
from aegis.measures.pillai import Numbers, PillaiFit, pillai_trace

Blocks = Callable[[int, int], npt.NDArray[Any]]
PairInformation = Callable[[int, int], float]


@dataclass(frozen=True, eq=False)
class OrderedCounts:
    """Second-order counts of one configuration whose levels stand in the order of their values.

    Attributes
    ----------
    total, joint, offsets
        As of `Cooccurrence`; the levels need not be the same ones, only the rows.
    ordered
        Per attribute whether its levels have an order, m in all.
    chance
        As of `Cooccurrence`.
    """

    total: Numbers
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
    total
        Co-occurrence over all classes, shape (d, d), symmetric. Its diagonal holds the counts of
        the levels; between levels of one attribute it is zero off the diagonal.
    offsets
        Shape (m + 1,), from 0 to d.
    blocks
        `blocks(i, j)` gives the counts by class of attributes i and j, shape (C, d_i, d_j).
    chance
        Where the counts are expected ones of rows yet to be drawn: B, shape (d, k). With a label
        that says nothing, the level by class counts of drawn rows vary by B B' (times the variance
        of a class) more than the expected ones do. So drawn rows fit a little better by chance,
        which is what corrected and held-out measures take off. None where the counts are of rows.
    pair_information
        Optional memory: `pair_information(i, j)` gives the corrected I(A_i, A_j; Y) in bits, as
        `pair_information` of this package computes it from a block. Pairs of masks recur in many
        configurations, so whoever scores many of them remembers the value under the two masks.
        It must not depend on the order of i and j.
    find_order
        Gives the same rows with levels in the order of their values, for measures that look at
        it. Without it no attribute is taken for ordered.
    find_losses
        Gives the sum over attributes of `pooled_losses`, for values that share a level. Without it
        no level is taken for shared.
    """

    n: float
    joint: Numbers
    total: Numbers
    offsets: npt.NDArray[np.int64]
    blocks: Blocks
    chance: npt.NDArray[np.float64] | None = None
    pair_information: PairInformation | None = None
    find_order: Callable[[], OrderedCounts] | None = None
    find_losses: Callable[[], npt.NDArray[np.float64]] | None = None

    def __post_init__(self) -> None:
        levels = len(self.joint)
        offsets = np.asarray(self.offsets)
        if self.joint.ndim != 2 or self.total.shape != (levels, levels):
            raise InternalError(
                f"Co-occurrence of shape {self.total.shape} beside a joint of {self.joint.shape}."
            )
        if offsets[0] != 0 or offsets[-1] != levels or (np.diff(offsets) < 1).any():
            raise InternalError(f"Offsets {offsets.tolist()} do not divide {levels} levels.")

    @classmethod
    def of(cls, by_class: Numbers, offsets: npt.ArrayLike) -> Cooccurrence:
        """Return the counts of a full stack of matrices, shape (C, d, d), one G_y per class."""
        bounds = np.asarray(offsets, dtype=np.int64)

        def blocks(i: int, j: int) -> npt.NDArray[Any]:
            rows, columns = slice(*bounds[i : i + 2]), slice(*bounds[j : j + 2])
            return by_class[:, rows, columns]

        joint = np.ascontiguousarray(np.diagonal(by_class, axis1=1, axis2=2).T)
        n = float(joint[: bounds[1]].sum()) if len(bounds) > 1 else 0.0
        return cls(n, joint, by_class.sum(axis=0), bounds, blocks)

    @property
    def attributes(self) -> int:
        """m, the number of attributes."""
        return len(self.offsets) - 1

    @cached_property
    def fit(self) -> PillaiFit:
        """Pillai's trace, its adjusted form and the rank, from one factorisation."""
        return pillai_trace(self.total, self.joint, self.n, self.offsets, self.chance)

    @cached_property
    def traces(self) -> npt.NDArray[np.float64]:
        """Held-out traces of the values at each penalty of `UNPOOLED`, for all that use them."""
        return held_out_traces(
            self.total, self.joint, self.class_totals, self.n, UNPOOLED, chance=self.chance
        )

    @cached_property
    def in_order(self) -> OrderedCounts:
        """The counts with levels in the order of their values."""
        if self.find_order is not None:
            return self.find_order()
        unordered = [False] * self.attributes
        return OrderedCounts(self.total, self.joint, self.offsets, unordered)

    @cached_property
    def losses(self) -> npt.NDArray[np.float64]:
        """What values that share a level take from a held-out trace; see `pooled_losses`."""
        if self.find_losses is not None:
            return self.find_losses()
        return np.zeros(len(UNPOOLED))

    @cached_property
    def class_totals(self) -> Numbers:
        """Rows per class, shape (C,), as the first attribute counts them."""
        first = int(self.offsets[1]) if self.attributes else 0
        totals: Numbers = self.joint[:first].sum(axis=0)
        return totals
