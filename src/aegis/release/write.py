"""Write a query's result as a table file."""

from __future__ import annotations

from pathlib import Path

import ibis.expr.types as ir
import pyarrow as pa

from aegis.errors import EngineError
from aegis.sources import Source
from aegis.sources.failures import engine_errors


def write_table(source: Source, table: ir.Table, path: Path) -> None:
    """Write a query's result to `path`, in the format that its extension names.

    Raises
    ------
    EngineError
        The engine failed while it computed or wrote the rows.
    """
    suffix = path.suffix.lower()
    with engine_errors(source.origin):
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
