"""Groupings of distinct values and their partial order, against brute force."""

from __future__ import annotations

import math
from datetime import date
from itertools import product

import ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.errors import InternalError
from aegis.masks import (
    Blur,
    Bucketize,
    Identity,
    Kind,
    Suppress,
    Truncate,
    ValueCounts,
    common_refinement,
    evaluate,
    evaluate_columns,
    refines,
    transform,
)


@st.composite
def several_codes(draw, groupings=3):
    size = draw(st.integers(0, 12))
    column = st.lists(st.integers(0, 40), min_size=size, max_size=size)
    return [np.array(draw(column), dtype=np.int32) for _ in range(groupings)]


def pairs(codes):
    """Return the relation of being in one group, as a matrix."""
    return codes[:, None] == codes[None, :]


@given(several_codes(2))
def test_refines_equals_its_definition(codes):
    fine, coarse = codes
    assert refines(fine, coarse) == bool((~pairs(fine) | pairs(coarse)).all())
    assert refines(fine, fine)
    assert refines(fine, np.zeros_like(fine))


@given(several_codes(3))
def test_common_refinement_equals_its_definition(codes):
    found = common_refinement(codes)
    keys = list(zip(*(c.tolist() for c in codes), strict=True))
    order = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    assert found.tolist() == [order[key] for key in keys]
    assert found.dtype == np.int32
    assert all(refines(found, c) for c in codes)


def test_common_refinement_of_many_large_groupings_does_not_overflow():
    size = 5000
    rng = np.random.default_rng(1)
    codes = [rng.permutation(size).astype(np.int32) for _ in range(8)]
    assert common_refinement(codes).tolist() == list(range(size))
    coarse = [rng.integers(0, 3, size).astype(np.int32) for _ in range(4)]
    assert common_refinement(coarse).max() + 1 == len(set(product(*[range(3)] * 4)))


def test_groupings_of_different_sizes_are_refused():
    with pytest.raises(InternalError, match="3 and 2 values"):
        refines(np.zeros(3, np.int32), np.zeros(2, np.int32))
    with pytest.raises(InternalError, match="no grouping"):
        common_refinement([])


def test_evaluate_numbers_groups_by_first_appearance():
    values = pa.array([25, 3, 28, None, 7])
    tens, all_values, nothing = evaluate([Bucketize(10), Identity(), Suppress()], values)
    assert tens.codes.tolist() == [0, 1, 0, 2, 1]
    assert tens.codes.dtype == np.int32
    assert tens.labels == ("[20, 30[", "[0, 10[", "null")
    assert all_values.codes.tolist() == [0, 1, 2, 3, 4]
    assert all_values.labels == ("25", "3", "28", "null", "7")
    assert (nothing.size, nothing.labels) == (1, ("*",))
    assert evaluate([], values) == []


def test_nan_null_and_negative_zero():
    values = pa.array([0.0, math.nan, -0.0, None, math.copysign(math.nan, -1), 1.5])
    [grouping] = evaluate([Identity()], values)
    assert grouping.codes.tolist() == [0, 1, 0, 2, 1, 3]
    assert grouping.labels == ("0", "nan", "null", "1.5")


def test_labels_of_dates_and_booleans_and_empty_columns():
    [grouping] = evaluate([Truncate("month")], pa.array([date(2024, 2, 29)]))
    assert grouping.labels == ("2024-02-01",)
    [grouping] = evaluate([Identity()], pa.array([True, None, False]))
    assert grouping.labels == ("true", "null", "false")
    [grouping] = evaluate([Blur(keep=1)], pa.array([], pa.string()))
    assert (grouping.size, grouping.codes.tolist()) == (0, [])


def test_evaluate_on_a_given_type_and_connection():
    connection = ibis.duckdb.connect()
    [grouping] = evaluate([Blur(hide=1)], pa.array(["10", "11"]), ibis.dtype("int64"), connection)
    assert grouping.labels == ("1*",)
    chunked = pa.chunked_array([["a", "b"], ["a"]])
    [grouping] = evaluate([Identity()], chunked)
    assert grouping.codes.tolist() == [0, 1, 0]


def test_evaluate_keeps_the_order_of_many_values():
    values = pa.array(np.random.default_rng(2).permutation(300_000))
    [identity, thousands] = evaluate([Identity(), Bucketize(1000, 0, "lower")], values)
    assert identity.codes.tolist() == list(range(300_000))
    shown = thousands.masked_values.to_numpy()[thousands.codes]
    assert (shown == values.to_numpy() // 1000 * 1000).all()


@given(st.lists(st.integers(-30, 30), unique=True, min_size=1), st.sampled_from([3, 6, 5]))
def test_refinement_of_widths_is_what_the_groups_say(values, width):
    array = pa.array(values, pa.int64())
    fine, coarse = evaluate([Bucketize(width), Bucketize(2 * width)], array)
    assert refines(fine.codes, coarse.codes)
    assert refines(coarse.codes, fine.codes) == (fine.size == coarse.size)


def test_transform_counts_the_masked_values():
    values = pa.array([3, 7, 12, None])
    found = transform(Bucketize(10), ValueCounts(Kind.INTEGER, values, np.array([1, 2, 4, 8])))
    assert found.kind is Kind.TEXT
    assert found.values.to_pylist() == ["[0, 10[", "[10, 20[", None]
    assert found.counts.tolist() == [3, 4, 8]


COLUMNS = st.lists(
    st.tuples(
        st.booleans(),
        st.lists(st.one_of(st.none(), st.integers(-30, 60)), max_size=6, unique=True),
        st.lists(st.sampled_from([Bucketize(5), Bucketize(5.0), Bucketize(10), Suppress()])),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=20, deadline=None)
@given(COLUMNS, st.sampled_from([4, 10_000]))
def test_columns_masked_together_are_grouped_as_each_alone(columns, few):
    given_columns = [
        (masks, pa.array(values, pa.int64() if whole else pa.float64()))
        for whole, values, masks in columns
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("aegis.masks.grouping._FEW_VALUES", few)
        together = evaluate_columns(given_columns)
    for (masks, values), found in zip(given_columns, together, strict=True):
        alone = [evaluate([mask], values)[0] for mask in masks]
        assert [own.codes.tolist() for own in found] == [own.codes.tolist() for own in alone]
        assert [own.masked_values for own in found] == [own.masked_values for own in alone]


def test_one_expression_masks_all_columns_that_share_a_mask(monkeypatch):
    asked = []
    expression = Bucketize.expression
    monkeypatch.setattr(
        Bucketize, "expression", lambda mask, column: asked.append(mask) or expression(mask, column)
    )
    evaluate_columns([([Bucketize(5), Bucketize(10)], pa.array([i, i + 7])) for i in range(20)])
    assert asked == [Bucketize(5), Bucketize(10)]
