"""Estimate the variance that protection added to the counts of a label table.

The estimate uses only the protected table. A label table has the number of rows of each cell and
class, for one attribute.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from aegis.arrays import Floats
from aegis.safe.protect.mechanisms import key_table
from aegis.safe.protect.model import (
    CellMethod,
    ProtectedAttribute,
    ProtectedSummary,
    Protection,
    ProtectionLevel,
)


def added_variance(summary: ProtectedSummary, attribute: ProtectedAttribute) -> Floats:
    """Estimate the variance that protection added to each count of a label table, shape (K, C).

    Noise adds the same to all counts. Rounding and cell keys add a variance that depends on the true
    count: then its expectation for a Poisson count is returned, with the mean that the cell's rows and
    the class's share give.
    """
    if summary.level is not ProtectionLevel.COUNTS:
        variance = np.square(summary.cell_error) * attribute.units[:, None].astype(np.float64)
        return np.broadcast_to(variance, attribute.table.shape)
    rows = np.maximum(attribute.table.sum(axis=1), summary.protection.threshold or 1)
    mean = rows[:, None] * summary.shares
    return _expected(variance_by_count(summary.protection), mean)


@cache
def variance_by_count(protection: Protection) -> tuple[float, ...]:
    """Return the variance that level `counts` adds to true counts of 0, 1, 2, ...; the last is for all more.

    Rounding to a multiple of b has the variance r (b - r) for a remainder r; for large counts, the mean
    over all remainders is used.
    """
    step = protection.step or 1
    if protection.method is CellMethod.ROUNDING:
        variances = [float((n % step) * (step - n % step)) for n in range(4 * step)]
        return (*variances, (step**2 - 1) / 6)
    least = max(2, (protection.threshold or 2) // 2)
    variances = []
    for count in range(step + least + 1):
        changes, chance = key_table(count, step, protection.variance or 1.0, least)
        variances.append(float(chance @ changes.astype(np.float64) ** 2))
    return tuple(variances)


def _expected(by_count: tuple[float, ...], mean: Floats) -> Floats:
    """Return the mean of `by_count`, as of `variance_by_count`, over Poisson counts of means
    `mean`.
    """
    from scipy.special import gammaln, xlogy

    counts = np.arange(len(by_count) - 1)
    different, mean_index = np.unique(mean, return_inverse=True)
    chance = np.exp(
        xlogy(counts[None, :], different[:, None]) - different[:, None] - gammaln(counts + 1.0)
    )
    above = np.clip(1.0 - chance.sum(axis=1), 0.0, 1.0)
    values: Floats = chance @ np.array(by_count[:-1]) + above * by_count[-1]
    return values[mean_index].reshape(mean.shape)
