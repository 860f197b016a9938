"""Standard output and standard error that are closed, full, or unread.

What cannot be shown does not undo what was done: a stream that fails is pointed to nowhere, the
command goes on, and `run` says at the end what became of it.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from contextvars import ContextVar
from typing import IO

_LOST: ContextVar[OSError | None] = ContextVar("lost", default=None)


def lost() -> OSError | None:
    """Return why standard output could not be written since `start`; None if it could."""
    return _LOST.get()


def start() -> None:
    """Forget write errors of earlier runs."""
    _LOST.set(None)


def write(file: IO[str], text: str) -> None:
    """Write text; if the stream fails, discard it and all that follows."""
    try:
        file.write(text)
        file.flush()
    except OSError as error:
        lose(file, error)


def flush() -> None:
    """Write the buffers, so that Python reports no error at its end."""
    for file in (sys.stdout, sys.stderr):
        write(file, "")


def lose(file: IO[str], error: OSError) -> None:
    """Discard all further output of a stream, and remember the reason if it is standard output."""
    if file is sys.stdout and _LOST.get() is None:
        _LOST.set(error)
    with suppress(OSError, ValueError):  # a stream of a program, without a number
        with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - a device, not a file
            os.dup2(nowhere.fileno(), file.fileno())
        file.flush()


def open_missing() -> None:
    """Open the streams that the shell has closed (>&-) to nowhere, each under its own number.

    Else the next file that is opened, a release perhaps, gets the number, and what libraries
    print.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the least number that is free
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - until the process ends
