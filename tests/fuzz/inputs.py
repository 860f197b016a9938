"""Run mutated inputs in this process, and say which ended in another way than they may."""

from __future__ import annotations

import contextlib
import resource
import signal
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from aegis.errors import AegisError, InternalError

from .kinds import KINDS

MOST_SECONDS = 10
_WAITS = 20
"""Times as long may pass on a clock."""
MOST_MEGABYTES = 600
"""Most that one input may add to the largest memory of the process."""


class Hang(BaseException):
    """An input takes longer than it may; not an `Exception`, so that nothing takes it for one."""


@dataclass(frozen=True)
class Failure:
    """An input that ended otherwise than in a result or a clear error.

    Attributes
    ----------
    case
        Kind and seed, which bring it back.
    problem
        What happened.
    trace
        Where.
    """

    case: str
    problem: str
    trace: str = ""


@dataclass
class Outcome:
    """How one input ended."""

    failure: Failure | None
    refused: bool


def attempt(kind: str, seed: int, *, seconds: int = MOST_SECONDS) -> Outcome:
    """Make one input and read it.

    A clear error is one of the tree of errors, other than an internal one, of one message that
    says something and says what to do.
    """
    case = f"{kind}:{seed}"
    before = _megabytes()
    refused = False
    try:
        with tempfile.TemporaryDirectory(prefix="aegis-fuzz-") as folder, _limited(seconds):
            KINDS[kind](Random(f"{kind} {seed}"), Path(folder))
    except InternalError as error:
        return Outcome(Failure(case, f"internal: {error}", traceback.format_exc()), refused)
    except AegisError as error:
        refused = True
        if not error.message.strip() or not error.hint.strip():
            return Outcome(Failure(case, f"no message or no hint: {error!r}"), refused)
    except Hang:
        return Outcome(Failure(case, f"over {seconds} s", traceback.format_exc()), refused)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
        problem = f"{type(error).__name__}: {str(error)[:200]}"
        return Outcome(Failure(case, problem, traceback.format_exc()), refused)
    grown = _megabytes() - before
    if grown > MOST_MEGABYTES:
        return Outcome(Failure(case, f"took {grown:,.0f} MB"), refused)
    return Outcome(None, refused)


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@contextlib.contextmanager
def _limited(seconds: int) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise Hang

    # Time of the processor, since a busy machine hangs nothing; and the clock, for what waits.
    before = {number: signal.signal(number, stop) for number in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, _WAITS * seconds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
