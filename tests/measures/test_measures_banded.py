"""A matrix in band form gives what it gives itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.measures import banded
from aegis.measures.banded import Banded

ARRAYS = st.tuples(st.integers(1, 60), st.integers(1, 3), st.integers(0, 2**32 - 1))


@settings(max_examples=60, deadline=None)
@given(ARRAYS, st.integers(1, 9), st.floats(0.1, 1e4))
def test_solutions_and_traces_are_those_of_the_matrix(
    shape: tuple[int, int, int], width: int, penalty: float
) -> None:
    size, sides, seed = shape
    draw = np.random.default_rng(seed)
    half = draw.normal(size=(size // 2 + 1, size))  # of about half the rank
    matrix, right = half.T @ half, draw.normal(size=(size, sides))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(banded, "WIDTH", width)
        patch.setattr(banded, "_STRIPE", 2 * width + 1)
        form = Banded.of(matrix.copy(), right)
        solved = form.solve(penalty)
        effective = form.effective(penalty)
    shifted = matrix + penalty * np.eye(size)
    exact = np.linalg.solve(shifted, right)
    np.testing.assert_allclose(
        (form.right * solved).sum(axis=0), (right * exact).sum(axis=0), rtol=1e-9
    )
    np.testing.assert_allclose((solved**2).sum(axis=0), (exact**2).sum(axis=0), rtol=1e-8)
    assert effective == pytest.approx(np.trace(matrix @ np.linalg.inv(shifted)), rel=1e-8, abs=1e-8)


def test_what_is_no_covariance_is_read_by_its_positive_eigenvalues() -> None:
    draw = np.random.default_rng(3)
    whole = draw.normal(size=(200, 200))
    matrix = whole + whole.T
    values = np.linalg.eigvalsh(matrix)
    positive = values[values > 0]
    form = Banded.of(matrix.copy(), np.ones((200, 1)))
    for expected in (False, True):
        assert form.effective(0.5, expected=expected) == pytest.approx(
            (positive / (positive + 0.5)).sum()
        )
