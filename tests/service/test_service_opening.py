"""A table that is being opened says how far it is, and gives its memory back when it is closed."""

from __future__ import annotations

import gc
import gzip
import re
import threading
import time
import weakref
from pathlib import Path

import httpx
import pytest
from service_support import running, write_table

from aegis.errors import DataError
from aegis.service.catalog.errors import NotThere
from aegis.service.opening import BenchOpening, Openings, give_back
from aegis.service.pages import local
from aegis.service.settings import ServiceSettings
from aegis.service.workbench import Benches

LONG = 120


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_table(tmp_path / "adult.csv", rows=200)
    return tmp_path


def test_a_step_is_told_while_it_runs() -> None:
    reached, go = threading.Event(), threading.Event()

    def make(progress) -> str:
        with progress.step("Measuring columns", 4) as step:
            step.advance(3)
            step.note("age")
            reached.set()
            assert go.wait(LONG)
        return "made"

    opening = BenchOpening("people.csv")
    opening.start(make)
    assert reached.wait(LONG)
    told = tuple(opening.state[key] for key in ("step", "note", "done", "total"))
    assert told == ("Measuring columns", "age", 3, 4)
    assert opening.bench() is None
    go.set()
    assert opening.ended.wait(LONG)
    assert opening.bench() == "made"


def test_what_kept_a_table_from_being_opened_is_raised_where_it_is_asked_for(folder: Path) -> None:
    openings = Openings(Benches(folder, folder / "out"))
    with pytest.raises(DataError, match=r"no table nothing\.csv"):
        openings.begin("nothing.csv", None, None)
    (folder / "empty.csv").write_text("")
    opening = openings.begin("empty.csv", None, None)
    assert opening.ended.wait(LONG)
    with pytest.raises(DataError):
        openings.get(opening.identifier).bench()
    with pytest.raises(NotThere):
        openings.get("unknown")


def test_releases_of_the_workbench_are_no_tables_of_the_folder(folder: Path) -> None:
    benches = Benches(folder, folder / "out")
    before = benches.tables()
    (folder / "out" / "1a").mkdir(parents=True)
    (folder / "out" / "1a" / "certificate.json").write_text("{}")
    (folder / "out" / "1a" / "masked.parquet").write_bytes(b"")
    assert benches.tables() == before == [Path("adult.csv")]


def test_nothing_holds_a_table_that_was_closed(folder: Path) -> None:
    gc.freeze()  # what is held by now is not looked through again
    benches = Benches(folder, folder / "out")
    opening = Openings(benches).begin("adult.csv", "income", None)
    assert opening.ended.wait(LONG)
    identifier = opening.bench()
    assert identifier is not None
    assert [bench.identifier for bench in benches.all_open()] == [identifier]
    study = weakref.ref(benches.get(identifier).study)
    benches.close(identifier)
    benches.close(identifier)  # twice does no harm
    give_back()
    gc.collect()
    assert study() is None
    with pytest.raises(NotThere):
        benches.get(identifier)


def test_the_page_of_an_opening_tells_the_step_and_leads_to_the_bench(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, opened = threading.Event(), Benches.open

    def slow(self, name, label, part, progress):
        with progress.step("Measuring columns", 7) as step:
            step.advance(2)
            assert go.wait(LONG)
        return opened(self, name, label, part, progress)

    monkeypatch.setattr(Benches, "open", slow)
    monkeypatch.setattr(local, "AT_ONCE", 0.05)
    settings = ServiceSettings(local=True, folder=folder, worker=False)
    with running(settings) as url, httpx.Client(base_url=url, timeout=LONG) as caller:
        asked = caller.get("/table", params={"name": "adult.csv"}).text
        key = re.findall('name="form_key" value="([^"]*)"', asked)[0]
        form = {"form_key": key, "name": "adult.csv", "label": "income"}
        opening = caller.post("/open", data=form, headers={"Origin": url}).headers["location"]
        assert opening.startswith("/opening/")
        told = caller.get(opening)
        assert told.status_code == 200
        assert "Measuring columns" in told.text
        assert 'max="7" value="2.0"' in told.text
        step = caller.get(f"{opening}/step").json()
        assert (step["ended"], step["step"], step["done"], step["total"]) == (
            False,
            "Measuring columns",
            2,
            7,
        )
        go.set()
        while (answer := caller.get(opening)).status_code == 200:
            time.sleep(0.05)
        assert caller.get(f"{opening}/step").json()["ended"]
        bench = answer.headers["location"]
        assert bench.startswith("/bench/")
        assert "Close the table" in caller.get(bench).text
        assert f'href="{bench}"' in caller.get("/").text
        assert caller.post(f"{bench}/close", data={"form_key": "another"}).status_code == 403
        closed = caller.post(f"{bench}/close", data={"form_key": key}, headers={"Origin": url})
        assert closed.headers["location"] == "/"
        assert caller.get(bench).status_code == 404
        assert "Open tables" not in caller.get("/").text


def test_the_workbench_offers_what_the_core_reads(tmp_path):
    """It listed fewer formats, and opened a packed file neither from the list nor by its name."""
    for name in ("a.csv.gz", "b.txt", "c.db", "d.xlsb", "e.sas7bdat", "f.ipc", "g.zsav", "no.yaml"):
        (tmp_path / name).write_bytes(b"x")
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write("age,income\n" + "".join(f"{20 + n % 9},{n % 2}\n" for n in range(60)))
    benches = Benches(tmp_path, tmp_path / "out")
    assert [path.name[0] for path in benches.tables()] == list("abcdefg")
    assert benches.open("a.csv.gz", "income").policy.label.column == "income"
    with pytest.raises(DataError, match="not a table of this folder"):
        benches.path_of("no.yaml")
