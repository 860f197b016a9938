"""Define targets: files or folders to which engines themselves write releases."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import ibis.expr.types as ir

from aegis.sources.source import Source
from aegis.sources.spark.folder import SparkFolder


class Target(Protocol):
    """A place to which an engine writes a release."""

    def check(self) -> None:
        """Raise `PolicyError` unless the target can be created."""

    def written(self, table: ir.Table) -> AbstractContextManager[Source]:
        """Write the result of a query under a temporary name, yield it for checks, and rename it if
        they succeed.
        """


def own_target(source: Source, output: str, *, force: bool) -> Target | None:
    """Return the target if the engine writes releases itself; None if this process writes them.

    Only Spark writes releases itself.
    """
    return SparkFolder(source, output, force) if source.engine.rows_stay else None
