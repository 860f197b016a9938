"""An interrupt that a library swallows or renames is told all the same."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import aegis
from aegis.files import acknowledge, check, is_interrupt, replacing, watching
from aegis.masks import parse_mask
from aegis.policy import Configuration
from aegis.sources import Source, embedded, open_table
from aegis.sources.embedded import stop_queries

pytestmark = pytest.mark.usefixtures("interruptible")


def swallowed() -> None:
    """Interrupt this process where nobody passes it on."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        return
    raise AssertionError("no interrupt was raised")


def test_a_swallowed_interrupt_is_raised_at_the_next_boundary() -> None:
    with watching():
        check()
        swallowed()
        with pytest.raises(KeyboardInterrupt):
            check()
        with pytest.raises(KeyboardInterrupt):  # and until somebody answers for it
            check()
        assert is_interrupt(ValueError("anything"))
        acknowledge()
        check()
        assert not is_interrupt(ValueError("anything"))


def test_nothing_is_noted_outside() -> None:
    swallowed()
    check()
    with watching():
        swallowed()
    check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with watching():
            signal.raise_signal(signal.SIGINT)
            check()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_job_in_the_background_is_ended_politely() -> None:
    """Shells have background jobs of scripts ignore SIGINT: SIGTERM left partial files there."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN), signal.getsignal(signal.SIGTERM)
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with watching():
            assert callable(signal.getsignal(signal.SIGTERM))  # or it would end this process
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])


def test_what_is_undone_comes_first() -> None:
    with watching():
        swallowed()
        try:
            raise ValueError("first")
        except ValueError:
            check()  # raises nothing
        with pytest.raises(KeyboardInterrupt):
            check()


def test_no_output_takes_its_name_after_an_interrupt(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")

    def write() -> None:
        with replacing(path) as temporary:
            temporary.write_text("new")
            swallowed()

    with watching(), pytest.raises(KeyboardInterrupt):
        write()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_engines_make_of_an_interrupt() -> None:
    class InterruptException(Exception):  # noqa: N818 - the name that DuckDB gives it
        pass

    assert is_interrupt(InterruptException("INTERRUPT Error: Interrupted!"))
    assert is_interrupt(RuntimeError("Query interrupted"))
    assert not is_interrupt(RuntimeError("Query failed"))
    assert not is_interrupt(ValueError("Query interrupted"))
    error, outer = RuntimeError("cannot go on"), OSError("closed")
    error.__context__, outer.__cause__ = KeyboardInterrupt(), error
    assert is_interrupt(error)
    assert is_interrupt(outer)


ENDLESS = "SELECT count(*) FROM t a, t b, t c WHERE hash(a.i + b.i + c.i) % 7 = 1"


def test_an_interrupted_query_is_an_interrupt_and_stops() -> None:
    code = (
        "import os, signal, sys, threading, time\n"
        "from aegis.sources import embedded\n"
        "from aegis.sources.embedded import engine_errors\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "connection = embedded().con\n"
        "connection.execute('CREATE TABLE t AS SELECT range AS i FROM range(1000000)')\n"
        "def interrupt():\n"
        "    time.sleep(0.3)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=interrupt, daemon=True).start()\n"
        "try:\n"
        "    with engine_errors('t'):\n"
        f"        connection.execute({ENDLESS!r})\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', connection.execute('SELECT 1').fetchone())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=50
    )
    assert (done.stdout, done.returncode) == ("interrupted (1,)\n", 0), done.stderr


def test_stopping_minds_no_closed_connection(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE t AS SELECT 1 AS i")
    source = open_table(f"duckdb://{path}", name="t")
    source.backend.con.close()
    stop_queries()
    assert embedded().con.execute("SELECT 1").fetchone() == (1,)


def test_a_request_to_terminate_counts_as_an_interrupt() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with watching(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


class Ended(Exception):  # noqa: N818 - no error
    """Raised at the first step that begins."""


class FirstStep:
    """A receiver of progress that ends the work at its first step, before anything is read."""

    def step(self, title: str, total: float | None = None) -> Any:
        raise Ended(title)


@pytest.mark.parametrize("call", ["init", "advise", "apply"])
def test_a_view_that_never_ends_is_announced_before_it_is_read(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody saw what the command was waiting for: the first query came before the first step."""

    def endless(*_: Any) -> Any:
        raise AssertionError("rows are read before the step is announced")

    policy = aegis.load_policy(
        {
            "label": "y",
            "attributes": {"a": {"role": "feature", "masks": ["identity"]}},
            "version": 1,
        }
    )
    source = open_table(pa.table({"a": [1, 2, 3], "y": [0, 1, 0]}))
    monkeypatch.setattr(Source, "collect", endless)
    begin = {
        "init": lambda: aegis.init_policy(source, label="y", progress=FirstStep()),
        "advise": lambda: aegis.Study(source, policy, progress=FirstStep()).search(),
        "apply": lambda: aegis.apply(
            source,
            policy,
            Configuration("c", {"a": parse_mask("identity")}),
            progress=FirstStep(),
        ),
    }
    with pytest.raises(Ended, match="Reading the table"):
        begin[call]()
