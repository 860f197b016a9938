"""Counts between what masks show, by part of the rows and class: blocks that configurations share.

A block holds two attributes under two masks. It recurs in every configuration with these two masks,
so it is counted once, from the cells of the summary that have rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.advisor.grouping import Levels, RememberedArrays, drawn_chance
from aegis.advisor.interactions import Interactions
from aegis.errors import PolicyError
from aegis.measures import PartCounts, in_thresholds
from aegis.measures.by_part import OtherParts, later, varying_only
from aegis.summary import Candidate, PairCounts

PARTS = 5
"""Parts of the rows: each is left out once; the summary's folds are dealt out to them."""

MOST_CLASSES = 100
"""Classes of a label up to which a merit is expected: its moments are of each three of them."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Attribute:
    """One attribute under one mask, as a coding shows it; levels that say nothing are left out.

    Attributes
    ----------
    key
        Its place in the summary and what stands for the mask and the coding.
    level
        The level of each atom, or what a noise mask shows of it.
    own
        Its counts alone, of what is shown.
    places
        Places of what is shown among the levels of the mask, shape (d,).
    counted_by
        Number of levels that rows are counted by: the atoms of a noise mask.
    ordered
        Whether thresholds are shown in place of levels.
    means
        `OtherParts.means` of what is shown, shape (K, T, 2, d).
    """

    key: tuple[int, Hashable]
    level: Levels
    own: PartCounts
    places: npt.NDArray[np.intp]
    counted_by: int
    ordered: bool
    means: Floats

    def shown(self, block: Floats, axis: int) -> Floats:
        """Return a block of levels as the coding shows them along an axis."""
        if self.ordered:
            block = later(block, axis)
        whole = len(self.places) == block.shape[axis]
        return block if whole else block.take(self.places, axis)


class PartBlocks:
    """Counts by part for many configurations of the same rows.

    Parameters
    ----------
    pairs
        Co-occurrence counts between atoms, with folds.
    """

    def __init__(self, pairs: PairCounts) -> None:
        if pairs.folds is None:
            raise ValueError("The counts have no folds.")
        self._pairs = pairs
        self._folds = pairs.folds
        self.parts = min(PARTS, pairs.folds.size)
        self._blocks = RememberedArrays()
        self._placed = RememberedArrays()
        self._cells: dict[tuple[int, int], tuple[npt.NDArray[Any], ...]] = {}
        self._attributes: dict[Hashable, _Attribute] = {}
        self._rows: dict[Candidate | None, tuple[Floats, OtherParts]] = {}

    def counts(
        self,
        which: Sequence[int],
        levels: Sequence[Levels],
        keys: Sequence[Hashable],
        label: Candidate | None,
        ordered: Sequence[bool] | None = None,
    ) -> PartCounts:
        """Return the counts of one configuration, less the levels that all rows show, or none.

        Parameters
        ----------
        which
            The attributes, by their place in the summary.
        levels
            Per attribute the level of each atom, shape (A_i,), or P(level | atom), shape (A_i, L_i).
        keys
            Equal keys of an attribute stand for equal levels, and for equal `ordered`.
        label
            What groups the classes, where they are masked.
        ordered
            Per attribute whether thresholds are counted in place of its levels, as `in_thresholds`
            does; of none without it.
        """
        steps = [False] * len(levels) if ordered is None else ordered
        shown = [
            self._attribute((index, key), level, known, label)
            for index, key, level, known in zip(which, keys, levels, steps, strict=True)
        ]
        offsets = np.cumsum([0, *(len(attribute.places) for attribute in shown)]).tolist()
        rows, outside = self._rows_of(label)
        parts, label_classes = rows.shape
        depth = label_classes + (len(outside.told) == 1)
        stacked = np.zeros((parts, depth, offsets[-1], offsets[-1]))
        varying = [i for i, attribute in enumerate(shown) if attribute.places.size]
        for place, i in enumerate(varying):
            left, own = shown[i], slice(offsets[i], offsets[i + 1])
            for j in varying[place:]:
                other = slice(offsets[j], offsets[j + 1])
                stacked[:, :, other, own] = self._block(left, shown[j], label)
        joint = np.concatenate([attribute.own.joint for attribute in shown], axis=2)
        counts = PartCounts(
            rows,
            joint,
            stacked[:, :label_classes],
            _chance(shown),
            within=stacked[:, label_classes:] if depth > label_classes else None,
            below=True,
            outside=outside,
            bounds=None if any(steps) else np.array(offsets, dtype=np.int64),
        )
        return counts if counts.chance is None else counts.symmetric

    def table(
        self, pair: tuple[int, int], bins: tuple[Levels, Levels], label: Candidate | None
    ) -> Floats:
        """Return the rows by part, class and the bins of two attributes' atoms, shape (K, C, a, b)."""
        a, b, y, part, rows = self._entries(pair)
        group, label_classes = self._label_classes(label)
        height, width = map(_counted_by, bins)
        first, second = (
            atoms if own.ndim == 2 else own[atoms] for own, atoms in zip(bins, (a, b), strict=True)
        )
        place = ((part * label_classes + group[y]) * height + first) * width + second
        size = self.parts * label_classes * height * width
        counted: Floats = np.bincount(place, rows, size).astype(np.float64, copy=False)
        return _shown(counted.reshape(self.parts, label_classes, height, width), bins)

    def label_classes(self, label: Candidate | None) -> int:
        """Return the number of classes that the label shows."""
        return self._label_classes(label)[1]

    def atoms(self, index: int) -> Floats:
        """Return the rows of each atom of an attribute."""
        rows: Floats = self._pairs.joints[index].sum(axis=1).astype(np.float64)
        return rows

    @cached_property
    def interactions(self) -> Interactions:
        """What pairs of attributes add."""
        return Interactions(self)

    def _rows_of(self, label: Candidate | None) -> tuple[Floats, OtherParts]:
        """Return the rows by part and class, shape (K, C), and what is outside of each part."""
        if label not in self._rows:
            rows = self._by_class(0, label).sum(axis=2)
            if (shown := np.count_nonzero(rows.sum(axis=0))) > MOST_CLASSES:
                raise PolicyError(
                    f"The label has {shown:,} classes; what models are expected to reach is worked out"
                    f" for at most {MOST_CLASSES}.",
                    hint="Group its values (masks of the label, such as bucketize), or name another"
                    " measure. A number with many values is no class: its R2 is not expected.",
                )
            self._rows[label] = rows, OtherParts.of(rows)
        return self._rows[label]

    def _by_class(self, index: int, label: Candidate | None) -> Floats:
        """Return the rows of one attribute by part, class and atom, shape (K, C, A)."""
        folds = self._folds.joints[index].astype(np.float64)  # (F, A, C)
        group, label_classes = self._label_classes(label)
        by_class = np.zeros((self.parts, label_classes, folds.shape[1]))
        for fold, own in enumerate(folds):
            np.add.at(by_class[fold % self.parts], group, own.T)
        return by_class

    def _label_classes(self, label: Candidate | None) -> tuple[npt.NDArray[Any], int]:
        if label is None:
            return np.arange(self._pairs.classes), self._pairs.classes
        return label.groups[: self._pairs.classes], label.size

    def _attribute(
        self, key: tuple[int, Hashable], level: Levels, ordered: bool, label: Candidate | None
    ) -> _Attribute:
        """Return one attribute under one mask and coding."""
        if (key, label) not in self._attributes:
            rows, outside = self._rows_of(label)
            joint = self._by_class(key[0], label) @ _indicators(level)
            total = joint[..., None] * np.eye(joint.shape[2])  # no row shows two levels of it
            chance = None
            if level.ndim == 2:
                atoms = self._pairs.joints[key[0]].sum(axis=1).astype(np.float64)
                chance = drawn_chance(level, atoms)
            own = in_thresholds(
                PartCounts(rows, joint, total, chance), np.array([0, joint.shape[2]]), [ordered]
            )
            there = np.flatnonzero(joint.sum(axis=(0, 1)) > 0)
            own, varying = varying_only(own)
            self._attributes[key, label] = _Attribute(
                key,
                level,
                own,
                there[varying],
                _counted_by(level),
                ordered,
                means=outside.means(own.joint),
            )
        return self._attributes[key, label]

    def _block(self, left: _Attribute, other: _Attribute, label: Candidate | None) -> Floats:
        """Return the co-occurrence of two attributes by part and class, shape (K, C, d_j, d_i).

        Of one with itself what is on the diagonal and below it. Of two classes the covariance within
        them is put behind as a third.
        """
        return self._blocks.get(
            (left.key, other.key, label), lambda: self._stacked(left, other, label)
        )

    def _stacked(self, left: _Attribute, other: _Attribute, label: Candidate | None) -> Floats:
        total = left.own.total
        if left is not other:
            total = self._count(left, other, label)
            total = other.shown(left.shown(total, 2), 3)
        _, outside = self._rows_of(label)
        if len(outside.told) == 1:
            within = outside.within(total, left.means, other.means)
            total = np.concatenate([total, within], axis=1)
        total = total.swapaxes(2, 3)
        return np.tril(total) if left is other else np.ascontiguousarray(total)

    def _count(self, left: _Attribute, other: _Attribute, label: Candidate | None) -> Floats:
        """Return the co-occurrence of the levels of two attributes by part and class."""
        pair = left.key[0], other.key[0]
        y, part, rows = self._entries(pair)[2:]
        group, label_classes = self._label_classes(label)
        first, second = (self._place(pair, side, of) for side, of in enumerate((left, other)))
        width, height = left.counted_by, other.counted_by
        place = ((part * label_classes + group[y]) * width + first) * height + second
        size = self.parts * label_classes * width * height
        counted = np.bincount(place, weights=rows, minlength=size).astype(np.float64, copy=False)
        return _shown(
            counted.reshape(self.parts, label_classes, width, height), (left.level, other.level)
        )

    def _place(self, pair: tuple[int, int], side: int, of: _Attribute) -> npt.NDArray[Any]:
        """Return the level of every entry of a pair on one side; a noise mask keeps the atoms."""
        atoms = self._entries(pair)[side]
        if of.level.ndim == 2:
            return atoms
        return self._placed.get((pair, side, of.key[1]), lambda: of.level[atoms].astype(np.int32))

    def _entries(self, pair: tuple[int, int]) -> tuple[npt.NDArray[Any], ...]:
        """Return atom of i, atom of j, class, part and rows of every cell of a pair that has rows."""
        if pair not in self._cells:
            a, b, y, _ = self._pairs.cells(*pair)
            part = self._folds.fold[pair].astype(np.int64) % self.parts
            counted = np.bincount(
                part * len(a) + self._folds.cell[pair],
                weights=self._folds.count[pair],
                minlength=self.parts * len(a),
            )
            there = np.flatnonzero(counted)
            part, cell = np.divmod(there, max(len(a), 1))
            self._cells[pair] = a[cell], b[cell], y[cell], part, counted[there]
        return self._cells[pair]


def _chance(shown: Sequence[_Attribute]) -> Floats | None:
    """Return what rows that are drawn add by chance, shape (d, k); None without noise."""
    own = [attribute.own.chance for attribute in shown]
    if all(chance is None for chance in own):
        return None
    blocks = [
        np.zeros((len(attribute.places), 0)) if chance is None else chance
        for attribute, chance in zip(shown, own, strict=True)
    ]
    from scipy.linalg import block_diag

    beside: Floats = block_diag(*blocks)
    return beside


def _indicators(level: Levels) -> Floats:
    """Return the 0/1 matrix of each atom's level, shape (A, L), or the channel itself."""
    if level.ndim == 2:
        return level
    return np.eye(int(level.max(initial=0)) + 1)[level]


def _counted_by(level: Levels) -> int:
    """Return the number of levels that rows are counted by: the atoms of a noise mask."""
    return len(level) if level.ndim == 2 else widths(level)


def widths(level: Levels) -> int:
    """Return the number of levels that atoms are put into."""
    return level.shape[1] if level.ndim == 2 else int(level.max(initial=0)) + 1


def pair_block(
    pairs: PairCounts,
    pair: tuple[int, int],
    levels: tuple[Levels, Levels],
    label: Candidate | None,
) -> npt.NDArray[Any]:
    """Return the counts of two masked attributes by (masked) class, shape (C, L_i, L_j)."""
    label_classes = pairs.classes if label is None else label.size
    a, b, y, n = pairs.cells(*pair)
    rows, columns = map(_counted_by, levels)
    first, second = (
        atoms if level.ndim == 2 else level[atoms].astype(np.int64)
        for level, atoms in zip(levels, (a, b), strict=True)
    )
    target = y if label is None else label.groups[y]
    key = (target * rows + first) * columns + second
    counts = np.bincount(key, weights=n, minlength=label_classes * rows * columns).astype(
        np.float64
    )
    return _shown(counts.reshape(label_classes, rows, columns), levels)


def _shown(block: Floats, levels: tuple[Levels, Levels]) -> Floats:
    """Return a block with what noise masks show in place of their atoms, shape (.., L_i, L_j)."""
    shown = block
    if levels[0].ndim == 2:
        shown = levels[0].T @ shown
    return shown @ levels[1] if levels[1].ndim == 2 else shown
