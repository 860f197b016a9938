"""Define types and caches of arrays, and limit the threads and the memory of linear algebra.

Types of arrays that many rooms use; docstrings state their shapes.

Define caches: with a limit, whose dropped values are computed again, and of one object.

Run linear algebra on one thread.

Aegis factorises many small matrices one after the other. For these, several BLAS threads are slower
than one thread, and on a busy machine several times slower.

Check the limits that the operating system sets on the memory of this process.
"""

from __future__ import annotations

import mmap
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import wraps
from importlib import import_module
from importlib.abc import MetaPathFinder
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


_REMEMBERED_BYTES = 1 << 27
"""Most memory for arrays that are remembered, in one place."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
S = TypeVar("S")
P = ParamSpec("P")


def remembered(method: Callable[Concatenate[S, P], V]) -> Callable[Concatenate[S, P], V]:
    """Return a method (or a function of an object) that computes its result once for the same
    object and arguments. The object keeps all results.
    """
    name = f"_results of {method.__qualname__}"

    @wraps(method)
    def remembering(self: S, /, *args: P.args, **kwargs: P.kwargs) -> V:
        results: dict[object, V] = self.__dict__.setdefault(name, {})
        key = (args, *kwargs.items()) if kwargs else args
        if key not in results:
            results[key] = method(self, *args, **kwargs)
        return results[key]

    return remembering


class Remembered(Generic[K, V]):
    """A cache that finds values by key. If the values together exceed the limit, it drops those
    that were used least recently.

    Parameters
    ----------
    most
        Largest sum of the sizes of all values. A single value may be larger than this limit.
    size
        Function that returns the size of a value. By default, each value has the size 1.
    """

    def __init__(self, most: int, size: Callable[[V], int] = lambda _: 1) -> None:
        self._most = most
        self._size = size
        self._values: OrderedDict[K, V] = OrderedDict()
        self.size = 0

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the cached value of a key. If the key is not in the cache, call `make` to compute
        the value.
        """
        if key in self._values:
            self._values.move_to_end(key)
            return self._values[key]
        return self.put(key, make())

    def put(self, key: K, value: V) -> V:
        """Put the value of a key into the cache, and return the value."""
        if key in self._values:
            self.size -= self._size(self._values.pop(key))
        self._values[key] = value
        self.size += self._size(value)
        while self.size > self._most and len(self._values) > 1:
            self.size -= self._size(self._values.popitem(last=False)[1])
        return value

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __getitem__(self, key: K) -> V:
        return self._values[key]

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


class RememberedArrays(Remembered[Hashable, Floats]):
    """A cache of arrays that limits how much memory the arrays use together."""

    def __init__(self) -> None:
        super().__init__(_REMEMBERED_BYTES, lambda array: array.nbytes)


def addresses_limited() -> bool:
    """Return whether the address space of this process is limited (`ulimit -v`).

    The result is always False on Windows.
    """
    try:
        import resource
    except ImportError:
        return False
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def addresses_left(size: int) -> bool:
    """Return whether this process can still get `size` bytes of address space, after trying it."""
    try:
        mmap.mmap(-1, size).close()
    except (OSError, MemoryError):
        return False
    return True


R = TypeVar("R")
_LOADED = 192 << 20
"""Addresses that a BLAS and what is loaded with it take: 70 MB each, and 32 MB each further buffer."""
_USED = 96 << 20
"""Addresses that it may take while it is used: further buffers."""
_BRINGING = frozenset({"numpy", "scipy.linalg"})
"""Modules that bring a BLAS of their own."""


def guard_loading() -> None:
    """Make the import of a linear-algebra library (BLAS) fail if the process may use only a limited
    address space (`ulimit -v`), and too little of it is free.

    OpenBLAS requests its buffers until it gets them, so under a limit the import would never end.
    """
    if addresses_limited():
        sys.meta_path.insert(0, _Guard())


class _Guard(MetaPathFinder):
    """An import hook that raises `MemoryError` if the import of a linear-algebra library (BLAS)
    would hang for lack of memory. It finds no modules itself.
    """

    def find_spec(self, name: str, *_: Any) -> None:
        if name in _BRINGING:
            _require(_LOADED)


def _require(addresses: int) -> None:
    if not addresses_left(addresses):
        raise MemoryError("There are too few addresses for linear algebra.")


def one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that does the same as the given function, but keeps the linear-algebra
    library (BLAS) on one thread meanwhile.

    A limit on threads applies only to libraries that are already loaded. So the wrapper first loads
    SciPy, which has a second BLAS; otherwise, the threads of this BLAS would wait in busy loops.
    Nested calls take almost no time.
    """

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with _HELD:
            return function(*args, **kwargs)

    return limited


class _Held:
    """A context that keeps the linear-algebra library (BLAS) on one thread. The limit holds for all
    Python threads, from the first that enters to the last that leaves.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._libraries: Any = None
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._begin()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limit.restore_original_limits()

    def _begin(self) -> None:
        import_module("scipy.linalg.lapack").dpotrf  # noqa: B018 - loaded when first asked for
        if addresses_limited():
            _require(_USED)
        if self._libraries is None:
            from threadpoolctl import ThreadpoolController

            self._libraries = ThreadpoolController()
        self._limit = self._libraries.limit(limits=1, user_api="blas")


_HELD = _Held()
