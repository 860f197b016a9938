"""Differential privacy by sampling: the k of the theorem, step by step, and what ARX tests expect."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.errors import PolicyError
from aegis.privacy.dp import sampled_privacy


def tail(n: int, rate: float, gamma: float) -> float:
    """P(Bin(n, rate) > gamma n), term by term."""
    return math.fsum(
        math.comb(n, j) * rate**j * (1 - rate) ** (n - j)
        for j in range(math.floor(n * gamma) + 1, n + 1)
    )


def failing(k: int, epsilon: float, rate: float, end: int = 300) -> float:
    """The delta of a k by its definition, over all n up to `end`."""
    gamma = (math.exp(epsilon) - 1 + rate) / math.exp(epsilon)
    return max(tail(n, rate, gamma) for n in range(math.ceil(k / gamma - 1), end) if n > 0)


@settings(max_examples=25, deadline=None)
@given(st.floats(0.4, 1.5), st.sampled_from([0.05, 0.01, 1e-3]), st.sampled_from([None, 0.1, 0.25]))
def test_k_is_the_smallest_that_the_theorem_allows(
    epsilon: float, delta: float, rate: float | None
) -> None:
    found = sampled_privacy(epsilon, delta, rate)
    assert found.rate == pytest.approx(rate or 1 - math.exp(-epsilon))
    assert failing(found.k, epsilon, found.rate) <= delta * (1 + 1e-9)
    if found.k > 1:
        assert failing(found.k - 1, epsilon, found.rate) > delta * (1 - 1e-9)


@pytest.mark.parametrize(
    ("epsilon", "delta", "k"),
    [
        (2.0, 1e-5, 113),
        (1.5, 1e-6, 99),
        (math.log(2), 1e-7, 80),
        (math.log(3), 1e-8, 108),
        (1.0, 1e-8, 104),
    ],
)
def test_ks_with_which_losses_are_those_of_arx(epsilon: float, delta: float, k: int) -> None:
    """With one more than these ARX's own tests have the losses that they expect: it counts so."""
    assert sampled_privacy(epsilon, delta).k == k


def test_a_smaller_rate_needs_a_smaller_class() -> None:
    ks = [sampled_privacy(1.0, 1e-6, rate).k for rate in (0.6, 0.3, 0.1)]
    assert ks == sorted(ks, reverse=True)
    assert len(set(ks)) == 3


@pytest.mark.parametrize(
    ("epsilon", "delta", "rate", "match"),
    [
        (0.0, 0.1, None, "epsilon = 0"),
        (7.0, 0.1, None, "epsilon = 7"),
        (math.nan, 0.1, None, "epsilon = nan"),
        (1.0, 0.0, None, "delta = 0"),
        (1.0, 1.0, None, "delta = 1"),
        (1.0, 0.1, 0.7, "The rate 0.7 is out of range for epsilon = 1"),
        (1.0, 0.1, 0.0, "The rate 0.0"),
    ],
)
def test_bad_numbers(epsilon: float, delta: float, rate: float | None, match: str) -> None:
    with pytest.raises(PolicyError, match=match):
        sampled_privacy(epsilon, delta, rate)
