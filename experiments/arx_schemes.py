"""ARX's search for masks with differential privacy, replayed draw by draw with our scores.

Its tests fix the seed of Java's generator, so that what it draws can be had again: from the same chances
in the same order. The order is that of a hash table of Java, by the number of a transformation. What it
takes in the end is the visited transformation with the best exact score (see docs/decisions/0048).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aegis.privacy.dp import SampledPrivacy
from aegis.privacy.scheme_search import Scheme, chooser
from arx_java import SEED, JavaRandom

SCORES = {
    "Loss": "loss",
    "Precision": "precision",
    "Entropy": "nu-entropy",
    "AECS": "classes",
    "Discernability": "discernibility",
    "Classification": "classification",
}
"""Our scores by ARX's quality models."""


@dataclass(frozen=True)
class DrawnBy:
    """A search with differential privacy.

    Attributes
    ----------
    score
        Our name of its score.
    sample
        What the rest of epsilon gives for the sample.
    search
        What the search may spend.
    steps
        How many transformations it draws.
    targets
        The attributes that others should predict.
    """

    score: str
    sample: SampledPrivacy
    search: float
    steps: int
    targets: tuple[str, ...] = ()


def divisor(name: str, k: int) -> float:
    """Return what ARX divides a score by, so that one record changes it by at most 1."""
    if name in ("loss", "precision"):
        return max(k - 1.0, 1.0)
    if name == "classes":
        return 1.0
    if name == "classification":
        return float(k)
    return 5.0 if k == 1 else k * k / (k - 1) + 1


def replay(
    heights: Sequence[int], score: Callable[[Scheme], float], *, steps: int, epsilon: float
) -> tuple[Scheme, float]:
    """Return the transformation that ARX finds, and its score.

    Parameters
    ----------
    heights
        Number of the coarsest level of each attribute.
    score
        The score of a transformation, divided as ARX does.
    steps
        Transformations that are drawn.
    epsilon
        What the search may spend.
    """
    choose = chooser(JavaRandom(SEED).uniform)
    table = HashTable(heights)
    pivot: Scheme = tuple(heights)
    best = (score(pivot), pivot)
    table.put(pivot, best[0])
    for _ in range(steps):
        for place in reversed(range(len(pivot))):
            level = pivot[place]
            if level:
                finer = (*pivot[:place], level - 1, *pivot[place + 1 :])
                if finer not in table.values:
                    table.put(finer, score(finer))
        del table.values[pivot]
        if not table.values:
            break
        waiting = table.in_order()
        pivot = waiting[choose([table.values[s] for s in waiting], epsilon / steps)]
        value = table.values[pivot]
        if value > best[0] or (value == best[0] and sum(pivot) < sum(best[1])):
            best = (value, pivot)
    return best[1], best[0]


class HashTable:
    """What a hash table of Java holds, in the order in which it names it.

    By the number of the bucket, and within one by when it was put there; the table doubles where it is
    more than three quarters full, and never shrinks.
    """

    def __init__(self, heights: Sequence[int]) -> None:
        self._heights = heights
        self._buckets = 16
        self.values: dict[Scheme, float] = {}

    def put(self, scheme: Scheme, value: float) -> None:
        """Add a transformation that is not held."""
        self.values[scheme] = value
        if len(self.values) > 0.75 * self._buckets:
            self._buckets *= 2

    def in_order(self) -> list[Scheme]:
        """Return the transformations in the order of the table."""
        return sorted(self.values, key=lambda scheme: self._bucket(scheme))

    def _bucket(self, scheme: Scheme) -> int:
        number = 0  # of the transformation: the last attribute counts most
        for level, height in zip(scheme[::-1], self._heights[::-1], strict=True):
            number = number * (height + 1) + level
        folded = (number ^ (number >> 32)) & 0xFFFFFFFF
        return (folded ^ (folded >> 16)) & (self._buckets - 1)
