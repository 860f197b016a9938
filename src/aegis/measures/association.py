"""Define the contingency table of an attribute and the label, and the measures that are computed
from it: chi-square and its relatives, errors of the approximate functional dependency attribute ->
label, and mutual information in bits, with its mean over all permutations of the label.

Reference for the errors g1, g2 and g3: Kivinen and Mannila, Approximate inference of functional
dependencies from relations, Theoretical Computer Science 149, 1995, section 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from aegis.arrays import Array, Floats, Ints
from aegis.errors import DataError

_MERGE_FROM = 256
"""Number of rows from which equal rows are merged; with fewer, sorting costs more than it saves."""
_MERGE_GAIN = 0.75
"""Merged rows are kept if they are at most this share of the rows."""
_ALIKE = 1e-9
"""Variance, in squared means, up to which a statistic is the same for every permutation."""


@dataclass(frozen=True, eq=False)
class Contingency:
    """The number of rows by value of an attribute (rows of the table) and class of the label
    (columns).

    Build it with `Contingency.of`, which checks the counts. Measures of one attribute do not depend
    on the order of the rows, so rows with equal counts are stored once with a multiplicity. For
    example, a column of a million values that is almost a key needs only a few hundred stored rows.
    The columns are in the order of the label's classes; this order only breaks ties (see
    `held_out_error`).

    Attributes
    ----------
    table
        Counts for r stored rows and C classes, shape (r, C), int64; no row and no column is all
        zero.
    multiplicity
        Number of rows of the full table that have these counts, at least 1, shape (r,), int64.
    """

    table: Ints
    multiplicity: Ints

    @classmethod
    def of(cls, counts: npt.ArrayLike) -> Contingency:
        """Return the table of `counts`, shape (R, C): one row for each of R values, one column for
        each of C classes.

        Empty rows and columns are dropped. Nulls count only if the caller gives them a row. A table
        whose counts are all 0 is allowed; every measure of it is 0.

        Raises
        ------
        DataError
            `counts` is not two-dimensional, or contains something other than whole numbers of at
            least 0.
        """
        table = _whole_counts(counts)
        table = table[table.any(axis=1)]
        table = table[:, table.any(axis=0)]
        merged, multiplicity = _merge_equal_rows(table)
        return cls(merged, multiplicity)

    @cached_property
    def n(self) -> int:
        """The number of data rows that the table counts, N."""
        return int(self.row_totals @ self.multiplicity)

    @cached_property
    def row_totals(self) -> Ints:
        """The number of data rows n_x in each row of `table`, shape (r,)."""
        totals: Ints = self.table.sum(axis=1)
        return totals

    @cached_property
    def column_totals(self) -> Ints:
        """The total n_y of each of the C classes, shape (C,)."""
        return self.multiplicity @ self.table

    @cached_property
    def rows(self) -> int:
        """The number K_x of values that at least one data row has."""
        return int(self.multiplicity.sum())

    @property
    def columns(self) -> int:
        """The number K_y of classes that at least one data row has."""
        return int(self.table.shape[1])

    @cached_property
    def cells(self) -> int:
        """The number K_xy of pairs of a value and a class that at least one data row has."""
        return int(np.count_nonzero(self.table, axis=1) @ self.multiplicity)

    @property
    def trivial(self) -> bool:
        """Whether the attribute or the label is constant, so that neither can predict the other."""
        return self.rows < 2 or self.columns < 2


def _whole_counts(counts: npt.ArrayLike) -> Ints:
    table = np.asarray(counts)
    if table.ndim != 2:
        raise DataError(
            f"A contingency table was given with {table.ndim} dimensions.",
            hint="Give a table of two: one row per value, one column per class.",
        )
    if table.dtype.kind not in "biuf":
        raise DataError(
            f"A contingency table was given with entries of type {table.dtype}.",
            hint="Give counts: whole numbers from 0 up.",
        )
    bad = table < 0
    if table.dtype.kind == "f":
        bad |= ~np.isfinite(table) | (table != np.floor(table))
    if bad.any():
        raise DataError(
            f"A contingency table holds {table[bad][0]!s}, which is not a count.",
            hint="Give counts: whole numbers from 0 up.",
        )
    return np.ascontiguousarray(table, dtype=np.int64)


def _merge_equal_rows(table: Ints) -> tuple[Ints, Ints]:
    once = np.ones(len(table), dtype=np.int64)
    if len(table) < _MERGE_FROM:
        return table, once
    ordered = table[np.lexsort(table.T)]
    first = np.flatnonzero(np.append(True, (np.diff(ordered, axis=0) != 0).any(axis=1)))
    if len(first) > _MERGE_GAIN * len(table):
        return table, once
    return ordered[first], np.diff(np.append(first, len(table)))


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


_NEGLECTED = 1e-17
"""Largest probability that the window of summation may leave out."""
_STRIDE_FROM = 8.0
"""Standard deviation from which the sum visits only every h-th count (see `_windows`)."""
_CHUNK = 1 << 18
"""Number of counts visited at once, which bounds memory."""
_SMALL = 32
_SMALL_REMAINDER = np.array(
    [math.lgamma(o + 1) - (o * math.log(o) - o if o else 0.0) for o in range(_SMALL)]
)


def expected_mutual_information(table: Contingency) -> float:
    """Return E0[MI] in bits: the mean of plug-in MI over all permutations of the label.

    MI is the mutual information of the attribute and the label, and N the number of rows. A cell is
    a pair of a value, which a rows have, and a class, which b rows have. Permutations do not change
    a and b. The count o of a cell is then hypergeometric with mean e = a b / N, and

        E0[MI] = sum over cells of E[o log2(o / e)] / N
               = sum over cells of E[o ln(o / e) - o + e] / (N ln 2),

    because E[o] = e (Vinh, Epps and Bailey, Information theoretic measures for clusterings
    comparison, JMLR 11, 2010, section 4). The terms of the second sum are at least 0, so no digits
    cancel at large N.

    The value is at least 0. It is 0 for a constant attribute, a label of one class or an empty
    table. The running time depends on the numbers of distinct row and column totals, not on N.
    """
    if table.trivial:
        return 0.0
    a, row_weight = _distinct(table.row_totals, table.multiplicity)
    b, column_weight = _distinct(table.column_totals, np.ones(table.columns, dtype=np.int64))
    binary = table.columns == 2
    if binary:
        # The second class is the complement of the first, and its deviance comes along.
        b, column_weight = table.column_totals[:1], np.ones(1, dtype=np.int64)
    pairs_a, pairs_b = np.repeat(a, len(b)), np.tile(b, len(a))
    weight = np.outer(row_weight, column_weight).ravel()
    deviance = _expected_deviance(pairs_a, pairs_b, table.n, complement=binary)
    return float(weight @ deviance) / (table.n * math.log(2))


def _distinct(totals: Ints, weights: Ints) -> tuple[Ints, Ints]:
    values, inverse = np.unique(totals, return_inverse=True)
    summed = np.zeros(len(values), dtype=np.int64)
    np.add.at(summed, inverse, weights)
    return values, summed


def _expected_deviance(a: Ints, b: Ints, n: int, *, complement: bool) -> Floats:
    """Return the mean of o ln(o / e) - o + e for each pair of a row total a and a column total b,
    where o is hypergeometric with mean e = a b / n. With `complement`, add it for the other a - o
    rows.
    """
    low, stride, points = _windows(a, b, n)
    result = np.empty(len(a))
    chunk = np.cumsum(points) // _CHUNK
    for fold in np.split(np.arange(len(a)), np.flatnonzero(np.diff(chunk)) + 1):
        window = (low[fold], stride[fold], points[fold])
        result[fold] = _sum_windows(a[fold], b[fold], n, window, complement=complement)
    return result


def _windows(a: Ints, b: Ints, n: int) -> tuple[Ints, ...]:
    """Return the counts of a cell over which a mean is summed, for each pair of a row total a and a
    column total b: the first one, the step, and how many. Counts left out have a negligible
    probability.
    """
    # A hypergeometric count is a sum of independent indicators, so Bernstein's inequality bounds the
    # probability outside the window. By Poisson summation, the error of a stride h depends on the
    # characteristic function at 2 pi / h, at most exp(-s^2 (1 - cos(2 pi / h))) < exp(-50) for the
    # standard deviation s and h = floor(s / 2.5).
    share = b / n
    mean = a * share
    variance = mean * (1 - share) * (n - a) / (n - 1)
    exponent = math.log(2 / _NEGLECTED)
    half_width = exponent / 3 + np.sqrt((exponent / 3) ** 2 + 2 * exponent * variance)
    low = np.maximum(np.maximum(0, a + b - n), np.floor(mean - half_width).astype(np.int64))
    high = np.minimum(np.minimum(a, b), np.ceil(mean + half_width).astype(np.int64))
    deviation = np.sqrt(variance)
    stride = np.where(deviation >= _STRIDE_FROM, np.floor(deviation / 2.5), 1).astype(np.int64)
    return low, stride, (high - low) // stride + 1


def _sum_windows(a: Ints, b: Ints, n: int, window: tuple[Ints, ...], *, complement: bool) -> Floats:
    low, stride, points = window
    start = np.cumsum(points) - points
    within = np.arange(int(points.sum())) - np.repeat(start, points)
    count = np.repeat(low, points) + np.repeat(stride, points) * within
    # The four cells of value or not against class or not, and their expectations.
    observed = np.array([count, np.repeat(a, points), np.repeat(b, points), count], dtype=float)
    observed[1:3] -= observed[0]
    observed[3] += n - np.repeat(a + b, points)
    share = b / n
    expected = np.array([a * share, a * (1 - share), (n - a) * share, (n - a) * (1 - share)])
    deviance = _deviance(observed, np.repeat(expected, points, axis=1))
    # ln P(o) = constant - sum of ln o! over the cells; written as deviances it keeps its digits.
    exponent = -(deviance + _factorial_remainder(observed)).sum(axis=0)
    exponent -= np.repeat(np.maximum.reduceat(exponent, start), points)
    mass = np.exp(exponent)
    gain = deviance[:2].sum(axis=0) if complement else deviance[0]
    return np.add.reduceat(mass * gain, start) / np.add.reduceat(mass, start)


def _deviance(observed: Floats, expected: Floats) -> Floats:
    """Return o ln(o / e) - o + e for observed and expected counts; e if o is 0."""
    difference = observed - expected
    ratio = np.where(observed > 0, difference / expected, 0.0)
    return observed * np.log1p(ratio) - difference


def _factorial_remainder(observed: Floats) -> Floats:
    """Return ln o! - o ln o + o, from a table for small o, else by Stirling's series."""
    large = np.maximum(observed, _SMALL)
    inverse = 1 / large
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square / 1260))
    stirling = 0.5 * np.log(2 * math.pi * large) + series
    small: Any = np.minimum(observed, _SMALL - 1).astype(np.int64)
    return np.where(observed < _SMALL, _SMALL_REMAINDER[small], stirling)


def chance_of_share(share: float, rows: Floats, label: LabelSpread) -> float:
    """Return how probable it is that an attribute explains at least a share of the label's
    variation by chance, if the labels of all rows are permuted at random.

    The mean and the variance of the share over all permutations are exact (Haldane, The mean and
    variance of chi-squared, Biometrika 31, 1940; Mielke and Berry, Non-asymptotic inferences based
    on the chi-square statistic for r by c contingency tables, Journal of Statistical Planning and
    Inference 12, 1985). The probability is that of a gamma distribution with this mean and
    variance.

    Parameters
    ----------
    share
        Chi-square divided by the number of rows; for a numeric label, R2.
    rows
        Number of rows of each level (masked value) of the attribute.
    label
        What the mean and the variance depend on.

    Examples
    --------
    >>> import numpy as np
    >>> fair = LabelSpread.of_classes(np.array([50.0, 50.0]))
    >>> [round(chance_of_share(share, np.array([40.0, 60.0]), fair), 3) for share in (0.01, 0.16)]
    [0.32, 0.0]
    """
    from scipy.special import gammaincc  # taking long to load, and of wide tables alone

    n, there = float(rows.sum()), rows[rows > 0]
    levels = len(there)
    if n <= 3 or levels < 2:
        return 1.0
    freedom = (levels - 1) * (n - levels) / (n - 1)
    peaks = (n * float((1 / there).sum()) - levels**2) / (n - 2)
    mean = n * (levels - 1) * label.dimensions / (n - 1)
    variance = 2 * n / (n - 3) * (freedom - peaks) * (label.freedom - label.peaks)
    variance += n**2 / (n - 1) * peaks * label.peaks
    if mean <= 0 or variance <= _ALIKE * mean**2:
        return 1.0  # every permutation has the same share, as when no two rows share a value
    return float(gammaincc(mean**2 / variance, n * share * mean / variance))


class LabelSpread(NamedTuple):
    """What the chance association of an attribute with a label depends on.

    Attributes
    ----------
    dimensions
        The number of classes minus one; 1 for a numeric label.
    freedom, peaks
        The two terms of the label in the variance of chi-square (`chance_of_share`).
    """

    dimensions: float
    freedom: float
    peaks: float

    @classmethod
    def of_classes(cls, rows: Floats) -> LabelSpread:
        """Return the spread of a label with classes; `rows` has the number of rows of each class."""
        n, classes = float(rows.sum()), len(rows)
        peaks = (n * float((1 / rows).sum()) - classes**2) / max(n - 2, 1.0)
        return cls(classes - 1, (classes - 1) * (n - classes) / max(n - 1, 1.0), peaks)

    @classmethod
    def of_number(cls, n: float, kurtosis: float) -> LabelSpread:
        """Return the spread of a numeric label with n rows and a kurtosis (3 for a normal
        distribution).
        """
        return cls(1.0, (n - 2) / max(n - 1, 1.0), (kurtosis - 1) / max(n - 2, 1.0))


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
    bits, for N rows in which K_x values and K_y classes occur.

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
    H(Y) in bits.

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

    A and B are the attributes, and Y is the label. It is computed like
    `corrected_mutual_information`, but each pair of values that occurs counts as one value. It is 0
    if only one pair or one class occurs.

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
    """Return the corrected mutual information in bits from sums: `inside` is the sum of n_xy ln
    n_xy minus that of n_x ln n_x, `rows` the number of values, and `classes` the rows of each
    class.
    """
    columns = int(np.count_nonzero(classes))
    if rows < 2 or columns < 2:
        return 0.0
    n = float(classes.sum())
    nats = (inside - float(n_log_n(classes).sum())) / n + math.log(n)
    return max(0.0, nats / math.log(2) - first_order_bias(rows, columns, n))
