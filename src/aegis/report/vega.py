"""The chart engine, in a process of its own where this one may not have what it takes.

The engine holds a JavaScript machine, which reserves tens of gigabytes of addresses at once and ends the
process with a trap where it does not get them. So under a limit of addresses (`ulimit -v`) a child
draws, and its end is an error that can be told.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
from functools import cache
from typing import IO, Any

from aegis.errors import EngineError

_CHILD = """
import json, sys
import vl_convert
for line in sys.stdin:
    asked = json.loads(line)
    text = vl_convert.vegalite_to_svg(asked["chart"], vl_version=asked["version"], allowed_base_urls=[])
    print(json.dumps(text), flush=True)
"""


def to_svg(specification: dict[str, Any], version: str) -> str:
    """Return a chart of Vega-Lite as SVG; nothing is loaded for it.

    Parameters
    ----------
    specification
        The chart, its data within.
    version
        Version of Vega-Lite: "5.20".

    Raises
    ------
    EngineError
        The process may not have as much memory as the chart engine takes.
    """
    if not _limited():
        import vl_convert

        return str(
            vl_convert.vegalite_to_svg(specification, vl_version=version, allowed_base_urls=[])
        )
    asked = json.dumps({"chart": specification, "version": version}, default=str)
    try:
        ask, answer = _child()
        ask.write(f"{asked}\n")
        ask.flush()
        line = answer.readline()
    except OSError:
        line = ""
    if not line:
        raise EngineError(
            "There is too little memory for the charts of a report.",
            hint="Their engine reserves tens of gigabytes of addresses, though it uses few: lift "
            "the limit (ulimit -v unlimited), or leave the report out.",
        )
    return str(json.loads(line))


def _limited() -> bool:
    """Return whether this process may not have all addresses; no system but Unix has such a limit."""
    try:
        import resource
    except ImportError:
        return False
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


@cache
def _child() -> tuple[IO[str], IO[str]]:
    """Return what the child reads, and what it writes: one line each a chart."""
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", _CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    atexit.register(child.kill)
    if child.stdin is None or child.stdout is None:
        raise OSError("The chart engine has no streams.")
    return child.stdin, child.stdout
