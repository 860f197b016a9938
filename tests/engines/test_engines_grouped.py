"""Grouping twice and looking masks up give what the plain way gives."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.types as ir
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines_support import HOSTILE, awkward, policy, rows_of
from hypothesis import given
from hypothesis import strategies as st

from aegis.masking import masked as looked_up
from aegis.masking import masked_table
from aegis.masks import Mask, parse_mask
from aegis.sources import Source, open_table
from aegis.summary import coded_rows
from aegis.summary.classes import count_classes
from aegis.summary.coded_rows import count_by


def _quick(source: Source, column: ir.Column, mask: Mask) -> ir.Value:
    """Return the masked column as it is looked up, of a table of any number of rows."""
    name = column.get_name()
    return looked_up.expressions(source, {name: column}, {name: mask}, rows=1)[name]


def counted(query: Any, source: Any) -> Counter[tuple[str, ...]]:
    found = source.collect(query)
    keys = list(zip(*(found[n].to_pylist() for n in found.column_names if n != "n"), strict=True))
    result: Counter[tuple[str, ...]] = Counter()
    for key, n in zip(keys, found["n"].to_pylist(), strict=True):
        result[tuple(map(repr, key))] += n
    return result


@given(st.integers(1, 150), st.integers(1, 120))
def test_grouping_twice_counts_the_same(rows: int, trial: int) -> None:
    source = open_table(pa.concat_tables([awkward(8).slice(0, 8)] * 20).slice(0, rows))
    masks = {
        "age": parse_mask({"bucketize": {"width": 20}}),
        HOSTILE: parse_mask({"blur": {"keep": 1}}),
        "born": parse_mask({"truncate": {"unit": "year"}}),
        "ill": parse_mask("suppress"),
    }
    table = masked_table(source, masks)
    keys = {f"k{i}": table[name] for i, name in enumerate(masks)}
    plain = table.group_by(**keys).aggregate(n=table.count())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coded_rows, "TRIAL_ROWS", trial)
        twice = count_by(source, table, keys)
    assert counted(twice, source) == counted(plain, source)


def test_it_groups_twice_where_values_repeat_and_only_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = open_table(pa.concat_tables([awkward(8)] * 20))
    mask = parse_mask({"bucketize": {"width": 20}})

    def query(source: Any, trial: int) -> str:
        keys = {"k": mask.expression(source.table["age"])}
        monkeypatch.setattr(coded_rows, "TRIAL_ROWS", trial)
        return str(ibis.to_sql(count_by(source, source.table, keys)))

    assert query(many, 100).count("GROUP BY") == 2
    assert query(many, 100_000).count("GROUP BY") == 1
    few = open_table(pa.table({"age": list(range(300))}))
    assert query(few, 100).count("GROUP BY") == 1


def test_random_keys_are_computed_for_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coded_rows, "TRIAL_ROWS", 100)
    source = open_table(pa.table({"v": [1] * 400}))
    keys = {"k": source.table["v"] + (ibis.random() * 1000).floor()}
    assert str(ibis.to_sql(count_by(source, source.table, keys))).count("GROUP BY") == 1


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("age", {"bucketize": {"width": 7}}),
        ("age", {"bucketize": {"width": 7, "show": "lower"}}),
        ("age", {"blur": {"keep": 1}}),
        ("age", {"quantiles": {"count": 3, "edges": [0, 20]}}),
        ("age", {"group": {"groups": {"x": [2, 9, 16]}}}),
        ("age", {"keep_frequent": {"count": 2, "values": [2, 9]}}),
        ("age", "suppress"),
        ("age", "identity"),
        (HOSTILE, {"blur": {"keep": 1}}),
        (HOSTILE, {"group": {"groups": {"x": ["Oslo", "O'Brien"]}, "rest": "keep"}}),
        (HOSTILE, {"keep_frequent": {"count": 2, "values": ["", "名前"]}}),
        (HOSTILE, "suppress"),
        ("pay", {"bucketize": {"width": 3}}),
    ],
)
def test_looked_up_masks_equal_the_masks(
    name: str, spec: Any, stored: bool, tmp_path: Path
) -> None:
    pq.write_table(awkward(), tmp_path / "t.parquet")
    source = open_table(tmp_path / "t.parquet" if stored else awkward())
    mask = parse_mask(spec)
    column = source.table[name]
    quick = source.collect(source.table.select(x=_quick(source, column, mask)))
    plain = source.collect(source.table.select(x=mask.expression(column)))
    assert rows_of(quick) == rows_of(plain)
    # What the column does not hold is masked all the same.
    unseen = [None, 2, -100, 1000] if name != HOSTILE else [None, "Oslo", "elsewhere", "x'"]
    other = open_table(pa.table({name: pa.array(unseen, awkward()[name].type)}))
    moved = _quick(source, column, mask).op()
    replaced = moved.replace({source.table.op(): other.table.op()}).to_expr()
    assert other.collect(other.table.select(x=replaced))["x"].to_pylist() == (
        other.collect(other.table.select(x=mask.expression(other.table[name])))["x"].to_pylist()
    )


def test_lookups_are_of_dictionaries(tmp_path: Path) -> None:
    pq.write_table(awkward(), tmp_path / "t.parquet")
    source = open_table(tmp_path / "t.parquet")
    mask = parse_mask({"blur": {"keep": 1}})
    quick = _quick(source, source.table[HOSTILE], mask)
    assert "MAP_EXTRACT_VALUE" in ibis.to_sql(source.table.select(x=quick))
    many = pa.table({"v": [str(i) for i in range(looked_up.MOST_VALUES + 1)]})
    pq.write_table(many, tmp_path / "many.parquet")
    source = open_table(tmp_path / "many.parquet")
    plain = _quick(source, source.table["v"], mask)
    assert "MAP_EXTRACT_VALUE" not in ibis.to_sql(source.table.select(x=plain))


def test_classes_of_the_masked_table_are_counted_in_one_way() -> None:
    rules = policy()
    source = open_table(pa.concat_tables([awkward()] * 3))
    masks = {a.name: a.masks[0] for a in rules.quasi_identifiers}
    found = count_classes(source, list(masks), table=masked_table(source, masks))
    masked = source.collect(masked_table(source, masks))
    assert sorted(found.table.sizes.tolist()) == sorted(rows_of(masked).values())
