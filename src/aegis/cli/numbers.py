"""Check numbers on the command line before a command receives them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from aegis.errors import PolicyError
from aegis.words import brief

_LARGEST = 1 << 63
"""Where whole numbers end: those of engines and seeds have 64 bits."""


def with_numbers_checked(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that it rejects NaN, infinities and numbers that are too large."""

    @functools.wraps(command)
    def checked(**given: Any) -> None:
        for name, value in given.items():
            _check(f"--{name.replace('_', '-')}", value)
        command(**given)

    return checked


def _check(option: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    whole = isinstance(value, int)
    if (-_LARGEST <= value < _LARGEST) if whole else math.isfinite(value):
        return
    raise PolicyError(
        f"{option} is {brief(value)}.",
        hint="Allowed are whole numbers of at most 64 bits."
        if whole
        else "Allowed are numbers that are finite.",
    )
