"""Compute the sampling rate and the smallest class for differential privacy by sampling and
generalisation.

(epsilon, delta)-differential privacy holds if each record is drawn independently, the
generalisation does not depend on the data, and classes with fewer than k records are left out.
References: Li, Qardaji, Su, On sampling, anonymization, and differential privacy (ASIACCS 2012),
theorem 5; Bild, Kuhn, Prasser, SafePub (PoPETs 2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from aegis.errors import PolicyError

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
