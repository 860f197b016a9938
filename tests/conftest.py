"""Shared test settings: reproducible, bounded Hypothesis runs and the place of the real data."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import typer
from hypothesis import HealthCheck, settings
from ibis.backends.sql import SQLBackend

from aegis.advisor.search import problem
from aegis.cli import main
from aegis.masks import Mask, grouping
from aegis.report import svg
from aegis.sources import embedded
from aegis.sources.delimited import files
from aegis.sources.dialect import Reading, TextDialect
from aegis.summary import builder
from postgres_server import Server, server
from queries_written import renamed, shape, use_threads

settings.register_profile(
    "aegis",
    max_examples=int(os.environ.get("AEGIS_EXAMPLES", "10")),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("aegis")

os.environ.pop("COLUMNS", None)  # a test that asks for a width sets it
# Compiled modules are kept, also where the environment says otherwise: hundreds of tests start a process,
# and each would compile the package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
gc.disable()  # until the tests are collected
# Runs of tests share the cores: several threads of one model only wait for those of another.
os.environ.setdefault("OMP_NUM_THREADS", "1")

SPARK = [
    f"tests/engines/test_engines_{name}.py"
    for name in ("masks", "persons", "rechecked", "spark", "weights")
]
"""Files that need Spark."""
ASK_EACH_TIME = ("tests/masks/", "tests/engines/")
"""Tests of what is else asked once."""
READ_EACH_TIME = (*ASK_EACH_TIME, "tests/sources/", "tests/fuzz/")
"""Tests of what is else read once."""
MOST_VALUES = 2_000
"""Most values whose masked ones are kept."""
MOST_BYTES = 1 << 20
"""Size of the largest text file whose rows are kept."""
MOST_TEXTS = 200
"""Most text files whose rows are kept."""
DATA = Path(os.environ.get("AEGIS_DATA", Path(__file__).parents[2] / "shared" / "data"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add an option by which tests run in an order that a number draws."""
    parser.addoption("--shuffle", type=int, metavar="N", help="run tests in a random order")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffle the tests where that is asked for: none may need another one to run before it.

    Else those of the whole package come first: one of their files takes half a minute, for which another
    process would wait at the end.
    """
    seed = config.getoption("--shuffle")
    if seed is not None:
        Random(seed).shuffle(items)
    else:
        items.sort(key=lambda item: item.path.parent != Path(__file__).parent)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give files of tests to processes, those that need Spark to one: a Java takes 10 seconds to start."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler.loadfile import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return "Spark" if file in SPARK else file

    return Scheduling(config, log)


def pytest_collection_finish() -> None:
    """Keep the garbage collector away from what was loaded: it went through all of that again and again."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 10, 10)


@pytest.fixture(scope="session", autouse=True)
def commands_made_once() -> Iterator[None]:
    """Make equal command lines once: a process does so for each run, and the tests run thousands in one."""
    make_app, make_command = main._app, typer.main.get_command
    apps: dict[tuple[tuple[str, Any], ...], typer.Typer] = {}
    commands: dict[typer.Typer, Any] = {}

    def app_of(given: Mapping[str, main.Command]) -> typer.Typer:
        key = tuple(given.items())
        if key not in apps:
            apps[key] = make_app(given)
        return apps[key]

    def command_of(app: typer.Typer) -> Any:
        if app not in commands:
            commands[app] = make_command(app)
        return commands[app]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(main, "_app", app_of)
        patch.setattr(typer.main, "get_command", command_of)
        yield


@pytest.fixture(scope="session", autouse=True)
def values_masked_once() -> Iterator[None]:
    """Ask the engine once how equal masks show equal values: the tests ask it thousands of times about
    the same small tables. Tests of masks and of engines ask each time.
    """
    mask = grouping._masked
    known: dict[Any, list[pa.ChunkedArray]] = {}

    def once(columns: Sequence[tuple[Sequence[Mask], pa.Array]], connection: Any) -> Any:
        here = os.environ.get("PYTEST_CURRENT_TEST", "")
        many = max(len(values) for _, values in columns) > MOST_VALUES
        if connection is not embedded() or many or here.startswith(ASK_EACH_TIME):
            return mask(columns, connection)
        try:
            key = tuple(
                (tuple(masks), repr(masks), pa.record_batch([v], ["v"]).serialize().to_pybytes())
                for masks, v in columns
            )
            hash(key)
        except TypeError:  # a mask of a test that holds what has no hash
            return mask(columns, connection)
        if key not in known:
            known[key] = mask(columns, connection)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "_masked", once)
        yield


@pytest.fixture(scope="session", autouse=True)
def drawn_once() -> Iterator[None]:
    """Draw equal charts once: most reports are of the same small tables. Tests of reports draw each time."""
    drawn: dict[str, str] = {}
    draw = svg.to_svg

    def remembered(specification: dict[str, Any], version: str) -> str:
        if os.environ.get("PYTEST_CURRENT_TEST", "").startswith("tests/report/"):
            return draw(specification, version)
        key = json.dumps([specification, version], default=str)
        if key not in drawn:
            drawn[key] = draw(specification, version)
        return drawn[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(svg, "to_svg", remembered)
        yield


@pytest.fixture(scope="session", autouse=True)
def one_thread_of_duckdb() -> None:
    """Answer queries on one thread: for the small tables of the tests, two take twice the processor time.

    Tests of engines use all threads, and so do commands in processes of their own.
    """
    use_threads(1)


@pytest.fixture(scope="session", autouse=True)
def queries_written_once() -> Iterator[None]:
    """Write the SQL of equal queries to DuckDB once: Ibis takes as long for that as most answers take.

    Tests of masks and of engines write each time.
    """
    write = SQLBackend.compile
    known: dict[Any, tuple[str, tuple[str, ...]]] = {}

    def once(self: Any, query: Any, /, **options: Any) -> str:
        here = os.environ.get("PYTEST_CURRENT_TEST", "")
        asked = any(option is not None for option in options.values())
        if asked or self.name != "duckdb" or here.startswith(ASK_EACH_TIME):
            return write(self, query, **options)
        told, names = shape(query.op())
        try:
            sql, before = known[told]
        except TypeError:  # an operation that holds what has no hash
            return write(self, query)
        except KeyError:
            known[told] = write(self, query), names
            return known[told][0]
        return renamed(sql, before, names)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SQLBackend, "compile", once)
        yield


@pytest.fixture(scope="session", autouse=True)
def texts_read_once() -> Iterator[None]:
    """Read equal text files once: most tests read the same few, and to find out the dialect and the types
    takes a quarter of the time of a command. Tests of sources read each time.
    """
    read, decide = files._read, files.decide
    tables: dict[Any, Any] = {}
    dialects: dict[Any, TextDialect] = {}

    def read_once(parts: Any, names: Any, dialect: TextDialect, reading: Reading) -> Any:
        here = os.environ.get("PYTEST_CURRENT_TEST", "")
        size = sum(part.path.stat().st_size for part in parts)
        if size > MOST_BYTES or here.startswith(READ_EACH_TIME):
            return read(parts, names, dialect, reading)
        contents = tuple(
            (part.path.read_bytes(), part.path.suffix, part.rows, part.longest, part.line_end)
            for part in parts
        )
        key = (id(embedded()), contents, tuple(names), dialect, reading)
        if key not in tables:
            if len(tables) >= MOST_TEXTS:
                tables.clear()
            # The engine is kept, too, so that no other one gets its number.
            tables[key] = embedded(), read(parts, names, dialect, reading)
        return tables[key][1]

    def decide_once(start: bytes, complete: bool, reading: Reading, name: str) -> TextDialect:
        here = os.environ.get("PYTEST_CURRENT_TEST", "")
        if len(start) > MOST_BYTES // 8 or here.startswith(READ_EACH_TIME):
            return decide(start, complete, reading, name)
        key = (start, complete, reading)
        if key not in dialects:
            if len(dialects) >= MOST_TEXTS:
                dialects.clear()
            dialects[key] = decide(start, complete, reading, name)
        return dialects[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_read", read_once)
        patch.setattr(files, "decide", decide_once)
        yield


@pytest.fixture
def summaries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that were summarised, one entry each time."""
    done: list[str] = []
    inner = builder.Builder.build

    def counted(self: Any, sample_rows: int | None) -> Any:
        done.append(self.source.origin)
        return inner(self, sample_rows)

    monkeypatch.setattr(builder.Builder, "build", counted)
    return done


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the checkout; tests that need it skip where it is absent."""
    if not DATA.is_dir():
        pytest.skip(f"real data not found at {DATA}; set AEGIS_DATA to its folder")
    return DATA


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server on a free port of this machine, for all tests; skips with the reason where there is none."""
    with server() as made:
        yield made


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Have Python raise interrupts, whatever the process was told of them.

    One that was started in the background may ignore them, and Spark has a handler of its own.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock of searches: a busy machine would end one of two at its limit, and not the other."""
    monkeypatch.setattr(problem, "time", SimpleNamespace(monotonic=lambda: 0.0))
