"""The command line's record of a verb."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Verb:
    """One verb of the catalog, as the command line registers it.

    Attributes
    ----------
    command
        What it does.
    EXAMPLES
        What its help shows.
    """

    command: Callable[..., None]
    EXAMPLES: tuple[str, ...]
