"""Linear algebra on one thread.

Aegis factorises many small matrices one after the other; handing each to several BLAS threads
costs more than it gives, and several times more on a busy machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` with BLAS held to one thread while it runs.

    A limit holds for the libraries that are loaded when it is set. SciPy brings a BLAS of its own,
    so that is loaded first: left at its own number of threads it waits for them in busy loops.
    """

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        import_module("scipy.linalg.lapack")
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1, user_api="blas"):
            return function(*args, **kwargs)

    return limited
