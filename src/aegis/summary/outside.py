"""What a privacy rule does not look at: rows that are alone in all columns, columns that are keys.

A rule looks at the quasi-identifiers. Whoever knows more of a person than those may find the row by
all that a table shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import ibis.expr.types as ir

from aegis.masks import Kind
from aegis.sources import Source
from aegis.summary.classes import PERSON
from aegis.summary.coded_rows import CodedRows
from aegis.summary.frequency import combine, distinct_keys
from aegis.summary.person_classes import count_persons

NEAR_KEY = 0.5
"""Shown values per row from which a column is nearly a key: most of them stand in one or two rows."""
MOST_ROWS = 2_000_000
"""Largest table whose rows are compared over all columns."""


@dataclass(frozen=True)
class Outside:
    """What of a table stands outside its rule.

    Attributes
    ----------
    rows, unique_rows
        Rows of the table, and how many of them no other row equals in all columns; where persons are
        counted, no row of another person.
    near_keys
        Columns that show nearly a value of their own for each row, with the number of values.
    """

    rows: int
    unique_rows: int
    near_keys: Mapping[str, int] = field(default_factory=dict)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a privacy officer should know, in words."""
        return (*unique_sentence(self.unique_rows, self.rows), *key_sentences(self.near_keys))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "rows": self.rows,
            "unique_rows": self.unique_rows,
            "near_keys": dict(self.near_keys),
        }


def unique_sentence(unique: int | None, rows: int | None) -> tuple[str, ...]:
    """Return what is to be known of rows that are alone in all columns; nothing without any."""
    if not unique or rows is None:
        return ()
    return (
        f"{unique:,} of {rows:,} released rows are the only ones with their values in all columns "
        "together: the rule covers the quasi-identifiers, and whoever knows more of a person than "
        "those can find the row",
    )


def key_sentences(near_keys: Mapping[str, int]) -> tuple[str, ...]:
    """Return what is to be known of columns that are nearly keys."""
    return tuple(
        f"{name} shows {values:,} values and is nearly a key: whoever knows it finds the row. Mask it, "
        "make it a quasi-identifier, or leave it out (--leave-out)"
        for name, values in near_keys.items()
    )


def count_alone(source: Source, table: ir.Table, person: str | None = None) -> tuple[int, int]:
    """Return the rows of a table, and those that are alone with their values in all columns.

    Parameters
    ----------
    source
        Runs the query.
    table
        The rows; columns that no mask works on take no part.
    person
        Column that names persons, which is none of those that are compared: rows of one person are
        alone together.
    """
    rows, alone, _ = _count_groups(source, table, person)
    return rows, alone


def _count_groups(source: Source, table: ir.Table, person: str | None) -> tuple[int, int, int]:
    """Return what `count_alone` returns, and how many different rows there are."""
    columns = comparable(table, person)
    if not columns:
        rows = int(source.collect(table.aggregate(n=table.count()))["n"][0].as_py())
        return rows, int(rows == 1), min(rows, 1)
    # Numbered, since a column may be called n or p.
    named = {f"column_{place}": table[name] for place, name in enumerate(columns)}
    if person is None:
        sizes = table.group_by(**named).aggregate(n=table.count())
        alone = sizes["n"] == 1
    else:
        sizes = count_persons(table, named, person)
        alone = sizes["p"] == 1
    figures = sizes.aggregate(
        rows=sizes["n"].sum(), alone=sizes["n"].sum(where=alone), groups=sizes.count()
    )
    told = source.collect(figures).to_pylist()[0]
    return int(told["rows"] or 0), int(told["alone"] or 0), int(told["groups"])


def outside_of(
    source: Source, person: str | None = None, coded: CodedRows | None = None
) -> Outside | None:
    """Return what stands outside any rule of a table; None where it has more than two million rows.

    Parameters
    ----------
    source
        The table.
    person
        As of `count_alone`.
    coded
        All columns that are compared, where they have been read and rows count.
    """
    if source.rows > MOST_ROWS:
        return None
    if coded is not None:
        return _outside_known(coded, comparable(source.table))
    table = source.table
    rows, alone, groups = _count_groups(source, table, person)
    if groups < NEAR_KEY * rows:
        # A column has at most as many values as there are different rows: none is nearly a key.
        return Outside(rows, alone)
    columns = comparable(table, person)
    counts = {f"v{i}": table[name].nunique() for i, name in enumerate(columns)}
    figures = source.collect(table.aggregate(**counts)).to_pylist()[0] if counts else {}
    values = {name: int(figures[f"v{i}"] or 0) for i, name in enumerate(columns)}
    near = {name: n for name, n in values.items() if n >= NEAR_KEY * rows > 1}
    return Outside(rows, alone, near)


def _outside_known(coded: CodedRows, names: list[str]) -> Outside:
    rows = len(coded.label)
    sizes = distinct_keys(combine((coded.codes[name] for name in names), rows))[2]
    alone = int((sizes == 1).sum())
    values = {name: len(coded.values[name]) - coded.values[name].null_count for name in names}
    return Outside(rows, alone, {n: own for n, own in values.items() if own >= NEAR_KEY * rows > 1})


def comparable(table: ir.Table, person: str | None = None) -> list[str]:
    """Return the columns of a table that rows are compared in: those that a mask could work on."""
    left_out = {person, PERSON}
    schema = table.schema()
    return [n for n in table.columns if n not in left_out and Kind.of(schema[n]) is not None]
