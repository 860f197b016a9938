"""A connection that is cut in the middle of a query, whichever query of a run it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ibis
import pytest
from engines_support import awkward, configuration, policy, rows_of

import aegis
from aegis.cli.main import run
from aegis.errors import EngineError
from aegis.policy import Policy, dump_configurations, dump_policy
from aegis.sources import open_table

NAPS = """
CREATE SEQUENCE scans;
CREATE FUNCTION nap(place bigint) RETURNS int LANGUAGE plpgsql VOLATILE
SET search_path FROM CURRENT AS $$
BEGIN
  IF nextval('scans') = (SELECT last FROM napping) THEN PERFORM pg_sleep(60); END IF;
  RETURN 1;
END $$;
CREATE TABLE napping (last bigint);
INSERT INTO napping VALUES (0);
CREATE VIEW slow AS SELECT people.* FROM people, nap(1)
"""
"""A view of the people of which one scan sleeps, the one whose number stands in `napping`."""
RULES = {"k": 3, "suppression": 0.9}


@contextmanager
def cutting(cut: Callable[[int], object], control: Any) -> Iterator[None]:
    """Call `cut` with the server process that sleeps, as soon as one does."""
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            found = control.execute(
                "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
            ).fetchone()
            if found is not None:
                cut(found[0])
                return
            time.sleep(0.01)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


@pytest.fixture
def napping(postgres: Any) -> Iterator[Any]:
    """A connection that chooses which scan of the view `slow` sleeps."""
    with connected(postgres) as control:
        control.execute("CREATE SCHEMA cut; SET search_path = cut")
        fill(postgres.url, "cut")
        control.execute(NAPS)
        yield control
        control.execute("DROP SCHEMA cut CASCADE")


def connected(server: Any) -> Any:
    import psycopg

    return psycopg.connect(server.url, autocommit=True)


def fill(url: str, schema: str) -> None:
    connection = ibis.connect(url)
    connection.create_table("people", awkward(), database=schema)
    connection.disconnect()


def sleeping(control: Any, scan: int) -> None:
    control.execute("UPDATE napping SET last = %s", (scan,))
    control.execute("ALTER SEQUENCE scans RESTART")


def tables(control: Any) -> set[str]:
    found = control.execute("SELECT relname FROM pg_class WHERE relkind IN ('r', 'v')")
    return {str(name) for (name,) in found if not name.startswith("pg_")}


def settled(control: Any, before: set[str]) -> set[str]:
    """Return the tables once those that the ended connection drops are gone, at most a minute later."""
    end = time.monotonic() + 60
    while not (there := tables(control)) <= before and time.monotonic() < end:
        time.sleep(0.05)
    return there


def advise(source: Any, rules: Policy, _: Path) -> object:
    return aegis.advise(source, rules, generate_count=4).best


def apply_to_file(source: Any, rules: Policy, folder: Path) -> object:
    chosen, paper = configuration(rules), folder / "paper.json"
    return aegis.apply(source, rules, chosen, output=folder / "out.parquet", certificate=paper)


def apply_in_database(source: Any, rules: Policy, _: Path) -> object:
    return aegis.apply(source, rules, configuration(rules), into="cut.masked")


@pytest.mark.parametrize("task", [advise, apply_to_file, apply_in_database])
def test_nothing_is_left_wherever_the_connection_is_cut(
    task: Callable[..., object], napping: Any, postgres: Any, tmp_path: Path
) -> None:
    rules = policy(**RULES)
    before = tables(napping)
    cuts = 0

    def cut(process: int) -> None:
        nonlocal cuts
        cuts += 1
        napping.execute("SELECT pg_terminate_backend(%s)", (process,))

    for scan in range(1, 100):
        sleeping(napping, 0)
        source = open_table(postgres.url, name="cut.slow")
        sleeping(napping, scan)
        try:
            with cutting(cut, napping):
                done = task(source, rules, tmp_path)
            break
        except EngineError as error:
            told = str(error)
        assert "cut.slow of postgres://aegis:***@" in told
        assert "was lost" in told
        assert "run the command again" in told
        assert settled(napping, before) <= before
        assert list(tmp_path.iterdir()) == []
    assert done is not None
    assert scan - 1 == cuts >= 3


def test_a_server_that_stops_is_said_and_the_command_can_be_run_again(
    own_postgres: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = policy(**RULES)
    chosen = configuration(rules)
    (tmp_path / "p.yaml").write_text(dump_policy(rules), encoding="utf-8")
    (tmp_path / "c.yaml").write_text(dump_configurations({"c": chosen}), encoding="utf-8")
    fill(own_postgres.url, "public")
    words = ["apply", own_postgres.url, "--table", "slow", "-p", str(tmp_path / "p.yaml"), "-q"]
    words += ["-c", str(tmp_path / "c.yaml"), "-o", str(tmp_path / "out.parquet")]
    with connected(own_postgres) as control:
        control.execute(NAPS)
        sleeping(control, 3)
        with cutting(lambda _: own_postgres.stop(), control):
            assert run(words) == 2
    said = capsys.readouterr().err
    assert said.count("Error: ") == 1
    assert "The connection to slow of" in said
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.yaml", "p.yaml"]
    own_postgres.start()
    with connected(own_postgres) as control:
        sleeping(control, 0)
    assert run(words) == 0
    expected = aegis.apply(awkward(), rules, chosen).data
    assert expected is not None
    made = open_table(tmp_path / "out.parquet")
    assert rows_of(made.collect(made.table)) == rows_of(expected)
