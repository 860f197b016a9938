"""Contingency tables are laid out as a table that has them, and read back as they were."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import DataError
from aegis.papers.published import publish, rank_published, read_contingencies
from aegis.papers.published.model import table_of

VALUES = st.sampled_from([None, "", "*", "1x", "ä"])
ROWS = st.lists(st.tuples(VALUES, VALUES, st.sampled_from(["no", "yes", "-"])), min_size=1)


def cells_of(rows):
    return {
        name: dict(Counter((row[place], row[2]) for row in rows))
        for place, name in enumerate(("a", "b"))
    }


@given(ROWS)
def test_a_table_of_contingency_tables_has_them(rows):
    cells = cells_of(rows)
    made = table_of(cells, "label", "M1").to_pylist()
    assert len(made) == len(rows)
    assert cells_of([(r["a"], r["b"], r["label"]) for r in made]) == cells


@given(ROWS)
def test_cells_are_read_as_they_were_written(rows):
    cells = cells_of(rows)
    lines = [
        {"attribute": attribute, "value": value, "label": label, "rows": count}
        for attribute, of in cells.items()
        for (value, label), count in of.items()
    ]
    schema = pa.schema(
        [*((n, pa.string()) for n in ("attribute", "value", "label")), ("rows", pa.int64())]
    )
    assert read_contingencies(pa.Table.from_pylist(lines, schema=schema)) == cells


def test_tables_that_hold_too_much_are_refused():
    with pytest.raises(DataError, match="add up to 100,000,001 rows"):
        table_of({"a": {("x", "no"): 100_000_001}}, "label", "M1")


def test_a_policy_is_taken_as_what_its_file_holds():
    policy = {
        "version": 1,
        "label": "bought",
        "privacy": {"k": 2},
        "attributes": {"age": {"role": "quasi-identifier"}},
    }
    fine = pa.table({"age": ["2x", "2x", "3x", "3x"], "bought": [0, 0, 1, 1]})
    held = publish({"M1": fine}, policy)
    assert rank_published(held, policy, measure="mi").best.name == "M1"
