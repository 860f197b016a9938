"""Answer questions about a monotone rule from earlier answers.

If a configuration fails a monotone rule, each finer configuration fails it. If a configuration
meets the rule, each coarser one meets it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aegis.advisor.search.problem import Problem
from aegis.arrays import Array

_WORD = 64
_WORDS = 8
"""Answers are stored for problems whose candidates fit into so many words of 64 bits."""
_FIRST = 64
"""Number of answers for which memory is reserved at first."""


class Implied:
    """Stores which configurations meet a monotone rule, and which do not.

    A configuration is stored as a set of candidates: those that are at least as coarse as its
    masks. If the set of one configuration contains that of another, the first is at least as fine.
    """

    def __init__(self, problem: Problem) -> None:
        self._above: list[tuple[int, list[int]]] = []
        size = 0
        for index, variable in enumerate(problem.variables):
            if variable.quasi:
                self._above.append((index, [coarser << size for coarser in variable.coarser]))
                size += len(variable.candidates)
        words = -(-size // _WORD)
        self._words = words if words <= _WORDS else 0
        self._met, self._failed = _Sets(self._words), _Sets(self._words)

    def answer(self, node: Sequence[int]) -> bool | None:
        """Return whether a configuration meets the rule; None if earlier answers do not say it.

        `node` has the candidate of each variable. A negative number stands for a grouping that is
        no candidate; about this, nothing is stored.
        """
        if (own := self._set(node)) is None:
            return None
        if _one_is_empty(own & ~self._met.stored):
            return True
        return False if _one_is_empty(self._failed.stored & ~own) else None

    def add(self, node: Sequence[int], *, met: bool) -> None:
        """Store whether a configuration meets the rule."""
        if (own := self._set(node)) is not None:
            (self._met if met else self._failed).add(own)

    def _set(self, node: Sequence[int]) -> Array | None:
        """Return the candidates that are at least as coarse as the masks of a configuration, shape
        (words, 1).
        """
        if not self._words or min(node) < 0:
            return None
        own = 0
        for index, above in self._above:
            own |= above[node[index]]
        return np.frombuffer(own.to_bytes(8 * self._words, "little"), dtype="<u8")[:, None]


class _Sets:
    """A growing array of sets, shape (words, n)."""

    def __init__(self, words: int) -> None:
        self._sets = np.zeros((words, _FIRST), dtype=np.uint64)
        self._size = 0

    @property
    def stored(self) -> Array:
        return self._sets[:, : self._size]

    def add(self, own: Array) -> None:
        if self._size == self._sets.shape[1]:
            self._sets = np.hstack([self._sets, np.zeros_like(self._sets)])
        self._sets[:, self._size : self._size + 1] = own
        self._size += 1


def _one_is_empty(sets: Array) -> bool:
    """Return whether one of the sets is empty; they have the shape (words, n)."""
    used = sets[0] if len(sets) == 1 else np.bitwise_or.reduce(sets, axis=0)
    return not used.all()
