"""Configurations of a large space by the sum of a figure per attribute, a window at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Chosen = npt.NDArray[np.int16]
Bits = npt.NDArray[np.uint64]

HALF = 1 << 19
"""Combinations of half of the attributes, at most."""
_FIRST, _LARGEST = 1 << 17, 1 << 20
"""Configurations of the first window, and of any."""
_HALVINGS = 40
"""Steps of a bisection for where a window ends."""


class Listing:
    """Combinations of one candidate per attribute, those of the smallest sum first.

    Both halves of the attributes are listed and sorted; what sums to less than a limit then is a run
    of the second half beside each combination of the first.

    Parameters
    ----------
    domains
        The candidates of each attribute.
    figures
        The figure of each candidate, (n,) per attribute.
    """

    def __init__(self, domains: Sequence[Sequence[int]], figures: Sequence[Floats]) -> None:
        middle = halves(domains)
        self._first = _listed(domains[:middle], figures[:middle])
        self._second = _listed(domains[middle:], figures[middle:])

    def windows(self, limit: Callable[[], float]) -> Iterator[tuple[Chosen, Floats, float]]:
        """Yield candidates (n, m), their sums (n,) in ascending order, and what all later sums reach.

        Ends where sums reach `limit`, which may fall meanwhile. No combination of less is left out.
        """
        low, size = -math.inf, _FIRST
        while low < limit():
            high = self._end(low, limit(), size)
            first, second, sums = self._between(low, high)
            order = np.argsort(sums, kind="stable")
            chosen = np.hstack([self._first[0][first[order]], self._second[0][second[order]]])
            yield chosen, sums[order], high
            low, size = high, _LARGEST

    def _end(self, low: float, limit: float, size: int) -> float:
        """Return a sum up to which there are about `size` combinations from `low` on, at most `limit`."""
        begin = self._places(low)
        if int((self._places(limit) - begin).sum()) <= size:
            return limit
        under = max(low, float(self._first[1][0] + self._second[1][0]))
        over = limit
        for _ in range(_HALVINGS):
            middle = (under + over) / 2
            if not under < middle < over:
                break
            if int((self._places(middle) - begin).sum()) <= size:
                under = middle
            else:
                over = middle
        # At least one sum lies below where it ends, however many are equal.
        return under if int((self._places(under) - begin).sum()) else over

    def _places(self, limit: float) -> npt.NDArray[np.int64]:
        """Return how many of the second half stay below a limit beside each of the first."""
        return np.searchsorted(self._second[1], limit - self._first[1], side="left").astype(
            np.int64
        )

    def _between(
        self, low: float, high: float
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Floats]:
        begin, end = self._places(low), self._places(high)
        counts = end - begin
        first = np.repeat(np.arange(len(counts)), counts)
        before = np.cumsum(counts) - counts
        second = np.arange(len(first)) + np.repeat(begin - before, counts)
        return first, second, self._first[1][first] + self._second[1][second]


def halves(domains: Sequence[Sequence[int]]) -> int:
    """Return where attributes are parted so that neither part has many more combinations.

    >>> halves([range(2), range(2), range(9), range(5)])
    3
    """
    logs = np.cumsum([0.0, *(math.log(len(domain)) for domain in domains)])
    return int(np.argmin(np.maximum(logs, logs[-1] - logs)))


def _listed(domains: Sequence[Sequence[int]], figures: Sequence[Floats]) -> tuple[Chosen, Floats]:
    """Return all combinations (n, m) of some attributes, by their sums (n,) in ascending order."""
    chosen = np.zeros((1, 0), dtype=np.int16)
    sums = np.zeros(1)
    for domain, figure in zip(domains, figures, strict=True):
        codes = np.array(domain, dtype=np.int16)
        chosen = np.hstack(
            [np.repeat(chosen, len(codes), axis=0), np.tile(codes, len(chosen))[:, None]]
        )
        sums = np.repeat(sums, len(codes)) + np.tile(figure[codes], len(sums))
    order = np.argsort(sums, kind="stable")
    return chosen[order], sums[order]


class OpenList:
    """Configurations that are not decided yet, with what each costs at least.

    Which configurations have a candidate that refines another one is held as bits, so that all that
    refine a configuration in every attribute are told in a few operations.

    Parameters
    ----------
    chosen
        Candidates, shape (n, m).
    sums
        What each costs at least, shape (n,), in ascending order.
    refines
        Per attribute whether a candidate (row) refines another (column); None for attributes in which
        configurations are not compared.
    """

    def __init__(
        self,
        chosen: Chosen,
        sums: Floats,
        refines: Sequence[npt.NDArray[np.bool_] | None],
    ) -> None:
        self._refines = refines
        self._pack(chosen, sums)

    def _pack(self, chosen: Chosen, sums: Floats) -> None:
        self.chosen, self._sums, self._start = chosen, sums, sums.copy()
        self._alive = _packed(np.ones(len(sums), dtype=np.bool_))
        self._word = 0
        self._within = [
            []
            if order is None
            else [_packed(order[chosen[:, place], other]) for other in range(len(order))]
            for place, order in enumerate(self._refines)
        ]

    @property
    def size(self) -> int:
        """Configurations that are held, decided ones among them."""
        return len(self._sums)

    def left(self) -> int:
        """Return how many are not decided."""
        return int(np.bitwise_count(self._alive).sum())

    def first(self) -> int | None:
        """Return the first one that is not decided; None where all are."""
        while self._word < len(self._alive):
            word = int(self._alive[self._word])
            if word:
                return self._word * 64 + (word & -word).bit_length() - 1
            later = np.flatnonzero(self._alive[self._word : self._word + 4096])
            self._word += int(later[0]) if len(later) else 4096
        return None

    def least(self, place: int) -> float:
        """Return what the configuration at a place cost at least when all were last sorted."""
        return float(self._start[place])

    def shares(self) -> list[Floats]:
        """Return per attribute which share of those left refines each candidate, shape (n,)."""
        left = max(self.left(), 1)
        return [
            np.array([np.bitwise_count(self._alive & bits).sum() / left for bits in within])
            for within in self._within
        ]

    def refining(self, node: Sequence[int]) -> Bits:
        """Return which of those left refine a configuration in every attribute."""
        within = self._alive.copy()
        for candidate, bits in zip(node, self._within, strict=True):
            if bits:
                within &= bits[candidate]
        return within

    def strike(self, some: Bits) -> None:
        """Decide configurations."""
        self._alive &= ~some

    def strike_one(self, place: int) -> None:
        """Decide one configuration."""
        self._alive[place // 64] &= ~np.uint64(1 << (place % 64))

    def raise_to(self, some: Bits, parts: Sequence[Floats], limit: float) -> None:
        """Let configurations cost at least a sum over attributes; decide those that reach a limit."""
        places = np.flatnonzero(np.unpackbits(some.view(np.uint8), bitorder="little"))
        chosen = self.chosen[places]
        sums = np.zeros(len(places))
        for place, part in enumerate(parts):
            sums += part[chosen[:, place]]
        self._sums[places] = np.maximum(self._sums[places], sums)
        over = np.zeros(64 * len(self._alive), dtype=np.bool_)
        over[places[sums >= limit]] = True
        self._alive &= ~_packed(over)

    def sort(self, limit: float) -> None:
        """Forget what is decided, and what costs a limit; sort the others anew by what they cost."""
        alive = np.unpackbits(self._alive.view(np.uint8), bitorder="little")[: self.size] > 0
        places = np.flatnonzero(alive & (self._sums < limit))
        places = places[np.argsort(self._sums[places], kind="stable")]
        self._pack(self.chosen[places], self._sums[places])


def _packed(flags: npt.NDArray[np.bool_]) -> Bits:
    content = np.packbits(flags, bitorder="little")
    return np.pad(content, (0, -len(content) % 8)).view(np.uint64)
