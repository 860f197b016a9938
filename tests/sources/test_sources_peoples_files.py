"""Files as people have them: dates with names of months, SQLite, objects around records, .tab."""

from __future__ import annotations

import datetime as dt
import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import DataError, PolicyError
from aegis.sources import open_table


def read(path: Path, name: str | None = None) -> list[dict[str, object]]:
    source = open_table(path, name=name)
    return source.collect(source.table).to_pylist()


@pytest.mark.parametrize(
    ("form", "month_only"),
    [
        ("%b-%Y", True),
        ("%B %Y", True),
        ("%A, %B %d, %Y", False),
        ("%d-%b-%Y", False),
        ("%d%b%Y", False),
        ("%a %d %B %Y", False),
        ("%b %-d, %Y", False),
        ("%Y/%m/%d 00:00:00", False),
    ],
)
@pytest.mark.parametrize("upper", [False, True])
def test_dates_with_names_of_months_are_dates(
    form: str, month_only: bool, upper: bool, tmp_path: Path
) -> None:
    days = [dt.date(1930, 6, 19) + dt.timedelta(97 * i) for i in range(200)]
    texts = [day.strftime(form) for day in days]
    rows = "\n".join(f'"{text.upper() if upper else text}"' for text in texts)
    (tmp_path / "t.csv").write_text(f"d\n{rows}\n")
    seen = [row["d"] for row in read(tmp_path / "t.csv")]
    expected = [day.replace(day=1) if month_only else day for day in days]
    assert [value.date() if isinstance(value, dt.datetime) else value for value in seen] == expected


@pytest.mark.parametrize(
    "texts",
    [
        # Another weekday than the date has: two texts would be one date.
        ["Friday, July 13, 1984", "Monday, July 13, 1984"],
        ["Dec-2015", "DEC-2015"],
        ["Dec-2015", "Winter 2015"],
        ["May 2015", "Dec-15"],
    ],
)
def test_texts_that_would_merge_or_are_no_dates_stay_text(texts: list[str], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("d\n" + "\n".join(f'"{text}"' for text in texts) + "\n")
    assert [row["d"] for row in read(tmp_path / "t.csv")] == texts


def test_tab_separated_files_may_end_in_tab(tmp_path: Path) -> None:
    (tmp_path / "t.tab").write_text("a\tb\n1\tx\n2\ty\n")
    assert read(tmp_path / "t.tab") == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


def test_text_files_of_the_uci_repository_end_in_data(tmp_path: Path) -> None:
    (tmp_path / "t.data").write_text("a;b\n1;x\n2;y\n")
    assert read(tmp_path / "t.data") == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


def database(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path


def test_a_table_of_a_sqlite_file_is_chosen(tmp_path: Path) -> None:
    path = database(
        tmp_path / "t.db",
        "CREATE TABLE staff (age INTEGER, pay REAL, name TEXT, born DATE, ill BOOLEAN, code)",
        "INSERT INTO staff VALUES (41, 1.5, 'Ann', '1980-02-01', 1, 7), (NULL, 2, NULL, NULL, 0, 'x')",
        'CREATE TABLE "odd ""name" (a)',
    )
    with pytest.raises(PolicyError, match="2 tables") as several:
        read(path)
    assert "--table" in str(several.value.hint)
    assert read(path, "staff") == [
        {
            "age": 41,
            "pay": 1.5,
            "name": "Ann",
            "born": dt.date(1980, 2, 1),
            "ill": True,
            "code": "7",
        },
        {"age": None, "pay": 2.0, "name": None, "born": None, "ill": False, "code": "x"},
    ]
    assert open_table(path, name="staff").notes == (
        "code: values of several types are read as text.",
    )
    assert read(path, 'odd "name') == []
    with pytest.raises(DataError, match="no table 'nope'"):
        read(path, "nope")


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1984-07-13", "1990-01-01", None], pa.date32()),
        (["1984-07-13", "soon"], pa.string()),
        (["19840713", "19900101"], pa.string()),
        ([None, None], pa.string()),
    ],
)
def test_texts_of_sqlite_that_are_iso_dates_are_dates(
    texts: list[str | None], kind: pa.DataType, tmp_path: Path
) -> None:
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (seen TEXT)")
        connection.executemany("INSERT INTO t VALUES (?)", [(text,) for text in texts])
        connection.commit()
    source = open_table(path)
    found = source.collect(source.table)["seen"]
    assert found.type == kind
    assert found.cast(pa.string()).to_pylist() == texts


def test_sqlite_files_that_cannot_be_read(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.sqlite"
    wrong.write_text("a,b\n1,2\n" * 100)
    with pytest.raises(DataError, match="not a database"):
        read(wrong)
    with pytest.raises(DataError, match="has no tables"):
        read(database(tmp_path / "empty.db", "CREATE TABLE t (a)", "DROP TABLE t"))
    held = database(tmp_path / "b.db", "CREATE TABLE t (a)", "INSERT INTO t VALUES (x'00')")
    with pytest.raises(DataError, match="holds bytes"):
        read(held)
    with pytest.raises(DataError, match="No such file"):
        read(tmp_path / "none.db")


def test_a_sqlite_file_that_was_cut_is_not_read_as_zeros(tmp_path: Path) -> None:
    """The last page was read with what was left of it, and zeros for the rest."""
    values = ", ".join(f"({i}, 'x')" for i in range(300))
    file = database(tmp_path / "t.db", "CREATE TABLE t (a, b)", f"INSERT INTO t VALUES {values}")
    file.write_bytes(file.read_bytes()[:-1000])
    with pytest.raises(DataError, match="it was cut"):
        read(file)


def test_a_text_that_is_not_utf8_is_not_shown(tmp_path: Path) -> None:
    """The message of SQLite ends in the text."""
    file = database(
        tmp_path / "t.db", "CREATE TABLE t (a)", "INSERT INTO t VALUES (CAST(x'5A5AFF' AS TEXT))"
    )
    with pytest.raises(DataError, match="a text in it is not UTF-8") as caught:
        read(file)
    assert "ZZ" not in str(caught.value)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_a_view_that_never_ends_can_be_interrupted(tmp_path: Path) -> None:
    """Ctrl-C did nothing, because SQLite never let Python run."""
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    file = database(tmp_path / "t.db", f"CREATE VIEW v AS {endless}")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            read(file)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_text_that_a_view_makes_long_is_refused(tmp_path: Path) -> None:
    file = database(tmp_path / "t.db", "CREATE VIEW v AS SELECT hex(zeroblob(40000000)) AS a")
    with pytest.raises(DataError, match="too big"):
        read(file)


@given(
    st.lists(
        st.none()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False)
        | st.text("aé'\"0.")
    )
)
def test_no_two_values_of_sqlite_become_one(tmp_path_factory, values: list[object]) -> None:
    path = tmp_path_factory.mktemp("sqlite") / "t.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
        connection.commit()
        distinct = connection.execute(
            "SELECT count(*) FROM (SELECT DISTINCT CAST(a AS TEXT) FROM t)"
        )
        texts = distinct.fetchone()[0]
    rows = [row["a"] for row in read(path)]
    assert [value is None for value in rows] == [value is None for value in values]
    if all(isinstance(value, int | float | None) for value in values) and rows:
        assert len(set(rows)) >= len(set(values)) or any(type(v) is str for v in rows)
    else:
        assert len(set(rows)) == texts


RECORDS = [{"age": 40 + i, "sex": "mf"[i % 2]} for i in range(30)]


@pytest.mark.parametrize("indent", [None, 2])
def test_records_in_an_object_are_read(indent: int | None, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(
        json.dumps({"source": "x", "n": 30, "tags": ["a"], "rows": RECORDS}, indent=indent)
    )
    assert read(path) == RECORDS


def test_an_object_beyond_the_engines_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"rows": [{"a": i, "b": "x" * 200} for i in range(100_000)]}))
    source = open_table(path)
    assert source.collect(source.table.aggregate(n=source.table.a.nunique())).to_pylist() == [
        {"n": 100_000}
    ]


def test_an_object_with_two_arrays_names_them(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"men": RECORDS, "women": RECORDS}))
    with pytest.raises(DataError, match="2 arrays of records: men, women"):
        read(path)


def test_a_document_that_is_refused_leaves_the_engine_as_it_was(tmp_path: Path) -> None:
    beyond = [{"a": {"x": 2**70 + i}} for i in range(2)]
    (tmp_path / "t.json").write_text(json.dumps(beyond))
    with pytest.raises(DataError, match="beyond 64 bits"):
        read(tmp_path / "t.json")
    (tmp_path / "t.csv").write_text("a\n1\n2\n")
    assert read(tmp_path / "t.csv") == [{"a": 1}, {"a": 2}]
