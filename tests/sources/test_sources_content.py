"""A table is known by its rows: their order, the order of columns and the form of the file do not matter."""

from __future__ import annotations

import datetime
import decimal
import math
from hashlib import sha256

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from hypothesis import given
from hypothesis import strategies as st

from aegis.sources import open_table

VALUES = st.one_of(st.none(), st.integers(-3, 3))
ROWS = st.lists(st.tuples(VALUES, st.sampled_from(["a", "b,", '"', "", "null"])), max_size=6)


def table(rows: list[tuple[int | None, str]]) -> pa.Table:
    """Return rows as a table."""
    return pa.table(
        {
            "n": pa.array([r[0] for r in rows], pa.int64()),
            "t": pa.array([r[1] for r in rows], pa.string()),
        }
    )


def content(rows: pa.Table) -> str:
    """Return what the table is known by."""
    return open_table(rows).content_digest()


@given(ROWS, ROWS, st.randoms(use_true_random=False))
def test_two_tables_are_one_where_they_hold_the_same_rows(one, other, random):
    shuffled = list(one)
    random.shuffle(shuffled)
    assert content(table(one)) == content(table(shuffled).select(["t", "n"]))
    assert (content(table(one)) == content(table(other))) == (
        sorted(one, key=repr) == sorted(other, key=repr)
    )


def test_a_row_counts_as_often_as_it_occurs():
    once, twice, thrice = (content(table([(1, "a")] * n)) for n in (1, 2, 3))
    assert len({once, twice, thrice, content(table([]))}) == 4


def test_the_digest_of_a_table_is_the_one_that_was_written_down_before():
    row = int(sha256(b'["1", "\\u00e9"]').hexdigest(), 16)
    assert content(table([(1, "\u00e9")])) == (
        sha256(f'[["n", "t"], 1, "{row:064x}"]'.encode()).hexdigest()
    )


def test_values_do_not_move_between_columns_or_rows():
    held = {
        content(pa.table(columns))
        for columns in (
            {"a": ["x", "y"], "b": ["y", "x"]},
            {"a": ["x", "x"], "b": ["y", "y"]},
            {"a": ["y", "y"], "b": ["x", "x"]},
            {"a": ["x", "y"], "c": ["y", "x"]},
        )
    }
    assert len(held) == 4


def test_a_value_is_what_it_says_not_how_it_is_stored():
    day = datetime.date(2020, 2, 29)
    same = (
        ([1, None], [1.0, None], [decimal.Decimal("1.0"), None]),
        ([0.5], [decimal.Decimal("0.50")]),
        ([0.0], [-0.0], [0]),
        ([day], [datetime.datetime(2020, 2, 29)]),
        (["a", "b"], pa.array(["a", "b"]).dictionary_encode()),
    )
    for forms in same:
        assert len({content(pa.table({"c": form})) for form in forms}) == 1, forms
    differ = ([0], [None], ["null"], [math.nan], [math.inf], [2**60], [2**60 + 1], [0.1], [True])
    assert len({content(pa.table({"c": pa.array(form)})) for form in differ}) == len(differ)


def test_a_file_of_another_format_holds_the_same_table(tmp_path):
    rows = table([(1, "a"), (2, "b,"), (None, "a")])
    pyarrow.parquet.write_table(rows, tmp_path / "t.parquet")
    pyarrow.csv.write_csv(rows.take([2, 0, 1]), tmp_path / "t.csv")
    found = {open_table(tmp_path / name).content_digest() for name in ("t.parquet", "t.csv")}
    assert found == {content(rows)}


def test_rows_are_read_in_pieces():
    rows = table([(n % 7, "ab"[n % 2]) for n in range(5000)])
    pieces = pa.Table.from_batches(rows.to_batches(max_chunksize=17))
    assert content(rows) == content(pieces)
