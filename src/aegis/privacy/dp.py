"""Account for differential privacy: add up the stated epsilons of noise masks, and compute the
sampling rate and the smallest class of a release by sampling and generalisation.

The guarantee covers only the attributes with noise. The account lists attributes that are released
without noise; if there are any, `covers_release` is False.

Sampling and generalisation give (epsilon, delta)-differential privacy if each record is drawn
independently, the generalisation does not depend on the data, and classes with fewer than k records
are left out. References: Li, Qardaji, Su, On sampling, anonymization, and differential privacy
(ASIACCS 2012), theorem 5; Bild, Kuhn, Prasser, SafePub (PoPETs 2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from aegis.errors import PolicyError
from aegis.words import json_fields


@dataclass(frozen=True)
class PrivacyLoss:
    """The differential-privacy guarantee that one noise mask gives for one attribute.

    Attributes
    ----------
    attribute
        The column to which the mask adds noise.
    epsilon
        Above 0, finite.
    delta
        At least 0 and below 1; 0 is pure differential privacy.
    mechanism
        Name of the noise mechanism, for example "laplace".
    sensitivity
        The largest change of the attribute that one person can cause, above 0. None if the
        mechanism has no sensitivity; for example, randomised response has none.
    learnt
        A parameter that was learnt from the data, so that epsilon does not cover it. None if the
        mask reveals no such parameter.
    instead
        If a parameter was learnt, the mask to use instead, as a policy writes it.
    """

    attribute: str
    epsilon: float
    delta: float = 0.0
    mechanism: str = ""
    sensitivity: float | None = None
    learnt: str | None = None
    instead: str = ""

    def __post_init__(self) -> None:
        _check(
            self, "epsilon", self.epsilon, 0 < self.epsilon < math.inf, "a finite number above 0"
        )
        _check(self, "delta", self.delta, 0 <= self.delta < 1, "a number from 0, below 1")
        if self.sensitivity is not None:
            fine = 0 < self.sensitivity < math.inf
            _check(self, "sensitivity", self.sensitivity, fine, "a finite number above 0")


@dataclass(frozen=True)
class PrivacyAccount:
    """The guarantee that all noise masks together give: the sequential composition of their privacy
    losses.

    Epsilons and deltas add up, because each attribute of a person's row is released once, by a
    separate mechanism (Dwork and Roth 2014, Theorem 3.16). This worst case holds however the
    attributes depend on each other.

    Attributes
    ----------
    losses
        One loss for each attribute with noise; if an attribute gets noise twice, it has two.
    exact
        Everything that is released without noise: attributes, missing values, and parameters learnt
        from the data. If there is anything of this kind, neither it nor the whole release is
        differentially private.
    """

    losses: tuple[PrivacyLoss, ...]
    exact: tuple[str, ...] = ()

    @property
    def epsilon(self) -> float:
        """The sum of the epsilons of all noise masks; 0 if no attribute has noise."""
        return math.fsum(loss.epsilon for loss in self.losses)

    @property
    def delta(self) -> float:
        """The sum of the deltas of all noise masks, at most 1."""
        return min(math.fsum(loss.delta for loss in self.losses), 1.0)

    @property
    def covers_release(self) -> bool:
        """Whether the release shows nothing without noise, so that the guarantee holds for all of
        it.
        """
        return bool(self.losses) and not self.exact

    @property
    def in_words(self) -> str:
        """The total epsilon, and what is not covered, in words."""
        exact = "" if self.covers_release else f"; not covered: {', '.join(self.exact)}"
        return f"epsilon {self.epsilon:g}{exact}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Why an epsilon does not cover everything that a mask reveals, with the mask to use
        instead.
        """
        return tuple(
            f"epsilon {loss.epsilon:g} of {loss.attribute!r} does not cover which values occur: the "
            f"{loss.learnt} of {loss.mechanism} were taken from the data. Write them in the "
            f"policy, chosen without looking at the data: {loss.instead}"
            for loss in self.losses
            if loss.learnt is not None
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the account as JSON values."""
        of_each = ("attribute", "epsilon", "delta", "mechanism", "sensitivity")
        return {
            **json_fields(self, "epsilon", "delta", "covers_release"),
            "attributes": [json_fields(loss, *of_each) for loss in self.losses],
            **json_fields(self, "exact", "notes"),
        }


def _check(loss: PrivacyLoss, name: str, value: float, is_allowed: bool, allowed: str) -> None:
    if not is_allowed:
        raise PolicyError(
            f"{name} of the noise on {loss.attribute!r} is {value!r}.", hint=f"Give {allowed}."
        )


HIGHEST = 5.0
"""The largest epsilon. Above it, nearly all records would be drawn, and finding k would take long.
"""


@dataclass(frozen=True)
class SampledPrivacy:
    """The share of records to draw, and the smallest class of drawn records to show, for a
    guarantee of differential privacy.

    Attributes
    ----------
    epsilon, delta
        The guarantee of differential privacy.
    rate
        The probability of drawing each record.
    k
        The smallest number of drawn records in a class that is shown.
    """

    epsilon: float
    delta: float
    rate: float
    k: int


def sampled_privacy(epsilon: float, delta: float, rate: float | None = None) -> SampledPrivacy:
    """Compute the sampling rate and the smallest k with which a release meets a guarantee of
    differential privacy.

    Let gamma = 1 - (1 - rate) / e^epsilon, and let Bin(n, rate) be the number of records drawn from
    n records. Then k is sufficient if

        P(Bin(n, rate) > gamma n) <= delta  for every n >= k / gamma - 1.

    Parameters
    ----------
    epsilon
        Above 0 and at most 5.
    delta
        Above 0 and below 1.
    rate
        The probability of drawing a record; by default, the largest one that epsilon allows, 1 -
        e^-epsilon.

    Raises
    ------
    PolicyError
        A number is out of its range, or the rate is larger than epsilon allows.

    Examples
    --------
    >>> sampled_privacy(1.0, 1e-6).k
    74
    """
    if not 0 < epsilon <= HIGHEST:
        raise PolicyError(
            f"epsilon = {epsilon}.", hint=f"Give a number above 0 and up to {HIGHEST:g}."
        )
    if not 0 < delta < 1:
        raise PolicyError(f"delta = {delta}.", hint="Give a number above 0 and below 1.")
    largest = -math.expm1(-epsilon)
    chance = largest if rate is None else rate
    if not 0 < chance <= largest * (1 + 1e-12):
        raise PolicyError(
            f"The rate {rate} is out of range for epsilon = {epsilon:g}.",
            hint=f"Give a probability above 0 and at most 1 - e^-epsilon = {largest:.6g}.",
        )
    return SampledPrivacy(epsilon, delta, chance, _least_k(epsilon, delta, chance))


def _least_k(epsilon: float, delta: float, rate: float) -> int:
    from scipy.stats import binom  # taking a second to load, and of one method alone

    gamma = 1 - (1 - rate) * math.exp(-epsilon)
    # By Chernoff the tail of n is at most exp(-n decay): from `end` on none is above delta.
    decay = gamma * math.log(gamma / rate) - (gamma - rate)
    end = math.ceil(-math.log(delta) / decay) + 1
    sizes = np.arange(1, end + 1)
    tails = binom.sf(np.floor(sizes * gamma), sizes, rate)
    above = np.flatnonzero(tails > delta)
    last = int(sizes[above[-1]]) if len(above) else 0
    # All n from the least on must lie beyond the last tail that is too large.
    return math.floor(gamma * (last + 1)) + 1
