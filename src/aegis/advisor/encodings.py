"""Encode the levels of masked attributes as indicators, thresholds or numbers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aegis.arrays import Array, Floats
from aegis.measures.by_fold import ShownLevels, later
from aegis.summary import Candidate


class CodedMasks(NamedTuple):
    """The masked attributes of a configuration, all in one encoding. A level is a masked value;
    rare masked values together are one level.

    Attributes
    ----------
    levels
        For each attribute i, the level of each of its A_i atoms (sets of values that all candidates
        treat in the same way), shape (A_i,). For a noise mask, the probability of each of L_i
        levels for each atom, shape (A_i, L_i).
    keys
        One key per attribute. If two keys of an attribute are equal, its levels and `numbers` are
        equal.
    numbers
        For each attribute, the number of each level, shape (L_i,), with NaN for missing numbers;
        None if the levels have no order. Ordered levels are encoded as thresholds.
    linear
        Whether ordered levels are encoded as numbers instead of thresholds.
    """

    levels: Sequence[Array]
    keys: Sequence[Hashable]
    numbers: Sequence[Floats | None]
    linear: bool = False


class Codings(NamedTuple):
    """The masked attributes of a configuration in three encodings. Masked values without an order
    are encoded as indicators in all of them.

    Attributes
    ----------
    names
        Each masked value is an indicator (one-hot).
    thresholds
        Attributes with an order are encoded as thresholds.
    numbers
        Attributes with an order are encoded as numbers.
    """

    names: CodedMasks
    thresholds: CodedMasks
    numbers: CodedMasks


def codings(
    candidates: Sequence[Candidate],
    levels: Sequence[Array],
    orders: Sequence[tuple[Array, Floats | None]],
) -> Codings:
    """Return the masked attributes of a configuration in three encodings: as indicators, thresholds
    and numbers.

    An atom is a set of values that all candidates of an attribute treat in the same way. A level is
    a masked value; rare masked values together are one level.

    Parameters
    ----------
    candidates
        The candidate of each attribute.
    levels
        For each attribute, the level of each of its A atoms, shape (A,). For a noise mask, the
        probability of each of L levels for each atom, shape (A, L).
    orders
        For each attribute, such levels in their natural order, with the number of each level, shape
        (L,). If the attribute has no order, the second part is None.
    """
    ranges, numbers = [level for level, _ in orders], [known for _, known in orders]
    ordered = [(own, known is not None) for own, known in zip(candidates, numbers, strict=True)]
    thresholds = CodedMasks(ranges, ordered, numbers)
    names = CodedMasks(levels, [(own, False) for own in candidates], [None] * len(candidates))
    return Codings(names, thresholds, thresholds._replace(linear=True))


def mean_numbers(level: Array, count: Floats, total: Floats) -> Floats:
    """Return, for a numeric attribute, the mean of the original numbers in each of the L levels
    (masked values), shape (L,). The mean is NaN if all numbers of a level are missing.

    Parameters
    ----------
    level
        The level of each of A atoms (sets of original values), shape (A,). For a noise mask, the
        probability of each level for each atom, shape (A, L).
    count, total
        Count and sum of the numbers in each atom, shape (A,).
    """
    told = indicators(level)
    held, summed = count @ told, total @ told
    return np.divide(summed, held, out=np.full_like(summed, np.nan), where=held > 0)


def steps_of(numbers: Floats, rows: Floats) -> Floats:
    """Return the steps from which thresholds become a number: how much the number of each level
    (masked value) exceeds the number of the level before, shape (L, 1).

    The first difference is 0, because the origin does not matter. Numbers are scaled to variance 1,
    so that a penalty means the same for each attribute. A missing number counts as the mean of all
    others. Then a second column has the steps of an indicator that the number is missing, shape (L,
    2).

    Parameters
    ----------
    numbers
        Number of each level, NaN where it is missing, shape (L,).
    rows
        Number of rows that have each of L levels, shape (L,).

    Examples
    --------
    >>> import numpy as np
    >>> steps_of(np.array([0.0, 2.0, np.nan]), np.array([5.0, 5.0, 2.0])).tolist()
    [[0.0, 0.0], [2.0, 0.0], [-1.0, 1.0]]
    """
    missing = np.isnan(numbers)
    known = np.where(missing, 0.0, rows) / max(float(rows[~missing].sum()), 1e-300)
    away = np.where(missing, 0.0, numbers - known @ np.nan_to_num(numbers))
    deviation = float(np.sqrt(known @ away**2))
    columns = [away / deviation] if deviation > 0 else []
    columns += [missing.astype(np.float64)] if missing.any() and not missing.all() else []
    shown = np.array(columns).reshape(len(columns), len(numbers)).T
    return np.diff(shown, axis=0, prepend=shown[:1])


@dataclass(frozen=True, eq=False)
class CodedAttribute:
    """One attribute under one mask, in one encoding. Levels (masked values) that no row has are
    left out.

    Attributes
    ----------
    key
        Index of the attribute in the summary, and a key of its mask and encoding.
    level
        The level of each atom (set of original values); for a noise mask, the probability of each
        level for each atom.
    joint
        Number of rows by fold, class and column of the encoding, shape (K, C, d), for K folds, C
        classes and d columns.
    chance
        For a noise mask, a factor of the variance that expected counts lack, because they come from
        no drawn rows, shape (d, k); else None.
    there
        Indices of the mask's levels that occur in the rows, shape (L,).
    places
        Index of the mask's level for each column of the encoding, shape (d,).
    counted_by
        Number of different levels in the counts; for a noise mask, the number of atoms.
    ordered
        Whether the columns are thresholds instead of indicators of levels.
    by_level
        The number of rows by level, and the code of each level.
    steps
        If the attribute is encoded as a number: the step at each of t thresholds, shape (t, d), and
        the attribute encoded as thresholds. Else None.
    """

    key: tuple[int, Hashable]
    level: Array
    joint: Floats
    chance: Floats | None
    there: npt.NDArray[np.intp]
    places: npt.NDArray[np.intp]
    counted_by: int
    ordered: bool
    by_level: ShownLevels
    steps: tuple[Floats, CodedAttribute] | None = None

    @classmethod
    def number(cls, of: CodedAttribute, numbers: Floats) -> CodedAttribute:
        """Encode an attribute as a number.

        `of` is the attribute encoded as thresholds. `numbers` has the number of each of its L
        levels (masked values), shape (L,), with NaN for missing numbers.
        """
        by_level = of.by_level
        steps = steps_of(numbers[of.there], by_level.joint.sum(axis=(0, 1)))
        steps = steps[np.searchsorted(of.there, of.places)]
        return replace(
            of,
            key=(of.key[0], (of.key[1], "number")),
            joint=of.joint @ steps,
            chance=None if of.chance is None else steps.T @ of.chance,
            places=np.arange(steps.shape[1]),
            by_level=ShownLevels(by_level.joint, by_level.matrix @ steps),
            steps=(steps, of),
        )

    @property
    def thresholds(self) -> CodedAttribute:
        """The attribute encoded as thresholds, if this encoding is a number that was computed from
        them. Otherwise, the attribute itself.
        """
        return self if self.steps is None else self.steps[1]

    def square(self, some: slice | None) -> Floats:
        """Return how many rows have each pair of the attribute's d columns, weighted by their
        codes, as a lower triangle by fold and class, shape (K, c, d, d) for K folds.

        `some` is a range of c label classes. If it is None, all classes are counted together (c =
        1).
        """
        if self.steps is None:
            # No row shows two levels; of two thresholds it shows the later one where it shows both.
            levels = np.arange(self.joint.shape[2])
            shown = np.tri(len(levels)) if self.ordered else np.eye(len(levels))
            return _in_classes(self.joint, some)[..., levels[:, None]] * shown
        told = self.by_level.matrix
        weighted = _in_classes(self.by_level.joint, some)[:, :, None] * told.T  # (K, c, d, L)
        return np.tril(weighted @ told)

    def shown(self, block: Floats, axis: int) -> Floats:
        """Convert counts by level (masked value) to counts by column of the encoding. `axis` is the
        axis of `block` that has the levels.
        """
        if self.ordered:
            block = later(block, axis)
        whole = len(self.places) == block.shape[axis]
        return block if whole else block.take(self.places, axis)


def _in_classes(joint: Floats, some: slice | None) -> Floats:
    """Return the counts in a range of classes (`some`). `joint` has counts by fold, class and level
    (masked value), shape (K, C, L). If `some` is None, return the sums over all classes, shape (K,
    1, L).
    """
    return joint.sum(axis=1, keepdims=True) if some is None else joint[:, some]


def indicators(level: Array) -> Floats:
    """Return which of L levels (masked values) each of A atoms (sets of original values) has, as 0
    and 1, shape (A, L). `level` has the level of each atom, shape (A,).

    For a noise mask, `level` already has the probability of each level for each atom, and is
    returned unchanged.
    """
    if level.ndim == 2:
        return level
    return np.eye(int(level.max(initial=0)) + 1)[level]
