"""Read the columns of a Parquet file as they are stored, with texts as dictionary codes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet
from ibis.expr.operations import DatabaseTable

from aegis.sources.embedded import embedded
from aegis.sources.source import Source


def stored_batches(
    source: Source, names: Sequence[str], *, rows: int
) -> Iterator[pa.RecordBatch] | None:
    """Return the values of some columns in batches, in the order of the rows; None if only the
    engine can read them.

    The engine would return each text separately, which takes five times as long. Here, texts are
    returned as dictionaries, which may have entries that do not occur. Other values are returned
    unchanged.

    Parameters
    ----------
    source
        The table.
    names
        The columns.
    rows
        Largest number of rows of a batch.

    Raises
    ------
    pyarrow.ArrowException, OSError
        A file cannot be read, or a text in it is not UTF-8. The error is raised while batches are
        read.

    Examples
    --------
    >>> from aegis.sources import open_table
    >>> source = open_table("data/adult.parquet")
    >>> first = next(stored_batches(source, ["sex"], rows=5))
    >>> first.column(0).indices.to_pylist(), first.column(0).dictionary.to_pylist()
    ([0, 0, 0, 0, 1], ['Male', 'Female'])
    """
    whole = isinstance(source.table.op(), DatabaseTable) and source.backend is embedded()
    # The engine takes a part `column=value` of a path for a column.
    if not (source.is_parquet and whole) or any("=" in str(file) for file in source.files):
        return None
    schema = pyarrow.parquet.read_schema(source.files[0])
    promised = source.table.schema().to_pyarrow()
    if any(n not in schema.names or schema.field(n).type != promised.field(n).type for n in names):
        return None
    return _batches(source, names, schema, rows)


def _batches(
    source: Source, names: Sequence[str], schema: pa.Schema, rows: int
) -> Iterator[pa.RecordBatch]:
    texts = [name for name in names if pa.types.is_string(schema.field(name).type)]
    for path in source.files:
        with pyarrow.parquet.ParquetFile(path, read_dictionary=texts) as file:
            for batch in file.iter_batches(rows, columns=list(names)):
                for name in texts:
                    batch.column(name).dictionary.validate(full=True)
                yield batch.select(list(names))
