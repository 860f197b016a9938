"""List the configurations of a large space whose loss, a sum over attributes, is below a limit,
except refinements of refused ones. Find the rows in classes that are too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aegis.advisor.search.corner_classes import CornerClasses, RuleCells, dense, refine
from aegis.advisor.search.problem import Problem
from aegis.arrays import BoundedCache, Flags, Floats, Ints

Chosen = npt.NDArray[np.int16]
Places = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]
Words = tuple[Places, Places, Bits]
"""Combinations of either half of the attributes: a row, a column of words, and the word there."""

HALF = 1 << 18
"""Largest number of combinations of half of the attributes."""
_ROOM = 1 << 21
"""Words of combinations that are looked at together."""
_LARGEST, _SAMPLE = 1 << 20, 1 << 17
"""Configurations that are listed at most, and about how many of them where there are more."""


@dataclass(frozen=True, eq=False)
class Leftover:
    """Configurations that may be among the best: they are not finer than a refused one, and their
    loss, a sum over attributes, is below a limit.

    Attributes
    ----------
    chosen
        The candidate of each of m attributes in each of n configurations, shape (n, m).
    sums
        The loss of each configuration as a sum over attributes, shape (n,), in ascending order.
    complete
        Whether the list is complete; if not, it is a random sample.
    least
        A lower bound of the loss of all such configurations, including those that are not listed.
    """

    chosen: Chosen
    sums: Floats
    complete: bool
    least: float


class Listing:
    """All combinations of one candidate for each attribute, as a bit matrix.

    A row stands for a combination of candidates of the first half of the attributes, and a bit of a
    row for a combination of the second half. A bit is set if the configuration is excluded.

    Parameters
    ----------
    figures
        For each attribute, the term that each of its n candidate masks adds to the loss (a sum over
        attributes), shape (n,). Infinity excludes a candidate.
    refines
        For each attribute, whether a candidate (row) refines another one (column), shape (n, n);
        None for attributes that form no equivalence classes.
    """

    def __init__(self, figures: Sequence[Floats], refines: Sequence[Flags | None]) -> None:
        self._middle = middle = halves([range(len(figure)) for figure in figures])
        self._attributes = len(figures)
        self._first = _listed(figures[:middle])
        chosen, sums = _listed(figures[middle:])
        order = np.argsort(sums, kind="stable")[: np.count_nonzero(np.isfinite(sums))]
        self._second = chosen[order], sums[order]
        orders = [
            np.ones((len(figure), len(figure)), dtype=np.bool_) if order is None else order
            for figure, order in zip(figures, refines, strict=True)
        ]
        self._orders = orders[:middle]
        self._within = [
            _within(order, column)
            for order, column in zip(orders[middle:], self._second[0].T, strict=True)
        ]

    def leftover(
        self,
        refused: Sequence[Sequence[int]],
        limit: float,
        random: np.random.Generator,
        go_on: Callable[[], None] = lambda: None,
    ) -> Leftover:
        """Return the configurations that refine no `refused` one and whose loss is below `limit`.

        If there are too many, return a random sample. `go_on` is called regularly; it may raise an
        error to stop.
        """
        blocks: list[Words] = []
        share, count, least = 1.0, 0, limit
        for words in self._words(refused, limit):
            go_on()
            sums = self._first[1][words[0]] + self._second[1][64 * words[1]]
            least = min(least, float(sums.min(initial=limit)))
            blocks.append(words if share == 1 else _sampled_words(words, share, random))
            count += _count(blocks[-1])
            while count > _LARGEST:
                share /= 2
                blocks = [_sampled_words(each, 0.5, random) for each in blocks]
                count = sum(map(_count, blocks))
        if share < 1:
            blocks = [_sampled_words(each, _SAMPLE / max(count, 1), random) for each in blocks]
        return Leftover(*self._unpacked(blocks), share == 1, least)

    def parts(
        self, refused: Sequence[Sequence[int]], limit: float
    ) -> Iterator[tuple[Chosen, Floats]]:
        """Yield the configurations that refine no `refused` one and whose loss is below `limit`, in
        parts of n configurations: candidates, shape (n, m), and losses, shape (n,).
        """
        for words in self._words(refused, limit):
            part = np.cumsum(np.bitwise_count(words[2]), dtype=np.int64) // _LARGEST
            for number in np.unique(part).tolist():
                some = part == number
                yield self._unpacked([(words[0][some], words[1][some], words[2][some])])

    def _unpacked(self, blocks: Sequence[Words]) -> tuple[Chosen, Floats]:
        """Return the configurations whose bits are set in the words `blocks`, as a part of `parts`,
        by ascending loss.
        """
        rows, columns, words = (
            np.concatenate([np.zeros(0, dtype=np.int64), *(each[0] for each in blocks)]),
            np.concatenate([np.zeros(0, dtype=np.int64), *(each[1] for each in blocks)]),
            np.concatenate([np.zeros(0, dtype=np.uint64), *(each[2] for each in blocks)]),
        )
        flags = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
        word, bit = np.nonzero(flags)
        first, second = rows[word], 64 * columns[word] + bit
        sums = self._first[1][first] + self._second[1][second]
        order = np.argsort(sums, kind="stable")
        chosen = np.hstack([self._first[0][first[order]], self._second[0][second[order]]])
        return chosen, sums[order]

    def _words(self, refused: Sequence[Sequence[int]], limit: float) -> Iterator[Words]:
        """Yield the configurations of `parts` as set bits: rows and columns of words of 64 bits in
        the matrix, and these words.
        """
        shape = [len(order) for order in self._orders]
        nodes = np.array(refused, dtype=np.int64).reshape(len(refused), self._attributes)
        strides = np.cumprod([1, *shape[:0:-1]])[::-1][: len(shape)]
        places = (nodes[:, : self._middle] * strides).sum(axis=1)
        ends = np.searchsorted(self._second[1], limit - self._first[1], side="left")
        width = max(1, _ROOM // max(len(ends), len(nodes)))
        for start in range(0, -(-int(ends.max()) // 64), width):
            columns = slice(start, start + width)
            both = np.full((len(nodes), self._within[0][:, columns].shape[1]), ~np.uint64(0))
            for within, other in zip(self._within, nodes[:, self._middle :].T, strict=True):
                both &= within[other, columns]
            dead = np.zeros((len(ends), both.shape[1]), dtype=np.uint64)
            for position, bits in zip(places.tolist(), both, strict=True):
                dead[position] |= bits
            if len(nodes):
                _take_over(dead, self._orders)
            rows = np.flatnonzero(ends > 64 * start)
            alive = ~dead[rows]
            beyond = 64 * np.arange(start + 1, start + 1 + alive.shape[1]) - ends[rows, None]
            alive &= ~np.uint64(0) >> np.clip(beyond, 0, 63).astype(np.uint64)
            alive[beyond >= 64] = 0
            row, column = np.nonzero(alive)
            yield rows[row], start + column, alive[row, column]


def halves(domains: Sequence[Sequence[int]]) -> int:
    """Return the index at which to split the attributes so that both parts have about equally many
    combinations.

    >>> halves([range(2), range(2), range(9), range(5)])
    3
    """
    logs = np.cumsum([0.0, *(math.log(len(domain)) for domain in domains)])
    return int(np.argmin(np.maximum(logs, logs[-1] - logs)))


def _listed(figures: Sequence[Floats]) -> tuple[Chosen, Floats]:
    """Return all n combinations of candidates, shape (n, m), and the sums of their `figures`, (n,). The
    last attribute changes fastest.
    """
    chosen = np.zeros((1, 0), dtype=np.int16)
    sums = np.zeros(1)
    for figure in figures:
        codes = np.arange(len(figure), dtype=np.int16)
        chosen = np.hstack(
            [np.repeat(chosen, len(codes), axis=0), np.tile(codes, len(chosen))[:, None]]
        )
        sums = np.repeat(sums, len(codes)) + np.tile(figure, len(sums))
    return chosen, sums


def _take_over(dead: Bits, orders: Sequence[Flags]) -> None:
    """Exclude from each row of `dead`, shape (n, words), what a coarser row excludes, in place.

    A row stands for a combination; `orders` says for each attribute whether a candidate (row) refines
    another one (column).
    """
    before = 1
    for order in orders:
        rows = dead.reshape(before, len(order), -1)
        for finer, coarser in np.argwhere(order).tolist():
            if finer != coarser:
                rows[:, finer] |= rows[:, coarser]
        before *= len(order)


def _sampled_words(words: Words, share: float, random: np.random.Generator) -> Words:
    """Return a random sample of about this share of the words of a bit matrix."""
    some = random.random(len(words[0])) < share
    return words[0][some], words[1][some], words[2][some]


def _count(words: Words) -> int:
    return int(np.bitwise_count(words[2]).sum())


def _within(order: Flags, column: npt.NDArray[np.int16]) -> Bits:
    """Return, as bits, which configurations refine each candidate of an attribute, shape (n,
    words).
    """
    return np.stack([_packed(order[column, other]) for other in range(len(order))])


class OpenList:
    """A list of open configurations: the rule has not refused them, and they are not yet recorded
    among the best. Each has a lower bound of its loss, a sum over attributes.

    Parameters
    ----------
    chosen
        The candidate of each of m attributes in each of n configurations, shape (n, m).
    sums
        Lower bound of the loss of each configuration, shape (n,), in ascending order.
    refines
        For each attribute, whether a candidate (row) refines another one (column); None for
        attributes that form no equivalence classes.
    """

    def __init__(self, chosen: Chosen, sums: Floats, refines: Sequence[Flags | None]) -> None:
        self._refines = refines
        self._pack(chosen, sums)

    def _pack(self, chosen: Chosen, sums: Floats) -> None:
        self.chosen, self._sums, self._start = chosen, sums, sums.copy()
        self._alive = _packed(np.ones(len(sums), dtype=np.bool_))
        self._word = 0
        self._within = [
            [] if order is None else list(_within(order, chosen[:, index]))
            for index, order in enumerate(self._refines)
        ]

    @property
    def size(self) -> int:
        """The number of configurations in the list, including those that were removed."""
        return len(self._sums)

    def open_count(self) -> int:
        """Return the number of configurations that are still open."""
        return int(np.bitwise_count(self._alive).sum())

    def first(self) -> int | None:
        """Return the index of the first open configuration; None if there is none."""
        while self._word < len(self._alive):
            word = int(self._alive[self._word])
            if word:
                return self._word * 64 + (word & -word).bit_length() - 1
            later = np.flatnonzero(self._alive[self._word : self._word + 4096])
            self._word += int(later[0]) if len(later) else 4096
        return None

    def least(self, index: int) -> float:
        """Return the lower bound of the loss of the configuration at `index` of the list."""
        return float(self._start[index])

    def shares(self) -> list[Floats]:
        """Return the share of the open configurations whose mask refines each candidate."""
        open_count = max(self.open_count(), 1)
        return [
            np.array([np.bitwise_count(self._alive & bits).sum() / open_count for bits in within])
            for within in self._within
        ]

    def refining(self, node: Sequence[int]) -> Bits:
        """Return, as bits, which open configurations refine `node` in every attribute."""
        within = self._alive.copy()
        for candidate, bits in zip(node, self._within, strict=True):
            if bits:
                within &= bits[candidate]
        return within

    def strike(self, some: Bits) -> None:
        """Remove from the list the configurations whose bits are set in `some`."""
        self._alive &= ~some

    def strike_one(self, index: int) -> None:
        """Remove the configuration at `index` of the list."""
        self._alive[index // 64] &= ~np.uint64(1 << (index % 64))

    def raise_to(self, some: Bits, parts: Sequence[Floats], limit: float) -> None:
        """Raise the lower bounds of the configurations in `some` to the sums of `parts`, which has
        a figure for each candidate of each attribute. Remove those whose bound reaches `limit`.
        """
        places = np.flatnonzero(np.unpackbits(some.view(np.uint8), bitorder="little"))
        chosen = self.chosen[places]
        sums = np.zeros(len(places))
        for index, part in enumerate(parts):
            sums += part[chosen[:, index]]
        self._sums[places] = np.maximum(self._sums[places], sums)
        over = np.zeros(64 * len(self._alive), dtype=np.bool_)
        over[places[sums >= limit]] = True
        self._alive &= ~_packed(over)

    def sort(self, limit: float) -> None:
        """Drop what was removed or has a bound of `limit` or more; sort the rest by bound."""
        alive = np.unpackbits(self._alive.view(np.uint8), bitorder="little")[: self.size] > 0
        places = np.flatnonzero(alive & (self._sums < limit))
        places = places[np.argsort(self._sums[places], kind="stable")]
        self._pack(self.chosen[places], self._sums[places])


def _packed(flags: Flags) -> Bits:
    content = np.packbits(flags, bitorder="little")
    return np.pad(content, (0, -len(content) % 8)).view(np.uint64)


Node = tuple[int, ...]
"""A candidate per variable."""
_MOST_BYTES = 128 << 20
"""Bytes of class ids that are remembered."""
_MANY = 1 << 21
"""Possible classes from which on a part of the attributes is looked at first: it may take too many
rows.
"""


class SmallClasses:
    """Finds the equivalence classes that are too small in a configuration (a mask for each
    attribute).

    Recent results are kept, so a configuration that differs from an earlier one in one attribute
    needs little work.

    Parameters
    ----------
    problem
        The search space.
    cells
        The cells of the frequency table (combinations of values) that a rule on class sizes
        distinguishes.
    least
        Smallest number of rows in a class that the rule allows.
    """

    def __init__(self, problem: Problem, cells: RuleCells, least: int) -> None:
        self._least = least
        self._weights = cells.counts.astype(np.float64)
        self._corner_classes = CornerClasses(problem, cells)
        self._cached_classes: BoundedCache[tuple[Node, Node], tuple[Ints, int]] = BoundedCache(
            _MOST_BYTES, lambda classes: classes[0].nbytes
        )
        largest = {
            i: max(candidate.size for candidate in variable.candidates)
            for i, variable in enumerate(problem.variables)
            if variable.quasi
        }
        self._quasi = tuple(sorted(largest, key=lambda i: -largest[i]))
        self._undivided = cells.undivided()

    def lost(self, node: Node, room: int) -> Ints | None:
        """Return the indices of cells in too small classes; None if these have over `room` rows."""
        halves = self._halves(self._quasi)
        ids, space = self._undivided
        for half in halves:
            codes, size = self._classes(half, tuple(node[index] for index in half))
            if space * size > _MANY and self._small(ids, space, room) is None:
                return None
            ids, space = self._crossed(ids, space, codes, size)
        return self._small(ids, space, room)

    def _small(self, ids: Ints, space: int, room: int) -> Ints | None:
        sizes = np.bincount(ids, weights=self._weights, minlength=space)
        small = sizes < self._least
        rows = float(np.dot(sizes, small))
        return None if rows > room + 0.5 else np.flatnonzero(small[ids])

    def _classes(self, some: tuple[int, ...], node: Node) -> tuple[Ints, int]:
        """Return the class of each cell if only the attributes `some`, with the candidates `node`,
        form classes, and a number above all classes.
        """
        if len(some) == 1:
            return self._corner_classes.cell_groups((some[0], 1 << node[0]))
        return self._cached_classes.get((some, node), lambda: self._halved(some, node))

    def _halved(self, some: tuple[int, ...], node: Node) -> tuple[Ints, int]:
        """Return `_classes` of several attributes, from those of both halves of them."""
        first, second = self._halves(some)
        ids, space = self._classes(first, node[::2])
        codes, size = self._classes(second, node[1::2])
        return (ids, space) if size == 1 else self._crossed(ids, space, codes, size)

    def _crossed(self, ids: Ints, space: int, codes: Ints, size: int) -> tuple[Ints, int]:
        """Split classes (`ids` below `space`) by a second grouping (`codes` below `size`)."""
        if space == 1:
            return codes, size
        return dense(*refine(ids, space, codes, size))

    @staticmethod
    def _halves(some: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Divide the attributes into every second one and the others, without empty parts."""
        return tuple(half for half in (some[::2], some[1::2]) if half)
