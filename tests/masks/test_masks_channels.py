from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from aegis.errors import DataError, PolicyError
from aegis.masks.channels import (
    geometric_channel,
    laplace_channel,
    randomised_response_channel,
    uniform_channel,
)
from aegis.papers.reconstruction import (
    Evidence,
    MaskedJoint,
    NoisyJoint,
    channel_em,
    check_channel,
    total_variation,
    unfold,
)
from channel_support import deterministic_channel, expected_joint, privacy_level

GRID = np.arange(0.0, 11.0)
EVERY = {
    "laplace": laplace_channel(GRID, GRID, epsilon=1.0, sensitivity=2.0),
    "geometric": geometric_channel(GRID, 0, 10, epsilon=1.0, sensitivity=2.0),
    "absolute": uniform_channel(GRID, GRID, np.full(11, 2.3)),
    "relative": uniform_channel(GRID, GRID, 0.4 * GRID),
    "response": randomised_response_channel(11, epsilon=2.0),
    "kept": randomised_response_channel(11, keep=0.3),
    "mask": deterministic_channel(np.arange(11) // 3, 4),
}


@pytest.mark.parametrize("name", EVERY)
def test_rows_are_distributions(name):
    assert EVERY[name].min() >= 0
    assert EVERY[name].sum(axis=1) == pytest.approx(1, abs=1e-15)


@given(st.floats(0.05, 5), st.floats(0.5, 10))
def test_laplace_cells_are_integrals_of_the_density(epsilon, sensitivity):
    grid = np.array([0.0, 1, 3, 7])
    channel = laplace_channel(grid, grid, epsilon=epsilon, sensitivity=sensitivity)
    noise = stats.laplace(scale=sensitivity / epsilon)
    for i, value in enumerate(grid):
        for j, (low, high) in enumerate(
            [(-np.inf, 0.5), (0.5, 2), (2, 5), (5, np.inf)],
        ):
            wanted = noise.cdf(high - value) - noise.cdf(low - value)
            assert channel[i, j] == pytest.approx(wanted, abs=1e-12)


@given(st.floats(0.05, 4), st.floats(0.5, 8))
def test_geometric_cells_are_sums_of_the_series(epsilon, sensitivity):
    channel = geometric_channel([2, 5], 0, 6, epsilon=epsilon, sensitivity=sensitivity)
    alpha = np.exp(-epsilon / sensitivity)
    shifts = np.arange(-4000, 4001)
    weights = (1 - alpha) / (1 + alpha) * alpha ** np.abs(shifts)
    for row, value in enumerate((2, 5)):
        released = np.clip(value + shifts, 0, 6)
        assert channel[row] == pytest.approx(np.bincount(released, weights), abs=1e-9)


@pytest.mark.parametrize("name", ["absolute", "relative"])
def test_uniform_noise_against_draws(name):
    generator = np.random.default_rng(5)
    noise = generator.uniform(-1, 1, 200_000)
    for i, value in enumerate(GRID):
        noisy = value + noise * (2.3 if name == "absolute" else 0.4 * value)
        released = np.clip(np.floor(noisy + 0.5), 0, 10).astype(int)
        seen = np.bincount(released, minlength=11) / len(noise)
        assert seen == pytest.approx(EVERY[name][i], abs=0.006)


def test_no_noise_releases_the_nearest_point():
    channel = uniform_channel([0.0, 0.4, 2.6, 9], [0.0, 1, 2], np.zeros(4))
    assert channel.argmax(axis=1).tolist() == [0, 0, 2, 2]
    assert set(channel.ravel()) == {0.0, 1.0}
    relative = uniform_channel([-2.0, 0], [-2.0, 0, 2], np.array([0.5, 0]))
    assert relative[1].tolist() == [0, 1, 0]
    assert relative[0].tolist() == [1, 0, 0]


@given(st.floats(0.1, 5), st.integers(2, 30))
def test_randomised_response_gives_the_epsilon_it_states(epsilon, size):
    assert privacy_level(randomised_response_channel(size, epsilon=epsilon)) == pytest.approx(
        epsilon
    )


@given(st.floats(0.1, 3))
def test_additive_noise_is_private_at_the_width_of_the_domain(epsilon):
    width = float(GRID[-1] - GRID[0])
    for channel in (
        laplace_channel(GRID, GRID, epsilon=epsilon, sensitivity=width),
        geometric_channel(GRID, 0, 10, epsilon=epsilon, sensitivity=width),
    ):
        assert privacy_level(channel) <= epsilon * (1 + 1e-9)
    # With sensitivity 1 only neighbours get epsilon.
    near = geometric_channel(GRID, 0, 10, epsilon=epsilon)
    assert privacy_level(near[4:6]) == pytest.approx(epsilon)
    assert privacy_level(near) > epsilon


def test_privacy_level_of_what_hides_all_or_nothing():
    assert privacy_level(np.full((3, 4), 0.25)) == 0
    assert privacy_level(np.eye(3)) == np.inf
    assert privacy_level(EVERY["absolute"]) == np.inf


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: check_channel([[0.5, 0.4], [0, 1]]), PolicyError, r"row 0 sums to 0.9"),
        (lambda: check_channel([[1.5, -0.5]]), PolicyError, r"negative .* in row 0"),
        (lambda: check_channel([1.0]), PolicyError, "must be a matrix"),
    ],
)
def test_bad_channels(call, error, message):
    with pytest.raises(error, match=message):
        call()


INVERTIBLE = {name: EVERY[name] for name in ("laplace", "geometric", "response", "kept")}


@pytest.mark.parametrize("name", INVERTIBLE)
@given(number=st.integers(0, 10**6))
def test_exact_reports_give_back_the_truth(name, number):
    truth = np.random.default_rng(number).integers(0, 50, (11, 2)).astype(float)
    truth[0] += 1
    channel = INVERTIBLE[name]
    found = unfold(channel, expected_joint(channel, truth))
    assert total_variation(found.table, truth) <= 1e-10
    assert found.converged


def test_em_alone_recovers_the_truth():
    truth = np.array([[30.0, 5], [4, 16], [20, 1], [8, 8]])
    channel = randomised_response_channel(4, epsilon=2.0)
    found = unfold(
        channel, expected_joint(channel, truth), tolerance=1e-28, direct=False, max_iterations=3000
    )
    assert found.iterations > 0
    assert total_variation(found.table, truth) <= 1e-10


@given(st.integers(0, 10**6))
def test_em_is_a_maximum_of_the_likelihood(number):
    generator = np.random.default_rng(number)
    channel = geometric_channel(np.arange(6), 0, 5, epsilon=1.0)
    truth = generator.multinomial(300, generator.dirichlet(np.ones(6)))
    reports = sum(generator.multinomial(n, row) for n, row in zip(truth, channel, strict=True))
    found = unfold(channel, reports, tolerance=1e-13, max_iterations=100_000)
    table = found.table[:, 0]
    assert table.sum() == pytest.approx(300)
    # Karush-Kuhn-Tucker: the gradient is 1 where there is mass and nowhere larger.
    gradient = channel @ (reports / (channel.T @ table))
    assert gradient.max() <= 1 + 1e-3
    assert gradient[table > 1].min() >= 1 - 1e-3


def test_em_equals_its_plain_form():
    generator = np.random.default_rng(3)
    channel, reports = EVERY["geometric"], generator.integers(1, 60, 11).astype(float)
    theta = np.full(11, reports.sum() / 11)
    for _ in range(60_000):
        theta = theta * (channel @ (reports / (channel.T @ theta)))
    found = unfold(channel, reports, tolerance=1e-15, max_iterations=60_000, direct=False)

    def likelihood(table):
        return float((reports * np.log(channel.T @ table)).sum())

    assert likelihood(found.table[:, 0]) >= likelihood(theta) - 1e-6


def test_a_label_without_reports_stays_empty():
    reports = np.array([[5.0, 0], [7, 0], [1, 0]])
    found = unfold(randomised_response_channel(3, keep=0.5), reports)
    assert found.table[:, 1].sum() == 0
    assert found.table[:, 0].sum() == pytest.approx(13)


def test_unfinished_em_is_said():
    channel = EVERY["laplace"]
    reports = np.random.default_rng(0).integers(0, 40, (11, 1)).astype(float)
    found = unfold(channel, reports, tolerance=1e-15, max_iterations=3, direct=False)
    assert not found.converged
    result = channel_em(
        Evidence(11, 1, noisy=[NoisyJoint("n", channel, reports)]), max_iterations=3
    )
    assert not result.converged
    assert "EM did not converge" in result.notes[0]
    assert result.residual == result.details["misfit"]


def test_impossible_reports():
    with pytest.raises(DataError, match=r"Report 1 came in 4 times, but no true value"):
        unfold([[1.0, 0]], [3.0, 4])
    with pytest.raises(DataError, match="2 possible reports"):
        unfold([[1.0, 0]], [3.0])


@given(st.integers(0, 10**6))
def test_masks_and_histogram_are_met_exactly_beside_noise(number):
    generator = np.random.default_rng(number)
    truth = generator.integers(0, 30, (11, 2)).astype(float)
    truth[0] += 1
    channel = EVERY["geometric"]
    reports = np.zeros((11, 2))
    for label in range(2):
        for value, rows in enumerate(truth[:, label].astype(int)):
            reports[:, label] += generator.multinomial(rows, channel[value])
    codes = np.arange(11) // 4
    mask = MaskedJoint("fours", codes, np.stack([np.bincount(codes, y) for y in truth.T], axis=1))
    evidence = Evidence(11, 2, [mask], truth.sum(axis=1), [NoisyJoint("n", channel, reports)])
    result = channel_em(evidence)
    assert result.residual <= 1e-6 * truth.sum()
    assert result.table.sum() == pytest.approx(truth.sum())


def test_two_exact_noise_masks_agree_on_the_truth():
    truth = np.random.default_rng(7).integers(1, 40, (11, 3)).astype(float)
    noisy = [
        NoisyJoint(name, EVERY[name], expected_joint(EVERY[name], truth))
        for name in ("response", "geometric")
    ]
    result = channel_em(Evidence(11, 3, noisy=noisy))
    assert total_variation(result.table, truth) <= 1e-10
    with pytest.raises(PolicyError, match="at least one noise mask"):
        channel_em(Evidence(11, 3))


@pytest.mark.parametrize(("size", "keep"), [(2, 0.7), (5, 0.0), (3, 1.0), (4, 0.25)])
def test_keep_leaves_a_value_alone_and_may_draw_it_again(size: int, keep: float) -> None:
    channel = randomised_response_channel(size, keep=keep)
    expected = np.full((size, size), (1 - keep) / size) + keep * np.eye(size)
    assert channel == pytest.approx(expected)
