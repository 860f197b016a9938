"""The target-coded trace: against codes and a pseudo-inverse row by row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from measures_brute import cooccurrence, count_tables, data

from aegis.measures import Cooccurrence, get
from aegis.measures.target_coded import trace_by_separation
from target_coded_brute import held_out_target_coded, separated


def brute(codes, label):
    """Code every row, and take the trace with pseudo-inverses; return V and the fitted codes."""
    classes = np.unique(label)
    target = np.stack([(label == y).astype(float) for y in classes], axis=1)
    columns, freedom = [], 0
    for column in codes.T:
        values = np.unique(column)
        freedom += len(values) - 1
        means = {v: target[column == v].mean(axis=0) - target.mean(axis=0) for v in values}
        columns.append(np.stack([means[v] for v in column])[:, :-1])
    x = np.hstack(columns)
    x, u = x - x.mean(axis=0), target - target.mean(axis=0)
    sxu = x.T @ u
    inverse = np.linalg.pinv(x.T @ x, rcond=1e-9, hermitian=True)
    return float(np.trace(inverse @ sxu @ np.linalg.pinv(u.T @ u, hermitian=True) @ sxu.T)), freedom


@given(rows=data())
def test_equals_codes_row_by_row(rows):
    codes, label = rows
    found = get("target-coded")(cooccurrence(codes, label))
    classes, n = len(np.unique(label)), len(label)
    trace, freedom = brute(codes, label)
    if classes < 2 or n - freedom - 1 <= 0:
        assert found == 0
        return
    limit = classes - 1
    expected = trace - (1 - trace / limit) * freedom * limit / (n - freedom - 1)
    assert found == pytest.approx(expected, abs=1e-7)


@given(rows=data())
def test_codes_explain_no_more_than_the_values(rows):
    codes, label = rows
    trace, _ = brute(codes, label)
    assert trace <= get("pillai-plain")(cooccurrence(codes, label)) + 1e-8


@given(rows=data())
def test_held_out_equals_its_formula_value_by_value(rows):
    codes, label = rows
    found = get("held-out-target-coded")(cooccurrence(codes, label))
    trace = brute(codes, label)[0]
    expected = held_out_target_coded(codes.T.tolist(), label.tolist(), trace)
    assert found == pytest.approx(expected, abs=1e-6 if trace > 1e-12 else 1e-9)
    assert found <= (trace if len(np.unique(label)) != 2 else 1) + 1e-9


def test_two_classes_of_equal_spread_have_the_usual_trace():
    # Each code is as often far from the rest's mean as from the class's: covariances are equal.
    grid = np.array([[a, b] for a in (0, 1) for b in (0, 1) for _ in range(8)])
    label = np.array([int(i % 8 < 2 + 2 * a + 2 * b) for i, (a, b) in enumerate(grid)])
    columns = grid.T.tolist()
    assert separated(columns, label.tolist()) == pytest.approx(brute(grid, label)[0])


def test_a_code_that_spreads_in_one_class_alone_separates_as_its_auc_says():
    # One of four values holds most of the class, spread over it and the rest's most frequent one.
    code = np.repeat([0, 0, 1, 1], [900, 10, 20, 70])
    label = np.repeat([0, 1, 0, 1], [900, 10, 20, 70])
    values = np.where(code == 0, 10 / 910, 70 / 90)
    own, rest = values[label == 1], values[label == 0]
    square = (own.mean() - rest.mean()) ** 2 / (own.var() + rest.var())
    weight = 2 * 0.08 * 0.92
    expected = weight * square / (1 + weight * square)
    assert separated([code.tolist()], label.tolist()) == pytest.approx(expected)
    found = get("held-out-target-coded")(cooccurrence(code[:, None], label))
    assert found == pytest.approx(expected, abs=0.01)
    assert abs(expected - brute(code[:, None], label)[0]) > 0.1


def test_a_code_that_knows_the_class_has_the_largest_trace():
    alike = np.array([[1, 0.3], [0.3, 1]])
    known, other = np.array([1.0, 0.09]), np.array([1.2, 0.4])
    assert trace_by_separation(alike, known, other, 0.25) == pytest.approx(1)


@given(table=count_tables())
def test_one_attribute_scores_as_pillai(table):
    by_class = np.array([np.diag(column) for column in table.T])
    counts = Cooccurrence.of(by_class, [0, len(table)])
    assert get("target-coded")(counts) == pytest.approx(get("adjusted-pillai")(counts), abs=1e-9)


def test_independent_attributes_add_up_and_repeated_ones_do_not():
    # Two attributes that cross evenly within each class: their codes do not correlate.
    grid = np.array([[a, b] for a in (0, 1) for b in (0, 1) for _ in range(8)])
    label = np.array([int(i % 8 < 2 + 2 * a + 2 * b) for i, (a, b) in enumerate(grid)])
    both = brute(grid, label)[0]
    alone = [brute(grid[:, [i]], label)[0] for i in (0, 1)]
    assert both == pytest.approx(sum(alone))
    twice = np.column_stack([grid[:, 0], grid[:, 0]])
    measure = get("target-coded")
    assert measure(cooccurrence(twice, label)) < measure(cooccurrence(grid, label))
    assert brute(twice, label)[0] == pytest.approx(alone[0])


def test_expected_counts_lower_the_degrees_of_freedom():
    table = np.array([[30, 10], [12, 28]])
    total = np.diag(table.sum(axis=1)).astype(float)
    offsets = np.array([0, 2])
    rows = Cooccurrence(80.0, table, total, offsets)
    drawn = Cooccurrence(
        80.0,
        table,
        total,
        offsets,
        chance=np.array([[3.0], [-3.0]]),
    )
    assert get("held-out-target-coded")(drawn) > get("held-out-target-coded")(rows)
    assert get("target-coded")(drawn) > get("target-coded")(rows)
    assert get("target-coded")(drawn) == pytest.approx(get("adjusted-pillai")(drawn), abs=1e-9)
