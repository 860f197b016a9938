"""Hierarchies: reading, validation, coverage, and the mask that shows a level."""

from __future__ import annotations

import hashlib
import json
from datetime import date
from decimal import Decimal

import ibis
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest
from hypothesis import given
from hypothesis import strategies as st
from masks_support import lists, masked

from aegis.errors import DataError, InternalError, PolicyError
from aegis.masks import Hierarchy, Kind, Level, parse_mask
from aegis.sources import embedded

CITIES = Hierarchy(
    (
        ("Oslo", "north", "Europe"),
        ("Turku", "north", "Europe"),
        ("Rome", "south", "Europe"),
        ("Tokyo", "east", "Asia"),
    ),
    "cities",
)
AGES = Hierarchy(tuple((str(n), f"{n // 5 * 5}-", f"{n // 20 * 20}-", "*") for n in range(100)))


def test_levels_values_and_groups():
    assert CITIES.height == 2
    assert CITIES.values == ("Oslo", "Turku", "Rome", "Tokyo")
    assert CITIES.groups(1) == {"north": ("Oslo", "Turku"), "south": ("Rome",), "east": ("Tokyo",)}
    assert CITIES.groups(2)["Asia"] == ("Tokyo",)
    assert list(CITIES.groups(0)) == list(CITIES.values)
    assert repr(CITIES) == "Hierarchy('cities', values=4, height=2)"


def test_equality_is_by_content():
    again = Hierarchy(tuple(reversed(CITIES.rows)), "other name")
    assert again == CITIES
    assert hash(again) == hash(CITIES)
    assert again.digest == CITIES.digest
    assert Level(1, again) == Level(1, CITIES)
    assert Hierarchy(CITIES.rows[:3]) != CITIES
    assert CITIES != "cities"


@pytest.mark.parametrize("separator", [";", ",", "\t", "|"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("trailing", [False, True])
def test_csv_in_every_dialect(tmp_path, separator, ending, trailing):
    lines = [
        separator.join(f'"{c}"' if c == "Rome" else str(c) for c in row) for row in CITIES.rows
    ]
    if trailing:
        lines = [line + separator for line in lines]
    text = "\ufeff" + ending.join([*lines[:2], "", *lines[2:], "", "  "])
    path = tmp_path / "cities.csv"
    path.write_bytes(text.encode())
    assert Hierarchy.from_csv(path) == CITIES


def test_csv_with_separators_inside_and_a_null_row(tmp_path):
    path = tmp_path / "h.csv"
    path.write_text('"a;b";x, y;*\nNULL;none;*\n"q ""q""";x, y;*\n', encoding="utf-8")
    found = Hierarchy.from_csv(path)
    assert found.rows == (("a;b", "x, y", "*"), (None, "none", "*"), ('q "q"', "x, y", "*"))
    assert Hierarchy.from_csv(path, null="?").values[1] == "NULL"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no row with a value and a group"),
        ("a\nb\n", "no row with a value and a group"),
        ("a\nb;x\n", r"row 1 has 0 levels above its value\. Give"),
        ("a;x;*\nb;x\n", "row 1 has 2 levels above its value, row 2 has 1"),
        ("a;x;*\na;y;*\n", "value 'a' has two rows"),
        ("a;x;p\nb;x;q\n", "level 2 splits the group 'x' of level 1: value 'a' belongs to 'p'"),
    ],
)
def test_files_that_are_no_hierarchies(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        Hierarchy.from_csv(path)
    assert "bad.csv" in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match="Cannot read hierarchy file"):
        Hierarchy.from_csv(tmp_path / "absent.csv")
    (tmp_path / "latin.csv").write_bytes("Malmö;x\n".encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8"):
        Hierarchy.from_csv(tmp_path / "latin.csv")


def test_trees_and_levels():
    tree = {"Europe": {"north": ["Oslo", "Turku"], "south": "Rome"}, "Asia": {"east": ["Tokyo"]}}
    assert Hierarchy.from_tree(tree) == CITIES
    levels = {row[0]: list(row[1:]) for row in CITIES.rows}
    assert Hierarchy.from_levels(levels) == CITIES
    assert Hierarchy.from_tree({"levels": levels}) == CITIES
    mixed = Hierarchy.from_tree({"low": [1, 2.0, True], "none": [None]})
    assert mixed.values == ("1", "2", "true", None)
    assert Hierarchy.from_levels({1: "low"}).rows == (("1", "low"),)


@pytest.mark.parametrize(
    ("tree", "error", "message"),
    [
        ({}, PolicyError, "is not a tree"),
        (["a"], PolicyError, "is not a tree"),
        ({"g": [["a"]]}, PolicyError, "is not a value"),
        ({None: ["a"]}, PolicyError, "None is not the name of a group"),
        ({"g": ["a"], "h": {"i": ["b"]}}, DataError, "value 'b' has 2 levels above it"),
        ({"g": ["a"], "h": ["a"]}, DataError, "value 'a' has two rows"),
        ({"g": {}}, DataError, "is empty"),
    ],
)
def test_trees_that_are_no_hierarchies(tree, error, message):
    with pytest.raises(error, match=message):
        Hierarchy.from_tree(tree)


def test_uncovered_values():
    assert CITIES.uncovered_values(pa.array(["Oslo", "Bergen", None, "Rome", ""])) == ("Bergen", "")
    assert AGES.uncovered_values(pa.array([39, 99, None, 100], pa.int16())) == ("100",)
    assert AGES.uncovered_values(pa.array([39.0, 39.5, None])) == ("39.5",)
    assert AGES.uncovered_values(pa.array([Decimal("39.0")], pa.decimal128(4, 1))) == ()
    tenths = Hierarchy((("0.1", "low"),))
    assert tenths.uncovered_values(pa.array([Decimal("0.10"), Decimal("0.20")])) == ("0.20",)
    assert AGES.uncovered_values([39, "39"]) == ("39",)
    days = Hierarchy((("2024-02-29", "2024"),))
    assert days.uncovered_values(pa.array([date(2024, 2, 29), date(2024, 3, 1)])) == ("2024-03-01",)
    answers = Hierarchy((("true", "any"),))
    assert answers.uncovered_values(pa.array([True, False, None])) == ("false",)
    assert CITIES.uncovered_values(pa.array(["Oslo", "a", "b"])) == ("a", "b")


@given(lists(st.sampled_from([*CITIES.values, "Bergen", "*"])), st.integers(0, 2))
def test_level_of_texts(values, level):
    groups = {row[0]: row[level] for row in CITIES.rows}
    unknown = "*" if level else None
    expected = [v if v is None else groups.get(v, unknown or v) for v in values]
    assert masked(Level(level, CITIES), values, pa.string()) == expected


@given(lists(st.integers(-5, 130)), st.integers(1, 3))
def test_level_of_numbers_compares_their_text(values, level):
    groups = {row[0]: row[level] for row in AGES.rows}
    expected = [v if v is None else groups.get(str(v), "*") for v in values]
    for dtype in (pa.int64(), pa.int16(), pa.float64()):
        assert masked(Level(level, AGES), values, dtype) == expected


def test_level_of_dates_booleans_decimals_and_null():
    days = Hierarchy((("2024-02-29", "2024"), (None, "unknown")))
    assert masked(Level(1, days), [date(2024, 2, 29), date(2020, 1, 1), None], pa.date32()) == [
        "2024", "*", "unknown",
    ]  # fmt: skip
    answers = Hierarchy((("true", "yes"), ("FALSE", "no")))
    assert masked(Level(1, answers), [True, False, None], pa.bool_()) == ["yes", "no", None]
    half = Hierarchy((("0.5", "half"), ("1", "one")))
    values = [Decimal("0.50"), Decimal("1.00"), Decimal("2.00")]
    assert masked(Level(1, half), values, pa.decimal128(4, 2)) == ["half", "one", "*"]


def test_a_level_knows_its_values():
    table = ibis.memtable(pa.table({"v": pa.array(["Oslo", "Bergen", None])}))
    known = Level(1, CITIES).known(table.v)
    assert embedded().to_pyarrow(table.select(k=known))["k"].to_pylist() == [True, False, True]
    assert Level(0, CITIES).known(table.v) is None


def test_level_errors():
    with pytest.raises(PolicyError, match=r"cities has no level 3.*0 .* to 2"):
        parse_mask({"level": 3}, hierarchy=CITIES)
    with pytest.raises(PolicyError, match="parameter 'level' is -1"):
        Level(-1)
    with pytest.raises(PolicyError, match="attribute 'city' has no hierarchy"):
        parse_mask({"level": 1}).check(Kind.TEXT, "city")
    with pytest.raises(InternalError, match="no hierarchy"):
        masked(Level(1), ["a"], pa.string())
    assert parse_mask({"level": {"level": 1}}, hierarchy=CITIES) == Level(1, CITIES)
    assert Level(1, CITIES).spec() == {"level": 1}


@pytest.mark.parametrize(
    ("folder", "table"), [("arx_adult", "adult.csv"), ("fars", "fars_subset.csv")]
)
def test_hierarchies_of_real_data_load_and_cover(shared_data, folder, table):
    options = arrow_csv.ParseOptions(delimiter=";")
    data = arrow_csv.read_csv(shared_data / folder / table, parse_options=options)
    files = sorted((shared_data / folder).glob("*_hierarchy_*.csv"))
    assert len(files) == data.num_columns
    for path in files:
        column = data[path.stem.split("_hierarchy_")[1]].combine_chunks().unique()
        hierarchy = Hierarchy.from_csv(path)
        assert not hierarchy.uncovered_values(column)
        for level in range(hierarchy.height + 1):
            shown = masked(Level(level, hierarchy), column.to_pylist(), column.type)
            targets = hierarchy.targets(level)
            assert [str(value) for value in shown] == [targets[str(v)] for v in column.to_pylist()]


CELLS = st.text(st.sampled_from(list('ab !"\\#~\x7f\u00e9]')), max_size=3)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=8))
def test_rows_are_checked_and_digested_as_one_by_one(rows: list[tuple[str, str, str]]) -> None:
    nested = all(a[1] != b[1] or a[2] == b[2] for a in rows for b in rows)
    if len({row[0] for row in rows}) < len(rows) or not nested:
        with pytest.raises(DataError):
            Hierarchy(tuple(rows))
        return
    hierarchy = Hierarchy(tuple(rows))
    lines = sorted(json.dumps(row) for row in rows)
    assert hierarchy.digest == hashlib.sha256("\n".join(lines).encode()).hexdigest()
    values = pa.array(["a", None, *(row[0] for row in rows), "new"])
    known = {row[0] for row in rows}
    assert hierarchy.uncovered_values(values) == tuple(v for v in ("a", "new") if v not in known)


def test_a_file_that_is_no_hierarchy_is_not_quoted(tmp_path):
    for text in ("root:secret,x,y:0\ndaemon:secret:1\n", "secret\nsecret,1\n", "secret\n", ""):
        (tmp_path / "passwd").write_text(text)
        with pytest.raises(DataError) as refused:
            Hierarchy.from_csv(tmp_path / "passwd")
        assert "secret" not in str(refused.value)
