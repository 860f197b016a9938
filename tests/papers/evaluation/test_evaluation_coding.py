from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from evaluation_support import make_policy, make_table
from hypothesis import given
from hypothesis import strategies as st

from aegis.advisor import Scorer, generate
from aegis.masking import masked_table
from aegis.papers.evaluation.coding import Design, code_table
from aegis.sources import open_table
from aegis.summary import summarize


def coded(policy, table=None):
    source = open_table(make_table() if table is None else table)
    summary = summarize(source, policy)
    return source, summary, code_table(source, summary, policy)


@pytest.fixture(scope="module")
def everything():
    policy = make_policy()
    return policy, *coded(policy)


def every_choice(summary):
    scorer = Scorer(summary)
    return [scorer.choose(c) for c in generate(summary, 100, seed=0)]


def test_codes_are_those_of_the_masked_table(everything):
    _policy, source, summary, rows = everything
    for choice in every_choice(summary):
        design = rows.design(choice)
        masks = {name: candidate.mask for name, candidate in choice.items()}
        masked = source.collect(masked_table(source, masks))
        shown = [name for name in rows.codes if choice[name].size > 1]
        if not shown:
            assert design.codes.shape == (rows.rows, 1)
            assert not design.codes.any()
            continue
        assert design.codes.shape[1] == len(shown)
        for codes, name, size in zip(design.codes.T, shown, design.sizes, strict=True):
            values = masked[name].to_pylist()
            pairs = set(zip(codes.tolist(), values, strict=True))
            assert len(pairs) == len({v for _, v in pairs}) == len({c for c, _ in pairs})
            assert codes.max() < size


def test_codes_of_ordered_values_are_in_their_order(everything):
    *_, summary, rows = everything
    identity = summary.attributes["age"].unmasked
    values = make_table()["age"].to_pylist()
    codes = identity.groups[rows.codes["age"]]
    known = [(v, c) for v, c in zip(values, codes, strict=True) if v is not None]
    assert known == sorted(known, key=lambda pair: pair[0]) or all(
        (a[0] < b[0]) == (a[1] < b[1]) for a, b in product(known[:40], known[:40])
    )


def test_the_label_is_coded_and_its_nulls_are_set_apart(everything):
    *_, _summary, rows = everything
    shown = make_table()["sick"].to_pylist()
    found = [None if c < 0 else rows.classes[c] for c in rows.label]
    assert found == shown
    assert rows.labelled.tolist() == [i for i, y in enumerate(shown) if y is not None]


def test_a_label_in_bins_is_coded_by_its_bins():
    policy = make_policy(
        label={"column": "size", "bins": 3}, attributes={"age": {"role": "quasi-identifier"}}
    )
    _, summary, rows = coded(policy)
    assert np.bincount(rows.label).tolist() == summary.label.counts.tolist()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), min_size=1, max_size=20))
def test_one_hot_marks_each_value_once(values):
    codes = np.array(values, dtype=np.int32)
    design = Design(codes, (4, 2))
    rows = np.arange(len(values))[::2]
    indicators = design.one_hot(rows).toarray()
    expected = np.zeros((len(rows), 6))
    for i, row in enumerate(rows):
        expected[i, codes[row, 0]] = expected[i, 4 + codes[row, 1]] = 1
    assert indicators.tolist() == expected.tolist()
    assert design.ordinal(rows).tolist() == codes[rows].tolist()


def test_equal_designs_have_equal_digests():
    one = Design(np.array([[0, 1], [1, 0]], dtype=np.int32), (2, 2))
    same = Design(np.asfortranarray(one.codes), (2, 2))
    other = Design(one.codes, (2, 3))
    assert one.digest == same.digest != other.digest
