"""Assign rows to folds by a hash of their content, so that scores do not depend on the order of
rows.

The hash of a row is computed from its atoms and its label, as two sums modulo the prime P = 2^31 -
1. Equal rows are numbered, and the hash includes the number, so that equal rows get different
random folds. All integers are below 2^62, so every engine computes the same folds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from aegis.arrays import Integers, Ints

PRIME = 2**31 - 1
"""A Mersenne prime. The product of two numbers below it fits into a signed integer of 64 bits."""
_LABEL, _TURN, _UNIT, _NUMBER, _WEIGHT = "label", "turn", "unit", "number", "weight"


class Dealer:
    """Assigns each row to a fold by a hash of the row's content.

    Parameters
    ----------
    names
        Names of the attributes. The hash of an attribute's atoms (sets of values) includes its
        name, so the order of attributes does not matter.
    folds
        Number of folds F.
    seed
        With another seed, rows get other folds.
    divisor
        Greatest common divisor of the weights of the rows. Because of it, rows with equal weights
        get the same folds as rows without weights.
    """

    def __init__(self, names: Sequence[str], folds: int, seed: int, divisor: int = 1) -> None:
        self.folds, self.divisor = folds, divisor
        self._columns = [_factors("attribute", name, seed) for name in names]
        self._label = _factors(_LABEL, "", seed)
        self._turn = _factors(_TURN, "", seed)[0]
        self._unit = _factors(_UNIT, "", seed)
        self._number = _factors(_NUMBER, "", seed)
        self._weight = _factors(_WEIGHT, "", seed)
        self._quotient = pow(divisor, -1, PRIME)  # times a multiple of it: the quotient, modulo P
        self._numbers = _RowNumbers()

    def rows(
        self,
        codes: Sequence[Integers],
        label: Ints,
        number: Ints | None = None,
        weight: Ints | None = None,
        content: tuple[Ints, Ints] | None = None,
    ) -> Ints:
        """Return the fold of each of the N rows, shape (N,).

        Equal rows are numbered, so that they are spread over the folds. The numbering continues in
        later calls.

        Parameters
        ----------
        codes
            For each attribute, the atom (number of a set of values) of each row.
        label
            The class of each row.
        number
            The numeric label of each row, as a whole number; None if the label has classes.
        weight
            The weight of each row, as a whole number; None if each row counts once.
        content
            `self.content(codes)`, if it is known.
        """
        if self.folds == 1:
            return np.zeros(len(label), dtype=np.int64)
        known = self.content(codes) if content is None else content
        first, second = (
            self._with((own + _sum([(self._label, label)], place)) % PRIME, number, weight, place)
            for place, own in enumerate(known)
        )
        return np.asarray(self.fold(first, second, self._numbers.number(first * PRIME + second)))

    def content(self, codes: Sequence[Integers]) -> tuple[Ints, Ints]:
        """Return the two sums modulo a prime of the atoms (sets of values) of each row, without its
        label. `codes` has the atom of each row for each attribute.
        """
        terms = list(zip(self._columns, codes, strict=True))
        return _sum(terms, 0), _sum(terms, 1)

    def chunk(
        self,
        codes: Sequence[Integers],
        label: Ints,
        number: Ints | None,
        weight: Ints | None,
        units: Ints | None,
    ) -> Ints:
        """Return the fold of each row of a chunk. If `units` has the unit (such as the person) of
        each row, all rows of a unit get the same fold. `codes` has the atom (set of values) of each
        row for each attribute; the other arguments are the class, numeric label and weight of each
        row.
        """
        if units is None:
            return self.rows(codes, label, number, weight)
        return np.asarray(self.units(units))

    def units(self, units: Any) -> Any:
        """Return the fold of each row, computed from the number of the row's unit, such as its
        person.

        `units` is an array or an expression of an engine. All rows of a unit get the same fold.
        """
        first, second = (units * factor % PRIME for factor in self._unit)
        return self.fold(first, second, 0)

    def sums(
        self, codes: Sequence[Any], label: Any, number: Any = None, weight: Any = None
    ) -> tuple[Any, Any]:
        """Return the two sums modulo a prime from which a row's fold is computed, as 64-bit integer
        expressions for an engine. The arguments are expressions of the row's atoms (sets of
        values), class, numeric label and weight.
        """
        terms = list(zip((*self._columns, self._label), (*codes, label), strict=True))
        first, second = (
            self._with(
                sum(code * factors[place] % PRIME for factors, code in terms) % PRIME,
                number,
                weight,
                place,
            )
            for place in (0, 1)
        )
        return first, second

    def _with(self, total: Any, number: Any, weight: Any, place: int) -> Any:
        """Add the numeric label (`number`, may be negative) and the `weight` of each row to one of
        the two sums from which the fold of the row is computed: the first (`place` 0) or the second
        (`place` 1).

        `total` has this sum so far, without label and weight; either may be None. Because the
        weight is added, rows that differ only in weight get the same folds in any order of the
        rows.
        """
        if number is not None:
            positive = (number % PRIME + PRIME) % PRIME  # engines differ in the sign of a remainder
            total = (total + positive * self._number[place] % PRIME) % PRIME
        if weight is not None:
            more = (weight % PRIME * self._quotient + (PRIME - 1)) % PRIME  # 0 of the lowest weight
            total = (total + more * self._weight[place] % PRIME) % PRIME
        return total

    def fold(self, first: Any, second: Any, turn: Any) -> Any:
        """Compute the fold of a row from the two sums of its content modulo a prime (`first` and
        `second`) and from `turn`, the number of equal rows before it.

        The combined sum is squared, so that similar rows get unrelated folds.
        """
        mixed = (first + turn % PRIME * self._turn) % PRIME
        mixed = (mixed * mixed + second) % PRIME
        return mixed * mixed % PRIME % self.folds


def _sum(terms: Iterable[tuple[tuple[int, int], Any]], place: int) -> Ints:
    """Return, for each row, the sum over columns of the number of the row's atom (set of values)
    times a factor, modulo the prime P. `terms` has the two factors and the codes of each column;
    `place` says which factor to use.

    Atom 0 adds nothing, so that a column with a single value changes no fold.
    """
    total: Any = 0
    for factors, code in terms:
        products = np.arange(int(code.max(initial=0)) + 1, dtype=np.int64) * factors[place]
        total = total + (products % PRIME)[code]
    return np.asarray(total % PRIME, dtype=np.int64)


def stable_order(keys: Ints) -> Ints:
    """Return the positions of N keys from 0 to 2^62 - 1 in ascending order, shape (N,); equal keys
    stay in their order.

    Sorting integers is several times faster than sorting positions. So each integer joins the first
    bits of a key with the position of the key. If two different keys have the same first bits,
    positions are sorted.

    >>> stable_order(np.array([7, 3, 7, 1])).tolist()
    [3, 1, 0, 2]
    """
    bits = max(len(keys) - 1, 1).bit_length()
    packed = (keys >> (bits - 1)) << bits | np.arange(len(keys))
    packed.sort()
    order: Ints = packed & ((1 << bits) - 1)
    ordered = keys[order]
    if (ordered[1:] < ordered[:-1]).any():
        return np.argsort(keys, kind="stable")
    return order


class _RowNumbers:
    """Gives each row the number of equal rows before it, over all chunks of a table."""

    def __init__(self) -> None:
        self._chunks: list[tuple[Ints, Ints]] = []

    def number(self, keys: Ints) -> Ints:
        """Return how many equal keys come before each of N keys, in this and in earlier calls,
        shape (N,).
        """
        order = stable_order(keys)
        ordered = keys[order]
        first = np.flatnonzero(np.diff(ordered, prepend=-1))
        counts = np.diff(first, append=len(keys))
        before = self._before(ordered[first])
        number = np.empty(len(keys), dtype=np.int64)
        number[order] = np.arange(len(keys)) - np.repeat(first - before, counts)
        self._chunks.append((ordered[first], counts))
        return number

    def _before(self, keys: Ints) -> Ints:
        """Return how often each of N keys occurred in earlier calls, shape (N,)."""
        if not self._chunks:
            return np.zeros(len(keys), dtype=np.int64)
        if len(self._chunks) > 1:
            known, place = np.unique(
                np.concatenate([own for own, _ in self._chunks]), return_inverse=True
            )
            counts = np.concatenate([own for _, own in self._chunks])
            self._chunks = [(known, np.bincount(place, weights=counts).astype(np.int64))]
        known, counts = self._chunks[0]
        place = np.minimum(np.searchsorted(known, keys), max(len(known) - 1, 0))
        return np.where(known[place] == keys, counts[place], 0) if len(known) else 0 * keys


def _factors(kind: str, name: str, seed: int) -> tuple[int, int]:
    """Return two pseudo-random factors from 1 to P - 1, for the prime P, that depend on the kind,
    the name (such as an attribute's) and the seed.
    """
    digest = blake2b(f"{seed}\0{kind}\0{name}".encode(), digest_size=16).digest()
    first, second = (int.from_bytes(half) % (PRIME - 1) + 1 for half in (digest[:8], digest[8:]))
    return first, second
