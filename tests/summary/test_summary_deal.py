"""Rows are dealt out to folds by what they hold: any order, any chunks, any engine."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.policy import load_policy
from aegis.summary import summarize
from aegis.summary.codes import PRIME, Dealer, modulo, stable_order
from aegis.summary.pairs_in_engine import dealt

NAMES = ("a", "b")
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 1)), max_size=40)


def columns(rows: list[tuple[int, int, int]]) -> tuple[list[Any], Any]:
    a, b, y = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return [a.astype(np.uint8), b.astype(np.uint8)], y


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4) | st.integers(0, 2**62 - 1), max_size=60))
def test_keys_are_ordered_as_by_a_stable_sort(keys):
    of = np.array(keys, dtype=np.int64)
    assert stable_order(of).tolist() == np.argsort(of, kind="stable").tolist()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2 * PRIME + 1) | st.integers(0, 2**63 - 1), max_size=60))
def test_remainders_without_a_division(whole):
    assert modulo(np.array(whole, dtype=np.int64)).tolist() == [one % PRIME for one in whole]


def test_rows_of_several_labels_get_the_folds_of_each_label_alone():
    draw = np.random.default_rng(0)
    table = pa.table(
        {
            "a": draw.integers(0, 4, 300),
            "b": [f"b{v}" for v in draw.integers(0, 3, 300)],
            "c": [None if v == 3 else f"c{v}" for v in draw.integers(0, 4, 300)],
            "d": draw.integers(0, 50, 300),
        }
    )
    attributes = {name: {"role": "feature"} for name in "abc"}
    labels = ["b", "c", {"column": "d", "kind": "number"}]
    several = summarize(table, {"version": 1, "labels": labels, "attributes": attributes}).several
    assert several is not None
    for task, label in zip(several.tasks, labels, strict=True):
        features = {n: own for n, own in attributes.items() if n not in ("b", "c")}
        alone = summarize(table, {"version": 1, "label": label, "attributes": features})
        own, other = task.summary.pairs.folds, alone.pairs.folds
        for one, two in zip(own.atom_counts, other.atom_counts, strict=True):
            np.testing.assert_array_equal(one, two)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.randoms(use_true_random=False), st.integers(0, 40), st.integers(0, 9))
def test_no_order_of_rows_and_no_chunk_changes_what_a_fold_holds(rows, random, cut, seed):
    shuffled = list(rows)
    random.shuffle(shuffled)
    whole = Dealer(NAMES, 5, seed).rows(*columns(rows))
    dealer = Dealer(NAMES, 5, seed)
    pieces = [
        dealer.rows(*columns(piece)).tolist()
        for piece in (shuffled[:cut], shuffled[cut : cut + 3], shuffled[cut + 3 :])
    ]
    by_chunk = zip(shuffled, chain(*pieces), strict=True)
    assert Counter(by_chunk) == Counter(zip(rows, whole.tolist(), strict=True))


@settings(max_examples=60, deadline=None)
@given(ROWS, st.integers(0, 9))
def test_neither_the_order_of_columns_nor_a_constant_one_changes_a_fold(rows, seed):
    (a, b), y = columns(rows)
    plain = Dealer(NAMES, 5, seed).rows([a, b], y)
    other = Dealer(("b", "constant", "a"), 5, seed).rows([b, np.zeros_like(a), a], y)
    np.testing.assert_array_equal(plain, other)


@settings(max_examples=20, deadline=None)
@given(ROWS, st.integers(0, 9), st.booleans())
def test_an_engine_deals_rows_out_alike(rows, seed, of_number):
    (a, b), y = columns(rows)
    own = {"a0": pa.array(a), "a1": pa.array(b), "y": pa.array(y, pa.int64())}
    number = 10**11 * (y - 1) - b if of_number else None
    if number is not None:
        own["r"] = pa.array(number, pa.int64())
    found = dealt(ibis.memtable(pa.table(own)), Dealer(NAMES, 5, seed)).to_pyarrow()
    dealt_out = Counter((r["a0"], r["a1"], r["y"], r["f"]) for r in found.to_pylist())
    folds = Dealer(NAMES, 5, seed).rows([a, b], y, number).tolist()
    assert dealt_out == Counter((*row, f) for row, f in zip(rows, folds, strict=True))


def test_rows_are_dealt_out_evenly_and_equal_ones_as_by_chance():
    draw = np.random.default_rng(0)
    codes, y = [draw.integers(0, 300, 20_000), draw.integers(0, 40, 20_000)], np.arange(20_000) % 2
    one, two = (Dealer(NAMES, 10, seed).rows(codes, y) for seed in (0, 1))
    assert np.abs(np.bincount(one) - 2000).max() < 200
    assert np.mean(one == two) == pytest.approx(0.1, abs=0.02)
    equal = Dealer(NAMES, 10, 0).rows([np.zeros(5000, np.int64)] * 2, np.zeros(5000, np.int64))
    assert np.abs(np.bincount(equal) - 500).max() < 100
    assert np.mean(equal[1:] == equal[:-1]) == pytest.approx(0.1, abs=0.03)
    for codes_of in codes:  # no value has a fold of its own
        cells = np.histogram2d(codes_of, one, bins=(int(codes_of.max()) + 1, 10))[0]
        spread = ((cells - cells.sum(1, keepdims=True) / 10) ** 2).sum() / cells.sum()
        assert spread == pytest.approx(0.9, abs=0.1)


def test_another_order_of_the_rows_gives_the_same_summary():
    draw = np.random.default_rng(3)
    table = pa.table(
        {
            "age": draw.integers(20, 40, 300),
            "city": draw.choice(["x", "y", "z"], 300),
            "y": draw.choice(["no", "yes"], 300),
        }
    )
    policy = load_policy(
        {
            "version": 1,
            "label": "y",
            "attributes": {n: {"role": "feature"} for n in ("age", "city")},
        }
    )
    one = summarize(table, policy).pairs.folds
    two = summarize(table.take(draw.permutation(300)), policy).pairs.folds
    assert one is not None
    assert two is not None
    for own, other in zip(one.atom_counts, two.atom_counts, strict=True):
        np.testing.assert_array_equal(own, other)
    for pair, counts in one.count.items():
        np.testing.assert_array_equal(counts, two.count[pair])
        np.testing.assert_array_equal(one.fold[pair], two.fold[pair])
