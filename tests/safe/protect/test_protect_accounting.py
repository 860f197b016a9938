"""Accounts of privacy: against OpenDP, the exact Gaussian account, and a sum over orders."""

from __future__ import annotations

import math

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from aegis.errors import PolicyError
from aegis.safe.protect import budget_of, epsilon_of, rho_of, sigma_of
from aegis.safe.protect.budget import threshold_of


def opendp_epsilon(sensitivity, sigma, delta):
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    mechanism = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=sigma)
    converted = dp.c.make_zCDP_to_approxDP(mechanism)
    return converted.map(sensitivity).epsilon(delta=delta)


def test_oracle_of_two_rounds_of_eleven_attributes():
    rho = rho_of(math.sqrt(66), 36.81)
    assert rho == pytest.approx(0.02437, abs=3e-5)
    assert epsilon_of(rho, 1e-6) == pytest.approx(1.000, abs=5e-4)
    assert opendp_epsilon(math.sqrt(66), 36.81, 1e-6) == pytest.approx(1.000, abs=5e-4)


def gaussian_epsilon(sensitivity: float, sigma: float, delta: float) -> float:
    """Return the exact epsilon at `delta` of one continuous Gaussian mechanism.

    The second account: Balle and Wang, Improving the Gaussian mechanism for differential privacy,
    ICML 2018, theorem 8. It is at most what `epsilon_of` says of the same noise.
    """
    mu = sensitivity / sigma

    def excess(epsilon: float) -> float:
        far = float(log_ndtr(-mu / 2 - epsilon / mu)) + epsilon
        return float(ndtr(mu / 2 - epsilon / mu)) - math.exp(far) - delta

    if excess(0.0) <= 0:
        return 0.0
    high = 1.0
    while excess(high) > 0:
        high *= 2.0
    return float(brentq(excess, 0.0, high, xtol=1e-12))


@settings(max_examples=25, deadline=None)
@given(rho=st.floats(1e-4, 4), delta=st.sampled_from([1e-9, 1e-6, 1e-3]))
def test_agrees_with_the_second_accountant(rho, delta):
    sigma = sigma_of(1.0, rho)
    own = epsilon_of(rho_of(1.0, sigma), delta)
    assert own == pytest.approx(opendp_epsilon(1.0, sigma, delta), rel=1e-3)
    # The exact account of one Gaussian is never above what its zCDP says.
    assert gaussian_epsilon(1.0, sigma, delta) <= own + 1e-9


@given(rho=st.floats(1e-4, 10), delta=st.floats(1e-10, 1e-2))
def test_is_the_least_over_orders(rho, delta):
    orders = 1 + np.exp(np.linspace(-8, 10, 4001))
    each = (
        orders * rho + (math.log(1 / delta) - np.log(orders)) / (orders - 1) + np.log1p(-1 / orders)
    )
    assert epsilon_of(rho, delta) == pytest.approx(max(each.min(), 0), rel=1e-4, abs=1e-6)


@given(epsilon=st.floats(0.01, 20), delta=st.floats(1e-10, 1e-2))
def test_a_budget_gives_its_epsilon_and_no_more(epsilon, delta):
    rho = budget_of(epsilon, delta)
    assert epsilon_of(rho, delta) <= epsilon
    assert epsilon_of(rho, delta) == pytest.approx(epsilon, rel=1e-5)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 1e-6), (-1, 1e-6), (51, 1e-6), (1, 0), (1, 1)])
def test_what_is_out_of_range_is_refused(epsilon, delta):
    with pytest.raises(PolicyError, match=r"Epsilon is|Delta is"):
        budget_of(epsilon, delta)
    with pytest.raises(PolicyError, match=r"Epsilon is|Delta is"):
        budget_of(float("nan"), delta)


def test_the_threshold_of_names_is_rarely_passed_by_one_row():
    sigma, classes, delta = 4.0, 2, 0.01
    least = threshold_of(sigma, classes, 1, delta)
    noise = np.random.default_rng(0).normal(0, sigma, (200_000, classes)).sum(axis=1)
    assert (1 + noise >= least).mean() <= delta
    assert threshold_of(sigma, classes, 1, delta, alone=5) == pytest.approx(least + 4)
