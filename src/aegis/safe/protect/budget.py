"""Spend a privacy budget on rounds of noise, and on thresholds for names of values and classes.
Account for the cost in rho (zero-concentrated differential privacy), and report it as epsilon at a
delta.

All output of level `noise` passes through this module. Figures get noise, which costs rho. If the
policy does not declare a name, it is published only if a noisy figure exceeds a threshold. This
costs delta; such names are called bought. So you need to check only this module to check the whole
account.

If a mechanism adds Gaussian noise of scale sigma to a figure of L2 sensitivity s, it is rho-zCDP
with rho = s^2 / (2 sigma^2). The rhos of several figures of the same table add up (Bun and Steinke,
Concentrated differential privacy: simplifications, extensions, and lower bounds, TCC 2016,
propositions 1.6 and 1.7). The discrete Gaussian gives the same guarantee for integers (Canonne,
Kamath and Steinke, The discrete Gaussian for differential privacy, NeurIPS 2020, theorem 14).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from numbers import Integral, Real

import numpy as np

from aegis.arrays import Ints
from aegis.errors import AegisError, PolicyError
from aegis.safe.protect.mechanisms import discrete_gaussian
from aegis.words import brief

MOST_EPSILON = 50.0
"""Largest epsilon that is accepted, because larger values guarantee practically nothing."""
LEAST_EPSILON = 1e-3
_LOG_ORDERS = (-12.0, 14.0)
"""Range of log(alpha - 1) that is searched for the best order."""


class Unit(StrEnum):
    """The unit that differential privacy protects: rows or persons. Two tables are neighbours if
    they differ in one unit.
    """

    ROWS = "rows"
    """One row is added or removed."""
    PERSONS = "persons"
    """All rows of one person are added or removed, up to a stated number of rows."""


@dataclass(frozen=True)
class NoiseRound:
    """A set of published figures to which noise of the same scale was added.

    Attributes
    ----------
    name
        Description of the figures.
    sensitivity
        L2 sensitivity: the largest L2 distance by which the figures change if one person (or row)
        is added or removed.
    sigma
        Scale of the discrete Gaussian noise, in the units of the figures.
    rho
        Privacy cost of the noisy figures in zero-concentrated differential privacy (zCDP).
    """

    name: str
    sensitivity: float
    sigma: float
    rho: float


@dataclass(frozen=True)
class NamingThreshold:
    """A threshold for publishing names: a value, a cell (set of values) or a label class is named
    only if its noisy number of rows reaches the threshold.

    Attributes
    ----------
    name
        Name of the set of noisy figures that are compared with the threshold.
    least
        The threshold: smallest noisy number of rows with which a name is published.
    sigma
        Scale of the noise in these figures.
    columns
        Number of noisy counts that are added up to a noisy number of rows.
    cells
        Largest number of cells that can contain rows of only one unit (a row or a person).
    alone
        Largest number of rows of this unit in such a cell.
    delta
        Largest probability that the name of such a cell is published.
    """

    name: str
    least: float
    sigma: float
    columns: int
    cells: int
    alone: int
    delta: float


def rho_of(sensitivity: float, sigma: float) -> float:
    """Return the cost rho of Gaussian noise of scale `sigma` on figures of this L2 `sensitivity`."""
    return sensitivity * sensitivity / (2.0 * sigma * sigma)


def sigma_of(sensitivity: float, rho: float) -> float:
    """Return the scale of noise that costs `rho`; a factor of 1 + 1e-9 allows for rounding."""
    return sensitivity / math.sqrt(2.0 * rho) * (1.0 + 1e-9)


def epsilon_of(rho: float, delta: float) -> float:
    """Convert `rho`, the privacy loss in zero-concentrated differential privacy (zCDP), to epsilon
    at `delta`.

    For each order a > 1 of the Renyi divergence,

        a rho + (log(1/delta) + (a-1) log(1-1/a) - log a) / (a-1)

    is a valid epsilon (Canonne, Kamath and Steinke, 2020, corollary 13). The function returns the
    smallest of these values.

    Raises
    ------
    PolicyError
        `rho` is negative, or `delta` is not between 0 and 1.
    """
    from scipy.optimize import minimize_scalar

    check_delta(delta)
    if not rho >= 0:
        raise PolicyError(f"The cost rho is {rho}.", hint="Give a number, 0 or more.")
    if rho == 0:
        return 0.0
    log_delta = math.log(1.0 / delta)

    def at(log_order: float) -> float:
        less = math.exp(log_order)
        order = 1.0 + less
        return order * rho + (log_delta - math.log(order)) / less + math.log(less / order)

    least = minimize_scalar(at, bounds=_LOG_ORDERS, method="bounded", options={"xatol": 1e-10})
    return max(float(least.fun), 0.0)


def budget_of(epsilon: float, delta: float) -> float:
    """Convert a guarantee of `epsilon` and `delta` to rho, the privacy loss in zero-concentrated
    differential privacy (zCDP), rounded down.

    Raises
    ------
    PolicyError
        Epsilon or delta are out of range.
    """
    from scipy.optimize import brentq

    check_epsilon(epsilon)
    check_delta(delta)
    # The classical bound epsilon = rho + 2 sqrt(rho log(1/delta)) spends more, so this brackets.
    high = 1.0
    while epsilon_of(high, delta) < epsilon:
        high *= 2.0
    rho = float(brentq(lambda r: epsilon_of(r, delta) - epsilon, 0.0, high, xtol=1e-15))
    return rho * (1.0 - 1e-9)


def threshold_of(sigma: float, classes: int, cells: int, delta: float, alone: int = 1) -> float:
    """Return the threshold for publishing the name of a cell (a set of values) that the policy does
    not declare: the smallest noisy number of rows that is enough.

    One unit (a row or a person) can be the only unit in at most `cells` cells, with at most `alone`
    rows in each. Any of them is named with a probability of at most `delta`. Each cell has noise of
    scale `sigma` in each of `classes` counts, so the threshold is

        alone + sigma sqrt(2 classes log(cells / delta)).

    Tail of the discrete Gaussian: Canonne, Kamath and Steinke, 2020, fact 8 and corollary 9.
    Argument: Korolova et al., Releasing search queries and clicks privately, WWW 2009.
    """
    check_delta(delta)
    return alone + sigma * math.sqrt(2.0 * classes * math.log(max(cells, 1) / delta))


def is_number(value: object, *, integer: bool = False) -> bool:
    """Return whether an option is a number (an integer, if `integer`), and no Boolean."""
    return isinstance(value, Integral if integer else Real) and not isinstance(value, bool)


def delta_of(threshold: NamingThreshold) -> float:
    """Return the largest probability that a name of one unit is published: `threshold_of` inverted."""
    above = max(threshold.least - threshold.alone, 0.0)
    noise = 2.0 * threshold.columns * threshold.sigma * threshold.sigma
    return threshold.cells * math.exp(-above * above / noise) if noise > 0 else math.inf


def check_epsilon(epsilon: float) -> None:
    """Raise `PolicyError` unless epsilon is in the range allowed for a release."""
    if not is_number(epsilon) or not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
        raise PolicyError(
            f"Epsilon is {brief(epsilon)}.",
            hint=f"Allowed: {LEAST_EPSILON:g} to {MOST_EPSILON:g}; 1 is usual.",
        )


def check_delta(delta: float) -> None:
    """Raise `PolicyError` unless delta is between 0 and 1."""
    if not is_number(delta) or not 0 < delta < 1:
        raise PolicyError(
            f"Delta is {brief(delta)}.",
            hint="Allowed: above 0 and below 1; choose less than 1 / rows.",
        )


class Budget:
    """The remaining privacy budget for noise, and a record of its use.

    Parameters
    ----------
    epsilon, delta
        The guarantee of differential privacy. If names of values or classes are paid from the
        budget, they use half of delta.
    unit_rows
        Largest number of rows of one unit: 1 if the unit is a row.
    namings
        Number of thresholds for publishing names that are paid from the budget.
    """

    def __init__(self, epsilon: float, delta: float, unit_rows: int, namings: int) -> None:
        self._each = delta / 2 / namings if namings else 0.0
        self.total = budget_of(epsilon, delta / 2 if namings else delta)
        self.remaining = self.total
        self.unit_rows = unit_rows
        self.rounds: list[NoiseRound] = []
        self.thresholds: list[NamingThreshold] = []

    @contextmanager
    def marking(self) -> Iterator[None]:
        """Return a context manager that marks errors after noise was drawn, so that the cost of the
        noise is not refunded.
        """
        try:
            yield
        except AegisError as error:
            error.noise_drawn = bool(self.rounds)
            raise

    def spend(
        self,
        name: str,
        figures: Sequence[Ints],
        sensitivity: float,
        rho: float,
        keys: Sequence[Sequence[str]] | None = None,  # noqa: ARG002 - for who checks the account
    ) -> tuple[list[Ints], float]:
        """Add noise to figures at the privacy cost `rho`. Return the noisy figures and the scale of
        the noise.

        Parameters
        ----------
        name
            Description of the figures.
        figures
            Arrays of whole numbers.
        sensitivity
            Largest change of all figures together by adding or removing one row, as an L2 distance.
        rho
            The privacy cost to spend (zCDP).
        keys
            For each array, a text for each of its lines that says what the line counts. Needed if
            the set of lines depends on the table.
        """
        distance = sensitivity * self.unit_rows
        sigma = sigma_of(distance, rho)
        flat = np.concatenate([f.ravel() for f in figures]) if figures else np.zeros(0, np.int64)
        noisy = discrete_gaussian(flat, sigma, distance, rho)
        cuts = np.cumsum([f.size for f in figures])[:-1]
        parts = np.split(noisy, cuts) if figures else []
        self.rounds.append(NoiseRound(name, distance, sigma, rho_of(distance, sigma)))
        self.remaining -= rho
        shaped = [part.reshape(f.shape) for part, f in zip(parts, figures, strict=True)]
        return shaped, sigma

    def threshold(self, name: str, sigma: float, columns: int, tables: int) -> float:
        """Return the smallest noisy number of rows with which the name of a value, a cell (set of
        values) or a label class may be published, and record it.

        Parameters
        ----------
        name
            Name of the set of noisy figures that are compared with the threshold.
        sigma
            Scale of the noise.
        columns
            Number of noisy counts that are added up to a noisy number of rows.
        tables
            Number of tables to which each row contributes and whose names are paid from the budget.
        """
        cells = tables * self.unit_rows
        least = threshold_of(sigma, columns, cells, self._each, alone=self.unit_rows)
        self.thresholds.append(
            NamingThreshold(name, least, sigma, columns, cells, self.unit_rows, self._each)
        )
        return least
