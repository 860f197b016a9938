"""Sums of products of codes over rows are those of plain Python, however the rows are handed over."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from protect_support import make_table

import aegis
from aegis.measures import UNPOOLED
from aegis.measures.target_coded import believed
from aegis.safe.protect import moments
from aegis.safe.protect.cells import cells_of
from aegis.safe.protect.moments import clipped_rows, moments_of_rows, offsets_of
from aegis.safe.protect.noise import explained
from aegis.sources import open_table


def plain_sums(rows, summary, cells, codes, longest):
    """Add up products row by row, in whole numbers of Python."""
    size = int(offsets_of(codes)[-1])
    owner = [i for i, own in enumerate(codes) for _ in range(own.shape[1])]
    sums = [[0] * size for _ in range(size)]
    for row in rows:
        if row["income"] is None:
            continue
        vector: list[int] = []
        for own, coded in zip(cells, codes, strict=True):
            place = summary.attributes[own.name].values.to_pylist().index(row[own.name])
            vector += coded[own.of_value[place]].tolist()
        (clipped,) = clipped_rows(np.array([vector], dtype=np.int64), longest).tolist()
        for i in range(size):
            for j in range(size):
                sums[i][j] += clipped[i] * clipped[j] if owner[i] != owner[j] else 0
    return sums


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("longest", [40_000, 2**62])
@pytest.mark.parametrize("largest", [100, 2**24])
def test_sums_are_those_of_plain_python(policy, monkeypatch, repeated, longest, largest):
    first = make_table(40, seed=3)
    labels = first["income"].to_pylist()
    labels[7] = None
    first = first.set_column(4, "income", pa.array(labels))
    table = pa.concat_tables([first] * 8) if repeated else first
    monkeypatch.setattr(moments, "_SAMPLE", 100)
    source, summary = open_table(table), aegis.summarize(table, policy)
    cells = [cells_of(a) for a in summary.attributes.values()]
    random = np.random.default_rng(5)
    codes = [random.integers(-largest, largest, (own.count, 2)) for own in cells]
    listed = [(summary.attributes[own.name].values, own) for own in cells]
    labelled = source.table.filter(source.table["income"].notnull())
    counted = moments._counted_rows(source, labelled, [own.name for own in cells])
    assert (source.collect(counted).num_rows < table.num_rows / 2) is repeated
    made = moments_of_rows(source, labelled, listed, codes, longest)
    assert made.sums.tolist() == plain_sums(table.to_pylist(), summary, cells, codes, longest)


@given(
    st.lists(
        st.tuples(st.integers(-(2**26), 2**26), st.integers(-9, 9), st.integers(1, 2**8)),
        min_size=1,
        max_size=8,
    )
)
def test_products_are_exact_beyond_what_floats_hold(drawn):
    rows = np.array([row[:2] for row in drawn], dtype=np.int64)
    alike = np.array([row[2] for row in drawn], dtype=np.int64)
    expected = [[sum(r[i] * r[j] * r[2] for r in drawn) for j in (0, 1)] for i in (0, 1)]
    assert moments._products(rows, alike).tolist() == expected


def test_what_learners_believe_of_weak_groups_is_by_their_strength():
    """Two groups that differ from the shares by two rows each, without noise."""
    table, count = np.array([[52.0, 48.0], [148.0, 152.0]]), np.array([100.0, 300.0])
    found = explained(table, np.arange(2), np.array([0.5, 0.5]), np.zeros((2, 2)), 400.0)
    strength = 4 * 2**2 / count
    assert strength.sum() < 1
    assert found.believed == pytest.approx(
        [believed(count, strength, penalty) / strength.sum() for penalty in UNPOOLED]
    )
