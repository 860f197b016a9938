"""Read contingency tables instead of a masked table: enough for measures of single attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from aegis.arrays import Ints
from aegis.errors import DataError
from aegis.masks.mapping import text_of
from aegis.sources import open_table

Contingencies = Mapping[str, Mapping[tuple[str | None, str], int]]
"""Number of rows by attribute, masked value and label; values and labels are text, None is null."""

COLUMNS = ("attribute", "value", "label", "rows")
"""Columns of the file; it has a line for each cell that is not empty."""
MOST_ROWS = 100_000_000
"""Most rows of the tables of one configuration, because the module writes out each row once."""


def read_contingencies(table: Any) -> dict[str, dict[tuple[str | None, str], int]]:
    """Read the contingency tables of a configuration: rows by attribute, value and label.

    Parameters
    ----------
    table
        Anything that `aegis.sources.open_table` opens, with the columns `attribute`, `value`,
        `label` and `rows`, with one line for each cell of each attribute's table.

    Raises
    ------
    DataError
        A column is missing, a number of rows is not an integer of at least 0, a label is null, or a
        cell occurs twice.
    """
    source = open_table(table)
    missing = [name for name in COLUMNS if name not in source.columns]
    if missing:
        raise DataError(
            f"{source.origin} has no column {', '.join(map(repr, missing))}.",
            hint=f"Contingency tables have the columns {', '.join(COLUMNS)}.",
        )
    cells: dict[str, dict[tuple[str | None, str], int]] = {}
    for line in source.table.select(*COLUMNS).to_pyarrow().to_pylist():
        attribute, label = text_of(line["attribute"]), text_of(line["label"])
        value, rows = text_of(line["value"]), _rows(source.origin, line)
        if attribute is None or label is None:
            raise DataError(
                f"{source.origin} has a row without {'attribute' if attribute is None else 'label'}.",
                hint="Leave this row out of the table.",
            )
        of = cells.setdefault(attribute, {})
        if (value, label) in of:
            raise DataError(
                f"{source.origin} gives the rows of {attribute!r} = {value!r} and {label!r} twice.",
                hint="Give each cell once.",
            )
        of[value, label] = rows
    return cells


def _rows(origin: str, line: Mapping[str, Any]) -> int:
    text = text_of(line["rows"])
    if text is None or not text.isdecimal():
        raise DataError(
            f"{origin} has {line['rows']!r} rows of {line['attribute']!r} = {line['value']!r}.",
            hint="Give a whole number from 0.",
        )
    return int(text)


def table_of(cells: Contingencies, label: str, name: str) -> pa.Table:
    """Return a table of rows that has these contingency tables.

    Values of different attributes are combined arbitrarily.

    Parameters
    ----------
    cells
        Number of rows by attribute, value and label.
    label
        Name of the label's column.
    name
        Name of the configuration, for messages.

    Returns
    -------
    A table with one column of text for each attribute and for the label; rows are sorted by label.

    Raises
    ------
    DataError
        Attributes differ in the number of rows of a class, or there are no rows or too many rows.
    """
    classes = _classes(cells, name)
    order = sorted(classes)
    columns = {attribute: _column(of, order) for attribute, of in cells.items()}
    counts = np.array([classes[text] for text in order], dtype=np.int64)
    columns[label] = _coded(np.repeat(np.arange(len(order)), counts), list(order))
    return pa.table(columns)


def _classes(cells: Contingencies, name: str) -> dict[str, int]:
    """Return the number of rows of each class; raise `DataError` if the contingency tables of two
    attributes disagree on it.
    """
    first_name, first = "", dict[str, int]()
    for attribute, of in cells.items():
        sums: dict[str, int] = {}
        for (_, label), rows in of.items():
            if rows:
                sums[label] = sums.get(label, 0) + rows
        if not first_name:
            first_name, first = attribute, sums
        elif sums != first:
            raise DataError(
                f"The contingency tables of {name} disagree: {first_name!r} has the classes {first}, "
                f"{attribute!r} {sums}.",
                hint="Give tables of the same rows, each with all of them.",
            )
    total = sum(first.values())
    if not 0 < total <= MOST_ROWS:
        raise DataError(
            f"The contingency tables of {name} add up to {total:,} rows.",
            hint=f"Give tables of 1 to {MOST_ROWS:,} rows.",
        )
    return first


def _column(of: Mapping[tuple[str | None, str], int], order: list[str]) -> pa.DictionaryArray:
    place = {label: i for i, label in enumerate(order)}
    values = list(dict.fromkeys(value for value, _ in of))
    code = {value: i for i, value in enumerate(values)}
    counts = np.zeros((len(order), len(values)), dtype=np.int64)
    for (value, label), rows in of.items():
        if rows:
            counts[place[label], code[value]] = rows
    return _coded(np.repeat(np.tile(np.arange(len(values)), len(order)), counts.ravel()), values)


def _coded(codes: Ints, values: list[str] | list[str | None]) -> pa.DictionaryArray:
    null = np.array([value is None for value in values])
    texts = ["" if value is None else value for value in values]
    return pa.DictionaryArray.from_arrays(
        pa.array(codes, pa.int32(), mask=null[codes]), pa.array(texts, pa.string())
    )
