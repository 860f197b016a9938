"""Compute the mutual information of one attribute and the label, plug-in and corrected, in bits."""

from __future__ import annotations

import math

import numpy as np

from aegis.arrays import Array, Floats
from aegis.measures.chance import expected_mutual_information
from aegis.measures.contingency import Contingency


def n_log_n(counts: Array) -> Floats:
    """Return n ln n for each count n; it is 0 if n is 0."""
    numbers = np.asarray(counts, dtype=np.float64)
    return numbers * np.log(np.where(numbers > 0, numbers, 1.0))


def entropy(counts: Array) -> float:
    """Return the plug-in entropy of counts, in bits; 0 if there are no counts."""
    shares = counts[counts > 0] / max(counts.sum(), 1)
    return float(-(shares * np.log2(shares)).sum())


def first_order_bias(rows: float, columns: float, n: float) -> float:
    """Return the bias of plug-in mutual information in bits: (K_x - 1)(K_y - 1) / (2 N ln 2).

    K_x is the number of values (`rows` of the table), K_y the number of classes (`columns`) and N
    the number of counted rows (`n`). If attribute and label are independent, this is the mean of
    plug-in mutual information (MI) to first order in 1/N, because N * 2 ln 2 * MI is about
    chi-square with (K_x - 1)(K_y - 1) degrees of freedom. Reference: Miller, Note on the bias of
    information estimates, 1955; Roulston, Estimating the errors on measured entropy and mutual
    information, Physica D 125, 1999.
    """
    return (rows - 1) * (columns - 1) / (2 * n * math.log(2)) if n else 0.0


def mutual_information(table: Contingency) -> float:
    """Return the plug-in mutual information sum p_xy log2(p_xy / (p_x p_y)), in bits.

    Here p_xy is the share of rows with value x and class y, p_x the share with value x, and p_y the
    share with class y. The result is symmetric in attribute and label, and from 0 to min(H(X),
    H(Y)), the smaller of both entropies. It is 0 for a constant attribute, a label of one class or
    an empty table. It is monotone: no deterministic mask can increase it (data processing
    inequality, Cover and Thomas, Elements of Information Theory, theorem 2.8.1).
    """
    if table.trivial:
        return 0.0
    n = float(table.n)
    inside = table.multiplicity @ (n_log_n(table.table).sum(axis=1) - n_log_n(table.row_totals))
    nats = (inside - n_log_n(table.column_totals).sum()) / n + math.log(n)
    return max(0.0, float(nats) / math.log(2))


def corrected_mutual_information(table: Contingency) -> float:
    """Return the corrected mutual information max(0, MI - (K_x - 1)(K_y - 1) / (2 N ln 2)), in
    bits.

    This is plug-in MI minus its first-order bias under independence (`first_order_bias`), so that a
    column of many values does not score high by chance. It is not monotone under masks. It is 0 for
    a constant attribute, a label of one class or an empty table.
    """
    bias = first_order_bias(table.rows, table.columns, table.n)
    return max(0.0, mutual_information(table) - bias)


def miller_madow_information(table: Contingency) -> float:
    """Return the Miller-Madow mutual information MI + (K_x + K_y - K_xy - 1) / (2 N ln 2), in bits.

    The Miller-Madow correction is applied to each of the three entropies in H(X) + H(Y) - H(X, Y).
    MI is the plug-in mutual information of N rows. K_x and K_y are the numbers of values and
    classes that occur, and K_xy is the number of pairs of both that occur. If most cells are empty,
    this corrects less than `corrected_mutual_information`. The value may be negative, and it is not
    monotone under masks. It is 0 for a constant attribute, a label of one class or an empty table.
    Reference: Miller, Note on the bias of information estimates, 1955.
    """
    if table.trivial:
        return 0.0
    terms = table.rows + table.columns - table.cells - 1
    return mutual_information(table) + terms / (2 * table.n * math.log(2))


def label_entropy(table: Contingency) -> float:
    """Return the plug-in entropy H(Y) of the label in bits; 0 for one class or no rows."""
    if table.columns < 2:
        return 0.0
    n = float(table.n)
    return (math.log(n) - float(n_log_n(table.column_totals).sum()) / n) / math.log(2)


def reliable_information(table: Contingency) -> float:
    """Return the reliable fraction of information (MI - E0[MI]) / H(Y), for the label's entropy
    H(Y).

    MI is the plug-in mutual information, and E0[MI] its exact mean over all permutations of the
    label (`expected_mutual_information`). The value is at most 1. Its average is 0 if attribute and
    label are independent, so it may be slightly negative. It is not monotone under masks. It is 0
    for a constant attribute, a label of one class or an empty table. Reference: Mandros, Boley and
    Vreeken, Discovering reliable approximate functional dependencies, KDD 2017.
    """
    if table.trivial:
        return 0.0
    excess = mutual_information(table) - expected_mutual_information(table)
    return excess / label_entropy(table)


def pair_information(block: Array) -> float:
    """Return the corrected information I(A, B; Y) that two attributes together have about the
    label, in bits.

    It is computed like `corrected_mutual_information`, but each pair of values that occurs counts
    as one value. It is 0 if only one pair or one class occurs.

    Parameters
    ----------
    block
        Counts for C classes and the d_a and d_b values of both attributes, shape (C, d_a, d_b). N
        is the sum of these counts, which may come from a sample of the rows.
    """
    columns = block.reshape(len(block), -1)
    totals = columns.sum(axis=0)
    totals = totals[totals > 0]
    classes = columns.sum(axis=1)
    inside = n_log_n(columns[columns > 0]).sum() - n_log_n(totals).sum()
    return corrected_information(float(inside), len(totals), classes)


def corrected_information(inside: float, rows: int, classes: Array) -> float:
    """Return corrected mutual information in bits, from sums over a contingency table.

    `inside` is the sum of n_xy ln n_xy over cells xy, minus the sum of n_x ln n_x over values x.
    `rows` is the number K_x of values, and `classes` has the number of rows n_y of each class.
    """
    columns = int(np.count_nonzero(classes))
    if rows < 2 or columns < 2:
        return 0.0
    n = float(classes.sum())
    nats = (inside - float(n_log_n(classes).sum())) / n + math.log(n)
    return max(0.0, nats / math.log(2) - first_order_bias(rows, columns, n))
