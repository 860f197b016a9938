"""The program of the AEGIS paper's section 4.2, solved: what IPF minimises in its place.

Minimise the distance of F(A,Y) from the uniform table subject to the counts that are known. In l2 it is
a quadratic program; with whole rows an integer one.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from aegis.papers.reconstruction import Evidence, MaskedJoint, Settings, reconstruct

CODES = np.array([0, 0, 0, 1])
EXAMPLE_6 = np.array([[0, 0, 1, 7, 12], [15, 25, 29, 9, 2]], dtype=float)
"""Masked joint of Age and Health: Young (10-45) and Old, the paper's Example 6."""


def constraints(masked: np.ndarray, histogram: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the linear constraints on the flattened table: Types 3 and 2, and 1 where it is known."""
    size, classes = len(CODES), masked.shape[1]
    rows, targets = [], []
    for group, label in product(range(len(masked)), range(classes)):
        row = np.zeros((size, classes))
        row[group == CODES, label] = 1
        rows.append(row.ravel())
        targets.append(masked[group, label])
    for value in range(size) if histogram is not None else ():
        row = np.zeros((size, classes))
        row[value] = 1
        rows.append(row.ravel())
        targets.append(histogram[value])
    return np.array(rows), np.array(targets)


def independent(matrix: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the constraints without those that follow from others, which the solver cannot take."""
    kept: list[int] = []
    for place in range(len(matrix)):
        if np.linalg.matrix_rank(matrix[[*kept, place]]) > len(kept):
            kept.append(place)
    return matrix[kept], targets[kept]


def quadratic(masked: np.ndarray, histogram: np.ndarray | None) -> np.ndarray:
    """Return the table of the l2 program without whole rows, shape (V, C)."""
    size, classes = len(CODES), masked.shape[1]
    uniform = masked.sum() / (size * classes)
    matrix, targets = independent(*constraints(masked, histogram))
    found = minimize(
        lambda x: ((x - uniform) ** 2).sum(),
        np.full(size * classes, uniform),
        jac=lambda x: 2 * (x - uniform),
        method="SLSQP",
        bounds=[(0, None)] * (size * classes),
        constraints=LinearConstraint(matrix, targets, targets),
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert np.abs(matrix @ found.x - targets).max() < 1e-6
    return found.x.reshape(size, classes)


def fitted(masked: np.ndarray, histogram: np.ndarray | None) -> np.ndarray:
    evidence = Evidence(
        len(CODES), masked.shape[1], (MaskedJoint("mask", CODES, masked),), histogram
    )
    return reconstruct(evidence, "ipf", settings=Settings()).table


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=6, max_size=6).filter(lambda n: sum(n) > 0))
def test_without_histogram_ipf_solves_the_quadratic_program(counts: list[int]) -> None:
    """Case II: within a group both spread each class evenly, by different arguments."""
    masked = np.array(counts, dtype=float).reshape(2, 3)
    assert fitted(masked, None) == pytest.approx(quadratic(masked, None), abs=1e-3)


def test_with_histogram_ipf_is_not_the_solution_of_the_quadratic_program() -> None:
    """Case I: IPF scales, l2 shifts; they agree only where the rows of a group are alike."""
    alike = np.array([20, 20, 20, 240]) / 3
    assert fitted(EXAMPLE_6, alike) == pytest.approx(quadratic(EXAMPLE_6, alike), abs=1e-3)
    skewed = np.array([4.0, 12.0, 4.0, 80.0])  # Ages 10, 17, 43 of the paper's text, and Old
    scaled, shifted = fitted(EXAMPLE_6, skewed), quadratic(EXAMPLE_6, skewed)
    matrix, targets = constraints(EXAMPLE_6, skewed)
    for table in (scaled, shifted):
        assert matrix @ table.ravel() == pytest.approx(targets, abs=1e-5)
    uniform = EXAMPLE_6.sum() / scaled.size
    distance = {name: np.linalg.norm(t - uniform) for name, t in (("ipf", scaled), ("l2", shifted))}
    assert distance["l2"] < distance["ipf"] - 1e-3
    # What IPF minimises is the Kullback-Leibler divergence from the uniform table (Csiszar 1975).
    divergence = [t[t > 1e-9] @ np.log(t[t > 1e-9] / uniform) for t in (scaled, shifted)]
    assert divergence[0] < divergence[1] - 1e-3


def test_the_integer_program_of_a_small_table_is_near_what_ipf_gives() -> None:
    """Every whole table with these counts, and the nearest in l2, l1 and l-infinity."""
    masked = np.array([[3.0, 2.0], [1.0, 0.0]])
    histogram = np.array([2.0, 2.0, 1.0, 1.0])
    matrix, targets = constraints(masked, histogram)
    tables = [
        np.array(cells, dtype=float)
        for cells in product(range(4), repeat=8)
        if (matrix @ np.array(cells) == targets).all()
    ]
    uniform = 6 / 8
    for norm in (1, 2, np.inf):
        best = min(np.linalg.norm(t - uniform, norm) for t in tables)
        mine = np.linalg.norm(fitted(masked, histogram).ravel() - uniform, norm)
        assert mine <= best + 1e-6  # whole rows can only be farther from the uniform table
    near = min(tables, key=lambda t: float(np.abs(t - fitted(masked, histogram).ravel()).max()))
    assert np.abs(near - fitted(masked, histogram).ravel()).max() < 1
