"""The wheel and the source archive in a clean environment of each Python: `make wheels`.

`python -m tests.wheels python3.12 python3.14` tries these two; without names it tries each of `PYTHONS` that
this machine has. The four lines of the README then run on the hospital's table.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
TABLE, LABEL = ROOT / "examples" / "hospital" / "stays.csv", "readmitted"


def build(folder: Path) -> tuple[Path, Path]:
    """Write the wheel and the source archive into a folder, and return the two files."""
    for target in ("wheel", "sdist"):
        command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, archive


def four_lines(label: str) -> list[list[str]]:
    """Return the words after `aegis` of the README's commands on a table with this label."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```sh\n(aegis init table\.csv .*?)^```", text, re.M | re.S)
    commands = [shlex.split(line, comments=True) for line in block.splitlines()]
    assert len(commands) == 4
    assert all(words[0] == "aegis" for words in commands)
    return [[label if word == "income" else word for word in words[1:]] for words in commands]


def try_out(python: str, package: Path, folder: Path) -> str:
    """Install a package for one Python, run the four lines, and say how long it took."""
    started = time.monotonic()
    _run([python, "-m", "venv", "environment"], folder)
    _run(["environment/bin/python", "-m", "pip", "install", "--quiet", str(package)], folder)
    installed = time.monotonic()
    shutil.copy(TABLE, folder / "table.csv")
    for words in four_lines(LABEL):
        _run(["environment/bin/aegis", *words], folder)
    size = sum(file.lstat().st_blocks for file in folder.rglob("*")) * 512 / 1e6
    return (
        f"{package.name}: installed in {installed - started:.0f} s ({size:.0f} MB), "
        f"ran in {time.monotonic() - installed:.0f} s"
    )


def works(python: str) -> bool:
    """Tell whether a Python is installed; a name that only points at others is not."""
    command = [python, "-c", ""]
    return (
        bool(shutil.which(python)) and not subprocess.run(command, capture_output=True).returncode
    )


def main(named: Sequence[str]) -> int:
    """Try wheel and archive on each Python, and return the exit code."""
    pythons = named or [python for python in PYTHONS if works(python)]
    failed = not pythons
    with tempfile.TemporaryDirectory() as folder:
        for package in build(Path(folder)):
            for python in pythons:
                with tempfile.TemporaryDirectory() as clean:
                    try:
                        told = try_out(python, package, Path(clean))
                    except subprocess.CalledProcessError as error:
                        failed = True
                        told = f"{package.name}: {shlex.join(error.cmd)} failed\n{error.stderr}"
                sys.stdout.write(f"{python}: {told}\n")
                sys.stdout.flush()
    return int(failed)


def _run(command: Sequence[str], folder: Path) -> None:
    """Run a command in a folder, without what this environment would add to it."""
    alone = {
        k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "AEGIS_", "VIRTUAL"))
    }
    subprocess.run(command, cwd=folder, env=alone, capture_output=True, text=True, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
