"""Samples are reproducible and uniform; digests follow the content; engine errors are one kind."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import DataError, EngineError
from aegis.sources import Source, open_table


def sampled(source: Source, rows: int, seed: int) -> list[int]:
    return sorted(source.collect(source.sample(rows, seed=seed))["n"].to_pylist())


def numbered(count: int) -> pa.Table:
    return pa.table({"n": list(range(count)), "x": ["x"] * count})


def write_parts(folder: Path, counts: list[int], *, groups: int = 100) -> Source:
    start = 0
    for i, count in enumerate(counts):
        part = pa.table({"n": list(range(start, start + count)), "x": ["x"] * count})
        pq.write_table(part, folder / f"part{i}.parquet", row_group_size=groups)
        start += count
    return open_table(str(folder / "*.parquet"))


def test_all_rows_when_enough_are_asked_for() -> None:
    assert sampled(open_table(numbered(50)), 50, 0) == list(range(50))
    assert sampled(open_table(numbered(50)), 1000, 0) == list(range(50))


@given(seed=st.integers(0, 2**63), other=st.integers(0, 2**63))
def test_a_seed_gives_the_same_rows(seed: int, other: int) -> None:
    source = open_table(numbered(2000))
    first = sampled(source, 500, seed)
    assert first == sampled(open_table(numbered(2000)), 500, seed)
    assert len(set(first)) == len(first)
    assert seed == other or first != sampled(source, 500, other)


@pytest.mark.parametrize("kind", ["memory", "file", "files"])
def test_a_sample_is_uniform(tmp_path: Path, kind: str) -> None:
    count, share, seeds = 4000, 0.25, range(40)
    if kind == "memory":
        source = open_table(numbered(count))
    else:
        parts = [count] if kind == "file" else [1000, 1000, 1500, 500]
        source = write_parts(tmp_path, parts)
    assert source.rows == count
    tally = [0] * count
    for seed in seeds:
        chosen = sampled(source, int(count * share), seed)
        # Five standard deviations of a binomial count.
        assert abs(len(chosen) - count * share) < 5 * (count * share * (1 - share)) ** 0.5
        for row in chosen:
            tally[row] += 1
    # Chi-square of 4,000 binomial tallies: mean 4,000, standard deviation about 90.
    expected = len(seeds) * share
    spread = sum((t - expected) ** 2 for t in tally) / (expected * (1 - share))
    assert 3500 < spread < 4500
    for start in range(0, count, 500):
        block = sum(tally[start : start + 500])
        assert abs(block - 500 * expected) < 5 * (500 * expected * (1 - share)) ** 0.5


def test_files_do_not_share_the_same_row_numbers(tmp_path: Path) -> None:
    source = write_parts(tmp_path, [1000, 1000])
    chosen = sampled(source, 500, 3)
    first = {n for n in chosen if n < 1000}
    second = {n - 1000 for n in chosen if n >= 1000}
    # Independent samples of a quarter share about a quarter of their rows.
    assert 30 < len(first & second) < 100


def test_samples_do_not_depend_on_where_files_lie(tmp_path: Path) -> None:
    folders = [tmp_path / "here", tmp_path / "there"]
    samples = []
    for folder, groups in zip(folders, (100, 1000), strict=True):
        folder.mkdir()
        samples.append(sampled(write_parts(folder, [700, 800], groups=groups), 200, 5))
    assert samples[0] == samples[1]


def test_a_column_with_the_name_of_the_row_number(tmp_path: Path) -> None:
    table = pa.table({"n": list(range(1000)), "file_row_number": [0] * 1000})
    pq.write_table(table, tmp_path / "a.parquet")
    for source in (open_table(tmp_path / "a.parquet"), open_table(table)):
        assert source.columns == ("n", "file_row_number")
        chosen = source.collect(source.sample(250, seed=1))
        assert 150 < chosen.num_rows < 350
        assert set(chosen["file_row_number"].to_pylist()) == {0}


def test_a_sample_of_selected_columns(tmp_path: Path) -> None:
    source = write_parts(tmp_path, [500, 500]).select(("n",))
    assert source.collect(source.sample(100, seed=1)).column_names == ["n"]


def test_the_digest_of_files_is_that_of_their_bytes(tmp_path: Path) -> None:
    import hashlib

    source = write_parts(tmp_path, [5, 6])
    joined = b"".join(file.read_bytes() for file in source.files)
    assert source.digest() == hashlib.sha256(joined).hexdigest()


def test_the_digest_of_a_table_follows_its_content() -> None:
    table = pa.table({"a": [1, 2, None], "b": ["x", None, "z"]})
    digest = open_table(table).digest()
    assert digest == open_table(pa.concat_tables([table[:1], table[1:]])).digest()
    others = [
        table.slice(1),
        table.select(["b", "a"]),
        table.rename_columns(["a", "c"]),
        table.set_column(0, "a", pa.array([1, 2, 3])),
        table.set_column(0, "a", pa.array([1, 2, None], pa.int32())),
    ]
    assert len({digest, *(open_table(other).digest() for other in others)}) == 6


@given(
    values=st.lists(st.none() | st.integers(-9, 9), min_size=1, max_size=40),
    cut=st.integers(0, 40),
)
def test_the_digest_does_not_see_buffers(values: list[int | None], cut: int) -> None:
    padded = pa.array([0] * (cut % 7) + values + [1] * (cut % 5), pa.int64())
    sliced = padded.slice(cut % 7, len(values))
    plain = pa.table({"a": pa.array(values, pa.int64())})
    assert open_table(pa.table({"a": sliced})).digest() == open_table(plain).digest()


def test_engine_failures_are_one_kind() -> None:
    source = open_table(pa.table({"a": ["x"]}))
    with pytest.raises(EngineError, match="PyArrow table"):
        source.collect(source.table.select(b=source.table["a"].cast("int64")))
    with pytest.raises(EngineError):
        list(source.batches(source.table.select(b=source.table["a"].cast("int64"))))


def test_batches_hold_all_rows() -> None:
    source = open_table(numbered(10_000))
    parts = list(source.batches(source.table, rows=2048))
    assert sum(len(part) for part in parts) == 10_000
    assert sorted(n for part in parts for n in part["n"].to_pylist()) == list(range(10_000))


def test_counting_rows_of_any_engine() -> None:
    connection = ibis.duckdb.connect()
    assert open_table(connection.create_table("t", numbered(17))).rows == 17
    assert open_table(numbered(0)).rows == 0


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_text("a,b\n9,9\n")])
def test_no_digest_of_a_file_that_changed_since_it_was_opened(
    change: Callable[[Path], object], tmp_path: Path
) -> None:
    """A certificate would state the digest of bytes that are not those of the released rows."""
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    source = open_table(str(path))
    assert source.digest() == sha256(path.read_bytes()).hexdigest()
    change(path)
    with pytest.raises(DataError, match="was changed or deleted after it was opened"):
        source.digest()
