"""Channels of the noise masks: probabilities of each released value, given the true value.

A channel is a matrix of shape (V, R): row i is the distribution of the R possible released values
for value i of the V true values. Numbers with noise are released on a grid. The noisy value moves
to the nearest point of `reports`, and values beyond the ends move to the ends (clipping). So the
first and the last column contain the tails of the distributions, and every row sums to one.
Rounding to a grid and clipping are post-processing: they cost no privacy if grid and bounds were
chosen without looking at the data. The masks check the parameters.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from aegis.arrays import Floats
from aegis.measures.checks import check_channel


def laplace_channel(
    values: npt.ArrayLike, reports: npt.ArrayLike, *, epsilon: float, sensitivity: float
) -> Floats:
    """Return the channel of Laplace noise of scale sensitivity / epsilon: the probability that each
    of V values is released as each of R values, shape (V, R). Noisy values move to the nearest of
    the R values.

    Parameters
    ----------
    values
        The V true values, shape (V,).
    reports
        The R values that can be released, shape (R,), strictly ascending.
    epsilon
        Privacy loss between two values that differ by `sensitivity`; above 0. The loss for values
        that differ by d is epsilon * d / sensitivity. The release of a row is epsilon-locally
        differentially private only if `sensitivity` is at least the width of the domain, max - min.
    sensitivity
        The difference between two values up to which epsilon holds; above 0, in units of the
        attribute.

    References
    ----------
    Dwork, McSherry, Nissim and Smith (2006), Calibrating noise to sensitivity in private data
    analysis; local form: Kasiviswanathan et al. (2011), What can we learn privately?
    """
    scale = sensitivity / epsilon

    def cumulative(distance: Floats) -> Floats:
        tail = 0.5 * np.exp(-np.abs(distance) / scale)
        return np.where(distance < 0, tail, 1 - tail)

    return _discretised(values, reports, lambda cut, value: cumulative(cut - value))


def geometric_channel(
    values: npt.ArrayLike, lower: int, upper: int, *, epsilon: float, sensitivity: float = 1.0
) -> Floats:
    """Return the channel of two-sided geometric noise on integers, clipped to lower..upper: the
    probability of each released value (columns) for each true value (rows).

    P(v + k | v) = (1 - alpha) / (1 + alpha) * alpha^|k| with alpha = exp(-epsilon / sensitivity).
    Column j is the released value `lower` + j. The first and the last column also contain the
    probability of all values beyond the bounds.

    Parameters
    ----------
    values
        The V true values, which are integers, shape (V,).
    lower, upper
        Smallest and largest released value, chosen without looking at the data.
    epsilon, sensitivity
        The privacy loss between two values that differ by `sensitivity`, both above 0. The default
        sensitivity of 1 protects neighbouring integers only.

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2012), Universally utility-maximizing privacy mechanisms:
    the geometric mechanism and its truncated form.
    """
    true = np.asarray(values, dtype=np.float64)
    alpha = np.exp(-1.0 / (sensitivity / epsilon))
    steps = np.arange(lower, upper)[None, :] - true[:, None]
    # P(report <= cut): the tail sum of the geometric series on either side of the true value.
    below = np.where(
        steps < 0,
        alpha ** np.maximum(-steps, 0) / (1 + alpha),
        1 - alpha ** (np.maximum(steps, 0) + 1) / (1 + alpha),
    )
    return _from_cumulative(below)


def uniform_channel(values: npt.ArrayLike, reports: npt.ArrayLike, widths: Floats) -> Floats:
    """Return the channel of uniform noise v + U: the probability that each of V values is released
    as each of the R `reports`, shape (V, R). The noisy value moves to the nearest report.

    v is the true value, and U is uniform in [-width, width] with the width of each value, shape
    (V,): at least 0, in units of the attribute. Bounded noise gives no differential privacy: a
    released value shows that the original value is at most the width away.
    """

    def cumulative(cut: Floats, value: Floats) -> Floats:
        distance, width = cut - value, widths[:, None]
        # A value on the very cut belongs to the upper grid point, with and without noise.
        point = (distance > 0).astype(np.float64)
        share = np.divide(distance + width, 2 * width, out=np.zeros_like(distance), where=width > 0)
        return np.where(width > 0, np.clip(share, 0, 1), point)

    return _discretised(values, reports, cumulative)


def randomised_response_channel(
    size: int, *, epsilon: float | None = None, keep: float | None = None
) -> Floats:
    """Return the channel of randomised response over V = `size` unordered values: the probability
    that each value is released as each value, shape (V, V).

    Give exactly one of

    epsilon
        Local differential privacy level, above 0. The true value is reported with probability
        e^epsilon / (e^epsilon + V - 1), and each other value with probability 1 / (e^epsilon + V -
        1).
    keep
        From 0 to 1. The value is kept with this probability. Otherwise a value is drawn uniformly
        from all values, and may be the same value. With 0, the released value does not depend on
        the true one; with 1, every true value is released.

    References
    ----------
    Warner (1965); for V values: Kairouz, Bonawitz and Ramage (2016), Discrete distribution
    estimation under local privacy.
    """
    if epsilon is not None:
        off = float(1.0 / (size - 1 + np.exp(epsilon)))
    else:
        off = (1 - float(keep or 0.0)) / size
    channel = np.full((size, size), off)
    np.fill_diagonal(channel, 1 - off * (size - 1))
    return check_channel(channel, "of randomised response")


Cumulative = Callable[[Floats, Floats], Floats]


def _discretised(values: npt.ArrayLike, reports: npt.ArrayLike, cumulative: Cumulative) -> Floats:
    """Return the probability that report j is the nearest one to noisy value i, for V values and R
    `reports`, shape (V, R). `cumulative` returns the probability that the noisy value is below a
    cut, given the cut and the true value.
    """
    true, grid = np.asarray(values, dtype=np.float64), np.asarray(reports, dtype=np.float64)
    cuts = (grid[1:] + grid[:-1]) / 2
    return _from_cumulative(cumulative(cuts[None, :], true[:, None]))


def _from_cumulative(below: Floats) -> Floats:
    channel = np.diff(below, axis=1, prepend=0.0, append=1.0)
    return check_channel(np.maximum(channel, 0.0))
