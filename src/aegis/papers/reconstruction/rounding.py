"""Round estimated counts to integers, as the papers do."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aegis.arrays import Ints
from aegis.measures.checks import counts


def randomised_rounding(table: npt.ArrayLike, *, seed: int) -> Ints:
    """Round every cell independently: up with the probability of its fraction, otherwise down.

    This is the published procedure. It is unbiased for each cell, but does not keep totals. After
    it, the measures of the rounded table and of the masked table differ only by chance. `table` may
    have any shape. Raise `DataError` if a count is negative or missing.

    References
    ----------
    AEGIS (Laskar et al., SIGMOD 2025), reconstruction step.
    """
    values = counts(table, "The table to round")
    floor = np.floor(values)
    up = np.random.default_rng(seed).random(values.shape) < values - floor
    return floor.astype(np.int64) + up
