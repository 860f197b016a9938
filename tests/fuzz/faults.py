"""Take from commands what they need: streams, space, memory, permission.

Whatever is missing, the exit code says whether the output exists, one block on standard error says
what is missing, and nothing half-written is left.
"""

from __future__ import annotations

import hashlib
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from . import kills
from .inputs import Failure

ROWS = 3_000
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "apply": ("apply", "t.csv", "-p", "p.yaml", "-c", "c.yaml", "-o", "{out}/o.csv", "--certificate", "{out}/o.json", "--force"),
    "apply to parquet": ("apply", "t.csv", "-p", "p.yaml", "-c", "c.yaml", "-o", "{out}/o.parquet", "--force"),
    "apply to a workbook": ("apply", "t.csv", "-p", "p.yaml", "-c", "c.yaml", "-o", "{out}/o.xlsx", "--force"),
    "apply told as JSON": ("apply", "t.csv", "-p", "p.yaml", "-c", "c.yaml", "-o", "{out}/o.arrow", "--format", "json", "--force"),
    "anonymize": ("anonymize", "t.csv", "-p", "p.yaml", "--method", "mondrian", "-o", "{out}/o.parquet", "--force"),
    "summarize": ("summarize", "t.csv", "-p", "p.yaml", "-o", "{out}/o.aegis", "--force"),
    "protect": ("protect", "s.aegis", "-p", "p.yaml", "-o", "{out}/o.protected", "--epsilon", "1", "--delta", "1e-6", "--force"),
    "advise": ("advise", "s.aegis", "-p", "p.yaml", "-o", "{out}/o.yaml", "--report", "{out}/o.html", "--force"),
    "report": ("report", "s.aegis", "-p", "p.yaml", "-o", "{out}/o.html", "--force"),
    "init": ("init", "t.csv", "--label", "y", "-o", "{out}/o.yaml", "--force"),
}  # fmt: skip
"""Commands that write files, `{out}` for the folder."""
SHOWN: Mapping[str, tuple[str, ...]] = {
    "audit": ("audit", "t.parquet", "-p", "p.yaml"),
    "advise only told": ("advise", "s.aegis", "-p", "p.yaml", "--format", "json"),
    "masks": ("masks",),
}
"""Commands whose results are what they print; `audit` of this table has 1 for an answer."""


@dataclass(frozen=True)
class Fault:
    """What is missing.

    Attributes
    ----------
    limits
        Limits of the process, by number of the resource.
    streams
        What standard input, output and error are, where not the usual: "full", "closed" or
        "unread".
    place
        Makes the folder for outputs what it is; undone by the stack.
    survivable
        Whether a command may succeed all the same.
    """

    limits: Mapping[int, int] = field(default_factory=dict)
    streams: Mapping[int, str] = field(default_factory=dict)
    place: Callable[[Path, ExitStack], None] | None = None
    survivable: bool = True


def _read_only(folder: Path, stack: ExitStack) -> None:
    """Let nobody write to a folder: root may in spite of permissions, but not to a mount."""
    if os.geteuid():
        folder.chmod(0o555)
        stack.callback(folder.chmod, 0o755)
    else:
        _mounted(folder, stack, "ro,size=64k")


def _full(folder: Path, stack: ExitStack) -> None:
    """Put a device of few bytes under a folder."""
    _mounted(folder, stack, "size=16k")
    (folder / "rest").write_bytes(bytes(12 << 10))


def _mounted(folder: Path, stack: ExitStack, options: str) -> None:
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)],
        check=True,
        capture_output=True,
    )
    stack.callback(subprocess.run, ["umount", str(folder)], check=True)


def can_place(fault: str) -> bool:
    """Return whether a folder can be made so: file systems can be mounted by root alone, if at all."""
    if os.geteuid():
        return fault == "read-only folder"
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        try:
            _mounted(Path(folder), stack, "size=16k")
        except (OSError, subprocess.CalledProcessError):
            return False
        return True


FAULTS: dict[str, Fault] = {
    "nothing": Fault(),
    "output full": Fault(streams={1: "full"}),
    "output closed": Fault(streams={1: "closed"}),
    "output unread": Fault(streams={1: "unread"}),
    "errors full": Fault(streams={2: "full"}),
    "errors closed": Fault(streams={2: "closed"}),
    "errors unread": Fault(streams={2: "unread"}),
    "all closed": Fault(streams={0: "closed", 1: "closed", 2: "closed"}),
    "all full": Fault(streams={1: "full", 2: "full"}),
    "files of 100 bytes": Fault(limits={resource.RLIMIT_FSIZE: 100}, survivable=False),
    "files of 4 kB": Fault(limits={resource.RLIMIT_FSIZE: 4_000}),
    **{
        f"address space of {size} MB": Fault(limits={resource.RLIMIT_AS: size << 20})
        for size in (400, 600, 800, 1_000, 1_300, 1_700, 2_500)
    },
    **{
        f"{number} open files": Fault(limits={resource.RLIMIT_NOFILE: number})
        for number in (8, 12, 20)
    },
}
PLACES: dict[str, Fault] = {
    "read-only folder": Fault(place=_read_only, survivable=False),
    "full device": Fault(place=_full),
}
"""What mounts, or permissions, are needed for."""


@dataclass(frozen=True)
class Bench:
    """A folder with a table, a policy, a configuration and a summary."""

    folder: Path

    @classmethod
    def at(cls, folder: Path) -> Bench:
        """Fill a folder."""
        import pyarrow as pa
        import pyarrow.csv as csv
        import pyarrow.parquet as pq

        import aegis

        random = Random(1)
        table = pa.table(
            {
                "a": [random.randrange(90) for _ in range(ROWS)],
                "b": [random.choice("pqrs") for _ in range(ROWS)],
                "f": [random.random() for _ in range(ROWS)],
                "y": [random.choice("uv") for _ in range(ROWS)],
            }
        )
        pq.write_table(table, folder / "t.parquet")
        csv.write_csv(table, folder / "t.csv")
        (folder / "p.yaml").write_text(kills.POLICY)
        (folder / "c.yaml").write_text(kills.CONFIGURATION)
        aegis.save_bundle(
            aegis.summarize(table, aegis.load_policy(folder / "p.yaml")), folder / "s.aegis"
        )
        (folder / "out").mkdir()
        (folder / "tmp").mkdir()
        return cls(folder)


def attempt(bench: Bench, name: str, fault: Fault) -> tuple[int, Failure | None]:
    """Run one command under a fault, where a file of an earlier run is; return its exit code."""
    out = bench.folder / "out"
    with ExitStack() as stack:
        if fault.place is not None:
            fault.place(out, stack)
        else:
            stack.callback(_emptied, out)
            for part in (*COMMANDS, *SHOWN)[: len(COMMANDS)]:
                for word in COMMANDS[part]:
                    if word.startswith("{out}"):
                        Path(word.format(out=out)).write_text("as it was")
        before = _digests(out)
        process = _start(bench.folder, name, fault, stack)
        try:
            _, error = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return -1, Failure(name, "takes over 120 s")
        said = (error or b"").decode(errors="replace")
        wrong = _wrong(name, fault, process.returncode, said)
        wrong += _half_written(name, process.returncode, before, out)
        wrong += [f"{p.name} is left" for p in (bench.folder / "tmp").iterdir()]
        _emptied(bench.folder / "tmp")
    problem = "; ".join(wrong)
    return process.returncode, Failure(name, f"{problem} [{said[-600:]}]") if wrong else None


def _wrong(name: str, fault: Fault, code: int, said: str) -> list[str]:
    wrong = []
    allowed = {0, 2} if fault.survivable or name in SHOWN else {2}
    if name == "audit":
        allowed.add(1)
    if fault.streams.get(1) == "unread" and name in SHOWN:
        allowed = {1, 141}
    if fault.streams.get(1) == "full" and name in SHOWN and name != "audit":
        allowed = {2}
    if not fault.limits and fault.place is None and name in COMMANDS:
        allowed = {0}
    if code not in allowed:
        wrong.append(f"exit {code}")
    if "Traceback" in said or "bug in Aegis" in said or "Exception ignored" in said:
        wrong.append("says what only its authors understand")
    # Engines may have said something of their own before.
    if code == 2 and 2 not in fault.streams and not re.search(r'^(Error: |  "error")', said, re.M):
        wrong.append("says no error")
    return wrong


def _half_written(name: str, code: int, before: Mapping[str, str], out: Path) -> list[str]:
    """Return what is wrong with the outputs: all are new and whole, or all as they were."""
    after = _digests(out)
    wrong = [f"{one} is left" for one in after if one.startswith(".") or ".partial" in one]
    made = [Path(w).name for w in COMMANDS.get(name, ()) if w.startswith("{out}")]
    changed = [one for one in made if after.get(one) != before.get(one)]
    if code == 0:
        wrong += [f"exit 0, and no {one}" for one in made if one not in changed]
        wrong += [problem for one in made for problem in _read(out / one)]
    elif changed:
        wrong.append(f"exit {code}, and {', '.join(changed)} changed")
    return wrong


def _read(path: Path) -> list[str]:
    """Return what is wrong with an output, read by its own library."""
    try:
        if path.suffix == ".xlsx":
            import pandas as pd

            whole = len(pd.read_excel(path, engine="calamine")) > 0.8 * ROWS
        elif path.suffix in (".csv", ".parquet", ".arrow"):
            from . import checker

            whole = len(checker.read(path)) > 0.8 * ROWS
        elif path.suffix == ".html":
            whole = path.read_text().rstrip().endswith("</html>")
        elif path.suffix == ".protected":
            import json

            whole = bool(json.loads(path.read_text()))
        else:
            return kills._half(path, ROWS)
    except Exception as error:  # noqa: BLE001 - a half-written file raises whatever its reader does
        return [f"{path.name} cannot be read: {error}"]
    return [] if whole else [f"{path.name} is not whole"]


def _start(folder: Path, name: str, fault: Fault, stack: ExitStack) -> subprocess.Popen[bytes]:
    words = [word.format(out="out") for word in {**COMMANDS, **SHOWN}[name]]
    streams: dict[str, Any] = {"stdin": None, "stdout": None, "stderr": None}
    for number, stream in enumerate(streams):
        how = fault.streams.get(number)
        if how == "full":
            streams[stream] = os.open("/dev/full", os.O_WRONLY)
            stack.callback(os.close, streams[stream])
        elif how == "unread":
            reading, streams[stream] = os.pipe()
            os.close(reading)
            stack.callback(os.close, streams[stream])
        else:
            streams[stream] = subprocess.PIPE if number == 2 else subprocess.DEVNULL
    closed = [number for number, how in fault.streams.items() if how == "closed"]

    def prepare() -> None:
        for number, most in fault.limits.items():
            resource.setrlimit(number, (most, most))
        for number in closed:
            os.close(number)

    command = [sys.executable, "-c", "from aegis.cli.main import main; main()", *words]
    environment = {**os.environ, "TMPDIR": str(folder / "tmp"), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(command, cwd=folder, env=environment, preexec_fn=prepare, **streams)


def _digests(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()}


def _emptied(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
