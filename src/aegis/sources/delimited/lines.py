"""Read CSV with a second reader, which is slower but can name the line that does not match the
dialect.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable

from aegis.errors import DataError
from aegis.sources.dialect import TextDialect, csv_options


def count_lines(lines: Iterable[str], name: str, dialect: TextDialect, columns: int) -> int:
    """Return how many records a text file has, including the header; raise an error at the first
    malformed record.

    Parameters
    ----------
    lines
        The text of the file.
    name
        Name of the file, for messages.
    dialect
        The dialect of the file. The text includes the lines before the table, which are skipped.
    columns
        Number of fields in each line; the header may have one field fewer.

    Raises
    ------
    DataError
        A record has more or fewer fields than the header, a quoted field continues after its
        closing quote, or a quote is never closed.
    """
    options = csv_options(dialect.delimiter, dialect.quote, dialect.escape)
    reader = csv.reader(lines, strict=True, skipinitialspace=bool(dialect.quote), **options)
    records = 0
    begin = 0
    try:
        for fields in reader:
            if begin >= dialect.skip and (fields or columns == 1):
                records += 1
                # R gives the names of rows no name in the header.
                named = records == 1 and dialect.header and len(fields) == columns - 1
                if len(fields) not in (0, columns) and not named:
                    raise _uneven(reader.line_num, name, len(fields), columns, dialect)
            begin = reader.line_num
    except csv.Error as error:
        raise _unexplained(str(error), begin + 1, name, dialect) from error
    return records


def _uneven(line: int, name: str, fields: int, columns: int, dialect: TextDialect) -> DataError:
    rows_named = " Of R, write it with row.names=FALSE." if fields == columns + 1 else ""
    return DataError(
        f"Line {line:,} of {name} has {fields} field{'s' * (fields != 1)}, but its first line has "
        f"{columns}.",
        hint="Each line needs as many fields as the first, which names the columns: delete a title above "
        f"it, and put a field that holds {dialect.delimiter!r} or a line break in double quotes."
        f"{rows_named}",
    )


def _unexplained(reason: str, line: int, name: str, dialect: TextDialect) -> DataError:
    quote = dialect.quote or '"'
    if "unexpected end" in reason:
        return DataError(
            f"The quote {quote} that opens a field in the record of line {line:,} of {name} is "
            "never closed.",
            hint="Close it, or give --quote none if quotes have no special meaning.",
        )
    if "expected after" in reason:
        return DataError(
            f"Line {line:,} of {name} has text behind the quote {quote} that closes a field.",
            hint=f"Double a quote within a quoted field ({quote}{quote}), or say how the file is "
            'written: --quote none, --quote "\'", --escape \\.',
        )
    return DataError(
        f"Line {line:,} of {name} cannot be read: {reason}.", hint="Check the line, or --delimiter."
    )
