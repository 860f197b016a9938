"""From estimated counts to whole rows, as the papers round them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aegis.measures.checks import IntArray, counts


def randomised_rounding(table: npt.ArrayLike, *, seed: int) -> IntArray:
    """Round each cell independently: up with a probability equal to its fraction, otherwise down.

    As in the published procedure. Unbiased per cell, but totals are not kept, so measures of the
    rounded table differ from those of the masked one by chance alone. `table` has any shape;
    raises `DataError` where a count is negative or missing.

    References
    ----------
    AEGIS (Laskar et al., SIGMOD 2025), reconstruction step.
    """
    values = counts(table, "The table to round")
    floor = np.floor(values)
    up = np.random.default_rng(seed).random(values.shape) < values - floor
    return floor.astype(np.int64) + up
