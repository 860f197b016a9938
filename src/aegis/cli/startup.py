"""Start a process for one command faster, by not loading modules that it does not need.

In half of the time of a short command, Python loads modules. This module does not change what a
command does. Only `main` and `process` of `aegis.cli.main` call its functions, because they run
nothing else in the process.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import PathFinder
from importlib.util import LazyLoader, find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from aegis.blas import addresses_limited
from aegis.cli import output
from aegis.registry import entry_points

_OBJECTS = 300_000
"""New objects between two searches for cycles of garbage: loading modules makes 150,000 that stay."""
_GROUPS = (
    "masks",
    "measures",
    "privacy_models",
    "anonymizers",
    "estimates",
    "objectives",
    "search_strategies",
)
"""Entry points by which packages of others add to Aegis."""
_COMPILERS = "ibis.backends.sql.compilers"
_LAPACK = "scipy.linalg.lapack"
_ROUTINES = "scipy.linalg._flapack"

_own_process = False


def start() -> None:
    """Configure this process for one command, with less garbage collection and without plug-ins of
    pydantic. BLAS, not loaded yet, will use one thread (`aegis.blas`), unless the environment sets
    a number.
    """
    global _own_process
    _own_process = True
    gc.set_threshold(_OBJECTS, 20, 100)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def end(codes: Sequence[int]) -> None:
    """End the process immediately with an exit code, if `codes` has one. Normally, Python frees
    hundreds of modules object by object, which takes as long as importing Ibis. Call this function
    last.
    """
    for code in codes:
        output.flush()
        os._exit(code)


def before_tables() -> None:
    """Prevent PyArrow and SciPy from loading modules that no command uses."""
    if not _own_process or "pyarrow" in sys.modules or "numpy" in sys.modules:
        return
    _load_when_used("numpy.f2py")  # SciPy loads it: a compiler of Fortran
    _compile_for_one_engine()
    _factorise_alone()
    if "pandas" not in sys.modules and not _added_to():
        import pyarrow as pa

        # PyArrow's first conversion would load pandas to check for a Series, which no command makes.
        absent = _Absent()
        sys.meta_path.insert(0, absent)
        try:
            pa.array([0])
        finally:
            sys.meta_path.remove(absent)


class _Absent(MetaPathFinder):
    """An import hook that pretends that pandas is not installed."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:  # noqa: ARG002
        """Raise an error for pandas; leave all other modules to other finders."""
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


def _added_to() -> bool:
    """Return whether packages other than the optional parts of Aegis extend it."""
    return any(
        not point.value.startswith("aegis.")
        for group in _GROUPS
        for point in entry_points(group=f"aegis.{group}")
    )


def _load_when_used(name: str) -> None:
    """Replace a module by a lazy one, which is executed when one of its names is first used."""
    package, _, last = name.rpartition(".")
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        return
    spec.loader = LazyLoader(spec.loader)
    module = module_from_spec(spec)
    sys.modules[name] = module
    setattr(sys.modules[package], last, module)
    spec.loader.exec_module(module)


def _compile_for_one_engine() -> None:
    """Make Ibis load only the compiler of the used engine, instead of those of twenty engines."""
    import ibis.backends.sql

    if _COMPILERS in sys.modules:
        return
    spec = find_spec(_COMPILERS)
    if spec is None:
        return
    spec.loader = _OnDemand()
    package = module_from_spec(spec)
    sys.modules[_COMPILERS] = package
    spec.loader.exec_module(package)
    ibis.backends.sql.compilers = package


def _factorise_alone() -> None:
    """Make LAPACK available without `scipy.linalg`, which takes 20 times as long to load. The
    compiled routines are put into an empty `scipy.linalg.lapack`. If another name of this module is
    used, all of `scipy.linalg` is loaded.
    """
    import scipy

    folder = [str(Path(path, "linalg")) for path in scipy.__path__]
    routines, lapack = (PathFinder.find_spec(name, folder) for name in (_ROUTINES, _LAPACK))
    if "scipy.linalg" in sys.modules or not (
        routines and routines.loader and lapack and lapack.loader
    ):
        return
    if addresses_limited():
        return  # what guards the loading of a BLAS sees packages alone
    load_routines, load_lapack = routines.loader.exec_module, lapack.loader.exec_module
    module = module_from_spec(lapack)
    sys.modules[_LAPACK] = module

    def of_lapack(name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        compiled = sys.modules.get(_ROUTINES)
        if compiled is None:
            compiled = sys.modules[_ROUTINES] = module_from_spec(routines)
            load_routines(compiled)
        if hasattr(compiled, name):
            vars(module)[name] = getattr(compiled, name)  # so that this is called once for each
            return vars(module)[name]
        del module.__getattr__
        load_lapack(module)
        vars(import_module("scipy.linalg"))["lapack"] = module
        return getattr(module, name)

    module.__getattr__ = of_lapack  # type: ignore[method-assign]


class _OnDemand(Loader):
    """A loader of a package that imports its modules when they are first used."""

    def exec_module(self, module: ModuleType) -> None:
        """Give the package a function that imports a module when one of its names is first used."""

        def of_engine(name: str) -> Any:
            engine_name = name.removesuffix("Compiler")
            try:
                compiler_module = import_module(f"{module.__name__}.{engine_name.lower()}")
            except ModuleNotFoundError as error:
                raise AttributeError(name) from error
            return compiler_module if engine_name == name else getattr(compiler_module, name)

        module.__getattr__ = of_engine  # type: ignore[method-assign]
