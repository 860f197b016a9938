"""Rows of classes that fail, where a null equals a null: the same rows on every engine, and hashed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import ibis
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.summary.classes import same_class

ROW = st.tuples(
    st.sampled_from([None, 0, 1, 2]),
    st.sampled_from([None, "", "a", "b"]),
    st.sampled_from([None, 0.0, -0.0, float("nan"), 1.5]),
)
TYPES = [pa.int64(), pa.string(), pa.float64()]


def as_table(rows: list[tuple[Any, ...]], names: tuple[str, ...]) -> pa.Table:
    columns = [[row[i] for row in rows] for i in range(3)]
    return pa.table(
        [pa.array(own, kind) for own, kind in zip(columns, TYPES, strict=True)], names=names
    )


def key(row: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple("0.0" if value == 0 and isinstance(value, float) else str(value) for value in row)


@given(rows=st.lists(ROW, min_size=1, max_size=12), left_out=st.lists(ROW, min_size=1, max_size=6))
@settings(max_examples=12, deadline=None)
def test_rows_of_some_classes_are_found(rows, left_out):
    members = as_table(left_out, ("k0", "k1", "k2"))
    engine = ibis.duckdb.connect()
    table = engine.create_table("rows", as_table(rows, ("a", "b", "c")))
    classes = engine.create_table("classes", members)
    rest = table.anti_join(classes, same_class(table, classes, ("a", "b", "c"), members))
    gone = {key(row) for row in left_out}
    expected = Counter(key(row) for row in rows if key(row) not in gone)
    found = [tuple(row.values()) for row in rest.to_pyarrow().to_pylist()]
    assert Counter(map(key, found)) == expected
    engine.disconnect()


def test_postgresql_hashes_the_classes(postgres: Any) -> None:
    engine = ibis.connect(postgres.url)
    engine.raw_sql(
        "CREATE TABLE many AS SELECT i % 997 AS a, NULLIF(i % 13, 5)::text AS b"
        " FROM generate_series(1, 20000) AS i"
    ).close()
    engine.raw_sql("ANALYZE many").close()
    values = [(i, None if i % 3 == 0 else str(i % 13)) for i in range(600)]
    members = pa.table({"k0": [a for a, _ in values], "k1": [b for _, b in values]})
    classes = engine.create_table("classes_left_out", members, overwrite=True)
    table = engine.table("many")
    rest = table.anti_join(classes, same_class(table, classes, ("a", "b"), members))
    with engine.raw_sql("EXPLAIN " + ibis.to_sql(rest, dialect="postgres")) as cursor:
        plan = " ".join(line for (line,) in cursor.fetchall())
    assert "Nested Loop" not in plan
    assert "Hash" in plan or "Merge" in plan
    gone = set(values)
    kept = table.to_pyarrow().to_pylist()
    expected = sum((row["a"], row["b"]) not in gone for row in kept)
    assert rest.count().to_pyarrow().as_py() == expected
    engine.drop_table("classes_left_out")
    engine.drop_table("many")
    engine.disconnect()
