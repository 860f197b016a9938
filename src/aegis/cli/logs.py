"""Log a run: its steps and how many seconds they took, its warnings, and the exit code."""

from __future__ import annotations

import logging
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from aegis._version import __version__
from aegis.progress import Progress, Step

LOG = logging.getLogger("aegis.run")
"""The logger of runs. Messages are written only if the user asks for a log."""
LOG.propagate = False
LOG.addHandler(logging.NullHandler())  # else warnings would go to standard error
_ours: list[logging.Handler] = []
"""The handlers that this module has added to the logger; a program may add others."""


def listen(arguments: Sequence[str], *, verbose: bool, file: Path | None) -> None:
    """Start logging: to standard error, to the end of a file, or to both.

    Parameters
    ----------
    arguments
        The command line, which is logged first, without passwords.
    verbose
        Whether to log to standard error.
    file
        The log file, which may already exist.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    form = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    if file is not None:
        _attach(logging.FileHandler(file, encoding="utf-8"), form)
    if verbose:
        _attach(logging.StreamHandler(sys.stderr), form)
    if listening():
        LOG.setLevel(logging.INFO)
        LOG.info("aegis %s: %s", __version__, shlex.join(map(_shown, arguments)))


def _shown(word: str) -> str:
    """Remove the password from a word of the command line."""
    if "://" not in word:
        return word
    from aegis.sources.urls import shown_url

    return shown_url(word)


def _attach(handler: logging.Handler, form: logging.Formatter) -> None:
    handler.setFormatter(form)
    LOG.addHandler(handler)
    _ours.append(handler)


def listening() -> bool:
    """Whether the run is logged."""
    return bool(_ours)


def verbose() -> bool:
    """Whether the log goes to standard error; progress bars are then off."""
    return any(type(handler) is logging.StreamHandler for handler in _ours)


@contextmanager
def until_the_end() -> Iterator[None]:
    """Stop logging at the end of the context."""
    try:
        yield
    finally:
        while _ours:
            handler = _ours.pop()
            LOG.removeHandler(handler)
            handler.close()
        LOG.setLevel(logging.NOTSET)


class LoggedProgress:
    """Progress that logs each step and how many seconds it took."""

    def __init__(self, inner: Progress) -> None:
        self._inner = inner

    @contextmanager
    def step(self, title: str, total: float | None = None) -> Iterator[Step]:
        """Open a step, and log how long it took, or that it failed."""
        started = time.perf_counter()
        try:
            with self._inner.step(title, total) as step:
                yield step
        except BaseException:
            LOG.info("%s: not finished after %.2f s", title, time.perf_counter() - started)
            raise
        LOG.info("%s: %.2f s", title, time.perf_counter() - started)
