"""Small tables with ties, constants, duplicates and nulls, and slow references."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from aegis.anonymizers import Records, encode

QUASI = ("age", "place", "grade", "job")
GRADES = ("low", "middle", "high", "top")
JOBS = {"nurse": "care", "doctor": "care", "clerk": "office", "judge": "office"}
HIERARCHY = [[job, group, "*"] for job, group in JOBS.items()]
ROLES = dict.fromkeys(QUASI, "quasi-identifier") | {
    "name": "identifier",
    "illness": "sensitive",
    "note": "feature",
}
COLUMN_TYPES = {"age": pa.int64(), "place": pa.string(), "grade": pa.string(), "job": pa.string()}


def encoded(table: pa.Table, roles: dict[str, str] | None = None) -> Records:
    return encode(
        table,
        ROLES if roles is None else roles,
        orders={"grade": GRADES},
        hierarchies={"job": HIERARCHY},
        degenerate=True,
    )


@st.composite
def tables(draw, least: int = 4, most: int = 24) -> pa.Table:
    """A mixed table; a column may be constant, hold ties and nulls, or be null throughout."""
    rows = draw(st.integers(least, most))
    choices = {
        "age": draw(st.sampled_from([[30], [20, 30, 40], list(range(18, 90))])),
        "place": draw(st.sampled_from([["x"], ["x", "y"], list("uvwxyz")])),
        "grade": draw(st.sampled_from([["low"], list(GRADES)])),
        "job": draw(st.sampled_from([["clerk"], list(JOBS)])),
    }
    columns = {}
    for name, values in choices.items():
        nulls = draw(st.sampled_from([0, 0, 1, 9]))
        pool = st.sampled_from([*values, *([None] * nulls)] if nulls < 9 else [None, values[0]])
        columns[name] = pa.array(
            draw(st.lists(pool, min_size=rows, max_size=rows)), COLUMN_TYPES[name]
        )
    columns["name"] = pa.array([f"person {row}" for row in range(rows)])
    columns["illness"] = pa.array(
        draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=rows, max_size=rows))
    )
    columns["note"] = pa.array(range(rows))
    return pa.table(columns)


def numeric_table(random: np.random.Generator, rows: int, columns: int) -> pa.Table:
    """Normal numbers without ties."""
    return pa.table({f"x{i}": random.normal(size=rows) for i in range(columns)})


def all_quasi(table: pa.Table) -> dict[str, str]:
    return dict.fromkeys(table.column_names, "quasi-identifier")


def class_counts(table: pa.Table, names: tuple[str, ...] = QUASI) -> Counter[tuple[object, ...]]:
    """Rows per combination of values, a null being a value."""
    return Counter(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def blocks(labels: np.ndarray) -> set[frozenset[int]]:
    """The partition that labels describe, as sets of records."""
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}


def exact_partition(
    costs: dict[frozenset[int], float], rows: int, clusters: int
) -> tuple[float, list[frozenset[int]]] | None:
    """Cheapest partition of `rows` records into `clusters` of the given blocks, by HiGHS.

    None where there is none.
    """
    given = list(costs)
    if not given:
        return None
    cover = np.zeros((rows + 1, len(given)))
    for column, block in enumerate(given):
        cover[list(block), column] = 1
    cover[rows] = 1
    target = np.append(np.ones(rows), clusters)
    solved = milp(
        np.array([costs[block] for block in given]),
        constraints=LinearConstraint(cover, target, target),
        integrality=np.ones(len(given)),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    if solved.x is None:
        return None
    chosen = [block for block, used in zip(given, solved.x, strict=True) if used > 0.5]
    return float(sum(costs[block] for block in chosen)), chosen


def possible_blocks(rows: int, clusters: int, k: int) -> list[frozenset[int]]:
    """Every set of records that can be one of `clusters` clusters of at least k."""
    largest = rows - (clusters - 1) * k
    return [
        frozenset(block)
        for size in range(k, largest + 1)
        for block in combinations(range(rows), size)
    ]
