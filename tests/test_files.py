"""Temporary files: none stays behind, and what a killed run left is found."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aegis.files import format_of, leftovers, replacing

HOLDS = """
import signal, sys, time
from pathlib import Path
from aegis.files import replacing
from aegis.interrupts import watching
with watching(), replacing(Path(sys.argv[1])) as temporary:
    temporary.write_text("rows that nobody verified")
    print("written", flush=True)
    time.sleep(60)
"""


def killed(path: Path, number: signal.Signals) -> None:
    """End a process that is in the middle of writing a file."""
    words = [sys.executable, "-c", HOLDS, str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert leftovers(path) == []  # it still runs
        process.send_signal(number)
        process.wait()


@pytest.mark.parametrize("name", ["out.csv", "a\\b\n\t.csv.gz"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_leave_nothing(tmp_path: Path, name: str, number: signal.Signals) -> None:
    killed(tmp_path / name, number)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["out.csv", "a\\b\n\t.csv.gz"])
def test_a_killed_run_is_found_by_the_next(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    killed(path, signal.SIGKILL)
    (left,) = leftovers(path)
    assert left.read_text() == "rows that nobody verified"
    assert leftovers(tmp_path / "other.csv") == []
    with replacing(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"


def test_files_of_running_processes_are_no_leftovers(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    with replacing(path) as temporary:
        temporary.touch()
        assert f".{os.getpid()}." in temporary.name
        assert leftovers(path) == []


def test_formats_of_names() -> None:
    assert format_of(Path("a.b.csv")) == ".csv"
    assert format_of(Path("a.CSV.GZ")) == ".csv.gz"
    assert format_of(Path("a.gz")) == ".gz"
    assert format_of(Path("a")) == ""


@pytest.mark.parametrize("closed", ["1", "2"])
def test_closed_streams_are_no_bug(tmp_path: Path, closed: str) -> None:
    """A shell may close standard output or error (>&-): the command does its work all the same."""
    (tmp_path / "t.csv").write_text("zip,label\n" + "01,yes\n02,no\n" * 20)
    script = (
        f"import os, sys; os.close({closed}); os.execv(sys.executable, [sys.executable, '-c', "
        "'from aegis.cli.main import main; main()', 'init', 't.csv', '--label', 'label', "
        "'-o', 'p.yaml'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "p.yaml").exists()
