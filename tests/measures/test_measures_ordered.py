"""The held-out trace on thresholds, and its mean with the one on values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measures_brute import cooccurrence, data, onehot, smoothed, steps

from aegis.errors import InternalError
from aegis.measures import PENALTIES, UNPOOLED, OrderedCounts, get
from aegis.measures.held_out import ordered_traces, thresholds

measure = get("held-out-pillai")
STRONG = [100 * penalty for penalty in PENALTIES]


def in_order(codes, label, ordered):
    counts = cooccurrence(codes, label)
    order = OrderedCounts(counts.total, counts.joint, counts.offsets, ordered)
    return replace(counts, order=order)


@st.composite
def ordered_data(draw):
    codes, label = draw(data())
    size = codes.shape[1]
    return codes, label, draw(st.lists(st.booleans(), min_size=size, max_size=size))


@given(rows=ordered_data())
def test_thresholds_are_counts_of_rows_on_one_side(rows):
    codes, label, ordered = rows
    counts = in_order(codes, label, ordered).in_order
    coded = thresholds(counts)
    assert coded.chance is None
    seen = steps(codes, ordered)
    classes = np.eye(int(label.max()) + 1)[label]
    assert coded.total.tolist() == (seen.T @ seen).tolist()
    assert coded.joint.tolist() == (seen.T @ classes).tolist()


@given(rows=ordered_data())
def test_traces_equal_those_of_smoothers_of_thresholds(rows):
    codes, label, ordered = rows
    counts = in_order(codes, label, ordered)
    found = ordered_traces(counts.in_order, counts.class_totals, counts.n)
    assert found == pytest.approx(smoothed(steps(codes, ordered), label, STRONG), abs=1e-8)


@given(rows=ordered_data(), loss=st.sampled_from([0.0, -0.1]))
def test_the_measure_is_the_mean_over_codings(rows, loss):
    codes, label, ordered = rows
    values = np.hstack([onehot(column) for column in codes.T])
    by_value = reached(smoothed(values, label, UNPOOLED), loss)
    by_order = reached(smoothed(steps(codes, ordered), label, STRONG))
    counts = replace(in_order(codes, label, ordered), pooled=np.full(len(UNPOOLED), loss))
    assert measure(counts) == pytest.approx((2 * by_value + by_order) / 3, abs=1e-8)
    assert 0 <= measure(counts) <= get("pillai-plain")(counts) + 1e-8


def reached(traces, loss=0.0):
    return np.mean([max(0.0, *(t + loss for t in traces[: k + 1])) for k in range(len(traces))])


@given(rows=data())
def test_without_an_order_values_tell_one_by_one(rows):
    codes, label = rows
    unordered = in_order(codes, label, [False] * codes.shape[1])
    assert measure(cooccurrence(codes, label)) == measure(unordered)


@given(rows=ordered_data())
def test_turning_an_order_round_changes_nothing_to_speak_of(rows):
    # The steps are the same ones, but each is on the other side of its threshold.
    codes, label, ordered = rows
    turned = codes.max(axis=0) - codes
    assert measure(in_order(turned, label, ordered)) == pytest.approx(
        measure(in_order(codes, label, ordered)), abs=1e-8
    )


def test_a_trend_over_nearly_unique_values_is_seen():
    rng = np.random.default_rng(3)
    value = np.repeat(np.arange(300), 2)
    label = (rng.random(600) < value / 300).astype(int)
    codes = value[:, None]
    assert get("held-out-pillai-values")(cooccurrence(codes, label)) < 0.15
    ordered = in_order(codes, label, [True]).in_order
    assert ordered_traces(ordered, np.bincount(label), 600.0).max() > 0.25
    shuffled = rng.permutation(300)[value][:, None]
    lost = in_order(shuffled, label, [True]).in_order
    assert ordered_traces(lost, np.bincount(label), 600.0).max() < 0.15


def test_one_flag_belongs_to_each_attribute():
    counts = cooccurrence(np.array([[0, 1], [1, 0]]), np.array([0, 1]))
    with pytest.raises(InternalError, match="1 entries for"):
        OrderedCounts(counts.total, counts.joint, counts.offsets, [True])
