"""Define targets: files or folders to which engines themselves write releases."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import ibis.expr.types as ir

from aegis.sources.source import Source
from aegis.sources.spark.folder import SparkFolder


class Target(Protocol):
    """A place to which an engine itself writes a release."""

    def check(self) -> None:
        """Raise `PolicyError` unless the release can be written to the target."""

    def written(self, table: ir.Table) -> AbstractContextManager[Source]:
        """Write the result of a query under a temporary name, yield it so that the caller can check
        it, and give it its final name if the checks succeed.
        """


def own_target(source: Source, output: str, *, force: bool) -> Target | None:
    """Return the target to which the engine itself writes the release; None if this process writes
    the release.

    Only Spark writes releases itself.
    """
    return SparkFolder(source, output, force) if source.engine.rows_stay else None
