"""Lines of a CSV file that have more or fewer fields than its first one."""

from __future__ import annotations

import csv
from collections.abc import Iterable

from aegis.errors import DataError


def refuse_uneven(lines: Iterable[str], name: str, columns: int, separator: str) -> None:
    """Raise for the first line that does not have as many fields as the header.

    The embedded engine says less of such a file, or takes the odd line for the header and leaves
    out all lines above it.

    Parameters
    ----------
    lines
        The text of the file.
    name
        The file, for the message.
    columns
        Fields of its first line.
    separator
        What stands between fields.

    Raises
    ------
    DataError
        Such a line exists.
    """
    reader = csv.reader(lines, delimiter=separator)
    for fields in reader:
        if len(fields) not in (0, columns):
            raise DataError(
                f"Line {reader.line_num:,} of {name} has {len(fields)} "
                f"field{'s' * (len(fields) != 1)}, but its first line has {columns}.",
                hint="Each line needs as many fields as the first; put a field that holds "
                f"{separator!r} or a line break in double quotes.",
            )
