"""Perturb counts: OpenDP's discrete Gaussian noise, random rounding, and cell keys.

OpenDP draws noise with a formal guarantee on integers, without floating-point arithmetic. Rounding
and cell keys are methods of official statistics without such a guarantee. They take their random
numbers from a keyed hash of the cell. So the same cell is always perturbed in the same way, and
nobody without the key can remove the perturbation.
"""

from __future__ import annotations

import hmac
import math
from collections.abc import Sequence
from functools import cache
from hashlib import sha256

import numpy as np

from aegis.arrays import Floats, Ints
from aegis.errors import InternalError, PolicyError
from aegis.masks.noise.numbers import library
from aegis.words import counted

LEAST_KEY = 16
MAKE_KEY = "Make one (head -c 32 /dev/urandom > secret.key), and keep it."
"""Smallest number of bytes of a secret key."""


def discrete_gaussian(figures: Ints, sigma: float, sensitivity: float, rho: float) -> Ints:
    """Add independent discrete Gaussian noise to integers.

    Parameters
    ----------
    figures
        Whole numbers, any shape.
    sigma
        Scale of the noise.
    sensitivity
        Largest change of the figures if one protected unit (a row or a person) is added or removed,
        as an L2 distance.
    rho
        The allowed privacy cost (zero-concentrated differential privacy).

    Raises
    ------
    PolicyError
        OpenDP is missing; the message names the extra to install.
    InternalError
        The noise costs more than `rho` by OpenDP's account. Nothing is drawn.
    """
    dp = library()
    domain = dp.domains.vector_domain(dp.domains.atom_domain(T="i64"))
    distance = dp.metrics.l2_distance(T="f64")
    mechanism = dp.measurements.make_gaussian(domain, distance, scale=float(sigma))
    cost = float(mechanism.map(float(sensitivity)))
    if not cost <= rho:
        raise InternalError(
            f"Noise of scale {sigma} on a sensitivity of {sensitivity} costs rho {cost}, not {rho}."
        )
    if not figures.size:
        return figures.astype(np.int64)
    noisy = np.array(mechanism(figures.ravel().tolist()), dtype=np.int64)
    return noisy.reshape(figures.shape)


def uniform(key: bytes, parts: Sequence[str]) -> float:
    """Return a number in [0, 1) that the secret key and the texts `parts` of a cell determine."""
    text = "\x1f".join(part.replace("\x1f", "\x1f\x1f") for part in parts)
    digest = hmac.new(key, text.encode("utf-8"), sha256).digest()
    return int.from_bytes(digest[:7], "big") / float(1 << 56)


def check_key(key: bytes) -> None:
    """Raise `PolicyError` if a key is so short that it can be guessed."""
    if not isinstance(key, bytes):
        raise PolicyError(
            f"The secret key is of type {type(key).__name__}, not bytes.",
            hint=f"Give at least {LEAST_KEY} random bytes, and keep them.",
        )
    if len(key) < LEAST_KEY:
        raise PolicyError(
            f"The secret key has {counted(len(key), 'byte')}, and at least {LEAST_KEY} are needed.",
            hint=MAKE_KEY,
        )


def round_randomly(count: int, base: int, chance: float) -> int:
    """Round a count to a multiple of `base` so that it is right on average; `chance` decides.

    The probability of rounding up is the remainder divided by `base` (Cox, A constructive procedure
    for unbiased controlled rounding, JASA 82, 1987, section 2).
    """
    low, rest = divmod(count, base)
    return (low + (chance * base < rest)) * base


def rounded_range(published: int, base: int) -> tuple[int, int]:
    """Return the least and the most true count that rounding to `base` publishes as `published`."""
    return max(published - base + 1, 0), published + base - 1


def key_table(count: int, deviation: int, variance: float, least: int) -> tuple[Ints, Floats]:
    """Return the changes that the cell key method can make to a count, and their probabilities.

    Changes are integers from -`deviation` to `deviation`, such that a changed count is 0 or at
    least `least`; a count of 0 stays 0. Of all distributions with mean 0 and the given or nearest
    possible variance, the function returns the one with the largest entropy.

    References: Giessing, Computational issues in the design of transition probabilities and
    disclosure risk estimation for additive noise, Privacy in Statistical Databases 2016; for the
    ABS cell key method Fraser and Wooton, A proposed method for confidentialising tabular output,
    2005.

    Returns
    -------
    changes, probabilities
        The S possible changes, ascending, and their probabilities, shape (S,) each.
    """
    return _key_table(min(count, deviation + max(least, 0)), deviation, variance, least)


@cache
def _key_table(count: int, deviation: int, variance: float, least: int) -> tuple[Ints, Floats]:
    """Return `key_table`, computed once for all counts from `deviation` + `least` on."""
    if count == 0:
        return np.zeros(1, dtype=np.int64), np.ones(1)
    changes = np.arange(-min(count, deviation), deviation + 1, dtype=np.int64)
    changed_counts = count + changes
    changes = changes[(changed_counts == 0) | (changed_counts >= least)]
    if not len(changes) or changes[-1] < 0 or changes[0] > 0:
        raise PolicyError(
            f"No change of at most {deviation} makes {count} neither negative nor below {least} "
            "without a bias.",
            hint="Allow a larger deviation.",
        )
    if len(changes) == 1:
        return changes, np.ones(1)
    return changes, _largest_entropy(changes.astype(np.float64), variance)


def _largest_entropy(changes: Floats, variance: float) -> Floats:
    """Return the probabilities, of largest entropy, of changes with mean 0 and nearly this variance.

    That of a change d is proportional to exp(a d + b d^2).
    """
    from scipy.optimize import brentq

    scale = float(np.abs(changes).max())
    unit = changes / scale

    def tilted(bend: float) -> Floats:
        def mean(slope: float) -> float:
            return float(_soft(slope * unit + bend * unit**2) @ unit)

        if mean(-400.0) >= 0 or mean(400.0) <= 0:
            return _two_points(unit)
        slope = brentq(mean, -400.0, 400.0, xtol=1e-12)
        return _soft(slope * unit + bend * unit**2)

    def spread(bend: float) -> float:
        return float(tilted(bend) @ unit**2) - variance / scale**2

    low, high = -300.0, 300.0
    if spread(low) >= 0:
        return tilted(low)
    if spread(high) <= 0:
        return tilted(high)
    return tilted(float(brentq(spread, low, high, xtol=1e-10)))


def _soft(exponent: Floats) -> Floats:
    weight = np.exp(exponent - exponent.max())
    share: Floats = weight / weight.sum()
    return share


def _two_points(unit: Floats) -> Floats:
    """Return the probabilities if only the first and the last change occur, with mean 0."""
    chances = np.zeros(len(unit))
    low, high = -unit[0], unit[-1]
    chances[0], chances[-1] = high / (low + high), low / (low + high)
    return chances


def apply_key(count: int, deviation: int, variance: float, least: int, chance: float) -> int:
    """Return a count after its change by cell key; `chance` in [0, 1) selects from `key_table`."""
    changes, probability = key_table(count, deviation, variance, least)
    index = int(np.searchsorted(np.cumsum(probability), chance, side="right"))
    return count + int(changes[min(index, len(changes) - 1)])


def keyed_range(published: int, deviation: int, variance: float, least: int) -> tuple[int, int]:
    """Return the least and the most true count that cell keys can publish as `published`."""
    low = max(published - deviation, 0)
    possible = [
        count
        for count in range(low, published + deviation + 1)
        if published - count in key_table(count, deviation, variance, least)[0]
    ]
    return (min(possible), max(possible)) if possible else (0, published + deviation)


def spread_of_key(deviation: int, variance: float) -> float:
    """Return the standard deviation of the change that cell keys make to a large count."""
    changes, probability = key_table(10 * deviation + 10, deviation, variance, 1)
    return math.sqrt(float(probability @ changes.astype(np.float64) ** 2))
