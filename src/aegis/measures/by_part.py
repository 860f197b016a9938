"""Second-order counts of one configuration by part of the rows, and what is outside of each part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aegis.errors import InternalError

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PartCounts:
    """Second-order counts of one configuration by part of the rows and class.

    Attributes
    ----------
    rows
        Rows per part and class, shape (K, C).
    joint
        Rows per part, class and level, shape (K, C, d).
    total
        Co-occurrence of levels per part and class, shape (K, C, d, d), symmetric.
    chance
        As of `Cooccurrence`, shape (d, k): how much more the counts of drawn rows vary than the
        expected ones that are given. None where the counts are of rows.
    below
        Whether `total` holds what is on the diagonal and below it alone.
    outside
        `OtherParts` of these rows, where it is known already.
    bounds
        Where the levels of each attribute start, shape (m + 1,), where each row shows one of each.
    """

    rows: Floats
    joint: Floats
    total: Floats
    chance: Floats | None = None
    below: bool = False
    outside: OtherParts | None = None
    bounds: npt.NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        levels = self.joint.shape[-1]
        if (
            self.joint.shape[:2] != self.rows.shape
            or self.total.shape != (*self.joint.shape, levels)
            or (self.chance is not None and len(self.chance) != levels)
        ):
            raise InternalError(
                f"Counts by part of shapes {self.rows.shape}, {self.joint.shape}, {self.total.shape}."
            )

    @property
    def symmetric(self) -> PartCounts:
        """The same counts, also above the diagonal."""
        if not self.below:
            return self
        total = self.total + self.total.swapaxes(2, 3)
        diagonal = np.arange(total.shape[-1])
        total[..., diagonal, diagonal] *= 0.5
        return PartCounts(self.rows, self.joint, total, self.chance, bounds=self.bounds)

    def products(self, across: Floats) -> Floats:
        """Return directions, shape (K, 1, n, d), times `total`, shape (K, C, n, d).

        Where what is above the diagonal is left out, so is half of the diagonal: the product with the
        directions once more, and the same turned round, add up to what all of it gives.
        """
        products: Floats = across @ self.total
        if self.below:
            products -= 0.5 * self.joint[:, :, None] * across
        return products

    @property
    def told_apart(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """The classes told from the rest, (T,), and whether each part is scored for them, (K, T).

        Of two classes the second; all that have rows otherwise. A part outside of which a class, or
        the rest, has no row is not scored.
        """
        return told_apart(self.rows)


@dataclass(frozen=True, eq=False)
class OtherParts:
    """The rows outside of each part, class by class told from the rest.

    Attributes
    ----------
    told
        As of `Scores`, shape (T,).
    rows
        Rows of the rest and of the class outside of each part, shape (K, T, 2).
    scored
        Whether both have rows there, shape (K, T).
    weights
        One over these rows for each part and class of the counts, shape (K, T, 2, K, C).
    """

    told: npt.NDArray[np.int64]
    rows: Floats
    scored: npt.NDArray[np.bool_]
    weights: Floats

    @classmethod
    def of(cls, rows: Floats) -> OtherParts:
        """Return what rows per part and class, shape (K, C), leave outside of each part."""
        told, scored = told_apart(rows)
        parts, classes = rows.shape
        sides = sides_of(told, classes)
        outside = np.einsum("kc,tsc->kts", rows.sum(axis=0) - rows, sides)
        share = np.divide(scored[..., None], outside, out=np.zeros_like(outside), where=outside > 0)
        weights = np.einsum("kts,kj,tsc->ktsjc", share, 1.0 - np.eye(parts), sides)
        return cls(told, outside, scored, weights)

    def means(self, joint: Floats) -> Floats:
        """Return the means of level indicators of the rest and of the class, shape (K, T, 2, d)."""
        parts, classes, levels = joint.shape
        flat = self.weights.reshape(self.rows.size, parts * classes)
        sums = flat @ joint.reshape(parts * classes, levels)
        return sums.reshape(*self.rows.shape, levels)

    def ridges(self, part: int, target: int, penalties: Sequence[float]) -> list[float]:
        """Return what penalties, in rows, come to beside a covariance of the rows outside a part."""
        rows = self.rows[part, target].sum()
        return [penalty / rows for penalty in penalties]

    def within(self, total: Floats, means: Floats, target: int, first: int = 0) -> Floats:
        """Return the covariance within classes for one class told, shape (K, d - first, d).

        Both weigh alike. Right where `total` is: on the diagonal and below it, or everywhere.

        Parameters
        ----------
        total
            Co-occurrence of the levels from `first` on with all, per part and class, shape
            (K, C, d - first, d).
        means
            Of all levels, shape (K, T, 2, d).
        target
            The place of the class among those told from the rest.
        first
            The level that comes first in `total`.
        """
        parts, classes, *shape = total.shape
        halves = 0.5 * self.weights[:, target].sum(axis=1)
        flat = halves.reshape(parts, -1) @ total.reshape(parts * classes, -1)
        within: Floats = flat.reshape(parts, *shape)
        own = means[:, target]
        within -= (0.5 * own[..., first:].swapaxes(1, 2)) @ own
        return within


def sides_of(told: npt.NDArray[np.int64], classes: int) -> Floats:
    """Return the classes of the rest and of each class told as 0 and 1, shape (T, 2, C)."""
    sides = np.zeros((len(told), 2, classes))
    sides[:, 0] = 1.0
    sides[np.arange(len(told)), :, told] = [0.0, 1.0]
    return sides


def told_apart(rows: Floats) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return `PartCounts.told_apart` of rows per part and class, shape (K, C).

    >>> import numpy as np
    >>> told, scored = told_apart(np.array([[3.0, 1.0], [4.0, 0.0]]))
    >>> told.tolist(), scored.tolist()
    ([1], [[False], [True]])
    """
    seen = np.flatnonzero(rows.sum(axis=0) > 0)
    told = seen[:0] if len(seen) < 2 else seen[1:] if len(seen) == 2 else seen
    others = rows.sum(axis=0) - rows
    own = others[:, told]
    return told, (own >= 0.5) & (others.sum(axis=1, keepdims=True) - own >= 0.5)


def varying_only(counts: PartCounts) -> tuple[PartCounts, npt.NDArray[np.intp]]:
    """Return the counts of levels that some rows show and others do not, and their places, (d,)."""
    count = counts.joint.sum(axis=(0, 1))
    varying = np.flatnonzero((count > 0) & (count < counts.rows.sum()))
    if len(varying) == len(count):
        return counts, varying
    chance = None if counts.chance is None else counts.chance[varying]
    total = counts.total[:, :, varying[:, None], varying]
    bounds = None if counts.bounds is None else np.searchsorted(varying, counts.bounds)
    part = PartCounts(
        counts.rows,
        counts.joint[..., varying],
        total,
        chance,
        counts.below,
        bounds=bounds,
    )
    return part, varying


def in_thresholds(
    counts: PartCounts, offsets: npt.NDArray[np.int64], ordered: Sequence[bool]
) -> PartCounts:
    """Return counts with thresholds for the levels of ordered attributes, as `thresholds` does.

    The indicator of level t becomes that of t or a later level, so that the coefficient of a
    threshold is the step between neighbours. Levels that no row shows are left out: two thresholds
    with nothing between them are one.

    Parameters
    ----------
    counts
        Levels in the order of their values.
    offsets
        Where each attribute's levels start, shape (m + 1,).
    ordered
        Per attribute whether its levels have an order.
    """
    shown = np.flatnonzero(counts.joint.sum(axis=(0, 1)) > 0)
    joint, total = counts.joint[..., shown], counts.total[:, :, shown[:, None], shown]
    chance = None if counts.chance is None else counts.chance[shown]
    bounds = np.searchsorted(shown, offsets)
    for place, known in enumerate(ordered):
        if known:
            own = slice(int(bounds[place]), int(bounds[place + 1]))
            joint[:, :, own] = later(joint[:, :, own], 2)
            total[:, :, own] = later(total[:, :, own], 2)
            total[:, :, :, own] = later(total[:, :, :, own], 3)
            if chance is not None:
                chance[own] = later(chance[own], 0)
    return PartCounts(counts.rows, joint, total, chance)


def later(values: Floats, axis: int) -> Floats:
    """Return the sums of each entry and all later ones along an axis."""
    turned: Floats = np.flip(np.cumsum(np.flip(values, axis), axis), axis)
    return turned
