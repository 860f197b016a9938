"""Run inputs in a process of their own, which is replaced where it crashes or hangs."""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection

from . import inputs
from .inputs import Failure, Outcome
from .kinds import KINDS

SILENCE = 400
"""Seconds on a clock after which a worker that says nothing is ended: no signal reaches its C code."""
_FIRST = 1200
"""Seconds for what is imported on first use."""
_MOST_BYTES = 8 << 30
"""Most data of a worker, so that one input does not take the machine's memory."""


def outcomes(cases: Sequence[tuple[str, int]]) -> Iterator[tuple[tuple[str, int], Outcome]]:
    """Yield how each case ended, in order."""
    context = multiprocessing.get_context("spawn")
    done = 0
    while done < len(cases):
        receiving, sending = context.Pipe(duplex=False)
        worker = context.Process(target=_work, args=(cases[done:], sending), daemon=True)
        worker.start()
        sending.close()
        try:
            for outcome in _received(receiving):
                yield cases[done], outcome
                done += 1
        except TimeoutError:
            yield cases[done], _lost(cases[done], f"says nothing for {SILENCE} s")
            done += 1
        except EOFError:
            worker.join()
            if done < len(cases):
                yield cases[done], _lost(cases[done], f"the process ended by {worker.exitcode}")
                done += 1
        finally:
            worker.kill()
            worker.join()


def _received(receiving: Connection) -> Iterator[Outcome]:
    """Yield what a worker says until it ends."""
    patience = _FIRST
    while True:
        if not receiving.poll(patience):
            raise TimeoutError
        outcome = receiving.recv()
        patience = SILENCE
        if outcome is not None:
            yield outcome


def _lost(case: tuple[str, int], problem: str) -> Outcome:
    return Outcome(Failure(f"{case[0]}:{case[1]}", problem), False)


def _work(cases: Sequence[tuple[str, int]], sending: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, _MOST_BYTES))
    for kind in KINDS:  # what is imported on first use is no input's doing
        inputs.attempt(kind, -1, seconds=600)
    sending.send(None)
    for kind, seed in cases:
        sending.send(inputs.attempt(kind, seed))
