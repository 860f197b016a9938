"""Compute chi-square, phi-square and Cramer's V between one attribute and the label."""

from __future__ import annotations

import math

import numpy as np

from aegis.measures.contingency import Contingency


def phi_square(table: Contingency) -> float:
    """Return the mean square contingency: chi-square / N = sum (p_xy - p_x p_y)^2 / (p_x p_y).

    N is the number of rows, p_xy the share of rows that have value x and class y, p_x the share
    that have value x, and p_y the share that have class y. The value is symmetric, and from 0 to
    min(K_x, K_y) - 1, where K_x and K_y are the numbers of values and of classes. It is 0 for a
    constant attribute, a label of one class or an empty table. No deterministic mask can increase
    it: it is Pillai's trace of a single attribute, and an f-divergence from independence.
    """
    if table.trivial:
        return 0.0
    expected = np.outer(table.row_totals, table.column_totals / table.n)
    terms = ((table.table - expected) ** 2 / expected).sum(axis=1)
    return float(table.multiplicity @ terms) / table.n


def chi_square(table: Contingency) -> float:
    """Return Pearson's chi-square sum (O - E)^2 / E, without continuity correction.

    O is the number of rows that have a value x and a class y. E is the number that would be
    expected if attribute and label were independent. The sum is over all pairs of a value and a
    class. The value is N times `phi_square`, and from 0 to N (min(K_x, K_y) - 1), for N rows, K_x
    values and K_y classes. Reference: Pearson, On the criterion that a given system of deviations
    ... , Philosophical Magazine 50, 1900.
    """
    return phi_square(table) * table.n


def cramers_v(table: Contingency) -> float:
    """Return Cramer's V = sqrt(phi2 / min(K_x - 1, K_y - 1)).

    Here phi2 is `phi_square`, for K_x values and K_y classes. The value is from 0 to 1, and 0 for a
    constant attribute, a label of one class or an empty table. A coarser mask may increase the
    value, because it may make the divisor smaller. Reference: Cramer, Mathematical Methods of
    Statistics, 1946, section 21.9.
    """
    if table.trivial:
        return 0.0
    return math.sqrt(phi_square(table) / min(table.rows - 1, table.columns - 1))


def corrected_cramers_v(table: Contingency) -> float:
    """Return Cramer's V with Bergsma's correction of its bias.

    Let r be the number of values, c the number of classes, N the number of rows and phi2
    `phi_square`. Then

        V~ = sqrt(phi2~ / min(r~ - 1, c~ - 1)),  phi2~ = max(0, phi2 - (r - 1)(c - 1)/(N - 1)),
        r~ = r - (r - 1)^2/(N - 1),  c~ = c - (c - 1)^2/(N - 1).

    The value is from 0 to 1; a coarser mask may increase it. It is 0 for a constant attribute, a
    label of one class or an empty table. It is also 0 if every row has a different value: then r~ =
    1 and nothing can be estimated. Reference: Bergsma, A bias-correction for Cramer's V and
    Tschuprow's T, Journal of the Korean Statistical Society 42, 2013.
    """
    if table.trivial:
        return 0.0
    r, c, freedom = table.rows - 1, table.columns - 1, table.n - 1
    corrected = max(0.0, phi_square(table) - r * c / freedom)
    # r~ - 1 written as (r - 1)(N - r)/(N - 1), which is exactly 0 for a key.
    limit = min(r * (freedom - r), c * (freedom - c)) / freedom
    return math.sqrt(corrected / limit) if limit > 0 else 0.0
