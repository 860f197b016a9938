"""Handle standard output and standard error that are closed, full or have no reader.

If results cannot be displayed, the work is not undone. A stream that fails is redirected to the
null device, the command continues, and `run` reports the failure at the end.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from contextvars import ContextVar
from typing import IO

_LOST: ContextVar[OSError | None] = ContextVar("lost", default=None)


def lost() -> OSError | None:
    """Return why standard output has failed since `start`; None if it has not failed."""
    return _LOST.get()


def start() -> None:
    """Forget that an earlier run could not write to standard output."""
    _LOST.set(None)


def write(file: IO[str], text: str) -> None:
    """Write text. If the stream fails, drop this text and all later text."""
    try:
        file.write(text)
        file.flush()
    except OSError as error:
        lose(file, error)


def flush() -> None:
    """Write buffered text now, so that writing cannot fail when Python exits."""
    for file in (sys.stdout, sys.stderr):
        write(file, "")


def lose(file: IO[str], error: OSError) -> None:
    """Redirect a stream to the null device. If it is standard output, remember the error."""
    if file is sys.stdout and _LOST.get() is None:
        _LOST.set(error)
    with suppress(OSError, ValueError):  # a stream of a program, without a number
        with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - a device, not a file
            os.dup2(nowhere.fileno(), file.fileno())
        file.flush()


def open_missing() -> None:
    """Redirect streams that the shell has closed (>&-) to the null device, with the file
    descriptors of these streams.

    Otherwise, the next file that is opened, perhaps a release, would get such a descriptor, and
    libraries would print into the file.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the least number that is free
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - until the process ends
