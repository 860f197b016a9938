"""Write a query's result as a table file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import ibis.expr.types as ir
import pyarrow as pa

from aegis.errors import EngineError
from aegis.files import check_output, replacing, spare_input
from aegis.sources import Reading, Source, open_table
from aegis.sources.failures import engine_errors
from aegis.sources.spark_folder import SparkFolder


class Target(Protocol):
    """Where a release goes."""

    def check(self, *, force: bool) -> None:
        """Raise `PolicyError` unless it can be made."""

    def written(self, table: ir.Table) -> AbstractContextManager[Source]:
        """Write a query's result, yield what was written, and give it its name if all is well."""


@dataclass(frozen=True)
class FileTarget:
    """A file that this process writes.

    Attributes
    ----------
    source
        The table whose engine runs the query.
    path
        The file; its extension names the format.
    """

    source: Source
    path: Path

    def check(self, *, force: bool) -> None:
        """Raise `PolicyError` unless the file can be made."""
        check_output(self.path, force=force)
        spare_input(self.source.files, self.path)

    @contextmanager
    def written(self, table: ir.Table) -> Iterator[Source]:
        """Write the result of a query and yield what was written; then give it its name."""
        with replacing(self.path) as temporary:
            write_table(self.source, table, temporary)
            yield open_table(temporary, reading=reading_of(table, self.path))


def target_of(source: Source, output: str | Path) -> Target:
    """Return where the engine of a table writes a release: a folder on Spark, else a file."""
    return SparkFolder(source, str(output)) if source.is_spark else FileTarget(source, Path(output))


def reading_of(table: ir.Table, path: Path) -> Reading:
    """Return how a file is read that `write_table` wrote: texts stay texts, whatever they look like."""
    types = table.schema()
    texts = tuple(name for name, dtype in types.items() if dtype.is_string())
    numbers = tuple(name for name, dtype in types.items() if dtype.is_floating())
    return Reading(
        header=True,
        delimiter="\t" if path.suffix.lower() == ".tsv" else ",",
        text=texts,
        numbers=numbers,
    )


def write_table(source: Source, table: ir.Table, path: Path) -> None:
    """Write a query's result to `path`, in the format that its extension names.

    Raises
    ------
    EngineError
        The engine failed while it computed or wrote the rows.
    """
    suffix = path.suffix.lower()
    with engine_errors(source.origin, source.files):
        if suffix == ".parquet":
            source.backend.to_parquet(table, path, compression="zstd")
        elif suffix in (".csv", ".tsv"):
            source.backend.to_csv(
                table, path, header=True, delimiter="\t" if suffix == ".tsv" else ","
            )
        else:
            _write_arrow(source, table, path)


def _write_arrow(source: Source, table: ir.Table, path: Path) -> None:
    schema = table.schema().to_pyarrow()
    try:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for batch in source.batches(table):
                writer.write_batch(batch.cast(schema))
    except pa.ArrowException as error:
        raise EngineError(f"Cannot write {path}: {error}") from error
