"""A DuckDB file from somebody else cannot read the files of this machine."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import aegis
from aegis.errors import EngineError
from aegis.sources import open_table

POLICY = {
    "version": 1,
    "label": "ill",
    "privacy": {"k": 2},
    "attributes": {
        "age": {"role": "quasi-identifier", "masks": [{"bucketize": {"width": 10}}]},
    },
}


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the URL of a database with a table, and with views on files inside and outside its
    folder.
    """
    folder, outside = tmp_path_factory.mktemp("foreign"), tmp_path_factory.mktemp("outside")
    people = "age,ill\n" + "".join(f"{20 + i % 40},{'yn'[i % 3 > 0]}\n" for i in range(120))
    for place in (folder, outside):
        (place / "people.csv").write_text(people)
    with duckdb.connect(str(folder / "f.duckdb")) as made:
        made.execute(f"CREATE TABLE people AS FROM '{folder / 'people.csv'}'")
        made.execute(f"CREATE VIEW near AS FROM '{folder / 'people.csv'}'")
        made.execute(f"CREATE VIEW secret AS FROM read_text('{outside / 'people.csv'}')")
        made.execute(f"CREATE VIEW secret_rows AS FROM '{outside / 'people.csv'}'")
    return f"duckdb://{folder / 'f.duckdb'}"


def _read(url: str, table: str) -> None:
    source = open_table(url, name=table)
    source.collect(source.table)


@pytest.mark.parametrize("view", ["secret", "secret_rows"])
def test_a_view_reads_no_file_outside_the_folder_of_the_database(foreign: str, view: str) -> None:
    with pytest.raises(EngineError, match="Cannot access file"):
        _read(foreign, view)


@pytest.mark.parametrize("table", ["people", "near"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_its_tables_are_released_to_any_folder(
    foreign: str, tmp_path: Path, table: str, ending: str
) -> None:
    study = aegis.Study(open_table(foreign, name=table), POLICY)
    masked = tmp_path / f"m.{ending}"
    release = study.apply(study.advise(), masked)
    assert release.released_rows == 120
    assert open_table(masked).rows == 120


def test_a_file_that_was_cut_is_no_matter_of_users_and_passwords(tmp_path: Path) -> None:
    file = tmp_path / "cut.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS a FROM range(10)")
    file.write_bytes(file.read_bytes()[:6_000])
    with pytest.raises(EngineError, match="Cannot connect") as refused:
        open_table(f"duckdb://{file}", name="t")
    assert refused.value.hint.startswith("Check that the file is there")
