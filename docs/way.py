"""Trace one `aegis advise` and write docs/architecture.md: the rooms in the order that a table passes.

`python docs/way.py` writes it; a test fails when the rooms or their order have changed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = Path(__file__).with_name("architecture.md")
TRACE = """
import json, sys, threading
PREFIX = {prefix!r}
files, functions, rooms, moves, last, loading = set(), set(), [], 0, None, 0
def note(frame, event, _):
    # Loading a module registers names, and is no step.
    global moves, last, loading
    name = frame.f_code.co_filename
    if event not in ("call", "return") or not name.startswith(PREFIX):
        return
    if frame.f_code.co_name == "<module>":
        loading += 1 if event == "call" else -1
        return
    if loading or event == "return":
        return
    room = name[len(PREFIX) + 1:].split("/")[0].removesuffix(".py")
    files.add(name)
    # Python 3.12 and later run a comprehension within its function.
    if frame.f_code.co_name not in ("<listcomp>", "<dictcomp>", "<setcomp>"):
        functions.add((name, frame.f_code.co_qualname))
    if room not in rooms:
        rooms.append(room)
    if room != last:
        moves, last = moves + 1, room
sys.setprofile(note)
threading.setprofile(note)
from aegis.cli.main import run
code = run({words!r})
sys.setprofile(None)
print("TRACE" + json.dumps(dict(code=code, files=len(files), functions=len(functions), rooms=rooms, moves=moves)))
"""
ROLES = {
    "cli": "reads the options of the command line, calls one method of a study, and prints the result",
    "study": "holds the table and the policy; each of its methods answers one question about them",
    "policy": "reads roles, candidate masks and the privacy rule",
    "sources": "opens the table (a file, a database, an object in memory) in one form",
    "masks": "replaces the values of a column by masked values",
    "summary": "counts the rows of the table once: by value, by pair of values, and by equivalence class of the quasi-identifiers",
    "masking": "fits masks that learn from the table, and builds the query that masks it",
    "anonymizers": "holds the parts that all record-level methods share",
    "privacy": "checks equivalence classes against the rule, one privacy model for each criterion",
    "measures": "computes from counts how well the attributes predict the label",
    "advisor": "generates or searches configurations, scores each of them, and checks whether it meets the rule",
    "present": "describes the best configuration in the sentences that every screen shows",
    "report": "renders an advice or a release as one page",
    "release": "masks the table, leaves out rows that break the rule, verifies the written file, and writes the certificate",
}
"""What each room does, for readers; a room without a line here is a helper of all of them."""


def trace() -> dict[str, object]:
    """Run one `aegis advise` of Adult with the policy of the examples, and return what it entered."""
    import json

    words = ["advise", "data/adult.parquet", "-p", "examples/adult/policy.yaml", "--generate", "50"]
    with tempfile.TemporaryDirectory() as folder:
        words += ["-o", str(Path(folder, "best.yaml"))]
        code = TRACE.format(prefix=str(ROOT / "src" / "aegis"), words=words)
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            check=True,
        )
    line = next(line for line in done.stdout.splitlines() if line.startswith("TRACE"))
    entered: dict[str, object] = json.loads(line.removeprefix("TRACE"))
    return entered


def passed(entered: dict[str, object]) -> list[str]:
    """Return the rooms that do a step, in the order in which the table passes them."""
    rooms = entered["rooms"]
    assert isinstance(rooms, list)
    return [room for room in rooms if room in ROLES]


def elsewhere(rooms: list[str]) -> str:
    """Return a sentence on the rooms that do a step for other commands only."""
    *others, last = [f"`{room}` {ROLES[room]}" for room in ROLES if room not in rooms]
    return f"Other policies and commands, such as `aegis apply`, also enter other rooms: {'; '.join(others)}; and {last}."


def page(entered: dict[str, object]) -> str:
    """Return the page."""
    rooms = passed(entered)
    lines = "\n".join(f"| {i} | `{room}` | {ROLES[room]} |" for i, room in enumerate(rooms, 1))
    return f"""# The way of a table

Written by `python docs/way.py` from a trace of one command, so do not edit this page. The traced command is:

```sh
aegis advise data/adult.parquet -p examples/adult/policy.yaml --generate 50 -o best.yaml
```

The command runs code in {entered["files"]} files and calls {entered["functions"]} functions of the package. A *room* is a package in `src/aegis`.

The command enters the rooms in this order. It reads the policy, and with it the masks, the measure and the privacy rule, before it opens the table:

| step | room | what it does |
|---|---|---|
{lines}

{elsewhere(rooms)}

The file `.importlinter` lists the rooms in another order: a room may import the rooms below it in that list, but no others.
`make imports` checks this. `src/aegis` also has five optional packages, called wings: `arx`, `papers`, `records`, `safe` and
`service`. Wings add their commands, formats, sections of the report, estimates, objectives and methods to Aegis by entry
points ([0073](decisions/0073-wings-add-themselves.md), [0082](decisions/0082-papers-and-other-tools-are-wings.md)).
"""


if __name__ == "__main__":
    PAGE.write_text(page(trace()), encoding="utf-8")
