"""SQL that is written once for equal queries: the tests ask the same of thousands of small tables.

Also the number of threads on which DuckDB answers them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import ibis
import ibis.expr.operations as ops
from ibis.common.graph import Node

from aegis.sources import embedded

MADE_UP = re.compile(r"(?:ibis|aegis)_\w*[a-z0-9]{26}")
"""Names that a table has for one run only."""


def shape(query: Node) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Return all that the SQL of a query depends on but made-up names of tables, and these names."""
    places: dict[Node, int] = {}
    steps: list[Any] = []
    names: list[str] = []

    def part(own: Any) -> Any:
        if isinstance(own, Node):
            return ("step", places[own] if own in places else walk(own))
        if isinstance(own, tuple):
            return ("tuple", *map(part, own))
        if isinstance(own, Mapping):
            return ("mapping", *((key, part(value)) for key, value in own.items()))
        if isinstance(own, int | float):  # True is 1, and -0.0 is 0.0
            return (type(own), repr(own))
        return own

    def walk(node: Node) -> int:
        if isinstance(node, ops.Literal):
            told: tuple[Any, ...] = (repr(node.value), node.dtype)
        elif isinstance(node, ops.PhysicalTable) and MADE_UP.fullmatch(node.name):
            if node.name not in names:
                names.append(node.name)
            told = (names.index(node.name), node.schema, getattr(node, "namespace", None))
        else:
            told = tuple(map(part, node.__args__))
        steps.append((type(node), *told))
        places[node] = len(steps)
        return len(steps)

    walk(query)
    return tuple(steps), tuple(names)


def renamed(sql: str, before: tuple[str, ...], after: tuple[str, ...]) -> str:
    """Return SQL with other names of tables."""
    if before == after:
        return sql
    other = dict(zip(before, after, strict=True))
    return MADE_UP.sub(lambda found: other[found[0]], sql)


def use_threads(number: int | None) -> None:
    """Have DuckDB use so many threads, or as many as it uses by itself: the embedded engine, and that of
    Ibis, which has the tables in memory.
    """
    for engine in (embedded(), ibis.get_backend()):
        engine.raw_sql("RESET threads" if number is None else f"SET threads = {number}")
