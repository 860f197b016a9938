"""Compute the normal distribution function, and its inverse, for the few values that a ranking
needs.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from aegis.arrays import Array, Floats

_TWICE_THE_TAIL = np.frompyfunc(math.erfc, 1, 1)
_INVERSE = np.frompyfunc(NormalDist().inv_cdf, 1, 1)


def cumulative(values: Array | float) -> Floats:
    """Return Phi of each value, the probability that a standard normal variable is below it.

    It uses the standard library. SciPy's special functions take longer to load than a small ranking
    takes to compute, and they are no faster on so few values.

    Parameters
    ----------
    values
        An array of any shape. Infinities are allowed, and NaN stays NaN.

    Examples
    --------
    >>> from aegis.measures.normal import cumulative
    >>> cumulative([0.0, 1.959963984540054]).round(6).tolist()
    [0.5, 0.975]
    """
    scaled = np.asarray(values, dtype=np.float64) / -math.sqrt(2.0)
    return 0.5 * np.asarray(_TWICE_THE_TAIL(scaled), dtype=np.float64)


def quantile(shares: Array | float) -> Floats:
    """Return the quantile of the standard normal distribution for each share; inverse of `cumulative`.

    Parameters
    ----------
    shares
        An array of any shape, with values above 0 and below 1.

    Examples
    --------
    >>> from aegis.measures.normal import quantile
    >>> quantile([0.5, 0.975]).round(6).tolist()
    [0.0, 1.959964]
    """
    return np.asarray(_INVERSE(np.asarray(shares, dtype=np.float64)), dtype=np.float64)
