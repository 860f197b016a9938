"""Measure the errors of the approximate functional dependency attribute -> label.

Reference for g1, g2 and g3: Kivinen and Mannila, Approximate inference of functional dependencies
from relations, Theoretical Computer Science 149, 1995, section 2.
"""

from __future__ import annotations

import numpy as np

from aegis.measures.contingency import Contingency


def g1(table: Contingency) -> float:
    """Return the share of ordered row pairs that agree on the attribute but not on the label.

    The value is (sum n_x^2 - sum n_xy^2) / N^2, where n_x of N rows have value x, and n_xy have
    value x and class y. It is from 0 (the attribute determines the label) to 1 - 1/K_y, for K_y
    classes. Lower is better. It is monotone: no coarser deterministic mask can lower it. A constant
    attribute has the error of the label alone; a label of one class or an empty table has 0.
    """
    if not table.n:
        return 0.0
    shares = table.table / table.n
    within = (table.row_totals / table.n) ** 2 - (shares**2).sum(axis=1)
    return max(0.0, float(table.multiplicity @ within))


def g2(table: Contingency) -> float:
    """Return the share of rows whose value of the attribute occurs with more than one class.

    The value is from 0 to 1; lower is better. It is monotone: no coarser deterministic mask can
    lower it. It is 0 for a label of one class or an empty table.
    """
    if not table.n:
        return 0.0
    mixed = np.count_nonzero(table.table, axis=1) > 1
    return float((table.multiplicity * table.row_totals)[mixed].sum() / table.n)


def g3(table: Contingency) -> float:
    """Return the smallest share of rows to remove so that the attribute determines the label.

    The value is 1 - sum_x max_y n_xy / N, where n_xy of N rows have value x and class y. It is from
    0 to 1 - 1/K_y, for K_y classes; lower is better. It is monotone: no coarser deterministic mask
    can lower it. It is the training error of the majority rule, so it is 0 for a key. A constant
    attribute has the error of the majority class; a label of one class or an empty table has 0.
    """
    if not table.n:
        return 0.0
    right = float(table.multiplicity @ table.table.max(axis=1))
    return max(0.0, (table.n - right) / table.n)


def held_out_error(table: Contingency) -> float:
    """Return the share of rows whose class the majority rule predicts wrongly from the other rows.

    This is the exact leave-one-out error. For each of the N rows, the rule uses the other N - 1
    rows: it predicts the most frequent class among the rows with the same value of the attribute.
    Of equally frequent classes, it predicts the one that is more frequent among all N - 1 rows; if
    these are equal, too, it predicts the first class of the table. For a value that no other row
    has, it thus predicts the most frequent class overall.

    The value is from 0 to 1; lower is better. It is not monotone. It may exceed the error of the
    majority class, and reach 1 if classes are equally frequent, because leave-one-out is
    pessimistic. A constant attribute has the leave-one-out error of the majority class; a label of
    one class or an empty table has 0.
    """
    if table.columns < 2:
        return 0.0
    # With columns in order of frequency, the first maximum of a row is its winner under the
    # tie rule, and leaving out a row of another class cannot dethrone it.
    order = np.argsort(-table.column_totals, kind="stable")
    counts, totals = table.table[:, order], table.column_totals[order]
    row = np.arange(len(counts))
    first = counts.argmax(axis=1)
    others = counts.copy()
    others[row, first] = -1
    second = others.argmax(axis=1)
    ahead = counts[row, first] - 1 - counts[row, second]
    overall = totals[first] - 1 - totals[second]
    stands_first = order[first] < order[second]
    holds = (ahead > 0) | (ahead == 0) & ((overall > 0) | (overall == 0) & stands_first)
    right = int(table.multiplicity @ np.where(holds, counts[row, first], 0))
    return (table.n - right) / table.n
