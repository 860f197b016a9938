"""What values cost that share a level, against one row after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.measures import UNPOOLED, pooled_losses

tables = st.integers(2, 4).flatmap(
    lambda classes: st.lists(
        st.lists(st.integers(0, 4), min_size=classes, max_size=classes), min_size=1, max_size=8
    )
)


def row_by_row(counts, class_counts, penalty):
    """Predict each row from the other rows of its value, and compare with the level's shares."""
    counts = np.array(counts, dtype=float)
    share = counts.sum(axis=0) / counts.sum()
    gain = 0.0
    for value in counts:
        for own, rows in enumerate(value):
            for _ in range(int(rows)):
                unit = np.arange(len(share)) == own
                rest = value - unit
                fit = share + (rest - rest.sum() * share) / (rest.sum() + penalty)
                better = (unit - share) ** 2 - (unit - fit) ** 2
                gain += (better / class_counts).sum()
    return gain


@given(counts=tables, others=st.integers(1, 30))
def test_losses_are_those_of_every_row(counts, others):
    class_counts = np.sum(counts, axis=0) + others
    found = pooled_losses(np.array(counts), class_counts)
    if len([value for value in counts if sum(value)]) < 2:
        assert found.tolist() == [0.0] * len(UNPOOLED)
        return
    wanted = [min(0.0, row_by_row(counts, class_counts, p)) for p in UNPOOLED]
    assert found == pytest.approx(wanted, abs=1e-12)


def test_a_class_without_rows_changes_nothing():
    counts = np.array([[2, 0, 1], [0, 0, 3]])
    without = pooled_losses(counts[:, [0, 2]], np.array([7, 9]))
    assert pooled_losses(counts, np.array([7, 0, 9])).tolist() == without.tolist()


def test_noise_costs_and_a_strong_penalty_spares():
    rng = np.random.default_rng(1)
    counts = np.array([[n, 3 - n] for n in rng.binomial(3, 0.5, 400)])
    losses = pooled_losses(counts, counts.sum(axis=0))
    assert losses[0] < -0.05
    assert (np.diff(losses) > 0).all()
    assert losses[-1] > -1e-3


def test_values_that_tell_something_are_not_paid_for():
    counts = np.array([[5, 0]] * 20 + [[0, 5]] * 20)
    assert (pooled_losses(counts, counts.sum(axis=0)) == 0).all()
