"""Compute values of results when somebody first reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from threading import RLock
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")


class Later(Generic[T]):
    """A value that is computed when it is first read. Later reads return the same value. If two
    threads read it at the same time, one of them computes it, and the other one waits.

    Parameters
    ----------
    compute
        Function that computes the value. It must not depend on when it is called.
    """

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute: Callable[[], T] | None = compute
        self._lock = RLock()

    @property
    def value(self) -> T:
        """The value."""
        with self._lock:
            if self._compute is not None:
                self._value = self._compute()
                self._compute = None  # so that the counts behind the value can be freed
            return self._value

    @property
    def known(self) -> bool:
        """Whether the value has been computed."""
        return self._compute is None

    def __reduce__(self) -> tuple[Callable[[T], T], tuple[T]]:
        """Compute the value, to copy or pickle it without the table's counts."""
        return _unchanged, (self.value,)


def later(compute: Callable[[], T]) -> T:
    """Return a value for a field that `read_later` names. `compute` is called when somebody first
    reads the field, so type checkers see its result.
    """
    return cast(T, Later(compute))


def read_later(*names: str) -> Callable[[type[R]], type[R]]:
    """Return a decorator for a dataclass. It allows values of the named fields that are computed
    when somebody first reads the field: those that `later` returns.
    """

    def decorate(record: type[R]) -> type[R]:
        for name in names:
            setattr(record, name, _Field(name, getattr(record, name, MISSING)))
        return record

    return decorate


def changed(record: R, **changes: Any) -> R:
    """Return a copy of a dataclass with other values of some fields, as `dataclasses.replace` does.
    Values that nobody has read yet are not computed.
    """
    held = vars(record)
    own = {field.name: held[field.name] for field in fields(cast(Any, record))}
    return type(record)(**{**own, **changes})


class _Field:
    """A field of a dataclass whose value may be a `Later`."""

    def __init__(self, name: str, default: Any) -> None:
        self._name = name
        self._default = default

    def __get__(self, record: Any, owner: type | None = None) -> Any:
        if record is None:
            if self._default is MISSING:
                raise AttributeError(self._name)
            return self._default
        value = record.__dict__[self._name]
        return value.value if isinstance(value, Later) else value

    def __set__(self, record: Any, value: Any) -> None:
        record.__dict__[self._name] = value


def _unchanged(value: T) -> T:
    return value
