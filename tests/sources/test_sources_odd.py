"""Odd tables: each is read as it is written, or refused with what to do."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import aegis
from aegis.errors import DataError, ResourceError
from aegis.sources import open_table
from aegis.sources.embedded import engine_errors
from aegis.summary.codes import numbers_of

POLICY: dict[str, Any] = {
    "version": 1,
    "label": "y",
    "privacy": {"k": 1},
    "attributes": {"a": {"role": "quasi-identifier"}},
}


def read(tmp_path: Path, data: bytes, name: str = "t.csv") -> pa.Table:
    file = tmp_path / name
    file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    source = open_table(file)
    return source.collect(source.table)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("cell", ["x", '"x\nz"', '"x\rz"', '"x\r\nz"', '"x""\n"'])
def test_lines_that_end_in_cr_alone(tmp_path: Path, name: str, cell: str) -> None:
    """A line break in quotes had all rows taken for the header's, and none was read."""
    text = f"a,b,y\r1,{cell},u\r3,w,v\r"
    table = read(tmp_path, text.encode(), name)
    value = cell[1:-1].replace('""', '"') if cell.startswith('"') else cell
    assert table.to_pylist() == [{"a": 1, "b": value, "y": "u"}, {"a": 3, "b": "w", "y": "v"}]


def test_lines_that_end_in_several_ways(tmp_path: Path) -> None:
    """The engine said that its state machine reached an invalid state."""
    with pytest.raises(DataError, match="ends lines in more than one way") as caught:
        read(tmp_path, b"a,b,y\r\n1,2,u\r3,4,v\r")
    assert "line ends of one kind" in caught.value.hint
    with pytest.raises(DataError, match="Line 2 of"):
        read(tmp_path, b"a,y\nx\rz,u\nw,v\n")


@pytest.mark.parametrize("data", [b"a,y\n", b"a,y", b"\n\na,y\r\n"])
def test_a_header_alone_is_a_table_without_rows(tmp_path: Path, data: bytes) -> None:
    table = read(tmp_path, data)
    assert (table.column_names, table.num_rows) == (["a", "y"], 0)
    policy = aegis.load_policy(POLICY)
    one = aegis.Configuration("one", {"a": policy.attributes["a"].masks[0]})
    for use in (
        lambda: aegis.summarize(tmp_path / "t.csv", policy),
        lambda: aegis.apply(tmp_path / "t.csv", policy, one, output=tmp_path / "o.csv"),
        lambda: aegis.audit(tmp_path / "t.csv", policy=policy),
    ):
        with pytest.raises(DataError, match=r"has no rows|no rows") as caught:
            use()
        assert caught.value.hint
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize("data", [b"", b"\n\n\n", b"\xef\xbb\xbf", b"\r\r"])
def test_nothing_at_all(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, data)
    assert "header and rows" in caught.value.hint


def test_names_that_are_given_twice_are_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,A,a,y\n1,2,3,u\n")
    source = open_table(tmp_path / "t.csv")
    assert source.columns == ("a", "A_2", "a_3", "y")
    (note,) = source.notes
    assert note.endswith("2 columns are named as columns before them, and are called A_2 and a_3.")


def test_many_columns_without_a_name_are_one_note(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,,,,,y\n1,2,3,4,5,u\n")
    (note,) = open_table(tmp_path / "t.csv").notes
    assert note.endswith(
        "4 columns have no name in the header, and are called column2, column3, column4 and 1 more."
    )


@pytest.mark.parametrize(
    ("text", "ending"),
    [('{"a": "say \\"no\\"", "y": 1}\n' * 3, ".jsonl"), ('[\n{"a": 1},\n{"a": 2}\n]\n', ".json")],
)
def test_json_with_the_ending_of_a_text_is_named(tmp_path: Path, text: str, ending: str) -> None:
    with pytest.raises(DataError, match="holds JSON") as caught:
        read(tmp_path, text.encode(), "t.txt")
    assert caught.value.hint == f"Give the file a name that ends with {ending}."


def test_a_header_of_many_brackets_is_no_bug(tmp_path: Path) -> None:
    assert read(tmp_path, b'{"a":' * 100_000 + b"\n1\n", "t.csv").num_rows == 1


def test_numbers_with_and_without_a_zero_before_the_point_are_numbers(tmp_path: Path) -> None:
    table = read(tmp_path, b"a,b,y\n.2,1,u\n0.2,1.0,v\n-.5,2,u\n-0.5,2,v\n")
    assert table.column("a").to_pylist() == [0.2, 0.2, -0.5, -0.5]
    assert table.column("b").to_pylist() == ["1", "1.0", "2", "2"]  # 1.0 may be a code


def test_numbers_that_no_double_holds(tmp_path: Path) -> None:
    digits = "9" * 400
    table = read(tmp_path, f"n,i,e,y\n{digits},inf,1e999,u\n1,-inf,2,v\n".encode())
    assert table.column("n").to_pylist() == [digits, "1"]
    assert table.column("i").to_pylist() == ["inf", "-inf"]
    assert table.column("e").to_pylist() == ["1e999", "2"]


NAMES = ['q"q', "two\nlines", "it's", "a,b", " b ", "ä", "#", "*", "-1", "select", "x" * 300]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_names_of_columns_come_back(tmp_path: Path, name: str, ending: str) -> None:
    policy = aegis.load_policy(
        {**POLICY, "attributes": {name: {"role": "quasi-identifier", "masks": ["identity"]}}}
    )
    table = pa.table({name: ["p", "p", "q", "q"], "y": ["u", "v", "u", "v"]})
    one = aegis.Configuration("one", {name: policy.attributes[name].masks[0]})
    output = tmp_path / f"o{ending}"
    aegis.apply(table, policy, one, output=output)
    again = open_table(output)
    assert again.columns == (name, "y")
    assert again.collect(again.table).num_rows == 4


FAR = [
    (pa.date32(), 2_932_897),
    (pa.date32(), -719_530),
    (pa.date32(), 2**31 - 2),
    (pa.timestamp("us"), 253_402_300_800_000_000),
    (pa.timestamp("us"), 2**63 - 2),
    (pa.timestamp("us", "Asia/Kolkata"), 2**62),
    (pa.timestamp("ns"), 2**63 - 2),
]
"""Types of columns, and days or times that Python cannot represent, or not exactly."""


@pytest.mark.parametrize(("kind", "moment"), FAR)
def test_a_day_that_python_does_not_know_is_read(
    tmp_path: Path, kind: pa.DataType, moment: int
) -> None:
    """`aegis init` called it a bug."""
    born = pa.array([*range(1, 40), moment], kind)
    pq.write_table(
        pa.table({"born": born, "a": list(range(40)), "y": ["u", "v"] * 20}), tmp_path / "t.parquet"
    )
    file = tmp_path / "t.parquet"
    policy = aegis.init_policy(file, label="y").policy
    assert "born" in policy.attributes
    summarized = aegis.summarize(
        file, {**POLICY, "attributes": {"born": {"role": "quasi-identifier"}}}
    )
    assert summarized.rows == 40


def test_numbers_of_days_and_times_keep_their_order() -> None:
    days = numbers_of(pa.array([-(2**31), 0, 1, 2**31 - 1, None], pa.date32()))
    assert days[:4].tolist() == [-(2**31) * 86_400e6, 0, 86_400e6, (2**31 - 1) * 86_400e6]
    assert np.isnan(days[4])
    for unit, scale in (("s", 1e6), ("ms", 1e3), ("us", 1.0), ("ns", 1e-3)):
        times = numbers_of(pa.array([-(2**62), 0, 1, 2**62], pa.timestamp(unit)))
        assert times.tolist() == [-(2.0**62) * scale, 0, scale, 2.0**62 * scale]


def test_texts_that_no_batch_holds_are_said() -> None:
    told = "Invalid Input Error: Arrow Appender: The maximum total string size for regular ..."
    with pytest.raises(ResourceError, match="more than 2 GB"), engine_errors("t.parquet"):
        raise OSError(told)


def test_too_little_memory_for_a_stream_of_rows_is_said() -> None:
    told = "Out of Memory Error: ArrowBuffer: failed to allocate 8388608 bytes"
    with pytest.raises(ResourceError, match="too little memory"), engine_errors("t.parquet"):
        raise OSError(told)
