"""Rows as codes: those read as files store them against those that the engine reads."""

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.arrays import distinct_keys
from aegis.errors import EngineError
from aegis.release import audit
from aegis.sources import Source, open_table
from aegis.sources.open import stored_batches
from aegis.summary import coded_rows
from aegis.summary.coded_rows import CodedRows, join_parts, read_rows
from aegis.summary.codes import encode, stored_codes

TEXTS = st.one_of(st.none(), st.sampled_from(["", "a", "b", "ä", "a b"]))
NUMBERS = st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, float("nan"), -3.0]))
DAYS = st.one_of(st.none(), st.dates(dt.date(2020, 1, 1), dt.date(2020, 1, 3)))
ROWS = st.lists(st.tuples(TEXTS, NUMBERS, DAYS, st.sampled_from("yn")), min_size=1, max_size=60)
NAMES = ("t", "x", "d")


def _written(folder: Path, rows: list[tuple[Any, ...]], *, groups: int, dictionary: bool) -> Source:
    types = (pa.string(), pa.float64(), pa.date32(), pa.string())
    columns = [
        pa.array(own, dtype) for own, dtype in zip(zip(*rows, strict=True), types, strict=True)
    ]
    path = folder / "t.parquet"
    table = pa.table(dict(zip((*NAMES, "y"), columns, strict=True)))
    pq.write_table(table, path, row_group_size=groups, use_dictionary=dictionary)
    return open_table(path)


@settings(max_examples=12, deadline=None)
@given(rows=ROWS, groups=st.integers(1, 30), dictionary=st.booleans())
def test_columns_as_they_are_stored_are_those_that_the_engine_reads(
    rows: list[tuple[Any, ...]],
    groups: int,
    dictionary: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    source = _written(tmp_path_factory.mktemp("t"), rows, groups=groups, dictionary=dictionary)
    stored, engine = (
        read_rows(source, NAMES),
        read_rows(open_table(source.collect(source.table)), NAMES),
    )
    assert stored is not None
    assert engine is not None
    for name in NAMES:
        assert str(stored.values[name]) == str(engine.values[name])  # one NaN is no other
        assert stored.codes[name].tolist() == engine.codes[name].tolist()


@settings(max_examples=10, deadline=None)
@given(rows=ROWS, groups=st.integers(1, 30))
def test_an_audit_of_rows_that_are_read_is_that_of_the_engine(
    rows: list[tuple[Any, ...]], groups: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = _written(tmp_path_factory.mktemp("t"), rows, groups=groups, dictionary=True)
    in_memory = pq.read_table(source.files[0])
    asked: dict[str, Any] = {"quasi_identifiers": ["t", "x"], "sensitive": ["y"]}
    assert read_rows(source, NAMES) is not None
    read = audit(source, **asked).to_dict()
    assert audit(in_memory, **asked).to_dict() == read
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coded_rows, "MOST_ROWS", 0)
        assert audit(in_memory, **asked).to_dict() == read


def test_what_files_do_not_store_as_the_table_shows_it_is_read_by_the_engine(
    tmp_path: Path,
) -> None:
    table = pa.table({"t": ["a", "b"], "l": [[1], [2]], "y": ["n", "y"]})
    part = tmp_path / "t=a"
    part.mkdir()
    for path in (tmp_path / "whole.parquet", part / "part.parquet"):
        pq.write_table(table, path)
    whole, hive = open_table(tmp_path / "whole.parquet"), open_table(part / "part.parquet")
    assert stored_batches(whole, ["t"], rows=9) is not None
    assert stored_batches(whole.select(("t",)), ["t"], rows=9) is None  # a query
    assert stored_batches(hive, ["y"], rows=9) is None  # t is what the path says
    assert stored_batches(open_table(table), ["t"], rows=9) is None
    assert read_rows(whole, ["t", "l"]) is None  # lists are not told apart


def test_a_damaged_text_is_told_by_the_engine(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": ["aaaa", "bbbb"] * 9, "y": ["n", "y"] * 9}), path)
    path.write_bytes(path.read_bytes().replace(b"aaaa", b"a\xff\xfea"))
    with pytest.raises(EngineError):
        audit(path, quasi_identifiers=["x"])


def test_tables_of_more_rows_are_left_to_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": ["a", "b", "a"]}), path)
    assert read_rows(open_table(path), ["x"]) is not None
    monkeypatch.setattr(coded_rows, "MOST_ROWS", 2)
    assert read_rows(open_table(path), ["x"]) is None


@given(
    entries=st.lists(TEXTS, min_size=1, max_size=6),
    parts=st.lists(st.lists(st.one_of(st.none(), st.integers(0, 5)), max_size=12), max_size=4),
)
def test_a_dictionary_may_hold_values_twice_or_in_vain(
    entries: list[str | None], parts: list[list[int | None]]
) -> None:
    places = [[p if p is None else p % len(entries) for p in own] for own in parts]
    columns = [
        pa.DictionaryArray.from_arrays(pa.array(own, pa.int32()), pa.array(entries, pa.string()))
        for own in places
    ]
    codes, values = join_parts([stored_codes(column) for column in columns], pa.string())
    texts = [p if p is None else entries[p] for own in places for p in own]
    wanted_codes, wanted = encode(pa.array(texts, pa.string()))
    assert values.to_pylist() == wanted.to_pylist()
    assert codes.tolist() == wanted_codes.tolist()


@given(keys=st.lists(st.integers(-5, 5), max_size=50))
def test_distinct_keys_are_those_of_sorting(keys: list[int]) -> None:
    key = np.array(keys, dtype=np.int64)
    wanted = np.unique(key, return_index=True, return_inverse=True, return_counts=True)[1:]
    for own, other in zip(distinct_keys(key), wanted, strict=True):
        assert own.tolist() == other.tolist()


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 300)), max_size=40),
    constants=st.sampled_from([0, 1, 70]),
    block=st.integers(1, 41),
    largest=st.sampled_from([1 << 62, 4]),
)
def test_cells_are_the_combinations_of_values_and_their_rows(
    rows: list[tuple[int, int]], constants: int, block: int, largest: int
) -> None:
    full = [(*row, *[0] * constants) for row in rows]
    names = ["a", "b", *(f"c{i}" for i in range(constants))]
    codes = {n: np.array([row[i] for row in full], dtype=np.uint16) for i, n in enumerate(names)}
    values = {name: pa.array(range(301)) for name in names}
    of_rows = CodedRows(values, codes, np.zeros(len(rows), dtype=np.uint8), 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coded_rows, "BLOCK", block)
        patch.setattr(coded_rows, "LARGEST_KEY", largest)
        cells = of_rows.cells(names).to_pylist()
    wanted = sorted(Counter(full).items())
    assert [tuple(cell.values()) for cell in cells] == [(*row, n) for row, n in wanted]
