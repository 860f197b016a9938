"""Programs that search once for each line that they read, and what they answer."""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.arx.cases import CASES, Case
from benchmarks.measure import ROOT

LOADED = "loaded"
"""The line that a program prints as soon as it has loaded the table."""
PROVEN = "proven"
SAME = 1e-9
"""The largest relative difference of two losses that count as equal."""
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Answer:
    """The answer to one search.

    Attributes
    ----------
    seconds
        Processor time of the search.
    checked
        Number of transformations whose classes were counted.
    loss
        Information loss of the best transformation.
    levels
        The best transformation: the level of each quasi-identifier.
    proven
        Whether the program proves that it is the best.
    """

    seconds: float
    checked: int
    loss: float
    levels: tuple[int, ...]
    proven: bool

    @classmethod
    def parse(cls, line: str) -> Answer:
        """Read a line of ArxSearch.java or of `benchmarks.arx.ours`.

        >>> Answer.parse("1500000 12 0.25 0 1 proven")
        Answer(seconds=0.0015, checked=12, loss=0.25, levels=(0, 1), proven=True)
        """
        spent, checked, loss, *words = line.split()
        levels = tuple(int(word) for word in words if word not in (PROVEN, "open"))
        return cls(int(spent) / 1e9, int(checked), float(loss), levels, words[-1] == PROVEN)

    def same_result(self, other: Answer) -> bool:
        """Whether both searches end at one transformation, with one loss to nine digits."""
        return self.levels == other.levels and math.isclose(self.loss, other.loss, rel_tol=SAME)


class Searcher:
    """A program that has loaded a table, and searches it once for each line."""

    def __init__(self, *words: str) -> None:
        """Start the program, and wait until it has loaded the table."""
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | ONE_THREAD,
        )
        if self._read() != LOADED:
            raise RuntimeError(f"This loaded no table: {' '.join(words[:4])}.")

    def search(self) -> Answer:
        """Search once."""
        assert self._process.stdin is not None
        self._process.stdin.write("search\n")
        self._process.stdin.flush()
        return Answer.parse(self._read())

    def end(self) -> None:
        """End the program."""
        self._process.communicate()

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"The program ended with {self._process.wait()}.")
        return line


@dataclass(frozen=True)
class Turns:
    """The answers of both programs to one case, in the order of their turns; the first is cold."""

    ours: Sequence[Answer]
    arx: Sequence[Answer]

    @property
    def first(self) -> float:
        """Ratio of the first searches."""
        return self.ours[0].seconds / self.arx[0].seconds

    @property
    def medians(self) -> tuple[float, float]:
        """Median time of the later searches: Aegis, ARX."""
        ours, arx = (
            statistics.median(one.seconds for one in answers[1:])
            for answers in (self.ours, self.arx)
        )
        return ours, arx

    @property
    def agree(self) -> bool:
        """Whether Aegis proves in all turns that the result is the best, and ARX finds the same."""
        return all(
            ours.proven and ours.same_result(arx)
            for ours, arx in zip(self.ours, self.arx, strict=True)
        )


def take_turns(case: Case, java: Sequence[str], searches: int) -> Turns:
    """Search a case with both programs in turns. `java` are the words that start ARX."""
    ours = Searcher(sys.executable, "-m", "benchmarks.arx.ours", str(CASES.index(case)))
    arx = Searcher(*java, *case.arguments())
    try:
        pairs = [(ours.search(), arx.search()) for _ in range(searches)]
    finally:
        ours.end()
        arx.end()
    return Turns([one for one, _ in pairs], [other for _, other in pairs])
