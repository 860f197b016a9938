"""Commands that lack streams, space, memory or permission end as they should; `make fuzz` tries all."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import faults

# Limits of addresses are tried by `make fuzz` only: there the C library itself may end a process,
# when a thread of an engine finds no room for its own data.
SOME = [
    ("output full", "apply"),
    ("output full", "masks"),
    ("output unread", "apply told as JSON"),
    ("output unread", "masks"),
    ("all closed", "init"),
    ("all full", "summarize"),
    ("errors unread", "audit"),
    ("files of 100 bytes", "apply to parquet"),
    ("files of 4 kB", "apply to a workbook"),
    ("12 open files", "report"),
    ("read-only folder", "apply"),
    ("full device", "apply"),
    ("full device", "apply to a workbook"),
]


@pytest.mark.parametrize(("fault", "command"), SOME)
def test_what_is_missing_is_said(bench: faults.Bench, fault: str, command: str) -> None:
    missing = {**faults.FAULTS, **faults.PLACES}[fault]
    if missing.place is not None and not faults.can_place(fault):
        pytest.skip("this needs a file system of its own, which cannot be mounted here")
    _, failure = faults.attempt(bench, command, missing)
    assert failure is None, failure


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> faults.Bench:
    return faults.Bench.at(tmp_path_factory.mktemp("faults"))


def test_what_is_looked_for_is_seen(tmp_path: Path) -> None:
    """The harness is held against a command that leaves half a file and says that all is well."""
    (tmp_path / "o.parquet").write_text("half")
    (tmp_path / ".aegis-o-1.1.partial.parquet").touch()
    wrong = faults._half_written("apply to parquet", 0, {}, tmp_path)
    assert ".aegis-o-1.1.partial.parquet is left" in wrong
    assert any("o.parquet cannot be read" in one for one in wrong)
    assert faults._half_written("apply to parquet", 2, {}, tmp_path)[-1].startswith("exit 2, and")
    fault = faults.FAULTS["output full"]
    assert faults._wrong("apply", fault, 2, "Error: x") == ["exit 2"]
    assert faults._wrong("apply", faults.Fault(), 2, "Traceback") == [
        "exit 2",
        "says what only its authors understand",
        "says no error",
    ]
