"""Run the engine that draws charts, in a child process if the address space is limited.

The engine contains a JavaScript machine, which reserves tens of gigabytes of address space at once.
If the system refuses this, the engine kills its process. So if there is a limit (`ulimit -v`), a
child process draws the chart, and Aegis reports an error if the child is killed.
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
    """Draw a Vega-Lite chart as SVG, without loading external resources.

    Parameters
    ----------
    specification
        The chart with its data.
    version
        Version of Vega-Lite, such as "5.20".

    Raises
    ------
    EngineError
        The process does not get as much memory as the chart engine needs.
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
            hint="Allow it more memory or open files (ulimit -n), or leave the report out.",
        ) from error
    return str(text)


@cache
def _child() -> tuple[IO[str], IO[str]]:
    """Start the child process; return its input and its output, one line per chart."""
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
