"""Pairs that are counted when they are asked for are those that are counted at once."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.summary.build import without_fold
from aegis.summary.codes import Dealer
from aegis.summary.cooccurrence import Chunk, count_pairs
from aegis.summary.row_pairs import count_row_pairs


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=2, max_size=9),
    st.integers(1, 3),
    st.sampled_from([1, 4]),
    st.integers(0, 120),
    st.integers(0, 2**32 - 1),
)
def test_pairs_from_rows_are_those_of_chunks(
    sizes: list[int], classes: int, folds: int, rows: int, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    codes = [draw.integers(0, size, rows) for size in sizes]
    label = draw.integers(0, classes, rows)
    names = tuple(f"a{i}" for i in range(len(sizes)))
    shape = names, tuple(sizes), classes
    at_once = count_pairs(*shape, [Chunk(codes, label)], folds=folds, seed=seed)
    asked = count_row_pairs(*shape, codes, label, Dealer(shape[0], folds, seed))
    assert asked.rows == at_once.rows
    assert list(asked.index) == list(at_once.index)
    for one, other in zip(asked.joints, at_once.joints, strict=True):
        np.testing.assert_array_equal(one, other)
    for pair in at_once.index:
        np.testing.assert_array_equal(asked.index[pair], at_once.index[pair])
        np.testing.assert_array_equal(asked.count[pair], at_once.count[pair])
    np.testing.assert_array_equal(asked.total, at_once.total)
    assert (asked.folds is None) == (at_once.folds is None)
    if asked.folds is None or at_once.folds is None:
        return
    np.testing.assert_array_equal(asked.folds.rows, at_once.folds.rows)
    for one, other in zip(asked.folds.joints, at_once.folds.joints, strict=True):
        np.testing.assert_array_equal(one, other)
    for pair in at_once.index:
        for part in ("cell", "fold", "count"):
            np.testing.assert_array_equal(
                getattr(asked.folds, part)[pair], getattr(at_once.folds, part)[pair]
            )
    for fold in range(folds):
        np.testing.assert_array_equal(
            without_fold(asked, fold).total, without_fold(at_once, fold).total
        )
