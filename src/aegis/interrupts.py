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
from typing import Any


@dataclass
class _Signals:
    """What has come in."""

    noted: bool = False
    deferred: bool = False


_SIGNALS = _Signals()


@contextmanager
def watching() -> Iterator[None]:
    """Note interrupts while the context lasts; a request to terminate counts as one.

    Outside the main thread, and where the program treats the signal in its own way (or was
    told to ignore it, as by nohup), nothing changes.
    """
    before = _ours()
    if not before:
        yield
        return
    acknowledge()
    for number in before:
        signal.signal(number, _note)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        acknowledge()


def _ours() -> dict[signal.Signals, Any]:
    """Return the signals that are noted, and what handled them before.

    Whoever ends a job politely (timeout, a scheduler, a container) is to get what is known, too, and
    so is a job in the background of a script, for which shells ignore SIGINT.
    """
    if threading.current_thread() is not threading.main_thread():
        return {}
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt not in (signal.default_int_handler, signal.SIG_IGN):
        return {}
    known = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    return {n: handler for n, handler in known.items() if signal.getsignal(n) is handler}


def _note(number: int, frame: FrameType | None) -> None:
    """Note the signal, and raise `KeyboardInterrupt` unless interrupts are deferred."""
    _SIGNALS.noted = True
    if not _SIGNALS.deferred:
        signal.default_int_handler(number, frame)


@contextmanager
def deferring() -> Iterator[None]:
    """Only note interrupts while the context lasts, as files are made and removed; `check` raises them."""
    before, _SIGNALS.deferred = _SIGNALS.deferred, True
    try:
        yield
    finally:
        _SIGNALS.deferred = before


def acknowledge() -> None:
    """Forget the interrupt after the caller has handled it."""
    _SIGNALS.noted = False


def check() -> None:
    """Raise `KeyboardInterrupt` if an interrupt was noted but not raised.

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
