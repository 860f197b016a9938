"""Releases of large Parquet files, whose columns are read once as codes, against those by the engine."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from aegis.policy import Configuration, Policy, load_policy
from aegis.release import apply
from aegis.sources import open_table
from aegis.summary import coded_rows, count_classes, frequency
from aegis.summary.coded_rows import holding, read_rows, stored_rows

ROWS = 400


def table_of(seed: int) -> pa.Table:
    """Return a table with nulls and NaN, and with rare towns."""
    random = np.random.default_rng(seed)

    def drawn(values: list[Any]) -> list[Any]:
        return [values[i] for i in random.integers(len(values), size=ROWS)]

    towns = [*["north", "south", "east", None] * 5, "rare", "seldom"]
    return pa.table(
        {
            "age": pa.array(drawn([*range(20, 40), None]), pa.int32()),
            "town": pa.array(drawn(towns), pa.string()),
            "pay": pa.array(drawn([0.5, 1.5, -0.0, float("nan"), None]), pa.float64()),
            "member": pa.array(drawn([True, False, None])),
            "unused": pa.array(range(ROWS)),
            "y": pa.array(drawn(["p", "q", "q", None]), pa.string()),
        }
    )


def policy_of(**changes: Any) -> Policy:
    attributes = {
        "age": {"role": "quasi-identifier", "masks": [{"bucketize": {"width": 5}}, "suppress"]},
        "town": {"role": "quasi-identifier", "masks": ["identity"]},
        "pay": {"role": "feature", "masks": [{"round": {"step": 1}}]},
        "member": {"role": "feature", "masks": ["identity"]},
        "unused": {"role": "ignore"},
    }
    privacy = {"k": 5, "suppression": 0.6}
    return load_policy(
        {"version": 1, "label": "y", "privacy": privacy, "attributes": attributes} | changes
    )


def released(
    table: str,
    policy: Policy,
    output: Path,
    age: int,
    monkeypatch: pytest.MonkeyPatch,
    *,
    large: int,
) -> tuple[pa.Table, dict[str, Any]]:
    """Release a table; return the file, and its certificate without what names the file."""
    monkeypatch.setattr(coded_rows, "LARGE", large)
    masks = {a.name: a.masks[age if a.name == "age" else 0] for a in policy.features}
    certificate = output.with_suffix(".json")
    apply(table, policy, Configuration("chosen", masks), output=output, certificate=certificate)
    document = json.loads(certificate.read_text(encoding="utf-8"))
    for name in ("created", "digest"):
        document.pop(name)
    document["output"] = document["output"]["rows"]
    return pyarrow.parquet.read_table(output), document


@pytest.mark.parametrize("files", [1, 2])
@pytest.mark.parametrize(
    ("age", "changes"),
    [(0, {}), (1, {}), (1, {"suppressed_columns": "fill"}), (0, {"privacy": {"k": 1}})],
    ids=["suppressed rows", "hidden column", "filled column", "all rows"],
)
def test_a_file_that_is_held_is_released_as_by_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age: int, changes: dict[str, Any], files: int
) -> None:
    monkeypatch.setattr(coded_rows, "BLOCK", 64)
    monkeypatch.setattr(frequency, "BLOCK", 64)
    whole = table_of(age)
    for i in range(files):
        part = whole.slice(i * ROWS // files, ROWS // files)
        pyarrow.parquet.write_table(part, tmp_path / f"in{i}.parquet")
    source, policy = str(tmp_path / "in*.parquet"), policy_of(**changes)
    table, stated = released(source, policy, tmp_path / "a.parquet", age, monkeypatch, large=0)
    expected, of_engine = released(
        source, policy, tmp_path / "b.parquet", age, monkeypatch, large=10**9
    )
    assert table.schema.equals(expected.schema)
    assert table.to_pandas().equals(expected.to_pandas())
    assert stated == of_engine
    writers = [
        pyarrow.parquet.ParquetFile(tmp_path / name).metadata.created_by
        for name in ("a.parquet", "b.parquet")
    ]
    assert "parquet-cpp-arrow" in writers[0]
    assert "DuckDB" in writers[1]


def test_rows_of_many_columns_are_compared_by_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of such a file, only the columns that form classes are held."""
    monkeypatch.setattr(coded_rows, "MOST_CELLS", 0)
    source = tmp_path / "in.parquet"
    pyarrow.parquet.write_table(table_of(0), source)
    stated = [
        released(str(source), policy_of(), tmp_path / f"{n}.parquet", 0, monkeypatch, large=n)[1]
        for n in (0, 10**9)
    ]
    assert stated[0] == stated[1]


def test_a_released_file_holds_no_text_of_a_row_that_was_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "in.parquet"
    pyarrow.parquet.write_table(table_of(0), source)
    policy = policy_of(privacy={"k": 40, "suppression": 0.9})
    table, _ = released(str(source), policy, tmp_path / "a.parquet", 1, monkeypatch, large=0)
    shown = set(table["town"].to_pylist())
    assert "north" in shown
    assert not {"rare", "seldom"} & shown
    whole = (tmp_path / "a.parquet").read_bytes()
    [batch] = pyarrow.parquet.ParquetFile(
        tmp_path / "a.parquet", read_dictionary=["town"]
    ).iter_batches(columns=["town"])
    assert set(batch.column(0).dictionary.to_pylist()) == shown - {None}
    assert b"seldom" not in whole


def test_columns_are_held_only_in_the_context_and_if_values_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyarrow.parquet.write_table(table_of(0), tmp_path / "in.parquet")
    source = open_table(tmp_path / "in.parquet")
    with holding(source):
        assert stored_rows(source, ["age"]) is None  # too few rows
    monkeypatch.setattr(coded_rows, "LARGE", 0)
    assert stored_rows(source, ["age"]) is None
    with holding(source), holding(source):
        assert stored_rows(source, ["age", "unused"]) is None  # no value of it repeats
        held, read = stored_rows(source, ["age", "town"]), read_rows(source, ["age", "town"])
        assert held is not None
        assert read is not None
        for name in ("age", "town"):
            assert held.values[name].equals(read.values[name])
            assert np.array_equal(held.codes[name], read.codes[name])
        monkeypatch.setattr(frequency, "BLOCK", 32)
        by_codes = count_classes(source, ["age", "town"], coded_rows=held).table
        by_engine = count_classes(source, ["age", "town"]).table
        assert sorted(by_codes.sizes) == sorted(by_engine.sizes)
    assert stored_rows(source, ["age"]) is None


class _Meeting:
    """A least number of rows, at which two threads wait for each other."""

    def __init__(self) -> None:
        self.barrier = Barrier(2, timeout=10)

    def __le__(self, rows: int) -> bool:
        self.barrier.wait()
        return True


def test_two_threads_release_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A study opens its table once, so that threads that share the study share the table, too."""
    pyarrow.parquet.write_table(table_of(0), tmp_path / "in.parquet")
    source, policy = open_table(tmp_path / "in.parquet"), policy_of()
    chosen = Configuration("chosen", {a.name: a.masks[0] for a in policy.features})
    monkeypatch.setattr(coded_rows, "LARGE", _Meeting())

    def release(name: str) -> pa.Table:
        apply(source, policy, chosen, output=tmp_path / name)
        return pyarrow.parquet.read_table(tmp_path / name)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(release, ("a.parquet", "b.parquet"))
    assert first.to_pandas().equals(second.to_pandas())


def test_the_places_of_a_sample_are_those_of_its_rows(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(table_of(0), tmp_path / "in.parquet")
    source = open_table(tmp_path / "in.parquet")
    places = source.sample_positions(100, seed=3)
    drawn = source.collect(source.sample(100, seed=3))["unused"].to_pylist()
    assert places is not None
    assert places.tolist() == sorted(drawn)
    assert 50 < len(places) < 150
