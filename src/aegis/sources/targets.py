"""Where releases go that an engine writes by itself."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import ibis.expr.types as ir

from aegis.sources.source import Source
from aegis.sources.spark.folder import SparkFolder


class Target(Protocol):
    """Where a release goes."""

    def check(self) -> None:
        """Raise `PolicyError` unless it can be made."""

    def written(self, table: ir.Table) -> AbstractContextManager[Source]:
        """Write a query's result, yield what was written, and give it its name if all is well."""


def own_target(source: Source, output: str, *, force: bool) -> Target | None:
    """Return where the engine of a table writes a release; None if this process writes it.

    Of the engines whose rows stay there is one, Spark.
    """
    return SparkFolder(source, output, force) if source.engine.rows_stay else None
