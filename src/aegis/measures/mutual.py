"""Measure the association among all columns, for tables without a label."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from aegis.arrays import Array

if TYPE_CHECKING:
    from aegis.measures.cooccurrence import Cooccurrence


def pair_contingency(block: Array, told_apart: tuple[float, float] | None = None) -> float:
    """Return the squared contingency coefficient of two columns, corrected for chance.

    Pearson's mean square contingency of two columns is

        phi^2 = sum_ab n_ab^2 / (n_a n_b) - 1,

    where n_ab rows have the values a and b. If one column is permuted at random, the mean of phi^2
    is (K_a - 1) (K_b - 1) / (N - 1), where K_a and K_b are the numbers of values (Bartlett, 1937).
    Let x be phi^2 minus this mean. The result is x / (1 + |x|). Without the correction, this is
    Pearson's C^2 = phi^2 / (1 + phi^2), which no coarsening of either column can raise. C^2 has no
    divisor that depends on the number of values, so tables under different masks can be compared.
    The result is below 1, and below 0 only by chance. It is 0 if a column has only one value, or if
    there are no rows.

    Parameters
    ----------
    block
        Number of rows by the values of both columns, shape (K_a, K_b); the expected number if a
        mask adds noise.
    told_apart
        If a mask adds noise, two effective numbers of values that replace K_a and K_b. Each is the
        sum of p_a P(r | a)^2 / p_r over the true values a and the reported values r of the column.
        None if there is no noise.
    """
    counts = np.asarray(block, dtype=np.float64)
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    n = float(rows.sum())
    if told_apart is None:
        told_apart = float(np.count_nonzero(rows)), float(np.count_nonzero(columns))
    if n <= 1 or min(told_apart) <= 1:
        return 0.0
    shown = counts[rows > 0][:, columns > 0]
    rows, columns = rows[rows > 0], columns[columns > 0]
    phi_squared = float(((shown / rows[:, None]) * (shown / columns)).sum()) - 1
    beyond = phi_squared - (told_apart[0] - 1) * (told_apart[1] - 1) / (n - 1)
    return beyond / (1 + abs(beyond))


def mean_contingency(counts: Cooccurrence) -> float:
    """Return the mean of `pair_contingency` over all pairs of attributes, or 0 if there are fewer
    than two attributes.

    The label is ignored.
    """
    bounds = [slice(*counts.offsets[i : i + 2]) for i in range(counts.attributes)]
    values = [pair_contingency(counts.total[a, b]) for a, b in combinations(bounds, 2)]
    return float(np.mean(values)) if values else 0.0
