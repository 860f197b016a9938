"""Temporary files: none stays behind, and what a killed run left is found."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aegis.errors import DataError, PolicyError
from aegis.files import check_output, format_of, leftovers, read_text, replacing, spare_input

HOLDS = """
import signal, sys, time
from pathlib import Path
from aegis.files import replacing
from aegis.files import watching
with watching(), replacing(Path(sys.argv[1])) as temporary:
    temporary.write_text("rows that nobody verified")
    print("written", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(
    ("what", "near"), [("policy", "oneb.yaml"), ("configuration", "best.yaml")]
)
def test_a_missing_file_is_not_mistaken_for_one_of_another_kind(
    tmp_path: Path, what: str, near: str
) -> None:
    (tmp_path / "best.yaml").write_text("configurations:\n  best-1:\n    age: identity\n")
    (tmp_path / "beso.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(PolicyError) as alone:
        read_text(tmp_path / "bes.yaml", what, PolicyError)
    assert ("best.yaml" in str(alone.value)) is (what == "configuration")
    (tmp_path / "oneb.yaml").write_text('{"version": 1, "attributes": {}}')
    with pytest.raises(PolicyError, match=f"Did you mean '.*{near}'"):
        read_text(tmp_path / f"{near[:3]}{near[4:]}", what, PolicyError)


def killed(path: Path, number: signal.Signals) -> None:
    """End a process that is in the middle of writing a file."""
    words = [sys.executable, "-c", HOLDS, str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert leftovers(path) == []  # it still runs
        process.send_signal(number)
        process.wait()


@pytest.mark.usefixtures("interruptible")
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


HOLDS_UNTIL_TOLD = """
import sys
from pathlib import Path
from aegis.files import replacing
with replacing(Path(sys.argv[1])) as temporary:
    temporary.write_text("first")
    print("written", flush=True)
    sys.stdin.readline()
"""


def test_a_file_that_another_process_writes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    words = [sys.executable, "-c", HOLDS_UNTIL_TOLD, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, **pipes) as process:  # type: ignore[call-overload]
        process.stdout.readline()
        refused = pytest.raises(PolicyError, match=r"Another process is writing .*out\.csv")
        with refused, replacing(path) as temporary:
            temporary.write_text("second")
        with replacing(tmp_path / "other.csv") as temporary:
            temporary.write_text("another file")
        process.communicate("go on\n")
    assert path.read_text() == "first"
    with replacing(path) as temporary:  # it is done
        temporary.write_text("second")
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {
        "out.csv": "second",
        "other.csv": "another file",
    }


def test_one_process_refuses_itself_and_a_lock_that_was_left_is_none(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    killed(path, signal.SIGKILL)
    assert any(left.name.endswith(".lock") for left in tmp_path.iterdir())
    with replacing(path) as temporary:
        temporary.write_text("rows")
        with pytest.raises(PolicyError, match="Another process"), replacing(path):
            pass
    assert path.read_text() == "rows"


def test_a_disk_that_becomes_read_only_leaves_no_lock_held(tmp_path: Path, monkeypatch) -> None:
    """The file is locked until its process ends otherwise, and the error hides its cause."""
    path = tmp_path / "b.csv"

    def refuse(self: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refuse)
        with pytest.raises(DataError, match="No space left"), replacing(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with replacing(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"


def test_a_private_file_is_its_owners_only(tmp_path: Path) -> None:
    path = tmp_path / "t.aegis"
    with replacing(path, private=True) as temporary:
        temporary.write_text("counts")
        assert temporary.stat().st_mode & 0o777 == 0o600
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_private_file_does_not_take_the_permissions_of_one_that_was_left(tmp_path: Path) -> None:
    """In a container, a process often has the number of one that was killed."""
    path = tmp_path / "t.aegis"
    with replacing(path) as temporary:
        left = temporary
        temporary.write_text("counts")
    left.write_text("left")
    left.chmod(0o644)
    with replacing(path, private=True) as temporary:
        assert temporary == left
        assert temporary.stat().st_mode & 0o777 == 0o600
        temporary.write_text("new")


def test_a_file_that_came_up_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    check_output(path, force=False)
    path.write_text("of somebody else")
    with pytest.raises(PolicyError, match="exists"), replacing(path, force=False) as temporary:
        temporary.write_text("rows")
    assert path.read_text() == "of somebody else"
    assert list(tmp_path.iterdir()) == [path]


def other_names(file: Path, folder: Path) -> dict[str, Path]:
    """Return other names of a file."""
    (folder / "symbolic.csv").symlink_to(file)
    (folder / "hard.csv").hardlink_to(file)
    (folder / "linked").symlink_to(file.parent, target_is_directory=True)
    return {
        "symbolic link": folder / "symbolic.csv",
        "hard link": folder / "hard.csv",
        "folder that is a link": folder / "linked" / file.name,
        "relative": Path(os.path.relpath(file)),
        "dots": file.parent / ".." / file.parent.name / file.name,
    }


def test_no_name_of_an_input_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    file = folder / "table.csv"
    file.write_text("a\n1\n")
    for how, name in other_names(file, tmp_path).items():
        assert name.read_text() == "a\n1\n", how
        for read, written in ((file, name), (name, file)):
            with pytest.raises(PolicyError, match="read by this command"):
                spare_input([read], written)
    (folder / "TABLE.CSV").write_text("another file, where case counts")
    if file.read_text() == "a\n1\n":
        spare_input([file], folder / "TABLE.CSV")
    spare_input([file], folder / "other.csv", None)


INTERRUPTED = """
import os, signal, sys
from pathlib import Path
from aegis.files import check_output, replacing
from aegis.files import watching

def interrupt(event, arguments):
    if event == sys.argv[2] and arguments and sys.argv[1] in str(arguments[0]):
        os.kill(os.getpid(), signal.SIGTERM)

out = Path(sys.argv[1], "out.csv")
with watching():
    sys.addaudithook(interrupt)
    check_output(out, force=False)
    with replacing(out) as temporary:
        temporary.write_text("rows")
        if len(sys.argv) > 3:
            raise ValueError
"""


@pytest.mark.parametrize("event", ["open", "os.remove", "os.rename"])
@pytest.mark.parametrize("failing", [(), ("failing",)])
def test_signals_at_any_step_leave_nothing_partial(
    tmp_path: Path, event: str, failing: tuple[str, ...]
) -> None:
    words = [sys.executable, "-c", INTERRUPTED, str(tmp_path), event, *failing]
    subprocess.run(words, stderr=subprocess.DEVNULL, check=False)
    assert {path.name for path in tmp_path.iterdir()} <= {"out.csv"}


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
