"""Temporary folders: gone afterwards, and those of killed processes at the next run."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import aegis.files
from aegis.files import (
    abandoned,
    name_for,
    recording,
    remove_abandoned,
    temporary_folder,
    write_text,
)

LEAVING = """
import os, signal, sys
from pathlib import Path
from aegis.files import name_for, temporary_folder

with temporary_folder("read", Path(sys.argv[1])) as folder:
    (folder / "rows.csv").write_text("private")
    Path(sys.argv[1], name_for("engine")).mkdir()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def left(tmp_path: Path) -> list[Path]:
    """What a process that was killed left, beside what is none of Aegis's business."""
    done = subprocess.run([sys.executable, "-c", LEAVING, tmp_path], check=False)
    assert done.returncode == -signal.SIGKILL
    folders = sorted(tmp_path.iterdir())
    assert len(folders) == 2
    return folders


def test_what_a_killed_process_left_is_removed_at_the_next_run(
    tmp_path: Path, left: list[Path]
) -> None:
    other = tmp_path / f"aegis-read-00000000-{left[0].name.split('-')[3]}"  # of another machine
    mine = tmp_path / "aegis-data"
    living = tmp_path / name_for("engine")
    for folder in (other, mine, living):
        folder.mkdir()
    assert abandoned(tmp_path) == left
    with temporary_folder("write", tmp_path) as folder:
        assert folder.is_dir()
        assert {*tmp_path.iterdir()} == {other, mine, living, folder}
    assert {*tmp_path.iterdir()} == {other, mine, living}


def test_links_are_not_followed(tmp_path: Path, left: list[Path]) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "rows.csv").touch()
    link = left[0].with_name(f"{left[0].name}-2")
    link.symlink_to(outside)
    remove_abandoned(tmp_path)
    assert (outside / "rows.csv").exists()
    assert link.is_symlink()
    assert not left[0].exists()


def test_a_command_removes_what_one_before_it_left(tmp_path: Path, left: list[Path]) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,y\n1,u\n2,v\n")
    opening = "import sys; from aegis.sources import open_table; open_table(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", opening, table],
        check=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert [*tmp_path.iterdir()] == [table]


def test_every_temporary_folder_is_one_that_a_later_run_removes() -> None:
    """A folder of another name stays for good where a process is killed, with what is in it."""
    package = Path(aegis.files.__file__).parent
    makes = {"TemporaryDirectory", "mkdtemp", "mkstemp", "NamedTemporaryFile"}
    others = [
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr in makes)
        or (isinstance(node, ast.Name) and node.id in makes)
    ]
    assert others == ["files.py"]


def test_what_is_temporary_is_not_said_to_be_written(tmp_path: Path) -> None:
    with recording() as made:
        with temporary_folder("agent", tmp_path) as folder:
            write_text(folder / "masked.txt", "gone soon")
        write_text(tmp_path / "there.txt", "stays")
    assert made == [str(tmp_path / "there.txt")]


def test_the_folder_is_where_the_system_has_them_and_need_not_be_readable() -> None:
    with temporary_folder("read") as folder:
        assert folder.parent == Path(tempfile.gettempdir())
    assert abandoned(Path("/no/such/folder")) == []
