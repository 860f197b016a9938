"""Make sure that Ctrl-C and SIGTERM take effect, even if a library swallows them.

Python raises `KeyboardInterrupt` wherever the program happens to be. Within DuckDB, it becomes a
`RuntimeError` ("Query interrupted"). While DuckDB imports an optional Python module, it can also
get lost. So Aegis also notes each signal, and raises `KeyboardInterrupt` at the next boundary: at
the end of a query or a step, or before an output gets its final name.
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
    """The state of interrupts: whether a signal was noted, and whether noted signals wait until a
    later call of `check`.
    """

    noted: bool = False
    deferred: bool = False


_SIGNALS = _Signals()


@contextmanager
def watching() -> Iterator[None]:
    """Note interrupts (SIGINT and SIGTERM) instead of stopping the program, as long as the context
    lasts.

    The context has no effect outside the main thread, or if the program handles the signal itself
    or ignores it (for example under nohup).
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
    """Return the signals that Aegis notes, each with the handler that it had before.

    These are SIGINT and SIGTERM. So a job that is ended politely (by timeout, a scheduler, a
    container) reports its results so far, and so does a background job of a script, where shells
    ignore SIGINT.
    """
    if threading.current_thread() is not threading.main_thread():
        return {}
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt not in (signal.default_int_handler, signal.SIG_IGN):
        return {}
    known = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    return {n: handler for n, handler in known.items() if signal.getsignal(n) is handler}


def _note(number: int, frame: FrameType | None) -> None:
    """Handle a signal: note it, and raise `KeyboardInterrupt` unless interrupts are deferred."""
    _SIGNALS.noted = True
    if not _SIGNALS.deferred:
        signal.default_int_handler(number, frame)


@contextmanager
def deferring() -> Iterator[None]:
    """Note interrupts within the context without raising them, for example while files are created
    or removed.

    A later call of `check` raises them.
    """
    before, _SIGNALS.deferred = _SIGNALS.deferred, True
    try:
        yield
    finally:
        _SIGNALS.deferred = before


def acknowledge() -> None:
    """Forget the interrupt that was noted, because the program has already reacted to it."""
    _SIGNALS.noted = False


def check() -> None:
    """Raise `KeyboardInterrupt` if an interrupt was noted and the program has not yet reacted to
    it.

    Do nothing while another exception is being handled, so that its clean-up finishes first.
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
    """Return whether an error is DuckDB's error for an interrupted query.

    It is recognised by name, as DuckDB may not be loaded.
    """
    if type(error).__name__ == "InterruptException":
        return True
    return isinstance(error, RuntimeError) and str(error) == "Query interrupted"
