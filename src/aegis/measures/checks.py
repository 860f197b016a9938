"""Check arrays of counts, codes and probabilities, and round expected counts to integers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aegis.arrays import Floats, Ints
from aegis.errors import DataError, PolicyError

ROW_SUM = 1e-9
"""Largest deviation of a row sum from 1 that counts as a rounding error."""


def check_channel(matrix: npt.ArrayLike, what: str = "") -> Floats:
    """Check a noisy mask's probabilities: `matrix` has the probability that each of V values is
    reported as each of R reports, shape (V, R).

    Return the matrix, scaled so that its rows sum to 1 exactly. Raise `PolicyError` if a row has a
    negative or missing probability, or if its sum differs from 1 by more than 1e-9; the message
    names the first such row, and calls the matrix the channel `what`.
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
    scaled: Floats = channel / sums[:, None]
    return scaled


def counts(values: npt.ArrayLike, what: str) -> Floats:
    """Return `values` as float64. Raise `DataError` unless all are finite and at least 0; the
    message calls them `what`.
    """
    array = np.asarray(values, dtype=np.float64)
    # A missing count makes the least and the greatest one missing, too.
    least = np.minimum.reduce(array, axis=None, initial=0.0)
    if not least >= 0 or not np.maximum.reduce(array, axis=None, initial=0.0) < np.inf:
        raise DataError(
            f"{what} holds a negative, infinite or missing count.",
            hint="Counts must be finite numbers of at least 0.",
        )
    return array


def group_codes(values: npt.ArrayLike, groups: int, what: str) -> Ints:
    """Return `values` as int64 codes; raise `DataError`, which calls them `what`, unless all lie in
    0..groups-1.
    """
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise DataError(
            f"{what}: group codes must be a one-dimensional array of integers, "
            f"given {array.dtype} of shape {array.shape}."
        )
    if array.size and (array.min() < 0 or array.max() >= groups):
        raise DataError(
            f"{what}: group codes run from {array.min()} to {array.max()}, "
            f"but there are {groups} groups.",
            hint=f"Codes must lie in 0..{groups - 1}.",
        )
    return array.astype(np.int64, copy=False)


def controlled_rounding(table: npt.ArrayLike) -> Ints:
    """Round a table to integers so that every class keeps its total.

    This is the largest remainder method. Each cell is rounded down. The rows that a class then
    lacks are added to its cells with the largest fractions; of equal fractions, the one with the
    lowest index comes first. The method is deterministic, and every cell changes by less than one
    row.

    Parameters
    ----------
    table
        Counts for V values and C classes, shape (V, C), or without classes, shape (V,), at least 0.

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
