"""Channels of masks as matrices P(report | true value), shape (V, R), and their level of privacy."""

from __future__ import annotations

import numpy as np


def deterministic_channel(codes, groups):
    """Return the channel of a deterministic mask: 1 if value i belongs to group j, else 0."""
    return np.eye(groups)[codes]


def expected_joint(channel, joint):
    """Return the expected joint counts of reports and label, (R, C), from true counts, (V, C)."""
    return channel.T @ joint


def privacy_level(channel):
    """Return the smallest epsilon for which the channel is locally differentially private.

    It is the maximum over reports j and true values i, i' of ln(K_ij / K_i'j).
    """
    high, low = channel.max(axis=0), channel.min(axis=0)
    seen = high > 0
    if (low[seen] == 0).any():
        return float("inf")
    return float(np.log(high[seen] / low[seen]).max())
