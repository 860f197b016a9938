"""Define types of arrays, and caches.

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
