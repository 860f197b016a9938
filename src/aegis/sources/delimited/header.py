"""Read the column names of a text file from its header, or invent names if it has none."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import count

from aegis.errors import DataError
from aegis.sources.dialect import Reading, TextDialect, decoded, records_of

_COUNTING = frozenset(
    ("id", "no", "no.", "nr", "nr.", "number", "index", "row", "#", "obs", "case")
)
"""Names of columns that number the rows."""
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def names_of(
    start: bytes, whole: bool, dialect: TextDialect, reading: Reading, name: str
) -> tuple[list[str], list[str]]:
    """Return the names of a text file's columns, and messages to the user about these names.

    Parameters
    ----------
    start
        The first bytes of the file.
    whole
        Whether these bytes are the whole file.
    dialect
        The dialect of the file.
    reading
        What the user states about the file.
    name
        Name of the file, for messages.

    Raises
    ------
    DataError
        The file has no rows at all, or its first line looks like data.
    """
    lines = decoded(start, dialect.encoding, name).splitlines(keepends=True)[dialect.skip :]
    records = records_of("".join(lines), dialect)
    if not records:
        raise DataError(f"{name} has no lines.", hint="Give a file with a header and rows.")
    first = records[0]
    if not dialect.header:
        return [f"c{i}" for i in range(1, len(first) + 1)], []
    if _numbers_rows(first, records[1:] if whole else records[1:-1]):
        first = ["", *first]
    # What is cut off, or of another length, is not a sample of the columns.
    rows = [record for record in records[1:] if len(record) == len(first)]
    if reading.header is None:
        refuse_rows_as_names(first, rows if whole else rows[:-1], name)
    return with_names(first, name)


def _numbers_rows(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether each line begins with its row number, for which the header has no name.

    R writes tables in this way (`write.table`): its rows have names, by default 1, 2, 3, ... If the
    first column is named as a counter, or the last column is empty, another name is missing.
    """
    filled = [row for row in rows if row]
    return (
        len(filled) > 1
        and first[0].strip().lower() not in _COUNTING
        and all(len(row) == len(first) + 1 for row in filled)
        and any(row[-1] for row in filled)
        and [row[0] for row in filled] == [str(i) for i in range(1, len(filled) + 1)]
    )


def refuse_rows_as_names(first: Sequence[str], rows: Sequence[Sequence[str]], name: str) -> None:
    """Raise an error if the first line of a file seems to contain data, like the rows below it, and
    not the names of columns.
    """
    if _is_row(first, rows):
        shown = ", ".join(first[:4]) + (", ..." if len(first) > 4 else "")
        raise DataError(
            f"The first line of {name} looks like data, not like names of columns: {shown}",
            hint="Give --no-header, and the columns are called c1, c2, ...; or --header, if these "
            "are their names.",
        )


def with_names(header: Sequence[str], name: str) -> tuple[list[str], list[str]]:
    """Return a unique name for each column of the header, and messages to the user about names that
    were changed.

    A column without a name gets a name from its position. If a name occurs again (ignoring case),
    as in exports of joined tables, a number is added: the second `age` becomes `age_2`.
    """
    taken = {text.lower() for text in header}
    names, notes = [], []
    places: dict[str, int] = {}
    for place, text in enumerate(header, start=1):
        made = text
        if not text:
            made = _free((f"column{place}" + "_" * i for i in count()), taken)
            notes.append(f"{name}: column {place} has no name in the header, and is called {made}.")
        elif text.lower() in places:
            made = _free((f"{text}_{i}" for i in count(2)), taken)
            notes.append(
                f"{name}: column {place} is named {text!r} as column {places[text.lower()]} is, and "
                f"is called {made}."
            )
        places.setdefault(text.lower(), place)
        taken.add(made.lower())
        names.append(made)
    return names, notes


def _free(names: Iterable[str], taken: Collection[str]) -> str:
    """Return the first name that no column has."""
    return next(name for name in names if name.lower() not in taken)


def _is_row(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first line looks like the rows below it.

    It does if each column of numbers begins with a number. If there are no such columns, each
    column must begin with one of its later values. A line 1, 2, 3, ... numbers the columns, so it is a header.
    """
    if not rows or [text.strip() for text in first] in (
        [str(i) for i in range(len(first))],
        [str(i) for i in range(1, len(first) + 1)],
    ):
        return False
    columns = [[row[i] for row in rows] for i in range(len(first))]
    numeric = [
        text
        for text, values in zip(first, columns, strict=True)
        if any(values) and all(not v or _NUMBER.fullmatch(v.strip()) for v in values)
    ]
    if numeric:
        return all(_NUMBER.fullmatch(text.strip()) for text in numeric)
    return all(text in values for text, values in zip(first, columns, strict=True))
