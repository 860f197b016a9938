"""Define channels: P(report | true atom) as row-stochastic matrices, and their level of privacy.

A report is the masked value that a mask shows. A channel is an array of shape (V, R): row i is the
distribution of the R reports for the true value (atom) i. The channels of noise masks are in
`aegis.masks.channels`.

Privacy is *local* here: epsilon bounds ln(P(j|i) / P(j|i')) over all reports j and all pairs of
true values i, i'. `privacy_level` computes the smallest such epsilon of a matrix.
"""

from __future__ import annotations

import numpy as np

from aegis.papers.reconstruction.result import FloatArray, IntArray


def deterministic_channel(codes: IntArray, groups: int) -> FloatArray:
    """Return the channel of a deterministic mask: 1 if atom i belongs to group j, else 0."""
    return np.eye(groups)[codes]


def expected_joint(channel: FloatArray, joint: FloatArray) -> FloatArray:
    """Return the expected joint counts of reports and label, (R, C), from true counts, (V, C)."""
    expected: FloatArray = channel.T @ joint
    return expected


def privacy_level(channel: FloatArray) -> float:
    """Return the smallest epsilon for which the channel is locally differentially private.

    It is the maximum over reports j and true values i, i' of ln(K_ij / K_i'j). It is infinite if a
    report is possible for one value but not for another, and 0 if reports do not depend on the
    value.
    """
    high, low = channel.max(axis=0), channel.min(axis=0)
    seen = high > 0
    if (low[seen] == 0).any():
        return float("inf")
    return float(np.log(high[seen] / low[seen]).max())
