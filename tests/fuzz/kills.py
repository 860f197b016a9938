"""Kill commands at random moments: what is there afterwards is whole, or is not there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from random import Random

from . import checker
from .inputs import Failure

ROWS = 60_000
COMMANDS = {
    "apply": ("apply", "t.parquet", "-p", "p.yaml", "-c", "c.yaml", "-o", "out.parquet", "--certificate", "out.json", "--force"),
    "apply csv": ("apply", "t.parquet", "-p", "p.yaml", "-c", "c.yaml", "-o", "out.csv", "--certificate", "out.json", "--force"),
    "summarize": ("summarize", "t.parquet", "-p", "p.yaml", "-o", "out.aegis", "--force"),
    "advise": ("advise", "t.parquet", "-p", "p.yaml", "--generate", "5", "-o", "out.yaml", "--force"),
    "apply from csv": ("apply", "t.csv", "-p", "p.yaml", "-c", "c.yaml", "-o", "out.csv", "--force"),
    "init": ("init", "t.csv", "--label", "y", "-o", "out.init.yaml", "--force"),
    "anonymize": ("anonymize", "t.parquet", "-p", "p.yaml", "--method", "mondrian", "-o", "out.parquet", "--force"),
}  # fmt: skip
"""What is killed, by name."""
POLICY = """version: 1
label: y
privacy: {k: 5, suppression: 0.1}
attributes:
  a: {role: quasi-identifier, masks: [identity, {bucketize: {width: 5}}, suppress]}
  b: {role: quasi-identifier}
  f: {role: feature}
"""
CONFIGURATION = "configurations: {c: {a: {bucketize: {width: 5}}, b: identity, f: identity}}\n"
TEMPORARY = "tmp"
"""Folder for temporary files."""


@dataclass
class Bench:
    """A folder with a table, a policy, a configuration, and how long each command takes.

    Attributes
    ----------
    folder
        The folder.
    seconds
        Seconds of each command when it is left alone.
    """

    folder: Path
    seconds: dict[str, float]

    @classmethod
    def at(cls, folder: Path, commands: Collection[str] = tuple(COMMANDS)) -> Bench:
        """Fill a folder, and run every command once, or these."""
        import pyarrow as pa
        import pyarrow.csv as csv
        import pyarrow.parquet as pq

        (folder / TEMPORARY).mkdir()
        random = Random(1)
        table = {
            "a": [random.randrange(90) for _ in range(ROWS)],
            "b": [random.choice("pqrs") for _ in range(ROWS)],
            "f": [random.random() for _ in range(ROWS)],
            "y": [random.choice("uv") for _ in range(ROWS)],
        }
        pq.write_table(pa.table(table), folder / "t.parquet")
        csv.write_csv(pa.table(table), folder / "t.csv")
        (folder / "p.yaml").write_text(POLICY)
        (folder / "c.yaml").write_text(CONFIGURATION)
        seconds = {}
        for name in commands:
            started = time.monotonic()
            done = _start(folder, name)
            _, error = done.communicate()
            if done.returncode:
                raise RuntimeError(f"{name}: {error.decode()}")
            seconds[name] = time.monotonic() - started
        return cls(folder, seconds)


def _start(folder: Path, name: str, *, background: bool = False) -> subprocess.Popen[bytes]:
    """Start a command; in the background as shells do, which have such jobs ignore SIGINT."""
    command = [sys.executable, "-m", "aegis.cli.main", *COMMANDS[name]]
    code = "from aegis.cli.main import main; main()"
    command[1:3] = ["-c", code]
    return subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(folder / TEMPORARY)},
        preexec_fn=_ignore if background else None,
    )


def _ignore() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def command_of(seed: int) -> str:
    """Return which command `attempt` kills."""
    return Random(f"kill:{seed}").choice(sorted(COMMANDS))


def attempt(bench: Bench, seed: int) -> tuple[str, Failure | None]:
    """Kill one command once; return how it ended, and what is wrong with what is there.

    Files of an earlier run are there: each must be as it was, or the new one, whole.
    """
    case = f"kill:{seed}"
    random = Random(case)
    name, how = random.choice(sorted(COMMANDS)), random.choice([signal.SIGKILL, signal.SIGTERM])
    moment = random.uniform(0.3, 1.1) * bench.seconds[name]
    before = {
        path.name: _digest(path)
        for path in bench.folder.iterdir()
        if path.is_file() and "partial" not in path.name
    }
    process = _start(bench.folder, name, background=random.random() < 0.5)
    try:
        process.wait(timeout=moment)
        ended = "finished"
    except subprocess.TimeoutExpired:
        process.send_signal(how)
        ended = how.name
    _, error = process.communicate(timeout=60)
    wrong = _wrong(bench.folder, before, ended)
    if process.returncode in (1, 2, 70) or b"Traceback" in error:
        wrong.append(f"exit {process.returncode}: {error.decode()[-300:]}")
    for path in bench.folder.glob(".*partial*"):
        path.unlink()
    for path in (bench.folder / TEMPORARY).iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return ended, Failure(f"{case} ({name}, {ended})", "; ".join(wrong)) if wrong else None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _wrong(folder: Path, before: dict[str, str], ended: str) -> list[str]:
    wrong = [f"{name} is gone" for name in before if not (folder / name).exists()]
    if ended != "SIGKILL":
        wrong += [f"{p.name} is left for temporary files" for p in (folder / TEMPORARY).iterdir()]
    for path in filter(Path.is_file, folder.iterdir()):
        partial = ".partial" in path.name
        if partial and ended != "SIGKILL":
            wrong.append(f"{path.name} is left after {ended}")
        if not partial and path.name.startswith("out.") and _digest(path) != before.get(path.name):
            wrong += _half(path)
    return wrong


def _half(path: Path, rows: int = ROWS) -> list[str]:
    """Return what is wrong with an output that has changed: it must be whole."""
    try:
        if path.suffix == ".aegis":
            from aegis.summary import load_bundle

            whole = load_bundle(path).rows == rows
        elif path.suffix == ".json":
            whole = bool(json.loads(path.read_text())["output"])
        elif path.suffix == ".yaml":
            whole = "configurations" in path.read_text()
        else:
            whole = len(checker.read(path)) > 0.9 * rows
    except Exception as error:  # noqa: BLE001 - a half-written file raises whatever its reader does
        return [f"{path.name} cannot be read: {error}"]
    return [] if whole else [f"{path.name} is not whole"]
