"""Channels: P(report | true atom) as row-stochastic matrices, and what they mean for privacy.

A channel is an array of shape (V, R): row i is the distribution of what is released for an atom
whose value is i. Those of the noise masks are in `aegis.masks.channels`.

Privacy of a row, here, is *local*: epsilon bounds ln(P(j|i) / P(j|i')) over all reports j and
all pairs of true values i, i'. `privacy_level` computes the bound that a finished matrix really
gives.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aegis.errors import PolicyError
from aegis.reconstruction.result import FloatArray, IntArray

ROW_SUM = 1e-9
"""Largest deviation of a row sum from one that is taken as rounding."""


def check_channel(matrix: npt.ArrayLike, what: str = "") -> FloatArray:
    """Return `matrix` as a channel of shape (V, R), its rows scaled to sum to one exactly.

    Raises `PolicyError` that names the first row which holds a negative or missing probability or
    does not sum to one within 1e-9; `what` says whose channel it is.
    """
    channel = np.asarray(matrix, dtype=np.float64)
    title = f"The channel {what}".strip()
    if channel.ndim != 2 or not channel.size:
        raise PolicyError(f"{title} must be a matrix (atoms, reports), given {channel.shape}.")
    wrong = ~np.isfinite(channel).all(axis=1) | (channel < 0).any(axis=1)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise PolicyError(
            f"{title} holds a negative or missing probability in row {row}.",
            hint="Every entry must lie in 0..1.",
        )
    sums = channel.sum(axis=1)
    if np.abs(sums - 1).max() > ROW_SUM:
        row = int(np.abs(sums - 1).argmax())
        raise PolicyError(
            f"{title} has rows that do not sum to one: row {row} sums to {sums[row]:.10g}.",
            hint="Row i holds the probabilities of all reports for true value i.",
        )
    scaled: FloatArray = channel / sums[:, None]
    return scaled


def deterministic_channel(codes: IntArray, groups: int) -> FloatArray:
    """Return the channel of a deterministic mask: 1 where atom i belongs to group j."""
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
