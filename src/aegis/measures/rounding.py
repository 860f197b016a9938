"""Round expected counts to integers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aegis.arrays import Ints
from aegis.measures.checks import counts


def controlled_rounding(table: npt.ArrayLike) -> Ints:
    """Round a table to integers so that every class keeps its total.

    This is the largest remainder method. Each cell is rounded down. The rows that a class then
    lacks are added to its cells with the largest fractions; of equal fractions, the one with the
    lowest index comes first. The method is deterministic, and every cell changes by less than one
    row.

    Parameters
    ----------
    table
        Counts of shape (V, C) or (V,), at least 0.

    Returns
    -------
    array of int64, the shape of `table`
        The rounded table. Its class totals are the class totals of `table`, rounded to whole
        numbers.

    Raises
    ------
    DataError
        A count is negative or missing.
    """
    values = counts(table, "The table to round")
    flat = values[:, None] if values.ndim == 1 else values
    floor = np.floor(flat)
    fraction = flat - floor
    # Sums of fractions that are whole up to rounding error must not lose a row.
    missing = np.floor(fraction.sum(axis=0) + 0.5)
    # Fractions are compared to 1e-9 so that equal ones stay equal after arithmetic.
    order = np.argsort(-np.round(fraction, 9), axis=0, kind="stable")
    rank = np.argsort(order, axis=0)
    rounded: Ints = (floor + (rank < missing)).astype(np.int64)
    return rounded.reshape(values.shape)
