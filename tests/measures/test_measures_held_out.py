"""Pillai's trace on rows held out: against smoothers written out and against leave-one-out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measures_brute import cooccurrence, data, held_out, left_out, stack

from aegis.errors import InternalError
from aegis.measures import PENALTIES, Cooccurrence, get, held_out_traces

measure = get("held-out-pillai-values")


def traces(codes, label):
    counts = cooccurrence(codes, label)
    return held_out_traces(counts.total, counts.joint, counts.class_totals, counts.n)


@given(rows=data())
def test_traces_equal_those_of_the_smoothers(rows):
    assert traces(*rows) == pytest.approx(held_out(*rows, PENALTIES), abs=1e-9)


@given(rows=data())
def test_the_measure_is_the_mean_of_what_learners_reach(rows):
    found = held_out(*rows, PENALTIES)
    reached = [max(0.0, *found[: k + 1]) for k in range(len(found))]
    assert measure(cooccurrence(*rows)) == pytest.approx(np.mean(reached), abs=1e-9)


@given(rows=data())
def test_it_lies_between_nothing_and_the_plug_in_trace(rows):
    counts = cooccurrence(*rows)
    assert 0 <= measure(counts) <= get("pillai-plain")(counts) + 1e-9


@given(values=st.integers(2, 5), repeats=st.integers(2, 5), seed=st.integers(0, 2**32 - 1))
def test_it_is_leave_one_out_where_all_rows_weigh_the_same(values, repeats, seed):
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(values), repeats)[:, None]
    label = rng.integers(0, 3, len(codes))
    expected = [left_out(codes, label, penalty) for penalty in PENALTIES]
    assert traces(codes, label) == pytest.approx(expected, abs=1e-9)


@given(rows=data(), penalties=st.lists(st.floats(0.5, 1e4), max_size=3))
def test_any_penalties_can_be_asked_for(rows, penalties):
    counts = cooccurrence(*rows)
    found = held_out_traces(counts.total, counts.joint, counts.class_totals, counts.n, penalties)
    assert found == pytest.approx(held_out(*rows, penalties), abs=1e-9)


def test_a_full_factorial_is_leave_one_out_too():
    codes = np.array([[a, b, c] for a in range(2) for b in range(3) for c in range(2)] * 3)
    label = (codes[:, 0] + codes[:, 1] + np.arange(len(codes)) % 5) % 3
    expected = [left_out(codes, label, penalty) for penalty in PENALTIES]
    assert traces(codes, label) == pytest.approx(expected, abs=1e-12)


def test_a_key_says_nothing_and_costs_what_others_say():
    rng = np.random.default_rng(2)
    told = rng.integers(0, 2, 400)
    label = np.where(rng.random(400) < 0.8, told, 1 - told)
    key, pairs = np.arange(400), np.arange(400) // 2
    assert measure(cooccurrence(key[:, None], label)) == pytest.approx(0, abs=1e-12)
    alone = measure(cooccurrence(told[:, None], label))
    assert alone > 0.2
    for noise in (key, pairs):
        assert measure(cooccurrence(np.column_stack([told, noise]), label)) < alone


def test_without_overfitting_it_comes_to_the_trace_itself():
    table = np.array([[30, 10], [10, 50]])
    by_class = np.array([np.diag(column) for column in table.T])
    plain = get("pillai-plain")(Cooccurrence.of(by_class, [0, 2]))
    many = measure(Cooccurrence.of(by_class * 10**7, [0, 2]))
    assert many == pytest.approx(plain, rel=1e-5)
    assert many < plain


def test_the_order_of_levels_and_attributes_does_not_matter():
    rng = np.random.default_rng(4)
    codes, label = rng.integers(0, 5, (80, 3)), rng.integers(0, 3, 80)
    turned = np.column_stack([4 - codes[:, 2], codes[:, 0], codes[:, 1]])
    assert measure(cooccurrence(turned, label)) == pytest.approx(
        measure(cooccurrence(codes, label)), abs=1e-12
    )


def test_it_takes_expected_counts():
    rng = np.random.default_rng(1)
    by_class, offsets = stack(rng.integers(0, 4, (60, 3)), rng.integers(0, 3, 60))
    half = Cooccurrence.of(by_class / 2, offsets)
    doubled = Cooccurrence.of(by_class / 2 * 2, offsets)
    assert measure(doubled) == measure(Cooccurrence.of(by_class, offsets))
    assert 0 <= measure(half) <= measure(doubled)


def test_expected_counts_with_more_coefficients_than_rows_say_nothing():
    # Noise can spread ten rows over many reports, each of which expects a part of a row.
    total, joint = np.eye(100), np.tile([0.7, 0.3], (100, 1))
    found = held_out_traces(total, joint, np.array([7.0, 3.0]), 10.0)
    assert found[0] == 0  # at a penalty of 3 rows about 25 coefficients are left


def test_a_label_may_have_many_more_classes_than_there_are_levels():
    rng = np.random.default_rng(3)
    codes, label = rng.integers(0, 2, (600, 1)), rng.permutation(np.arange(600) % 200)
    assert traces(codes, label) == pytest.approx(held_out(codes, label, PENALTIES), abs=1e-9)


def test_counts_that_are_no_numbers_are_a_bug():
    total, joint = np.diag([2.0, 3.0]), np.array([[1.0, 1.0], [1.0, 2.0]])
    total[0, 1] = total[1, 0] = np.nan
    with pytest.raises(InternalError, match="not finite"):
        held_out_traces(total, joint, np.array([2, 3]), 5.0)


@pytest.mark.parametrize(("routine", "places"), [("dsytrd", 5), ("dsterf", 2), ("dptsv", 4)])
def test_a_failure_of_lapack_is_told(monkeypatch, routine, places):
    failed = (*[np.ones(2)] * (places - 1), 7)
    if routine == "dsterf":  # eigenvalues are taken where there are no pivots
        pivots = (np.ones(2), np.ones(1), 1)
        monkeypatch.setattr("scipy.linalg.lapack.dpttrf", lambda *_, **__: pivots)
    monkeypatch.setattr(f"scipy.linalg.lapack.{routine}", lambda *_, **__: failed)
    with pytest.raises(InternalError, match=f"{routine} failed with code 7"):
        traces(np.array([[0], [1], [0]]), np.array([0, 1, 1]))
