"""Repeated observations: columns whose values have each year, visit or wave only once.

Where persons have many rows and neither a sex nor a date of birth is known, their key is still told
from a count or a measurement by the column of time next to it: each of them is seen once at each time.
So are plots, pigs and firms: whether it is persons that are followed, a person must say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import ibis
import ibis.expr.types as ir

from aegis.policy.suggest.keys import BY_CHANCE, stacked
from aegis.sources import Source

MOST_TIMES = 5
"""Most columns of time that are asked for: each costs one grouping of the table by each key."""
ONCE = 0.999
"""Share of the rows that must be alone with their value and time: tables hold slips of the pen."""


def find_once_each(
    source: Source, table: ir.Table, keys: Mapping[str, float], times: Mapping[str, float]
) -> dict[str, str]:
    """Return for each column the time column of which each of its values has every entry at most
    once.

    Of two columns that have nothing to do with each other n rows would hold about n (n - 1) / 2 p q
    pairs that agree in both, p and q being the shares of the pairs that agree in one: that there is
    none has a probability of e to the minus that. Pairs of columns that are alone by chance with more than
    `BY_CHANCE` are not asked, such as any column next to a clock.

    Parameters
    ----------
    source
        The opened table, which runs the query.
    table
        Its rows.
    keys, times
        Columns that may be keys, and columns of time, each with the share of pairs of rows that agree
        in it, from 0 to 1.

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
    """Return one row: how many rows have both, and how many different pairs there are."""
    known = table.filter(table[key].notnull() & table[time].notnull())
    cells = known.group_by(key_value=known[key], time_value=known[time]).aggregate(n=known.count())
    return cells.aggregate(rows=cells["n"].sum(), cells=cells.count()).mutate(
        key=ibis.literal(key), time=ibis.literal(time)
    )
