"""Write folders of Parquet files with Spark's executors, completely or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import ibis.expr.types as ir

from aegis.errors import EngineError, PolicyError
from aegis.files import record
from aegis.sources.engines.spark import frame_of
from aegis.sources.failures import engine_errors
from aegis.sources.source import Source
from aegis.sources.spark.session import open_spark

SUFFIXES = ("", ".parquet", ".pq")


@dataclass(frozen=True)
class SparkFolder:
    """A folder that Spark writes. It is on a file system that all of Spark's executors can access.

    Attributes
    ----------
    source
        The table whose session writes the folder.
    place
        The folder: a path or a URL (hdfs://, s3a://, ...), as Spark understands it.
    force
        Whether an existing folder is replaced.
    """

    source: Source
    place: str
    force: bool = False
    _files: Any = field(init=False, repr=False, compare=False)
    _local: Path | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        session = self.source.backend._session
        with engine_errors(self.place):
            files = self._path(self.place).getFileSystem(session._jsc.hadoopConfiguration())
            whole = urlsplit(str(files.makeQualified(self._path(self.place)).toString()))
        object.__setattr__(self, "_files", files)
        local = Path(unquote(whole.path)) if whole.scheme == "file" else None
        object.__setattr__(self, "_local", local)

    def check(self) -> None:
        """Raise `PolicyError` unless the folder can be created."""
        name = self._path(self.place).getName()
        suffix = f".{name.rpartition('.')[2]}" if "." in name else ""
        if suffix.lower() not in SUFFIXES:
            raise PolicyError(
                f"Cannot write {self.place}: Spark writes folders of Parquet files.",
                hint="Name a folder, with or without .parquet behind it.",
            )
        with engine_errors(self.place):
            there = self._files.exists(self._path(self.place))
        if there and not self.force:
            raise PolicyError(
                f"{self.place} exists.",
                hint="Choose another name, or overwrite it: --force, in Python force=True.",
            )
        if self._is_read():
            raise PolicyError(
                f"{self.place} is the table itself, holds files of it, or lies within its folder.",
                hint="Give the output another name: it would replace the table, or be read as part "
                "of it.",
            )

    @contextmanager
    def written(self, table: ir.Table) -> Iterator[Source]:
        """Write the result of a query to a temporary folder, yield the result so that the caller
        can check it, then give the folder its final name.

        If the body of the context fails, the temporary folder is removed, and an earlier folder
        with the final name stays unchanged.
        """
        partial = f"{self.place.rstrip('/')}.{uuid4().hex[:12]}.partial"
        try:
            with engine_errors(self.place):
                frame_of(self.source.backend, table).write.parquet(partial, compression="zstd")
            yield open_spark(partial, self.source.backend)
            with engine_errors(self.place):
                self._replace(partial)
            record(self.place)
        except BaseException as error:
            self._discard(partial, error)
            raise

    def _replace(self, partial: str) -> None:
        """Give `partial` its final name; an existing folder is moved away, and back on failure."""
        written, target, old = map(self._path, (partial, self.place, f"{partial}.old"))
        there = self._files.exists(target)
        if there:
            self._rename(target, old)
        try:
            self._rename(written, target)
        except BaseException:
            if there:
                self._rename(old, target)
            raise
        if there:
            self._files.delete(old, True)

    def _rename(self, source: Any, other: Any) -> None:
        # File systems refuse by an exception or by saying no.
        if not self._files.rename(source, other):
            raise EngineError(
                f"Cannot rename {source} to {other}.",
                hint="Check permissions there, and run it again.",
            )

    def _discard(self, partial: str, error: BaseException) -> None:
        """Delete the folder `partial` after `error`; without Spark, only on this machine."""
        try:
            self._files.delete(self._path(partial), True)
        except Exception:  # noqa: BLE001 - whatever it is, `error` came first and is told
            if self._local is not None:
                shutil.rmtree(self._local.with_name(PurePath(partial).name), ignore_errors=True)
            elif isinstance(error, EngineError):
                error.hint = f"{error.hint} Delete {partial}, if it is there.".strip()

    def _is_read(self) -> bool:
        """Return whether the table is read from within the folder, or the folder is inside the table."""
        with engine_errors(self.place):
            place = _closed(self._files.makeQualified(self._path(self.place)))
            frame = frame_of(self.source.backend, self.source.table)
            # Spark gives them whole, and it may be another file system that holds them.
            uri = self.source.backend._session._jvm.java.net.URI
            read = [_closed(self._path(uri(file))) for file in frame.inputFiles()]
            roots = [_closed(root) for root in _roots(frame)]
        return any(file.startswith(place) for file in read) or any(map(place.startswith, roots))

    def _path(self, place: Any) -> Any:
        session = self.source.backend._session
        return session._jvm.org.apache.hadoop.fs.Path(place)


def _closed(path: Any) -> str:
    """Return a Hadoop path as a text that ends in /."""
    return str(path.toString()).rstrip("/") + "/"


def _roots(frame: Any) -> list[Any]:
    """Return the files and folders that the query's input paths name."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    roots = []
    for i in range(leaves.size()):
        leaf = leaves.apply(i)
        if leaf.getClass().getSimpleName() != "LogicalRelation":
            continue
        relation = leaf.relation()
        if relation.getClass().getSimpleName() == "HadoopFsRelation":
            paths = relation.location().rootPaths()
            roots += [paths.apply(k) for k in range(paths.size())]
    return roots
