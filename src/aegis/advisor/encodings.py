"""Masked attributes as numbers for linear scores, under an encoding."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aegis.advisor.grouping import Levels
from aegis.measures.by_fold import ShownLevels, later
from aegis.summary import Candidate

Floats = npt.NDArray[np.float64]


class CodedMasks(NamedTuple):
    """A configuration under one coding.

    Attributes
    ----------
    levels
        Per attribute the level of each atom, shape (A_i,), or P(level | atom), shape (A_i, L_i).
    keys
        Equal keys of an attribute have equal levels and equal `numbers`.
    numbers
        Per attribute the number of each of its levels, shape (L_i,), NaN where it is missing: these
        are in order, and thresholds are counted in place of them. None if there is no order.
    linear
        Whether the numbers are counted in place of their thresholds.
    """

    levels: Sequence[Levels]
    keys: Sequence[Hashable]
    numbers: Sequence[Floats | None]
    linear: bool = False


class Codings(NamedTuple):
    """A configuration under each coding; levels without an order are the same under all.

    Attributes
    ----------
    names
        Levels one by one.
    thresholds
        What has an order as its thresholds.
    numbers
        What has an order as the number itself.
    """

    names: CodedMasks
    thresholds: CodedMasks
    numbers: CodedMasks


def codings(
    candidates: Sequence[Candidate],
    levels: Sequence[Levels],
    orders: Sequence[tuple[Levels, Floats | None]],
) -> Codings:
    """Return a configuration under each coding.

    Parameters
    ----------
    candidates
        What masks each attribute.
    levels
        As of `CodedMasks`.
    orders
        Per attribute its levels in order and the number of each, or its levels and None.
    """
    ranges, numbers = [level for level, _ in orders], [known for _, known in orders]
    ordered = [(own, known is not None) for own, known in zip(candidates, numbers, strict=True)]
    thresholds = CodedMasks(ranges, ordered, numbers)
    names = CodedMasks(levels, [(own, False) for own in candidates], [None] * len(candidates))
    return Codings(names, thresholds, thresholds._replace(linear=True))


def mean_numbers(level: Levels, count: Floats, total: Floats) -> Floats:
    """Return the mean of the numbers of each level, shape (L,), NaN where all are missing.

    Parameters
    ----------
    level
        The level of each atom, shape (A,), or P(level | atom), shape (A, L).
    count, total
        How many numbers each atom holds, and their sum, shape (A,).
    """
    told = indicators(level)
    held, summed = count @ told, total @ told
    return np.divide(summed, held, out=np.full_like(summed, np.nan), where=held > 0)


def steps_of(numbers: Floats, rows: Floats) -> Floats:
    """Return how much each level adds to the number of the level before it, shape (L, 1 or 2).

    The first adds nothing, since the start of the numbers does not matter. They are scaled to a variance of
    1, so that a penalty means the same for each attribute. A missing number counts as the mean of the others; a
    second column says that it is missing.

    Parameters
    ----------
    numbers
        Number of each level, NaN where it is missing, shape (L,).
    rows
        Rows of each level, shape (L,).

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
    """One attribute under one mask, as an encoding shows it; levels without information are left
    out.

    Attributes
    ----------
    key
        Its place in the summary and what represents the mask and the coding.
    level
        The level of each atom, or what a noise mask shows of it.
    joint
        Rows per part, class and what is shown, shape (K, C, d).
    chance
        As of `PartCounts`, shape (d, k).
    there
        Places of the levels that rows show among those of the mask, shape (L,).
    places
        Places of what is shown among the levels of the mask, shape (d,).
    counted_by
        Number of levels that rows are counted by: the atoms of a noise mask.
    ordered
        Whether thresholds are shown in place of levels.
    by_level
        Rows by level, and what the coding shows of each.
    steps
        Of a number: what its thresholds add to it, shape (t, d), and these thresholds.
    """

    key: tuple[int, Hashable]
    level: Levels
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
        """Return the number whose thresholds are counted, from the numbers of all levels, (L,)."""
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
        """The attribute as its thresholds if it is a number; otherwise the attribute itself."""
        return self if self.steps is None else self.steps[1]

    def square(self, some: slice | None) -> Floats:
        """Return the co-occurrence with itself, below and on the diagonal, (K, c, d, d).

        In some classes, or in all together: c is then 1.
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
        """Return a block of levels as the coding shows them along an axis."""
        if self.ordered:
            block = later(block, axis)
        whole = len(self.places) == block.shape[axis]
        return block if whole else block.take(self.places, axis)


def _in_classes(joint: Floats, some: slice | None) -> Floats:
    """Return some classes of a joint (K, C, L), or all of them added up as one."""
    return joint.sum(axis=1, keepdims=True) if some is None else joint[:, some]


def indicators(level: Levels) -> Floats:
    """Return the 0/1 matrix of each atom's level, shape (A, L), or the channel itself."""
    if level.ndim == 2:
        return level
    return np.eye(int(level.max(initial=0)) + 1)[level]
