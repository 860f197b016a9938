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
    """

    order: tuple[int, ...]
    gains: tuple[float, ...]

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

    The criterion is that of Fleuret, Fast binary feature selection with conditional mutual
    information, JMLR 5, 2004. Null counts as a value; levels (masked values) without rows are
    skipped. A gain of at most 1e-12 bits counts as 0.
    """
    if counts.pairs is None:
        raise InternalError("The information of pairs of attributes was not filled in.")
    alone = attribute_information(counts)
    gain = alone.copy()
    order: list[int] = []
    gains: list[float] = []
    while len(order) < len(alone):
        best = int(gain.argmax())
        if gain[best] <= _NO_GAIN:
            break
        order.append(best)
        gains.append(float(gain[best]))
        gain = np.minimum(gain, counts.pairs[:, best] - alone[best])
        gain[best] = -np.inf
    return CmimPath(tuple(order), tuple(gains))


def cmim(counts: Cooccurrence) -> float:
    """Return the sum of the gains of `cmim_path` in bits; 0 if no attribute has a gain."""
    return cmim_path(counts).total
