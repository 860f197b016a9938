"""Round expected counts to integers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aegis.measures.checks import IntArray, counts, group_codes, group_sums


def controlled_rounding(table: npt.ArrayLike, codes: npt.ArrayLike | None = None) -> IntArray:
    """Round a table to integers so that every group keeps its total.

    This is the largest remainder method. Each cell is rounded down. The rows that a group then
    lacks are added to the cells with the largest fractions; of equal fractions, the lowest index is
    first. The method is deterministic, and every cell changes by less than one row.

    Parameters
    ----------
    table
        Counts of shape (V, C) or (V,), at least 0.
    codes
        Group of each row of `table`, shape (V,). The total of each group and class is kept. None:
        all rows are one group.

    Returns
    -------
    array of int64, the shape of `table`
        The group totals of `table`, rounded to the nearest whole numbers.

    Raises
    ------
    DataError
        A count is negative or missing, or codes do not match the table.
    """
    values = counts(table, "The table to round")
    flat = values[:, None] if values.ndim == 1 else values
    atoms, labels = flat.shape
    group = np.zeros(atoms, dtype=np.int64)
    if codes is not None:
        largest = int(np.max(np.asarray(codes), initial=0))
        group = group_codes(codes, largest + 1, "Controlled rounding")
    floor = np.floor(flat)
    fraction = flat - floor
    rounded = floor.astype(np.int64)
    for label in range(labels):
        rounded[:, label] += _awarded(fraction[:, label], group)
    return rounded.reshape(values.shape)


def _awarded(fraction: npt.NDArray[np.float64], group: IntArray) -> IntArray:
    """Return 1 for the cells of one label that are rounded up, 0 for all others."""
    groups = int(group.max()) + 1
    # Sums of fractions that are whole up to rounding error must not lose a row.
    missing = np.floor(group_sums(group, fraction, groups) + 0.5).astype(np.int64)
    # Fractions are compared to 1e-9 so that equal ones stay equal after arithmetic.
    order = np.lexsort((-np.round(fraction, 9), group))
    start = np.searchsorted(group[order], np.arange(groups))
    rank = np.empty(len(group), dtype=np.int64)
    rank[order] = np.arange(len(group)) - start[group[order]]
    awarded: IntArray = (rank < missing[group]).astype(np.int64)
    return awarded
