"""Second-order counts of one configuration by fold, and the counts outside of each fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from aegis.errors import InternalError

Floats = npt.NDArray[np.float64]

OWN_COVARIANCES = 16
"""Classes told from the rest up to which each of them has a covariance within: more share one."""
_ROUNDING = 1e-13
"""Part of two means up to which their difference is rounding."""


class ClassCounts:
    """Co-occurrence of levels by fold, with few classes in memory at a time.

    Parameters
    ----------
    count
        Returns the counts of some neighbouring classes, shape (K, c, q, d), or of all rows, c = 1.
    classes
        C, the number of classes.
    at_once
        How many classes are counted at once, at least 1.
    """

    def __init__(self, count: Callable[[slice | None], Floats], classes: int, at_once: int) -> None:
        self._count = count
        self.classes = classes
        self._at_once = at_once
        self._known: tuple[int, Floats] | None = None

    @classmethod
    def of(cls, total: Floats) -> ClassCounts:
        """Return the counts of all classes, shape (K, C, q, d), that are in memory already."""

        def count(some: slice | None) -> Floats:
            return total.sum(axis=1, keepdims=True) if some is None else total[:, some]

        return cls(count, total.shape[1], max(total.shape[1], 1))

    def of_class(self, own: int) -> Floats:
        """Return the counts of one class, shape (K, q, d): the quickest in ascending order."""
        start = own - own % self._at_once
        if self._known is None or self._known[0] != start:
            self._known = None  # so that its memory is free before the next classes are counted
            self._known = start, self._count(slice(start, start + self._at_once))
        return self._known[1][:, own - start]

    @cached_property
    def every(self) -> Floats:
        """The counts of all classes together, shape (K, q, d)."""
        return self._count(None)[:, 0]

    @property
    def whole(self) -> Floats:
        """The counts of all classes, shape (K, C, q, d)."""
        return np.stack([self.of_class(own) for own in range(self.classes)], axis=1)


class Countable(Protocol):
    """Counts by part and class, in one piece or with levels that are common to many."""

    @property
    def rows(self) -> Floats:
        """Rows per part and class, shape (K, C)."""

    @property
    def joint(self) -> Floats:
        """Rows per part, class and level, shape (K, C, d)."""

    def square(self, own: int | None) -> Square:
        """Return the co-occurrence of levels of one class, or of all."""


class Square(NamedTuple):
    """Co-occurrence of d levels by fold for some of the rows; c of the levels are shared by many
    configurations.

    Attributes
    ----------
    corner
        Of the common levels, which come first, shape (K, c, c); c may be 0.
    border
        Of the other levels with all, shape (K, d - c, d).
    """

    corner: Floats
    border: Floats

    def less(self, other: Square) -> Square:
        """Return the counts of the rows that are not in `other`."""
        return Square(self.corner - other.corner, self.border - other.border)

    def diagonal(self) -> Floats:
        """Return the counts of each level with itself, shape (K, d)."""
        first = self.corner.shape[-1]
        parts = self.corner, self.border[..., first:]
        return np.concatenate([np.diagonal(own, axis1=1, axis2=2) for own in parts], axis=1)

    def times(self, across: Floats) -> Floats:
        """Return directions, shape (K, n, d), times the counts, shape (K, n, d)."""
        first = self.corner.shape[-1]
        products: Floats = across[..., first:] @ self.border
        if first:
            products[..., :first] += across[..., :first] @ self.corner
        return products

    def of_part(self, part: int, *, below: bool) -> Floats:
        """Return the counts of one part in one piece, symmetric, shape (d, d)."""
        first, levels = self.corner.shape[-1], self.border.shape[-1]
        total = np.zeros((levels, levels))
        total[:first, :first] = self.corner[part]
        total[first:] = self.border[part]
        return total + np.tril(total, -1).T if below else total


class Side(NamedTuple):
    """The rows of one class, or all others, by part.

    Attributes
    ----------
    rows
        Shape (K,).
    joint
        Rows by level, shape (K, d).
    square
        Co-occurrence of the levels.
    """

    rows: Floats
    joint: Floats
    square: Square

    def less(self, other: Side) -> Side:
        """Return the rows that are not among `other`."""
        return Side(
            self.rows - other.rows, self.joint - other.joint, self.square.less(other.square)
        )

    def products(self, across: Floats, *, below: bool) -> Floats:
        """Return directions, shape (K, n, d), times the co-occurrence of levels, shape (K, n, d).

        Where what is above the diagonal is left out, so is half of the diagonal: the product with the
        directions once more, and the same turned round, add up to what all of it gives.
        """
        products = self.square.times(across)
        if below:
            products -= 0.5 * self.square.diagonal()[:, None] * across
        return products


class Response(NamedTuple):
    """Sums of a numeric label by part, less a constant near its mean.

    Attributes
    ----------
    sums
        Over the rows that show what is counted, shape (K, d).
    total, squares
        Over all rows, of the label and of its square, shape (K,).
    """

    sums: Floats
    total: Floats
    squares: Floats


class ShownLevels(NamedTuple):
    """The columns that one attribute contributes to a score: levels, or a few numbers that depend
    on the level.

    Attributes
    ----------
    joint
        Rows by part, class and level, shape (K, C, L).
    told
        What is shown of each level, shape (L, d); None if it is the level itself.
    """

    joint: Floats
    told: Floats | None = None

    @property
    def matrix(self) -> Floats:
        """The columns for each level, shape (L, d)."""
        return np.eye(self.joint.shape[2]) if self.told is None else self.told


@dataclass(frozen=True, eq=False)
class PartCounts:
    """Second-order counts of one configuration by part of the rows and class.

    What is counted are levels, each shown by a row or not. Thresholds and numbers are sums of levels
    with weights, and their counts are the same sums.

    Attributes
    ----------
    rows
        Rows per part and class, shape (K, C).
    joint
        Rows per part, class and level, shape (K, C, d).
    total
        Co-occurrence of levels per part and class, shape (K, C, d, d), symmetric, or what counts it.
    chance
        As of `Cooccurrence`, shape (d, k): how much more the counts of drawn rows vary than the
        expected ones that are given. None if the counts are of rows.
    below
        Whether `total` holds what is on the diagonal and below it alone.
    outside
        `OtherParts` of these rows, where it is known already: levels that all rows show, or none,
        are then left out already, too.
    shown
        What each attribute shows, d columns together; None if that is not known.
    response
        Sums of a numeric label, whose rows are of one class; None of a label of classes.
    """

    rows: Floats
    joint: Floats
    total: Floats | ClassCounts
    chance: Floats | None = None
    below: bool = False
    outside: OtherParts | None = None
    shown: Sequence[ShownLevels] | None = None
    response: Response | None = None

    def __post_init__(self) -> None:
        levels = self.joint.shape[-1]
        shape = (*self.joint.shape, levels)
        if (
            self.joint.shape[:2] != self.rows.shape
            or (isinstance(self.total, np.ndarray) and self.total.shape != shape)
            or (self.chance is not None and len(self.chance) != levels)
        ):
            raise InternalError(
                f"Counts by part: rows {self.rows.shape}, joint {self.joint.shape}, total {shape}."
            )

    @cached_property
    def by_class(self) -> ClassCounts:
        """`total`, one class at a time."""
        return ClassCounts.of(self.total) if isinstance(self.total, np.ndarray) else self.total

    def square(self, own: int | None) -> Square:
        """Return the co-occurrence of levels of one class, or of all."""
        border = self.by_class.every if own is None else self.by_class.of_class(own)
        return Square(np.zeros((len(border), 0, 0)), border)


def side(counts: Countable, own: int | None) -> Side:
    """Return the rows of one class, or of all."""
    if own is None:
        return Side(counts.rows.sum(axis=1), counts.joint.sum(axis=1), counts.square(None))
    return Side(counts.rows[:, own], counts.joint[:, own], counts.square(own))


def against_the_rest(counts: Countable, told: npt.NDArray[np.int64]) -> Iterator[tuple[Side, Side]]:
    """Yield for each target class the rows of all other classes and its own, few classes in
    memory at a time.
    """
    if not len(told):
        return
    if counts.rows.shape[1] == 2:
        yield side(counts, 0), side(counts, 1)
        return
    every = side(counts, None)
    for target in told.tolist():
        own = side(counts, target)
        yield every.less(own), own


@dataclass(frozen=True, eq=False)
class OtherParts:
    """The rows outside of each fold, with one target class against all others at a time.

    Attributes
    ----------
    told
        As of `Scores`, shape (T,).
    rows
        Rows of the rest and of the class outside of each part, shape (K, T, 2).
    scored
        Whether both have rows there, shape (K, T).
    weights
        One over these rows for each part of the counts, shape (K, T, 2, K).
    """

    told: npt.NDArray[np.int64]
    rows: Floats
    scored: npt.NDArray[np.bool_]
    weights: Floats

    @classmethod
    def of(cls, rows: Floats) -> OtherParts:
        """Return the rows outside of each fold, from the rows per fold and class, shape (K, C)."""
        told, scored = told_apart(rows)
        outside = np.einsum("kc,tsc->kts", rows.sum(axis=0) - rows, sides_of(told, rows.shape[1]))
        share = np.divide(scored[..., None], outside, out=np.zeros_like(outside), where=outside > 0)
        return cls(
            told, outside, scored, share[..., None] * (1.0 - np.eye(len(rows)))[:, None, None]
        )

    def means(self, joint: Floats) -> Floats:
        """Return the means of level indicators of the rest and of the class, shape (K, T, 2, d).

        They are equal where they differ by rounding, as those of noise that hides the class.
        """
        by_side = np.tensordot(joint, sides_of(self.told, joint.shape[1]), (1, 2))  # (K, d, T, 2)
        means: Floats = np.einsum("ktsj,jdts->ktsd", self.weights, by_side, optimize=True)
        rest, own = means[:, :, 0], means[:, :, 1]
        own[...] = np.where(
            np.abs(own - rest) <= _ROUNDING * (np.abs(own) + np.abs(rest)), rest, own
        )
        return means

    @property
    def pooled(self) -> bool:
        """Whether all target classes share one covariance."""
        return len(self.told) > OWN_COVARIANCES

    def targets_of(self, place: int) -> slice:
        """Return the places of the target classes that share a covariance with one of them."""
        return slice(0, len(self.told)) if self.pooled else slice(place, place + 1)

    @property
    def factors(self) -> int:
        """How many covariances there are for each fold."""
        return len(self.scored) * (1 if self.pooled else len(self.told))

    def scored_in(self, targets: slice) -> list[int]:
        """Return the folds that have a direction for one of these target classes."""
        return np.flatnonzero(self.scored[:, targets].any(axis=1)).tolist()

    def ridges(self, part: int, penalties: Sequence[float]) -> list[float]:
        """Return the ridge penalties, given in rows, in the unit of the covariance outside a
        fold.
        """
        rows = self.rows[part, 0].sum()
        return [penalty / rows for penalty in penalties]

    def within(
        self, counted: Sequence[Floats], means: Floats, targets: slice, first: int = 0
    ) -> Floats:
        """Return a covariance within classes outside of each part, shape (K, d - first, d).

        For one class told from the rest both weigh alike. For several classes it is the covariance of
        all rows: that is p S_1 + q S_0 by the shares of rows, and p q times the square of the gap
        between means, which changes no direction but its length. Right where the counts are: on the
        diagonal and below it, or everywhere.

        Parameters
        ----------
        counted
            Co-occurrence by part of the levels from `first` on with all, of all other classes and of
            the class, or of all rows, each of shape (K, d - first, d).
        means
            Of all levels, shape (K, T, 2, d).
        targets
            The places of the classes among those told from the rest, as of `targets`.
        first
            The level that comes first in the counts.
        """
        if len(counted) == 2:
            weights = 0.5 * self.weights[:, targets.start]  # (K, 2, K)
            middle = 0.5 * means[:, targets.start], means[:, targets.start]
        else:
            seen = np.arange(len(self.scored)), self.scored.argmax(axis=1)
            share = self.rows[seen] / np.maximum(self.rows[seen].sum(axis=1, keepdims=True), 1.0)
            weights = self.weights[seen][:, :1] * share[:, :1, None]  # 1 / n
            mean = share[:, None] @ means[seen]  # (K, 1, d)
            middle = mean, mean
        within = np.zeros(counted[0].shape)
        flat = within.reshape(len(within), -1)
        for place, own in enumerate(counted):
            flat += weights[:, place] @ own.reshape(len(own), -1)
        within -= middle[0][..., first:].swapaxes(1, 2) @ middle[1]
        return within


def sides_of(told: npt.NDArray[np.int64], classes: int) -> Floats:
    """Return the classes of the rest and of each target class as 0 and 1, shape (T, 2, C)."""
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
    total = counts.by_class.whole[:, :, varying[:, None], varying]
    shown = None
    if counts.shown is not None:
        ends = np.cumsum([own.matrix.shape[1] for own in counts.shown])[:-1]
        varies = np.split(np.isin(np.arange(len(count)), varying), ends)
        shown = [
            ShownLevels(own.joint, own.matrix[:, there])
            for own, there in zip(counts.shown, varies, strict=True)
        ]
    part = PartCounts(
        counts.rows, counts.joint[..., varying], total, chance, counts.below, shown=shown
    )
    return part, varying


def later(values: Floats, axis: int) -> Floats:
    """Return the sums of each entry and all later ones along an axis."""
    turned: Floats = np.flip(np.cumsum(np.flip(values, axis), axis), axis)
    return turned
