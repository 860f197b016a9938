"""Read the declared size of a masked file before its rows are read."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet

from aegis.service.catalog.errors import CatalogError, TooLarge

if TYPE_CHECKING:
    from aegis.service.catalog.catalog import UploadLimits

_MAGIC = b"PAR1"
_LOOKED_AT = 1 << 20
"""Number of bytes of a text file that are examined."""


def rows_in(file_name: str, content: bytes, limits: UploadLimits) -> int | None:
    """Return the declared number of rows of a masked file; None for text files, which declare none.

    Raises
    ------
    CatalogError
        The file does not have the format of its extension.
    TooLarge
        The unpacked file would be larger than allowed.
    """
    if Path(file_name).suffix.lower() == ".csv":
        _require_text(content[:_LOOKED_AT])
        return None
    wrong = CatalogError("The file is not a Parquet file.", hint="Have the agent make it again.")
    if len(content) < 12 or content[:4] != _MAGIC or content[-4:] != _MAGIC:
        raise wrong
    try:
        told = pyarrow.parquet.read_metadata(io.BytesIO(content))
    except (pa.ArrowException, OSError) as error:
        raise wrong from error
    unpacked = sum(told.row_group(i).total_byte_size for i in range(told.num_row_groups))
    if unpacked > limits.unpacked or told.num_rows * told.num_columns > limits.cells:
        raise TooLarge(
            f"The file unpacks to {told.num_rows:,} rows of {told.num_columns:,} columns, "
            f"{unpacked:,} bytes.",
            hint=f"At most {limits.cells:,} cells and {limits.unpacked:,} bytes are allowed.",
        )
    return int(told.num_rows)


def _require_text(start: bytes) -> None:
    if b"\0" in start or start[:4] == _MAGIC or start[:2] in (b"PK", b"\x1f\x8b"):
        raise CatalogError("The file is not a CSV file.", hint="Have the agent make it again.")
