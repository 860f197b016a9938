"""Channels P(report | true atom) as row-stochastic matrices, and their level of privacy.

A channel is an array of shape (V, R): row i is the distribution of what is released for an atom
whose value is i. Those of the noise masks are in `aegis.masks.channels`.

Privacy of a row, here, is *local*: epsilon bounds ln(P(j|i) / P(j|i')) over all reports j and
all pairs of true values i, i'. `privacy_level` computes the bound that a finished matrix really
gives.
"""

from __future__ import annotations

import numpy as np

from aegis.papers.reconstruction.result import FloatArray, IntArray


def deterministic_channel(codes: IntArray, groups: int) -> FloatArray:
    """Return the channel of a deterministic mask: 1 if atom i belongs to group j."""
    return np.eye(groups)[codes]


def expected_joint(channel: FloatArray, joint: FloatArray) -> FloatArray:
    """Return the expected (R, C) joint of reports and label for the true (V, C) `joint`."""
    expected: FloatArray = channel.T @ joint
    return expected


def privacy_level(channel: FloatArray) -> float:
    """Return the smallest epsilon for which the channel is locally differentially private.

    max over reports j and true values i, i' of ln(K_ij / K_i'j); infinite where a report is
    possible for one value and impossible for another, 0 where reports say nothing.
    """
    high, low = channel.max(axis=0), channel.min(axis=0)
    seen = high > 0
    if (low[seen] == 0).any():
        return float("inf")
    return float(np.log(high[seen] / low[seen]).max())
