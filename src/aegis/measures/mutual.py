"""Association among all columns: the utility of a table without a label."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from aegis.measures.cooccurrence import Cooccurrence


def pair_contingency(
    block: npt.NDArray[Any], told_apart: tuple[float, float] | None = None
) -> float:
    """Return the squared contingency coefficient of two columns, corrected for chance.

    With phi^2 = sum n_ab^2 / (n_a n_b) - 1 Pearson's mean square contingency, x = phi^2 less what
    rows in random order would show, (K_a - 1) (K_b - 1) / (N - 1), whatever the counts (Bartlett,
    1937): x / (1 + |x|). Pearson's C^2 = phi^2 / (1 + phi^2) is this without the correction, and no
    coarsening of either column can raise it. It needs no divisor that depends on the number of
    values, so that tables under different masks compare. From below 0 (chance) to below 1; 0 where a
    column shows one value only, or no row is there.

    Parameters
    ----------
    block
        Rows by value of the one column and of the other, shape (K_a, K_b); expected rows under noise.
    told_apart
        In place of the numbers of values K: what noise leaves of them, sum over values a and reports r
        of p_a P(r | a)^2 / p_r.
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
    """Return the mean of `pair_contingency` over all pairs of attributes; 0 with fewer than two.

    The label has no part in it.
    """
    bounds = [slice(*counts.offsets[i : i + 2]) for i in range(counts.attributes)]
    values = [pair_contingency(counts.total[a, b]) for a, b in combinations(bounds, 2)]
    return float(np.mean(values)) if values else 0.0
