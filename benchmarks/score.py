"""What scores cost: linear algebra on a busy machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.measure import ADULT, POLICY, Figure, command

THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
"""Variables that hold BLAS to a number of threads from outside."""


def blas(_: object) -> Iterator[Figure]:
    """Advise on Adult beside busy processes: as it is, against BLAS held to one thread outside."""
    free = {name: value for name, value in os.environ.items() if name not in THREADS}
    held = free | dict.fromkeys(THREADS, "1")
    words = ("advise", ADULT, "-p", POLICY, "--generate", 50, "--quiet")
    ours, theirs = [], []
    with _busy(os.cpu_count() or 1):
        for _turn in range(3):  # in turns, so that both see the same load
            ours.append(command(*words, environment=free))
            theirs.append(command(*words, environment=held))
    mine, other = min(ours), min(theirs)
    yield Figure(
        *("blas", "advise beside busy processes / BLAS held from outside", mine[0] / other[0]),
        *("x", 1.2),
        note=f"{mine[0]:.1f} s / {other[0]:.1f} s; {mine[1] / other[1]:.2f} by processor time",
    )


@contextmanager
def _busy(count: int) -> Iterator[None]:
    """Keep `count` processes computing meanwhile."""
    words = [sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(words) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()
