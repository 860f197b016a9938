"""Measure a configuration by the information that each chosen attribute adds to the attributes
chosen before it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from aegis.arrays import Floats
from aegis.errors import InternalError
from aegis.measures.information import corrected_information, n_log_n

if TYPE_CHECKING:
    from aegis.measures.cooccurrence import Cooccurrence


_NO_GAIN = 1e-12
"""Gains up to this many bits count as rounding: an attribute that another determines adds nothing."""


@dataclass(frozen=True)
class CmimPath:
    """The attributes that conditional mutual information maximisation (CMIM) chooses, in order.

    Attributes
    ----------
    order
        Indices of the chosen attributes. Attributes without a positive gain are not chosen.
    gains
        The information that each chosen attribute adds, in bits: positive, and in descending order
        from the second on.
    pairs
        Number of pairs of attributes that were evaluated, of m (m - 1) / 2 pairs.
    """

    order: tuple[int, ...]
    gains: tuple[float, ...]
    pairs: int

    @property
    def total(self) -> float:
        """The sum of the gains in bits; 0 if nothing was chosen."""
        return math.fsum(self.gains)


def attribute_information(counts: Cooccurrence) -> Floats:
    """Return the corrected mutual information that each of m attributes shares with the label, in
    bits, shape (m,).
    """
    joint, starts = counts.joint, counts.offsets[:-1]
    if not len(starts):
        return np.zeros(0)
    levels = joint.sum(axis=1)
    inside = np.add.reduceat(n_log_n(joint).sum(axis=1) - n_log_n(levels), starts)
    rows = np.add.reduceat((levels > 0).astype(np.int64), starts)
    classes = np.add.reduceat(joint, starts, axis=0)
    return np.array(
        [corrected_information(*parts) for parts in zip(inside, rows, classes, strict=True)]
    )


def cmim_path(counts: Cooccurrence) -> CmimPath:
    """Choose attributes one after the other by the information that they add about the label
    (CMIM).

    CMIM is conditional mutual information maximisation. The first attribute A has the largest
    mutual information I(A; Y) with the label Y. Each next attribute A has the largest gain. Its
    gain is the minimum, over the attributes B that are already chosen, of I(A; Y | B) = I(A, B; Y)
    - I(B; Y). The path ends when no gain is positive. Of equal attributes, the one with the lowest
    index is chosen. All terms are corrected for their first-order bias.

    This is the fast implementation of Fleuret, Fast binary feature selection with conditional
    mutual information, JMLR 5, 2004. An attribute's gain can only fall as more attributes are
    chosen. So the minimum over the pairs evaluated so far is an upper bound of the gain, and most
    pairs are never evaluated. Null counts as a value; levels (masked values) without rows are
    skipped. A gain of at most 1e-12 bits counts as 0.
    """
    alone = attribute_information(counts)
    lazy = _LazyMinimum(counts, alone)
    gains: list[float] = []
    while (best := lazy.best()) is not None:
        gains.append(lazy.score[best])
        lazy.choose(best)
    return CmimPath(tuple(lazy.chosen), tuple(gains), lazy.pairs)


class _LazyMinimum:
    """The minimum of I(A; Y | B) over the attributes B chosen so far, for each attribute A and the
    label Y. A minimum is updated only if the choice of the next attribute needs it.
    """

    def __init__(self, counts: Cooccurrence, alone: Floats) -> None:
        if counts.pairs is None:
            raise InternalError("The information of pairs of attributes was not filled in.")
        self._pairs = counts.pairs
        # Lists: single entries are read and written, which arrays are slow at.
        self.alone: list[float] = alone.tolist()
        self.score: list[float] = self.alone.copy()
        self.seen = [0] * len(self.alone)
        self.chosen: list[int] = []
        self.left = set(range(len(alone)))
        self.pairs = 0

    def best(self) -> int | None:
        """Return the attribute with the largest minimum, or None if no attribute has a gain.

        If several attributes are equal, the one with the lowest index is returned.
        """
        best: int | None = None
        for index in sorted(self.left, key=lambda i: (-self.score[i], i)):
            while self._leads(index, best) and self.seen[index] < len(self.chosen):
                self._look(index, self.chosen[self.seen[index]])
            if self._leads(index, best):
                best = index
        return best

    def choose(self, index: int) -> None:
        self.chosen.append(index)
        self.left.remove(index)

    def _leads(self, index: int, best: int | None) -> bool:
        if best is None:
            return self.score[index] > _NO_GAIN
        return (self.score[index], -index) > (self.score[best], -best)

    def _look(self, index: int, other: int) -> None:
        self.score[index] = min(self.score[index], self._pair(index, other) - self.alone[other])
        self.seen[index] += 1

    def _pair(self, index: int, other: int) -> float:
        self.pairs += 1
        return float(self._pairs[index, other])


def cmim(counts: Cooccurrence) -> float:
    """Return the sum of the gains of `cmim_path` in bits; 0 if no attribute has a gain."""
    return cmim_path(counts).total
