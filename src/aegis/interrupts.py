"""Ctrl-C and SIGTERM that are not lost: libraries in the middle of something may swallow them.

Python raises `KeyboardInterrupt` wherever the program happens to be. Within DuckDB this becomes a
`RuntimeError` ("Query interrupted"), or nothing at all, where it comes while the engine imports an
optional Python module. So a signal is noted, too, and raised at the next boundary: at the end of a
query or a step, and before an output takes its name.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn


@dataclass
class _Signals:
    """What has come in."""

    noted: bool = False


_SIGNALS = _Signals()


@contextmanager
def watching() -> Iterator[None]:
    """Note interrupts while the context lasts; a request to terminate counts as one.

    Outside the main thread, and where the program treats the signal in a way of its own (or was
    told to ignore it, as by nohup), nothing changes.
    """
    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not ours:
        yield
        return
    acknowledge()
    signal.signal(signal.SIGINT, _note)
    # Whoever ends a job politely (timeout, a scheduler, a container) is to get what is known, too.
    terminates = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if terminates:
        signal.signal(signal.SIGTERM, _note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if terminates:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        acknowledge()


def _note(number: int, frame: FrameType | None) -> NoReturn:
    """Note the signal and raise `KeyboardInterrupt`."""
    _SIGNALS.noted = True
    signal.default_int_handler(number, frame)


def acknowledge() -> None:
    """Forget the interrupt: whoever asked for it gets what it is for."""
    _SIGNALS.noted = False


def check() -> None:
    """Raise `KeyboardInterrupt` where one was noted and swallowed.

    Not while another exception is on its way: what it undoes is undone first.
    """
    if _SIGNALS.noted and sys.exception() is None:
        raise KeyboardInterrupt


def is_interrupt(error: BaseException) -> bool:
    """Return whether an exception was raised because of an interrupt."""
    if _SIGNALS.noted:
        return True
    link: BaseException | None = error
    seen: set[int] = set()
    while link is not None and id(link) not in seen:
        if isinstance(link, KeyboardInterrupt) or _says_so(link):
            return True
        seen.add(id(link))
        link = link.__cause__ or link.__context__
    return False


def _says_so(error: BaseException) -> bool:
    """Return whether it is one of DuckDB's, known by name: it may not be loaded."""
    if type(error).__name__ == "InterruptException":
        return True
    return isinstance(error, RuntimeError) and str(error) == "Query interrupted"
