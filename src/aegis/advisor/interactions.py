"""Count pairs of attributes by fold and class, to measure their interactions: what they predict
beyond the sum of both effects.

Aegis divides each attribute into at most eight bins, similar to a tree with few leaves. For numbers
and dates, a bin is a range. Of other values, the seven most frequent ones have a bin each, and all
others share one bin. The interaction of two attributes under two masks is the same in every
configuration with these masks, so Aegis computes it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from aegis.array_cache import RememberedArrays
from aegis.arrays import Array, Floats, Ints
from aegis.errors import PolicyError
from aegis.measures.pair_gains import pair_gains, pair_gains_of_number

if TYPE_CHECKING:
    from aegis.advisor.encodings import CodedMasks
    from aegis.advisor.fold_counts import PartBlocks
    from aegis.summary import Candidate


BINS = 8
"""Largest number of bins of an attribute."""
MOST_CELLS = 20_000_000
"""Interactions are measured only if all tables of a configuration together have at most this many
cells.
"""
_AT_ONCE = 1_000_000
"""Number of cells that are processed together."""


class Interactions:
    """Computes how strongly two attributes interact in predicting the label, for many
    configurations of the same rows. Results are cached.

    Parameters
    ----------
    blocks
        Counts of the rows by fold, one of the parts into which the rows were divided at random.
    """

    def __init__(self, blocks: PartBlocks) -> None:
        self._blocks = blocks
        self._gains = RememberedArrays()

    def gains(
        self, which: Sequence[int], coded: CodedMasks, label: Candidate | None = None
    ) -> Floats:
        """Return how much better each pair of attributes predicts the label together than by the
        sum of their effects. The shape is (M, T, 1 + K), for M pairs, T label classes, and first
        all K folds of the rows, then without each fold.

        Parameters
        ----------
        which
            Indices of the attributes in the summary.
        coded
            The encoded masks of these attributes.
        label
            The mask of the label, if it has one.

        Raises
        ------
        PolicyError
            The pairs, folds and classes need too many cells.
        """
        levels, keys, numbers, _ = coded
        pairs = list(combinations(range(len(which)), 2))
        parts, label_classes = self._blocks.parts, self._blocks.label_classes(label)
        cells = parts * label_classes * BINS * BINS
        if len(pairs) * cells > MOST_CELLS:
            raise PolicyError(
                f"The interactions of {len(pairs):,} pairs of attributes need {len(pairs) * cells:,} cells"
                f" ({label_classes} classes, {parts} folds); Aegis counts at most {MOST_CELLS:,}.",
                hint="Leave attributes out, or use boosted trees without interactions: --models gbdt.",
            )
        keyed = {(i, j): (which[i], keys[i], which[j], keys[j], label) for i, j in pairs}
        made = {pair: self._gains[key] for pair, key in keyed.items() if key in self._gains}
        lacking = [pair for pair in pairs if pair not in made]
        binned: dict[int, Array] = {}
        size = max(1, _AT_ONCE // cells)
        for start in range(0, len(lacking), size):
            chunk = lacking[start : start + size]
            for i in {place for pair in chunk for place in pair} - set(binned):
                binned[i] = binned_levels(
                    levels[i], self._blocks.atoms(which[i]), numbers[i] is not None
                )
            tables = np.zeros((len(chunk), parts, label_classes, BINS, BINS))
            deviations = np.zeros((len(chunk), parts, BINS, BINS))
            for place, (i, j) in enumerate(chunk):
                pair, bins = (which[i], which[j]), (binned[i], binned[j])
                table = self._blocks.table(pair, bins, label)
                height, width = table.shape[2:]
                tables[place, :, :, :height, :width] = table
                if self._blocks.of_number:
                    deviations[place, :, :height, :width] = self._blocks.deviations(pair, bins)
            if self._blocks.of_number:
                squares = self._blocks.squared_deviations
                gains = pair_gains_of_number(tables[:, :, 0], deviations, squares)
            else:
                gains = pair_gains(tables)
            made |= zip(chunk, gains, strict=True)
        for pair in lacking:
            self._gains.get(keyed[pair], partial(made.__getitem__, pair))
        return np.stack([made[pair] for pair in pairs]) if pairs else np.zeros((0, 0, 1 + parts))


def binned_levels(level: Array, rows: Floats, ordered: bool) -> Array:
    """Divide the levels (masked values) of an attribute into at most eight bins. Return the bin of
    each atom, shape (A,); for a noise mask, the probability of each bin, shape (A, 8).

    Parameters
    ----------
    level
        The level of each of A atoms (sets of original values), shape (A,). For a noise mask, the
        probability of each of L levels for each atom, shape (A, L).
    rows
        Number of rows of each atom, shape (A,).
    ordered
        Whether levels are in the order of their values. Then each bin consists of neighbouring
        levels, and all bins have about equally many rows.

    Examples
    --------
    >>> import numpy as np
    >>> binned_levels(np.arange(12), np.full(12, 5.0), True).tolist()
    [0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7]
    """
    counted = rows @ level if level.ndim == 2 else np.bincount(level, weights=rows)
    shown = counted.astype(np.float64, copy=False)
    bins = _bins(shown, ordered)
    if level.ndim == 1:
        return bins[level]
    return level @ np.eye(BINS)[bins]


def _bins(shown: Floats, ordered: bool) -> Ints:
    """Return the bin of each level (masked value), shape (L,), from the number of rows of each
    level (`shown`).

    If `ordered` is True, bins are neighbouring levels with about equally many rows. If not, the
    seven most frequent levels have a bin each.
    """
    bins = np.zeros(len(shown), dtype=np.int64)
    there = np.flatnonzero(shown > 0)
    if len(there) <= BINS:
        bins[there] = np.arange(len(there))
    elif ordered:
        middle = (np.cumsum(shown) - shown / 2) / shown.sum()
        bins = np.unique(
            np.minimum((middle * BINS).astype(np.int64), BINS - 1), return_inverse=True
        )[1]
    else:
        bins += BINS - 1
        bins[np.argsort(-shown, kind="stable")[: BINS - 1]] = np.arange(BINS - 1)
    return bins
