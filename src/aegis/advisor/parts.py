"""Counts between what masks show, by part of the rows and class: blocks that configurations share.

A block holds two attributes under two masks. It recurs in every configuration with these two masks,
so it is counted once, from the cells of the summary that have rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.advisor.grouping import Levels, RememberedArrays, drawn_chance
from aegis.measures import PartCounts
from aegis.summary import Candidate, PairCounts

PARTS = 5
"""Parts of the rows: each is left out once; the summary's folds are dealt out to them."""

Floats = npt.NDArray[np.float64]


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
        self._cells: dict[tuple[int, int], tuple[npt.NDArray[Any], ...]] = {}
        self._joints: dict[Any, Floats] = {}

    def counts(
        self,
        which: Sequence[int],
        levels: Sequence[Levels],
        keys: Sequence[Hashable],
        label: Candidate | None,
    ) -> PartCounts:
        """Return the counts of one configuration.

        Parameters
        ----------
        which
            The attributes, by their place in the summary.
        levels
            Per attribute the level of each atom, shape (A_i,), or P(level | atom), shape (A_i, L_i).
        keys
            Equal keys of an attribute stand for equal levels.
        label
            What groups the classes, where they are masked.
        """
        joints = [
            self._joint(index, level, key, label)
            for index, level, key in zip(which, levels, keys, strict=True)
        ]
        offsets = np.cumsum([0, *(joint.shape[2] for joint in joints)])
        joint = np.concatenate(joints, axis=2)
        parts, classes, size = joint.shape
        total = np.zeros((parts, classes, size, size))
        diagonal = np.arange(size)
        total[:, :, diagonal, diagonal] = joint
        for i in range(len(levels)):
            own = slice(offsets[i], offsets[i + 1])
            for j in range(i + 1, len(levels)):
                other = slice(offsets[j], offsets[j + 1])
                pair = which[i], which[j]
                block = self._block(pair, (levels[i], levels[j]), (keys[i], keys[j]), label)
                total[:, :, own, other] = block
                total[:, :, other, own] = block.swapaxes(2, 3)
        return PartCounts(joints[0].sum(axis=2), joint, total, self._chance(which, levels, offsets))

    def _classes(self, label: Candidate | None) -> tuple[npt.NDArray[Any], int]:
        if label is None:
            return np.arange(self._pairs.classes), self._pairs.classes
        return label.groups[: self._pairs.classes], label.size

    def _joint(self, index: int, level: Levels, key: Hashable, label: Candidate | None) -> Floats:
        """Return the rows of one attribute by part, class and level, shape (K, C, L)."""
        known = (index, key, label)
        if known not in self._joints:
            folds = self._folds.joints[index].astype(np.float64)  # (F, A, C)
            part = np.arange(self._folds.size) % self.parts
            group, classes = self._classes(label)
            by_class = np.zeros((self.parts, classes, folds.shape[1]))
            for fold, own in enumerate(folds):
                np.add.at(by_class[part[fold]], group, own.T)
            self._joints[known] = by_class @ _indicators(level)
        return self._joints[known]

    def _block(
        self,
        pair: tuple[int, int],
        levels: tuple[Levels, Levels],
        keys: tuple[Hashable, Hashable],
        label: Candidate | None,
    ) -> Floats:
        """Return the co-occurrence of two attributes by part and class, shape (K, C, L_i, L_j)."""
        return self._blocks.get((*pair, *keys, label), lambda: self._count(pair, levels, label))

    def _count(
        self, pair: tuple[int, int], levels: tuple[Levels, Levels], label: Candidate | None
    ) -> Floats:
        a, b, y, part, rows = self._entries(pair)
        group, classes = self._classes(label)
        (first, width), (second, height) = _placed(levels[0], a), _placed(levels[1], b)
        place = ((part * classes + group[y]) * width + first) * height + second
        size = self.parts * classes * width * height
        counted = np.bincount(place, weights=rows, minlength=size).astype(np.float64)
        return _shown(counted.reshape(self.parts, classes, width, height), levels)

    def _entries(self, pair: tuple[int, int]) -> tuple[npt.NDArray[Any], ...]:
        """Return atom of i, atom of j, class, part and rows of every cell of a pair that has rows."""
        if pair not in self._cells:
            a, b, y, _ = self._pairs.cells(*pair)
            cell, fold = self._folds.cell[pair], self._folds.fold[pair].astype(np.int64)
            rows = self._folds.count[pair].astype(np.float64)
            self._cells[pair] = (a[cell], b[cell], y[cell], fold % self.parts, rows)
        return self._cells[pair]

    def _chance(
        self,
        which: Sequence[int],
        levels: Sequence[Levels],
        offsets: npt.NDArray[np.int64],
    ) -> Floats | None:
        """Return what rows that are drawn add by chance, shape (d, k); None without noise."""
        parts = []
        for i, level in enumerate(levels):
            if level.ndim == 2:
                atoms = self._pairs.joints[which[i]].sum(axis=1).astype(np.float64)
                own = drawn_chance(level, atoms)
                parts.append(np.zeros((int(offsets[-1]), own.shape[1])))
                parts[-1][offsets[i] : offsets[i + 1]] = own
        return np.hstack(parts) if parts else None


def _indicators(level: Levels) -> Floats:
    """Return the 0/1 matrix of each atom's level, shape (A, L), or the channel itself."""
    if level.ndim == 2:
        return level
    return np.eye(int(level.max(initial=0)) + 1)[level]


def _placed(level: Levels, atoms: npt.NDArray[np.int64]) -> tuple[npt.NDArray[Any], int]:
    """Return the level of each atom and the number of levels; a noise mask keeps the atoms."""
    if level.ndim == 2:
        return atoms, len(level)
    return level[atoms].astype(np.int64), int(level.max(initial=0)) + 1


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
    classes = pairs.classes if label is None else label.size
    a, b, y, n = pairs.cells(*pair)
    (first, rows), (second, columns) = _placed(levels[0], a), _placed(levels[1], b)
    target = y if label is None else label.groups[y]
    key = (target * rows + first) * columns + second
    counts = np.bincount(key, weights=n, minlength=classes * rows * columns).astype(np.float64)
    return _shown(counts.reshape(classes, rows, columns), levels)


def _shown(block: Floats, levels: tuple[Levels, Levels]) -> Floats:
    """Return a block with what noise masks show in place of their atoms, shape (.., L_i, L_j)."""
    shown = block
    if levels[0].ndim == 2:
        shown = levels[0].T @ shown
    return shown @ levels[1] if levels[1].ndim == 2 else shown
