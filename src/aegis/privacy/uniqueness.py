"""Estimate how many people are unique in the population, from a table that is a sample of it.

All estimators use only the sizes of the classes and the sampling fraction. Dankar, El Emam, Neisa
and Roffey compare them: Estimating the re-identification risk of clinical data sets (BMC Medical
Informatics and Decision Making 12, 2012). `dankar` implements the decision rule of these authors.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from aegis.arrays import Floats, Ints

SMALL_SAMPLE = 0.1
"""Largest sampling fraction for which the decision rule uses Pitman's estimate."""


def zayatz(sizes: Ints, population: int) -> float:
    """Estimate which share of the people in the population have a combination of values that nobody
    else has, by Zayatz's method.

    Bayes' rule gives the probability that a class of one row in the sample comes from a class of
    one person in the population. The estimator assumes that class sizes in the population have the
    same distribution as in the sample. Reference: Zayatz, Estimation of the percent of unique
    population elements on a microdata file using the sample (US Census Bureau, 1991).

    Parameters
    ----------
    sizes
        Number of rows per class, shape (n_classes,).
    population
        Number of people in the population, at least the number of rows.
    """
    from scipy import stats  # like the other parts of it below: taking long to load

    rows = int(sizes.sum())
    size, count = np.unique(sizes, return_counts=True)
    share = count / len(sizes)
    drawn_once = stats.hypergeom.pmf(1, population, size, rows)
    evidence = float((share * drawn_once).sum())
    unique = float(share[size == 1].sum())
    if not unique or not evidence:
        return 0.0
    certain = unique * float(stats.hypergeom.pmf(1, population, 1, rows)) / evidence
    return int((sizes == 1).sum()) * certain / (rows / population) / population


def pitman(sizes: Ints, population: int) -> float:
    """Estimate which share of the people in the population have a combination of values that nobody
    else has, by Pitman's model.

    `sizes` has the number of rows per class, shape (n_classes,), and `population` is the number N
    of people in the population. The parameters theta and alpha of the model are fitted to the sizes
    by maximum likelihood. Then the number of unique people is about

        Gamma(theta + 1) / Gamma(theta + alpha) * N^alpha.

    Reference: Hoshino, Applying Pitman's sampling formula to microdata disclosure risk assessment
    (Journal of Official Statistics 17, 2001).
    """
    from scipy import optimize, special

    size, count = np.unique(sizes, return_counts=True)
    classes, rows = len(sizes), int(sizes.sum())
    if classes == rows:
        return 1.0  # all are unique: alpha tends to 1

    def loss(unbounded: Floats) -> float:
        theta, alpha = _positive(unbounded[0]), _share(unbounded[1])
        growth = (classes - 1) * math.log(alpha) + _rising(theta / alpha, classes)
        rising = _rising(theta, rows)
        within = special.gammaln(size - alpha) - special.gammaln(1 - alpha)
        return float(rising - growth - (count * within).sum())

    starts = [(math.log(s), a) for s in (1.0, classes) for a in (-2.0, 0.0, 2.0)]
    root = min(
        (optimize.minimize(loss, start, method="Nelder-Mead", options=_EXACT) for start in starts),
        key=lambda fit: float(fit.fun),
    )
    theta, alpha = _positive(root.x[0]), _share(root.x[1])
    uniques = math.exp(
        special.gammaln(theta + 1) - special.gammaln(theta + alpha) + alpha * math.log(population)
    )
    return min(uniques / population, 1.0)


def _positive(x: float) -> float:
    """Return e^x for x limited to -30..30, so that an optimiser cannot overflow."""
    return math.exp(min(max(x, -30.0), 30.0))


def _share(x: float) -> float:
    """Return 1 / (1 + e^-x), limited so that it is neither 0 nor 1."""
    return 1 / (1 + math.exp(-min(max(x, -20.0), 20.0)))


_EXACT = {"xatol": 1e-9, "fatol": 1e-9, "maxiter": 4000}


def _rising(start: float, steps: int) -> float:
    """Return log((start + 1) ... (start + steps - 1)); for a very large start, the difference of
    two logarithms of Gamma would have no correct digit.
    """
    if start > 1e8 * steps:
        return (steps - 1) * math.log(start) + steps * (steps - 1) / (2 * start)
    return math.lgamma(start + steps) - math.lgamma(start + 1)


def slide_negative_binomial(sizes: Ints, population: int) -> float:
    """Estimate which share of the people in the population have a combination of values that nobody
    else has; NaN if the model does not fit.

    `sizes` has the number of rows per class, shape (n_classes,), and `population` is the number of
    people in the population. The model assumes that class sizes in the population, minus 1, are
    negative binomial. Its two parameters are fitted to the numbers of classes with one row and with
    two rows in a sample. Shlosser's formula, as corrected by Haas and Stokes, estimates the number
    of classes in the population. Reference: Chen, Keller-McNulty, Estimation of identification
    disclosure risk in microdata (Journal of Official Statistics 14, 1998).
    """
    from scipy import optimize

    rows = int(sizes.sum())
    fraction = rows / population
    ones, twos = int((sizes == 1).sum()), int((sizes == 2).sum())
    classes = _classes_of_population(sizes, fraction)
    if fraction >= 1:
        return ones / population
    if not np.isfinite(classes):
        return math.nan

    def misfit(unbounded: Floats) -> Floats:
        shape, chance = _positive(unbounded[0]), _share(unbounded[1])
        missed = (1 - fraction) * (1 - chance)
        common = classes * (chance / (1 - missed)) ** shape
        first = common * fraction * (shape * missed / (1 - missed) + 1)
        second = common * fraction**2 * shape * (1 - chance) / 2
        second *= (2 - (1 - shape) * missed) / (1 - missed) ** 2
        return np.array([first - ones, second - twos]) / max(ones, 1)

    for start in ((0.0, 0.0), (-2.0, -2.0), (-2.0, 2.0), (1.0, -3.0)):
        root = optimize.root(misfit, start)
        if root.success and np.abs(root.fun).max() < 1e-6:
            shape, chance = _positive(root.x[0]), _share(root.x[1])
            return min(float(classes * chance**shape / population), 1.0)
    return math.nan


def _classes_of_population(sizes: Ints, fraction: float) -> float:
    size, count = np.unique(sizes, return_counts=True)
    square = fraction**2
    missed = ((1 - fraction) ** size * count).sum()
    first = (size * square * (1 - square) ** (size - 1) * count).sum()
    second = ((1 - fraction) ** size * ((1 + fraction) ** size - 1) * count).sum()
    third = (size * fraction * (1 - fraction) ** (size - 1) * count).sum()
    if not second or not third:
        return math.nan
    ones = count[size == 1].sum()
    return float(len(sizes) + ones * (first / second) * (missed / third) ** 2)


def dankar(sizes: Ints, population: int) -> float:
    """Return the estimated share of people in the population with a combination of values that
    nobody else has, by the estimator that the rule of Dankar et al. selects.

    `sizes` has the number of rows per class. If at most a tenth of the population is in the sample,
    this is Pitman's estimate. Otherwise it is Zayatz's estimate, or the slide negative binomial
    estimate if its model fits and it is smaller.
    """
    if sizes.sum() <= SMALL_SAMPLE * population:
        return pitman(sizes, population)
    fitted = slide_negative_binomial(sizes, population)
    other = zayatz(sizes, population)
    return other if math.isnan(fitted) else min(fitted, other)


ESTIMATORS: dict[str, Callable[[Ints, int], float]] = {
    "dankar": dankar,
    "pitman": pitman,
    "zayatz": zayatz,
    "snb": slide_negative_binomial,
}
"""The estimators of population uniqueness, by their names in a policy."""


def population_uniqueness(sizes: Ints, population: int, estimator: str) -> float:
    """Estimate, by the estimator with this name, which share of the people in the population have a
    combination of values that nobody else has.

    `sizes` has the number of rows per class, shape (n_classes,). The result is 0 if no class of the
    sample has one row, and 1 if the model of the estimator does not fit.
    """
    if not (sizes == 1).any():
        return 0.0
    estimate = ESTIMATORS[estimator](sizes, max(population, int(sizes.sum())))
    return 1.0 if math.isnan(estimate) else estimate
