"""Run mutated inputs in this process, and say which ended in another way than they may."""

from __future__ import annotations

import contextlib
import signal
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from aegis.errors import AegisError, InternalError
from aegis.files import temporary_folder

from .kinds import KINDS

MOST_SECONDS = 10
_WAITS = 20
"""Times as long may pass on a clock."""
MOST_MEGABYTES = 200
"""Most memory that one input may take for a time; files of all kinds are of some kilobytes."""
_STATUS, _RESET, _PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs"), "5"
"""Where Linux says the largest memory of a process, and where it is told to begin anew."""


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
    """How one input ended, and what it took.

    Attributes
    ----------
    failure
        What is wrong with the end, if anything.
    refused
        Whether it ended in a clear error.
    seconds
        Time of the processor.
    megabytes
        Most memory that was taken beyond what the process had before; 0 where that cannot be seen.
    """

    failure: Failure | None
    refused: bool
    seconds: float = 0.0
    megabytes: float = 0.0


def attempt(kind: str, seed: int, *, seconds: float = MOST_SECONDS) -> Outcome:
    """Make one input and read it.

    A clear error is one of the tree of errors, other than an internal one, of one message that
    says something and says what to do.
    """
    case = f"{kind}:{seed}"
    before, started = _memory(reset=True), time.process_time()
    outcome = _ended(kind, seed, seconds)
    outcome.seconds = time.process_time() - started
    outcome.megabytes = _memory() - before
    if outcome.failure is None and outcome.megabytes > MOST_MEGABYTES:
        outcome.failure = Failure(case, f"took {outcome.megabytes:,.0f} MB")
    return outcome


def _ended(kind: str, seed: int, seconds: float) -> Outcome:
    case = f"{kind}:{seed}"
    try:
        with temporary_folder("fuzz") as folder, _limited(seconds):
            KINDS[kind](Random(f"{kind} {seed}"), folder)
    except InternalError as error:
        return Outcome(Failure(case, f"internal: {error}", traceback.format_exc()), False)
    except AegisError as error:
        if not error.message.strip() or not error.hint.strip():
            return Outcome(Failure(case, f"no message or no hint: {error!r}"), True)
        return Outcome(None, True)
    except Hang:
        return Outcome(Failure(case, f"over {seconds} s", traceback.format_exc()), False)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
        problem = f"{type(error).__name__}: {str(error)[:200]}"
        return Outcome(Failure(case, problem, traceback.format_exc()), False)
    return Outcome(None, False)


def _memory(*, reset: bool = False) -> float:
    """Return the largest memory of this process, from its last reset on, in megabytes."""
    if not _STATUS.exists():
        return 0.0
    if reset:
        _RESET.write_text(_PEAK)
    [line] = [line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
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
