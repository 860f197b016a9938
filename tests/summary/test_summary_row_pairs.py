"""Pairs that are counted when they are asked for are those that are counted at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.summary import row_pairs
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
    st.sampled_from([0.0, 1.0, 50.0, 1e6]),
    st.booleans(),
)
def test_pairs_from_rows_are_those_of_chunks(
    sizes: list[int], classes: int, folds: int, rows: int, seed: int, cells: float, weighted: bool
) -> None:
    """Whether few, some or all attributes are joined, with and without weights."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_pairs, "_CELLS_PER_ROW", cells)
        _check_pairs(sizes, classes, folds, rows, seed, weighted=weighted)


def _check_pairs(
    sizes: list[int], classes: int, folds: int, rows: int, seed: int, *, weighted: bool
) -> None:
    draw = np.random.default_rng(seed)
    codes = [draw.integers(0, size, rows) for size in sizes]
    label = draw.integers(0, classes, rows)
    names = tuple(f"a{i}" for i in range(len(sizes)))
    shape = names, tuple(sizes), classes
    weights = draw.integers(0, 2**40, rows) if weighted else None
    divisor = 1 if weighted else None
    chunk = Chunk(codes, label, weights)
    at_once = count_pairs(*shape, [chunk], folds=folds, seed=seed, divisor=divisor)
    asked = count_row_pairs(*shape, codes, label, Dealer(names, folds, seed), weights=weights)
    assert asked.rows == at_once.rows
    assert list(asked.index) == list(at_once.index)
    for one, other in zip(asked.atom_counts, at_once.atom_counts, strict=True):
        np.testing.assert_array_equal(one, other)
    for pair in at_once.index:
        np.testing.assert_array_equal(asked.index[pair], at_once.index[pair])
        np.testing.assert_array_equal(asked.count[pair], at_once.count[pair])
    np.testing.assert_array_equal(asked.total, at_once.total)
    assert (asked.folds is None) == (at_once.folds is None)
    if asked.folds is None or at_once.folds is None:
        return
    np.testing.assert_array_equal(asked.folds.rows, at_once.folds.rows)
    for one, other in zip(asked.folds.atom_counts, at_once.folds.atom_counts, strict=True):
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
