"""Equivalence classes counted in the engine equal those counted row by row; null is a value."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from summary_support import KINDS, plain

from aegis.errors import DataError
from aegis.sources import open_table
from aegis.summary import count_classes


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(1, 40))
    columns = {}
    for i in range(4):
        dtype, values, _ = KINDS[draw(st.sampled_from(sorted(KINDS)))]
        column = draw(st.lists(st.none() | st.sampled_from(values), min_size=rows, max_size=rows))
        columns[f"c{i}"] = pa.array(column, dtype)
    return pa.table(columns)


def label(value: Any) -> str:
    return "null" if value is None else "nan" if value == "<NaN>" else str(value)


@given(table=tables(), quasi=st.integers(0, 3), sensitive=st.integers(0, 2))
def test_classes(table: pa.Table, quasi: int, sensitive: int) -> None:
    names = [f"c{i}" for i in range(4)]
    keys, protected = names[:quasi], names[2 : 2 + sensitive]
    counted = count_classes(open_table(table), keys, protected)
    columns = {name: [plain(v) for v in table[name].to_pylist()] for name in names}
    rows = list(zip(*(columns[name] for name in keys), strict=True)) or [()] * table.num_rows
    sizes = Counter(rows)
    assert sorted(counted.table.sizes.tolist()) == sorted(sizes.values())
    for name in protected:
        groups: dict[Any, Counter[str]] = defaultdict(Counter)
        for key, value in zip(rows, columns[name], strict=True):
            groups[key][label(value)] += 1
        counts = counted.table.sensitive[name]
        assert set(counts.labels) == {label(v) for v in columns[name]}
        found: dict[int, dict[str, int]] = defaultdict(dict)
        cells = (counts.classes.tolist(), counts.values.tolist(), counts.counts.tolist())
        for one, value, n in zip(*cells, strict=True):
            found[one][counts.labels[value]] = n
        assert sorted(sorted(c.items()) for c in found.values()) == sorted(
            sorted(c.items()) for c in groups.values()
        )
    if keys:
        chosen = counted.table.sizes == counted.table.sizes.max()
        members = counted.members(chosen)
        listed = zip(*([plain(v) for v in column.to_pylist()] for column in members), strict=True)
        largest = max(sizes.values())
        assert Counter(listed) == Counter(key for key, n in sizes.items() if n == largest)


def test_null_and_nan_are_values() -> None:
    table = pa.table({"a": pa.array([None, None, math.nan, math.nan, 0.0, -0.0])})
    assert count_classes(open_table(table), ["a"]).table.sizes.tolist() == [2, 2, 2]


def test_another_table_of_the_same_engine() -> None:
    source = open_table(pa.table({"a": [1, 2, 3, 4]}))
    halved = source.table.select(a=source.table["a"] % 2)
    assert sorted(count_classes(source, ["a"], table=halved).table.sizes) == [2, 2]


def test_mistakes() -> None:
    source = open_table(pa.table({"age": [1, 2]}))
    with pytest.raises(DataError, match="Did you mean 'age'"):
        count_classes(source, ["aeg"])
    empty = open_table(pa.table({"age": pa.array([], pa.int64())}))
    for keys in ([], ["age"]):
        with pytest.raises(DataError, match="has no rows"):
            count_classes(empty, keys)


def test_no_quasi_identifier_is_one_class() -> None:
    table = pa.table({"a": [1, 2, 3], "s": ["x", "x", "z"]})
    counted = count_classes(open_table(table), [], ["s"]).table
    assert counted.sizes.tolist() == [3]
    np.testing.assert_array_equal(counted.sensitive["s"].counts, [2, 1])
