"""Folders of Parquet files that the executors of Spark write, all or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import ibis.expr.types as ir

from aegis.errors import PolicyError
from aegis.sources.failures import engine_errors
from aegis.sources.source import Source
from aegis.sources.spark import frame_of
from aegis.sources.spark_session import open_spark

SUFFIXES = ("", ".parquet", ".pq")


@dataclass(frozen=True)
class SparkFolder:
    """A folder on a file system that all executors see.

    Attributes
    ----------
    source
        The table whose session writes.
    place
        The folder: a path or a URL (hdfs://, s3a://, ...), as Spark understands it.
    """

    source: Source
    place: str
    _files: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        session = self.source.backend._session
        with engine_errors(self.place):
            files = self._path(self.place).getFileSystem(session._jsc.hadoopConfiguration())
        object.__setattr__(self, "_files", files)

    def check(self, *, force: bool) -> None:
        """Raise `PolicyError` unless the folder can be made."""
        name = self._path(self.place).getName()
        suffix = f".{name.rpartition('.')[2]}" if "." in name else ""
        if suffix.lower() not in SUFFIXES:
            raise PolicyError(
                f"Cannot write {self.place}: Spark writes folders of Parquet files.",
                hint="Name a folder, with or without .parquet behind it.",
            )
        with engine_errors(self.place):
            there = self._files.exists(self._path(self.place))
        if there and not force:
            raise PolicyError(
                f"{self.place} exists.", hint="Choose another name, or overwrite it with --force."
            )
        if there and self._is_read():
            raise PolicyError(
                f"{self.place} is the table itself: the release would replace it.",
                hint="Give the output another name.",
            )

    @contextmanager
    def written(self, table: ir.Table) -> Iterator[Source]:
        """Write the result of a query and yield what was written; then give it its name.

        Where the body fails, nothing is left and what was there before stays.
        """
        partial = f"{self.place.rstrip('/')}.{uuid4().hex[:12]}.partial"
        try:
            with engine_errors(self.place):
                frame_of(self.source.backend, table).write.parquet(partial, compression="zstd")
            yield open_spark(partial, self.source.backend)
            with engine_errors(self.place):
                self._replace(partial)
        finally:
            with engine_errors(self.place):
                self._files.delete(self._path(partial), True)

    def _replace(self, partial: str) -> None:
        target, old = self._path(self.place), self._path(f"{partial}.old")
        there = self._files.exists(target)
        if there:
            self._files.rename(target, old)
        if not self._files.rename(self._path(partial), target):
            if there:
                self._files.rename(old, target)
            raise PolicyError(
                f"Cannot rename the release to {self.place}.", hint="Check permissions there."
            )
        if there:
            self._files.delete(old, True)

    def _is_read(self) -> bool:
        """Return whether the table is read from within the folder, or the folder is within it."""
        inside = self._files.makeQualified(self._path(self.place)).toString().rstrip("/") + "/"
        with engine_errors(self.place):
            read = frame_of(self.source.backend, self.source.table).inputFiles()
        return any(
            self._files.makeQualified(self._path(file)).toString().startswith(inside)
            for file in read
        )

    def _path(self, place: str) -> Any:
        session = self.source.backend._session
        return session._jvm.org.apache.hadoop.fs.Path(place)
