from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from anonymizers_support import all_quasi, blocks, encoded, tables
from hypothesis import given
from hypothesis import strategies as st

from aegis.anonymizers import Records, encode
from aegis.anonymizers.mondrian_cuts import mondrian


def slow_mondrian(
    records: Records, rows: list[int], k: int, distinct: int, relaxed: bool
) -> list[frozenset[int]]:
    """Mondrian by recursion, one partition at a time."""

    def width(number: int) -> float:
        attribute = records.attributes[number]
        places = attribute.positions[attribute.codes[rows]]
        return float(places.max() - places.min())

    def fine(side: list[int]) -> bool:
        return len(side) >= k and all(
            len(set(a.codes[side].tolist())) >= distinct for a in records.sensitive
        )

    for number in sorted(range(len(records.attributes)), key=lambda n: (-width(n), n)):
        if width(number) == 0 or len(rows) < 2 * k:
            break
        codes = records.attributes[number].codes
        ordered = sorted(rows, key=lambda r: (codes[r], r))
        if relaxed:
            left = sorted(ordered[: len(rows) // 2])
        else:
            median = codes[ordered[(len(rows) - 1) // 2]]
            with_median = [r for r in rows if codes[r] <= median]
            without = [r for r in rows if codes[r] < median]
            even = abs(2 * len(with_median) - len(rows)) <= abs(2 * len(without) - len(rows))
            left = with_median if even else without
        right = [r for r in rows if r not in set(left)]
        if fine(left) and fine(right):
            return [
                *slow_mondrian(records, left, k, distinct, relaxed),
                *slow_mondrian(records, right, k, distinct, relaxed),
            ]
    return [frozenset(rows)]


@pytest.mark.parametrize("relaxed", [False, True])
@given(table=tables(least=4, most=40), k=st.integers(2, 5), distinct=st.integers(1, 2))
def test_mondrian_equals_its_recursion(relaxed, table, k, distinct):
    records = encoded(table)
    if len(records) < k or len(set(table.column("illness").to_pylist())) < distinct:
        return
    fast = mondrian(records, k, distinct=distinct, relaxed=relaxed)
    slow = slow_mondrian(records, list(range(len(records))), k, distinct, relaxed)
    assert blocks(fast) == set(slow)


@given(table=tables(least=8, most=40), k=st.integers(2, 5))
def test_strict_partitions_keep_equal_records_together(table, k):
    records = encoded(table)
    labels = mondrian(records, k)
    _, of = records.combinations
    assert all(len(set(labels[of == value].tolist())) == 1 for value in set(of.tolist()))


def test_relaxed_partitions_of_distinct_values_hold_fewer_than_2k():
    table = pa.table({"x": np.random.default_rng(2).permutation(1000)})
    labels = mondrian(encode(table, all_quasi(table)), 5, relaxed=True)
    assert np.bincount(labels).max() < 10
