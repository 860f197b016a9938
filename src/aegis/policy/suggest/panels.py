"""Detect panels: tables in which no year, visit or wave occurs twice with the same value of a
column.

Persons may have many rows in a table without sex and date of birth. A column of times still
distinguishes their key from counts and measurements, because each person is observed once at each
time. The same is true for plots, pigs and firms, so `init` asks you whether the values are persons.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import ibis
import ibis.expr.types as ir

from aegis.policy.suggest.keys import BY_CHANCE, stacked
from aegis.sources import Source

MOST_TIMES = 5
"""Largest number of columns of times that are tested, because each requires one grouping by each
key.
"""
ONCE = 0.999
"""At least this share of the rows must be the only ones with their value and time; tables contain
typing errors.
"""


def find_once_each(
    source: Source, table: ir.Table, keys: Mapping[str, float], times: Mapping[str, float]
) -> dict[str, str]:
    """Return, for each key, a column of times in which no time occurs twice with one value of the
    key.

    Suppose two columns are unrelated, and p and q are the shares of pairs of rows that agree in
    each. Then n rows have about n (n - 1) / 2 p q pairs that agree in both, and no such pair with a
    probability of exp(-n (n - 1) / 2 p q). Pairs of columns for which this probability is above
    `BY_CHANCE` are not tested, for example any column with a clock time.

    Parameters
    ----------
    source
        The opened table, which runs the query.
    table
        Its rows.
    keys, times
        Columns that may be keys, and columns of times. Each has the share of pairs of rows that
        agree in the column, from 0 to 1.

    Raises
    ------
    EngineError
        The engine failed.
    """
    pairs = source.rows * (source.rows - 1) / 2
    asked = [
        (key, time)
        for key, p in keys.items()
        for time, q in times.items()
        if key != time and pairs * p * q >= -math.log(BY_CHANCE)
    ]
    if not asked:
        return {}
    counts = [_count(table, key, time) for key, time in asked]
    rows = source.collect(stacked(counts)).to_pylist()
    once = {(r["key"], r["time"]) for r in rows if r["cells"] and r["cells"] >= ONCE * r["rows"]}
    return {key: time for key, time in reversed(asked) if (key, time) in once}


def _count(table: ir.Table, key: str, time: str) -> ir.Table:
    """Return a query for two numbers: rows with both values, and different pairs of values."""
    known = table.filter(table[key].notnull() & table[time].notnull())
    cells = known.group_by(key_value=known[key], time_value=known[time]).aggregate(n=known.count())
    return cells.aggregate(rows=cells["n"].sum(), cells=cells.count()).mutate(
        key=ibis.literal(key), time=ibis.literal(time)
    )
