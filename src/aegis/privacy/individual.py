"""Estimate the risk of single records of a weighted sample, from the number of people who share a
record's key.

Benedetti, Capobianchi, Franconi: Individual risk of disclosure using sampling design information
(ISTAT 1998/14); Franconi, Polettini: Individual risk estimation in mu-Argus (PSD 2004).
"""

from __future__ import annotations

import numpy as np

from aegis.arrays import Flags, Floats, Ints, number

_LARGE, _TERMS = 100, 25
"""If f is at least the first number, the series needs only as many terms as the second number says.

The last term is then below one divided by C(f + n, n).
"""


def key_counts(codes: Ints, weights: Floats, missing: Flags | None = None) -> tuple[Ints, Floats]:
    """Return, for each record, how many records have the same values in all columns of the key, and
    the sum of these records' weights.

    Parameters
    ----------
    codes
        The code (from 0) of the value of each of N records in each of the m columns of the key,
        shape (N, m).
    weights
        How many people each record represents, shape (N,).
    missing
        Which values are unknown, shape (N, m). An unknown value agrees with every value. None: all
        values are known.

    Returns
    -------
    tuple
        Two arrays of shape (N,). Each record also agrees with itself.

    Examples
    --------
    >>> import numpy as np
    >>> codes, weights = np.array([[0, 1], [0, 1], [0, 2]]), np.array([2.0, 3.0, 4.0])
    >>> key_counts(codes, weights)
    (array([2, 2, 1]), array([5., 5., 4.]))
    >>> key_counts(codes, weights, np.array([[False, True], [False, False], [False, False]]))
    (array([3, 2, 2]), array([9., 5., 6.]))
    """
    unknown = np.zeros(codes.shape, dtype=np.bool_) if missing is None else missing
    # Records that lack values in the same columns are compared at once.
    lacks, pattern = np.unique(unknown, axis=0, return_inverse=True)
    pattern = pattern.reshape(-1)
    rows = [np.flatnonzero(pattern == number) for number in range(len(lacks))]
    counts = np.zeros(len(codes), dtype=np.int64)
    sums = np.zeros(len(codes))
    for mine, of_mine in zip(lacks, rows, strict=True):
        for other, of_other in zip(lacks, rows, strict=True):
            both = np.concatenate([of_mine, of_other])
            keys = row_keys(codes[np.ix_(both, np.flatnonzero(~(mine | other)))])
            own_keys, other_keys = keys[: len(of_mine)], keys[len(of_mine) :]
            groups = int(keys.max(initial=0)) + 1
            counts[of_mine] += np.bincount(other_keys, minlength=groups)[own_keys]
            sums[of_mine] += np.bincount(other_keys, weights[of_other], groups)[own_keys]
    return counts, sums


def row_keys(codes: Ints) -> Ints:
    """Return a number for each row of `codes`, equal for rows with the same codes in all columns."""
    keys = np.zeros(len(codes), dtype=np.int64)
    for column in codes.T:
        keys = number(keys * (int(column.max(initial=0)) + 1) + column)[1]
    return keys


def individual_risk(counts: Ints, people: Floats, *, approximate: bool = False) -> Floats:
    """Return, for each of N records, the probability that somebody finds the record's person in the
    population, shape (N,).

    The number F of people who share a record's key is unknown; f of them are in the sample. Given
    f, F is modelled as negative binomial. The risk is the mean of 1/F, which is

        p^f / f * 2F1(f, f; f + 1; 1 - p),

    where p = f / F^ is the probability that a person is drawn, F^ is the estimate of F, and 2F1 is
    the hypergeometric function.

    Parameters
    ----------
    counts
        For each record, the number f of records in the sample with the same key, shape (N,).
    people
        For each record, the estimated number F^ of people with the same key, shape (N,): the sum of
        the weights of these records.
    approximate
        Whether to use p / (f - (1 - p)) if f is above 2, as sdcMicro does by default.

    Examples
    --------
    >>> import numpy as np
    >>> individual_risk(np.array([1, 3]), np.array([45.5, 108.0])).round(5)
    array([0.08579, 0.01355])
    """
    f = counts.astype(np.float64)
    p = np.minimum(f / people, 1.0)
    # By Euler's transformation, so that no power of p is too small for a number.
    exact: Floats = p / f * _series(f, 1 - p)
    return np.where(counts > 2, p / (f - (1 - p)), exact) if approximate else exact


def _series(f: Floats, z: Floats) -> Floats:
    """Return 2F1(1, 1; f + 1; z), shape (N,), by a short series if f is large."""
    from scipy.special import hyp2f1  # like other parts of SciPy: taking long to load

    large = f >= _LARGE
    total, term = np.ones(len(f)), np.ones(len(f))
    for n in range(1, _TERMS):
        term = term * n * z / (f + n)
        total += term
    small = np.where(large, 1.0, f)
    return np.where(large, total, hyp2f1(1.0, 1.0, small + 1, z))


def interval_share(original: Floats, masked: Floats, share: float = 0.05) -> float:
    """Return the share of N records in which all m original numbers are close to the masked
    numbers.

    Two numbers are close if they differ by at most `share` standard deviations of the masked column
    (Mateo-Sanz, Sebe, Domingo-Ferrer, Outlier protection in continuous microdata masking, PSD
    2004). Missing numbers count as close.

    Parameters
    ----------
    original, masked
        The same records in the same order, shape (N, m).

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[1.0], [2.0], [3.0], [10.0]])
    >>> interval_share(x, np.array([[1.0], [2.0], [4.0], [10.0]]))
    0.75
    """
    width = share * np.nanstd(masked, axis=0, ddof=1)
    off = (original < masked - width) | (original > masked + width)
    return float(np.mean(~off.any(axis=1)))


def il1s(original: Floats, masked: Floats) -> float:
    """Return the information loss IL1s of masked numbers: the sum of |x - x'| / (sqrt(2) s) over
    all numbers.

    x and x' are the original and the masked number, and s is the standard deviation of the column.
    Reference: Yancey, Winkler, Creecy, Disclosure risk assessment in perturbative microdata
    protection (2002). A constant column adds 0 if it is not changed.

    Parameters
    ----------
    original, masked
        The numbers of the same N records in m columns, in the same order, shape (N, m).

    Examples
    --------
    >>> import numpy as np
    >>> round(il1s(np.array([[1.0], [3.0]]), np.array([[2.0], [3.0]])), 4)
    0.5
    """
    spread = np.nanstd(original, axis=0, ddof=1) * np.sqrt(2)
    distance = np.abs(original - masked)
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = np.where(distance == 0, 0.0, distance / spread)
    return float(np.nansum(lost))


def eigenvalue_distance(original: Floats, masked: Floats) -> float:
    """Return how much masking changes correlations: the sum of |e - e'| / e over the eigenvalues e
    and e' of the correlation matrices before and after masking.

    e are the eigenvalues for the original numbers, and e' the eigenvalues for the masked numbers,
    both sorted. Reference: Templ, Statistical disclosure control for microdata (2017). Rows with
    missing numbers are left out.

    Parameters
    ----------
    original, masked
        The numbers of the same N records in m columns, in the same order, shape (N, m).

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 4.0]])
    >>> eigenvalue_distance(x, 2 * x)
    0.0
    """
    before, other = _eigenvalues(original), _eigenvalues(masked)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.abs(before - other) / before
    return float(np.round(distance.sum(), 12))


def _eigenvalues(numbers: Floats) -> Floats:
    complete = numbers[np.isfinite(numbers).all(axis=1)]
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations = np.atleast_2d(np.corrcoef(complete, rowvar=False))
    if not np.isfinite(correlations).all():
        return np.full(numbers.shape[1], np.nan)
    return np.linalg.eigvalsh(correlations).astype(np.float64)
