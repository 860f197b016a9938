"""Other formats of summaries, which packages add."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aegis.registry import Extensions

FORMATS = Extensions("summary format")
"""Formats of summaries by the ending of their files, without the dot; see `aegis.cli.formats`."""


def added_format(given: Any) -> str | None:
    """Return which added format a path or an object is of: its ending; None for all else.

    An object says so by its attribute `summary_format`.
    """
    if isinstance(given, str | Path):
        ending = Path(str(given)).suffix.lower().removeprefix(".")
        return ending if ending in FORMATS else None
    stated = getattr(given, "summary_format", None)
    return stated if isinstance(stated, str) and stated in FORMATS else None
