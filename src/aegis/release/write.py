"""Write files so that nothing is ever half-written: a temporary name first, then a rename."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ibis.expr.types as ir
import pyarrow as pa

from aegis.errors import DataError, EngineError, PolicyError
from aegis.sources import Source
from aegis.sources.source import engine_errors

FORMATS = (".parquet", ".csv", ".tsv", ".arrow", ".feather")


def check_output(path: Path, *, force: bool, formats: tuple[str, ...] | None = FORMATS) -> None:
    """Raise unless `path` can be written.

    Raises
    ------
    PolicyError
        The extension names no format, the folder does not exist, or the file exists and `force`
        is not set.
    """
    if formats is not None and path.suffix.lower() not in formats:
        raise PolicyError(
            f"Cannot write {path}: unknown extension {path.suffix!r}.", hint=f"Allowed: {', '.join(formats)}."
        )
    if not path.parent.is_dir():
        raise PolicyError(f"Cannot write {path}: its folder does not exist.", hint="Create it first.")
    if path.is_dir():
        raise PolicyError(f"Cannot write {path}: it is a folder.", hint="Give a file name.")
    if path.exists() and not force:
        raise PolicyError(f"{path} exists.", hint="Choose another name, or overwrite it with --force.")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside `path`; on success rename it, on failure remove it.

    A kill in mid-write leaves the old file as it was.
    """
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.partial{path.suffix}")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise DataError(f"Cannot write {path}: {error.strerror or error}.", hint="Check space and permissions.") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file, all or nothing."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


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
            source.backend.to_csv(table, path, header=True, delimiter="\t" if suffix == ".tsv" else ",")
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
