"""Define types of arrays and caches, and count rows by a key.

Docstrings state the shapes of arrays. A cache with a limit computes a dropped value again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import wraps
from threading import Lock
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Integers = npt.NDArray[np.integer]
"""Whole numbers of any size."""
Ints = npt.NDArray[np.int64]


_CACHED_BYTES = 1 << 27
"""Most memory for arrays that are remembered, in one place."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
S = TypeVar("S")
P = ParamSpec("P")


def cached_method(method: Callable[Concatenate[S, P], V]) -> Callable[Concatenate[S, P], V]:
    """Return a method (or a function of an object) that computes its result once for the same
    object and arguments. The object keeps all results.
    """
    name = f"_results of {method.__qualname__}"

    @wraps(method)
    def cached(self: S, /, *args: P.args, **kwargs: P.kwargs) -> V:
        key = (args, *kwargs.items()) if kwargs else args
        results: dict[object, V]
        try:  # searches call this often, so the key is hashed only once
            results = self.__dict__[name]
            return results[key]
        except KeyError:
            pass
        result = method(self, *args, **kwargs)
        results = self.__dict__.setdefault(name, {})
        results[key] = result
        return result

    return cached


class BoundedCache(Generic[K, V]):
    """A cache that finds values by key. If the sizes of all values together exceed `most`, it drops
    those that were used least recently; a single value may be larger. By default, each has the
    `size` 1. Threads may share the cache; two of them may compute the same value.
    """

    def __init__(self, most: int, size: Callable[[V], int] = lambda _: 1) -> None:
        self._most = most
        self._size = size
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()
        self.size = 0

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the cached value of a key, which `make` computes if it is not in the cache."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        return self.put(key, make())

    def put(self, key: K, value: V) -> V:
        """Put the value of a key into the cache, and return the value."""
        with self._lock:
            if key in self._values:
                self.size -= self._size(self._values.pop(key))
            self._values[key] = value
            self.size += self._size(value)
            while self.size > self._most and len(self._values) > 1:
                self.size -= self._size(self._values.popitem(last=False)[1])
        return value

    def cached(self, keys: Iterable[K]) -> dict[K, V]:
        """Return the values of those keys that are in the cache."""
        with self._lock:
            return {key: self._values[key] for key in keys if key in self._values}

    def __len__(self) -> int:
        return len(self._values)


class OnDemand(Mapping[K, V]):
    """A mapping that computes a value at each access: `get` returns the value of a key."""

    def __init__(self, keys: Iterable[K], get: Callable[[K], V]) -> None:
        self._keys = dict.fromkeys(keys)
        self._get = get

    def __getitem__(self, key: K) -> V:
        if key not in self._keys:
            raise KeyError(key)
        return self._get(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


class BoundedArrayCache(BoundedCache[Hashable, Floats]):
    """A cache of arrays that limits how much memory the arrays use together."""

    def __init__(self) -> None:
        super().__init__(_CACHED_BYTES, lambda array: array.nbytes)


def number(keys: Ints) -> tuple[Ints, Ints]:
    """Return the distinct keys in ascending order, and the position of each key among them, shape
    (n,).
    """
    if not len(keys):
        return keys, keys
    low, high = int(keys.min()), int(keys.max())
    span = high - low + 1
    if span <= 4 * len(keys) + 1024:
        offset = keys - low if low else keys
        present = np.zeros(span, dtype=np.bool_)
        present[offset] = True
        unique = np.flatnonzero(present).astype(np.int64, copy=False)
        if len(unique) == span:
            return unique + low, offset
        places = np.cumsum(present) - 1
        return unique + low, places[offset]
    order = np.argsort(keys)
    ordered = keys[order]
    first = np.empty(len(keys), dtype=np.bool_)
    first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    index = np.empty(len(keys), dtype=np.int64)
    index[order] = np.cumsum(first) - 1
    return ordered[first], index


def group_sums(codes: Integers, weights: Array, groups: int) -> Floats:
    """Return the sum of the `weights` in each group, shape (groups,). `codes` has the group of each
    weight.
    """
    return np.bincount(codes, weights, groups).astype(np.float64, copy=False)


def ranks(order: Ints) -> Ints:
    """Return the rank of each of N indices in an order of them, shape (N,)."""
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank


def distinct_keys(key: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the first index of each distinct key, ascending; the position of each key among them;
    and the number of each.
    """
    keys, position = number(key)
    first = np.empty(len(keys), dtype=np.int64)
    # If an element is set twice, the last value stays.
    first[position[::-1]] = np.arange(len(key) - 1, -1, -1)
    return first, position, np.bincount(position, minlength=len(keys)).astype(np.int64)


def by_appearance(keys: Ints) -> tuple[Ints, Ints]:
    """Return the first index of each distinct key, ascending; and, for each key, its rank among
    the distinct keys in this order.
    """
    first, position, _ = distinct_keys(keys)
    order = np.argsort(first)
    return first[order], ranks(order)[position]


_LOW = 31
"""Bits of the lower half of what is added up: sums of halves of 2^21 rows are exact as floats."""


def _exact_as_floats(values: Ints) -> bool:
    largest = max(int(values.max(initial=0)), -int(values.min(initial=0)))
    return len(values) * largest < 1 << 53


def exact_sums(key: Array, values: Ints, size: int) -> Ints:
    """Sum integers by key, shape (size,). The result is exact if it is below 2**62."""
    if _exact_as_floats(values):
        return np.bincount(key, weights=values, minlength=size).astype(np.int64)
    parts = [
        np.bincount(key, weights=half, minlength=size).astype(np.int64)
        for half in halves(values.astype(np.int64))
    ]
    return (parts[0] << _LOW) + parts[1]


def halves(values: Array) -> tuple[Array, Array]:
    """Split integers of any size into their higher and their lower bits, which are never negative."""
    return values >> _LOW, values & ((1 << _LOW) - 1)


def joined_halves(high: Ints, low: Ints) -> Array:
    """Join the higher and lower bits from `halves` into Python's integers."""
    joined: Array = (high.astype(object) << _LOW) + low.astype(object)
    return joined


def count_keys(key: Integers, weights: Ints | None, size: int) -> Ints:
    """Return how often each key from 0 to `size` - 1 occurs, or the exact sum of its weights."""
    if weights is not None:
        return exact_sums(key, weights, size)
    return np.bincount(key, minlength=size)


KeyCounts = tuple[Ints, Ints]
"""The distinct keys in ascending order, and the count of each key."""


def counts_by_key(key: Integers, weights: Ints | None, space: int, *, dense: int = 4) -> KeyCounts:
    """Return the distinct keys in ascending order, and how often each occurs (or the sum of its
    weights). Keys are below `space`; if it is at most `dense` times their number, they are counted
    in an array of all possible keys, otherwise they are sorted.
    """
    if space <= dense * len(key) + 1024:
        exact = weights is None or _exact_as_floats(weights)
        counts = np.bincount(key, weights) if exact else count_keys(key, weights, 1)
        index = np.flatnonzero(
            counts > 0
        )  # of flags, which is several times faster than of numbers
        return index, counts[index].astype(np.int64, copy=False)
    if weights is None:
        index, counts = np.unique(key, return_counts=True)
        return index.astype(np.int64, copy=False), counts
    index, position = number(key.astype(np.int64, copy=False))
    counts = count_keys(position, weights, len(index))
    return index[counts > 0], counts[counts > 0]
