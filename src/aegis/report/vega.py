"""The chart engine, in a separate process if this one has too little address space.

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
from aegis.limits import addresses_limited

_CHILD = """
import json, sys
import vl_convert
for line in sys.stdin:
    asked = json.loads(line)
    text = vl_convert.vegalite_to_svg(asked["chart"], vl_version=asked["version"], allowed_base_urls=[])
    print(json.dumps(text), flush=True)
"""


def to_svg(specification: dict[str, Any], version: str) -> str:
    """Return a Vega-Lite chart as SVG, without loading anything from the network.

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
    if not addresses_limited():
        return _drawn_here(specification, version)
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


def _drawn_here(specification: dict[str, Any], version: str) -> str:
    import vl_convert

    try:
        text = vl_convert.vegalite_to_svg(specification, vl_version=version, allowed_base_urls=[])
    except BaseException as error:
        # What panics in Rust is no `Exception`, and has a class that cannot be imported.
        if not isinstance(error, ValueError) and type(error).__name__ != "PanicException":
            raise
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise EngineError(
            f"The chart engine failed: {reason[-1]}",
            hint="It needs memory and open files (ulimit -n) of its own; or leave the report out.",
        ) from error
    return str(text)


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
