"""Anything tabular, opened as an Ibis table; the only room that names an engine."""

from aegis.sources.open import open_table
from aegis.sources.source import Source, embedded

__all__ = ["Source", "embedded", "open_table"]
