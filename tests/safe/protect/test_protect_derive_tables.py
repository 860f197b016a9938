"""Ranges of label tables in closed form against linear programs, cell by cell, and against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.errors import DataError
from aegis.safe.protect.derive.cells import Range, _narrow, _programmed, table_ranges

SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 4))


@st.composite
def published(draw, shapes=SHAPES, largest=12):
    """What is known of a label table: some of it contradicts itself."""
    shape = draw(shapes)
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    true = random.integers(0, largest + 1, shape)
    slack = draw(st.integers(0, largest))
    low = np.maximum(true - random.integers(0, slack + 1, shape), 0)
    high = true + random.integers(0, slack + 1, shape)
    drift = draw(st.integers(0, 2))
    sums = true.sum(axis=0)
    least = sums - random.integers(-drift // 2, slack + 1, shape[1])
    most = sums + random.integers(-drift // 2, slack + 1, shape[1])
    threshold = draw(st.integers(0, int(true.sum(axis=1).min()) + drift))
    return low, high, threshold, least, most


def answered(ask):
    """The answer, or None where nothing agrees."""
    try:
        return ask()
    except DataError:
        return None


@given(published())
@settings(max_examples=60)
def test_the_closed_form_is_what_linear_programs_find(known):
    low, high, threshold, least, most = known
    asked = range(low.size)
    programmed = answered(lambda: _programmed(low, high, threshold, (least, most), asked))
    closed = answered(lambda: table_ranges(*known))
    if closed is not None:
        closed = [Range(*map(int, ends)) for ends in zip(*(e.ravel() for e in closed), strict=True)]
    assert closed == programmed


@given(published(st.tuples(st.integers(1, 2), st.integers(1, 2)), largest=3))
@settings(max_examples=60)
def test_the_closed_form_is_what_every_whole_table_says(known):
    low, high, threshold, least, most = known
    space = [range(a, b + 1) for a, b in zip(low.ravel(), high.ravel(), strict=True)]
    agreeing = []
    for counts in itertools.product(*space):
        table = np.reshape(counts, low.shape)
        sums = table.sum(axis=0)
        if (
            (table.sum(axis=1) >= threshold).all()
            and (least <= sums).all()
            and (sums <= most).all()
        ):
            agreeing.append(table)
    found = answered(lambda: table_ranges(*known))
    assert (found is not None) == bool(agreeing)
    if found is not None:
        assert np.array_equal(found[0], np.min(agreeing, axis=0))
        assert np.array_equal(found[1], np.max(agreeing, axis=0))


def test_many_classes_are_left_to_linear_programs():
    """More classes than all sets of which are gone through give the same cells."""
    random = np.random.default_rng(0)
    table = random.integers(0, 9, (3, 11))
    bounds = np.stack([np.maximum(table - 4, 0), table + 4], axis=-1)
    sums = table.sum(axis=0)
    found = _narrow("a", bounds, (sums, sums), 1, 9)
    closed = table_ranges(bounds[..., 0], bounds[..., 1], 1, sums, sums)
    narrow = (closed[1] - closed[0] + 1 < 9) & (bounds[..., 0] < 9) & (closed[1] > 0)
    assert narrow.any()
    assert [(d.cell, d.label) for d in found] == [tuple(p) for p in np.argwhere(narrow).tolist()]


def test_a_row_that_cannot_reach_the_threshold_contradicts():
    with pytest.raises(DataError, match="No table agrees"):
        table_ranges(np.array([[0, 0]]), np.array([[1, 1]]), 3, np.zeros(2, int), np.ones(2, int))
