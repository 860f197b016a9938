"""Run linear algebra on one thread, and check the limits that the operating system sets on the
memory of this process. BLAS is the library of linear algebra.

Aegis factorises many small matrices one after the other. For these, several BLAS threads are slower
than one thread, and on a busy machine several times slower.
"""

from __future__ import annotations

import mmap
import sys
import threading
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from importlib.abc import MetaPathFinder
from typing import Any, ParamSpec, TypeVar


def addresses_limited() -> bool:
    """Return whether the address space of this process is limited (`ulimit -v`); never on Windows."""
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


P = ParamSpec("P")
R = TypeVar("R")
_LOADED = 192 << 20
"""Addresses that a BLAS and what is loaded with it take: 70 MB each, and 32 MB each further buffer."""
_USED = 96 << 20
"""Addresses that it may take while it is used: further buffers."""
_BRINGING = frozenset({"numpy", "scipy.linalg"})
"""Modules that bring a BLAS of their own."""


def guard_loading() -> None:
    """Make the import of BLAS fail if `addresses_limited`, and too little of the address space is
    free. OpenBLAS requests its buffers until it gets them, so the import would never end.
    """
    if addresses_limited():
        sys.meta_path.insert(0, _Guard())


class _Guard(MetaPathFinder):
    """An import hook that raises `MemoryError` if the import of BLAS would hang. It finds no
    modules.
    """

    def find_spec(self, name: str, *_: Any) -> None:
        if name in _BRINGING:
            _require(_LOADED)


def _require(addresses: int) -> None:
    if not addresses_left(addresses):
        raise MemoryError("There are too few addresses for linear algebra.")


def one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that does the same as the given one, but keeps BLAS on one thread.

    A limit on threads applies only to libraries that are already loaded. So the wrapper first loads
    SciPy, which has a second BLAS; otherwise, the threads of this BLAS would wait in busy loops.
    Nested calls take almost no time.
    """

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with _ONE_THREAD:
            return function(*args, **kwargs)

    return limited


class _OneThread:
    """A context that keeps BLAS on one thread, for all Python threads, from the first that enters
    to the last that leaves.
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
                release_control()
                self._limit.restore_original_limits()
                release_control()

    def _begin(self) -> None:
        import_module("scipy.linalg.lapack").dpotrf  # noqa: B018 - loaded when first asked for
        if addresses_limited():
            _require(_USED)
        if self._libraries is None:
            from threadpoolctl import ThreadpoolController

            self._libraries = ThreadpoolController()
        release_control()
        self._limit = self._libraries.limit(limits=1, user_api="blas")


def release_control() -> None:
    """Let any Python thread limit BLAS, if called before and after a limit. threadpoolctl 3.8
    ignores limits of all threads but the first that set one, as long as that thread lives.
    """
    from threadpoolctl import OpenBLASController

    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread(force=True)


_ONE_THREAD = _OneThread()
