"""Targets of releases that an engine writes by itself."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import ibis.expr.types as ir

from aegis.sources.source import Source
from aegis.sources.spark.folder import SparkFolder


class Target(Protocol):
    """The target of a release."""

    def check(self) -> None:
        """Raise `PolicyError` unless it can be made."""

    def written(self, table: ir.Table) -> AbstractContextManager[Source]:
        """Write a query's result, yield the temporary copy, and rename it if there was no error."""


def own_target(source: Source, output: str, *, force: bool) -> Target | None:
    """Return the target of a table's engine; None if this process writes the release.

    Of the engines whose rows stay there is one, Spark.
    """
    return SparkFolder(source, output, force) if source.engine.rows_stay else None
