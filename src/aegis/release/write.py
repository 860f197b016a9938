"""Choose the target of a release: a file of this process, or a folder that the engine writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import ibis.expr.types as ir
import pyarrow as pa

from aegis.errors import PolicyError
from aegis.files import check_output, format_of, replacing, spare_input
from aegis.sources import Source, open_table
from aegis.sources.table_files import reading_of, without_formulas, write_parquet, write_table
from aegis.sources.targets import Target, own_target

Batches = Callable[[], Iterator[pa.RecordBatch] | None]


@dataclass(frozen=True)
class FileTarget:
    """A file to which this process writes a release.

    Attributes
    ----------
    source
        The table whose engine runs the query.
    path
        The file; its extension determines the format.
    safe_csv
        Whether texts are written in a form that spreadsheets do not interpret as formulas.
    force
        Whether an existing file is replaced.
    batches
        Function that returns the rows, if they need no query.
    """

    source: Source
    path: Path
    safe_csv: bool = False
    force: bool = False
    batches: Batches = lambda: None

    def check(self) -> None:
        """Raise `PolicyError` unless the file can be created."""
        check_output(self.path, force=self.force)
        spare_input(self.source.files, self.path)
        if self.safe_csv and not is_text(self.path):
            raise PolicyError(
                f"{self.path} is not CSV, in which texts could be taken for formulas.",
                hint="Leave out --safe-csv.",
            )

    @contextmanager
    def written(self, table: ir.Table) -> Iterator[Source]:
        """Write the result of a query to a temporary file, yield it for checks, then rename it."""
        rows = without_formulas(table) if self.safe_csv else table
        with replacing(self.path, force=self.force) as temporary:
            batches = self.batches() if format_of(self.path) == ".parquet" else None
            if batches is None:
                write_table(self.source, rows, temporary)
            else:
                write_parquet(self.source, table.schema().to_pyarrow(), batches, temporary)
            yield open_table(temporary, reading=reading_of(rows, self.path))


def is_text(path: str | Path) -> bool:
    """Return whether a file with this name is CSV, including compressed and tab-separated files."""
    return format_of(Path(path)).startswith((".csv", ".tsv"))


def target_of(
    source: Source,
    output: str | Path,
    *,
    safe_csv: bool = False,
    force: bool = False,
    batches: Batches = lambda: None,
) -> Target:
    """Return the target of a release: a folder if the rows stay on the engine, otherwise a file."""
    own = own_target(source, str(output), force=force)
    return FileTarget(source, Path(output), safe_csv, force, batches) if own is None else own
