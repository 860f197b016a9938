"""Add up the pair counts of parts of a table, after renumbering their atoms and classes as in the
whole table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations
from typing import NamedTuple

import numpy as np

from aegis.arrays import Integers, Ints
from aegis.summary.cooccurrence import PairCounts, tally, with_folds
from aegis.summary.responses import ResponseSums
from aegis.summary.weights import WeightSums


class PartOfPairs(NamedTuple):
    """The counts of pairs of attributes in one part of a table, and how to renumber their atoms
    (sets of values) and classes.

    Attributes
    ----------
    pairs
        The counts.
    atoms
        For each attribute, the new number of each atom of the part.
    classes
        The new number of each class of the part.
    """

    pairs: PairCounts
    atoms: Sequence[Integers]
    classes: Integers


def added_pairs(
    parts: Sequence[PartOfPairs], sizes: tuple[int, ...], classes: int, factor: int = 1
) -> PairCounts:
    """Add up the counts of pairs of attributes in all parts of a table, after converting them to
    the new atoms (sets of values) and classes.

    The result has folds if all parts have the same number of folds.

    Parameters
    ----------
    parts
        At least one part; all have the same attributes.
    sizes, classes
        The number of new atoms of each attribute, and the number of new classes.
    factor
        Number by which every count is multiplied.
    """
    numbers = {1 if own.pairs.folds is None else own.pairs.folds.size for own in parts}
    folds = numbers.pop() if len(numbers) == 1 else 1
    rows = np.zeros(folds, dtype=np.int64)
    joints = [np.zeros((size, classes, folds), dtype=np.int64) for size in sizes]
    for pairs, atoms, to_class in parts:
        per_fold, by_fold = _by_fold(pairs, folds)
        rows += factor * per_fold
        for joint, own, places in zip(joints, by_fold, atoms, strict=True):
            np.add.at(joint, np.ix_(places, to_class, np.arange(folds)), factor * own)
    cells = {}
    for i, j in combinations(range(len(sizes)), 2):
        keys, counts = [], []
        for pairs, atoms, to_class in parts:
            a, b, y, fold, n = _entries(pairs, i, j, folds)
            cell = atoms[i].astype(np.int64)[a] * sizes[j] + atoms[j][b]
            keys.append((cell * classes + to_class[y]) * folds + fold)
            counts.append(factor * n)
        space = sizes[i] * sizes[j] * classes * folds
        cells[i, j] = tally(np.concatenate(keys), np.concatenate(counts), space)
    flat = [joint.reshape(len(joint), -1) for joint in joints]
    responses = _responses(parts, sizes, folds, factor)
    whole = with_folds(parts[0].pairs.names, sizes, classes, flat, cells, rows, responses)
    sums = [own.pairs.weights for own in parts if own.pairs.weights is not None]
    return replace(
        whole,
        rows=sum(own.pairs.rows for own in parts),
        weights=reduce(WeightSums.plus, sums).scaled(factor) if sums else None,
    )


def _by_fold(pairs: PairCounts, folds: int) -> tuple[Ints, list[Ints]]:
    """Return the number of rows by fold and, for each attribute, by atom (set of values), class and
    fold. Without folds, all rows are in one fold.
    """
    if folds == 1 or pairs.folds is None:
        return np.array([pairs.counted]), [joint[:, :, None] for joint in pairs.joints]
    return pairs.folds.rows, [np.moveaxis(joint, 0, 2) for joint in pairs.folds.joints]


def _entries(pairs: PairCounts, i: int, j: int, folds: int) -> tuple[Ints, ...]:
    """Return the non-empty cells of the pair of attributes i and j as five arrays: atom (set of
    values) of i, atom of j, class, fold, number of rows.
    """
    a, b, y, n = pairs.cells(i, j)
    if folds == 1 or pairs.folds is None:
        return a, b, y, np.zeros(len(n), dtype=np.int64), n
    cell = pairs.folds.cell[i, j]
    count = pairs.folds.count[i, j].astype(np.int64)
    return a[cell], b[cell], y[cell], pairs.folds.fold[i, j].astype(np.int64), count


def _responses(
    parts: Sequence[PartOfPairs], sizes: Sequence[int], folds: int, factor: int
) -> ResponseSums | None:
    """Return the sums of a numeric label over all parts of a table, times `factor`; None if a part
    has none. `sizes` has the number of atoms (sets of values) of each attribute, `folds` the number
    of folds.
    """
    moved = []
    for pairs, atoms, _ in parts:
        sums = pairs.responses
        if sums is None:
            return None
        sums = sums if sums.folds == folds else sums.together()
        moved.append(sums.regrouped(atoms, sizes).times(factor))
    return reduce(ResponseSums.plus, moved)
