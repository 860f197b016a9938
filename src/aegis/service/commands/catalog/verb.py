"""Describe a verb of `aegis catalog` for the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Verb:
    """One verb of the catalog, as the command line registers it.

    Attributes
    ----------
    command
        The function that runs.
    EXAMPLES
        The examples that `--help` shows.
    """

    command: Callable[..., None]
    EXAMPLES: tuple[str, ...]
