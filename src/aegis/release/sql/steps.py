"""Write the steps of a release's query: counts, conditions on rows, limits on the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent

from aegis.release.sql.rule import PERSON, RuleQuery


def counting(rule: RuleQuery, listed: list[str], added: list[str]) -> list[tuple[str, str]]:
    """Return the steps (name, query) that count the classes and check each row against the rule.
    All steps but the last also pass on the columns `listed` (released) and `added` (auxiliary).
    """
    if not rule.conditions:
        return []
    steps = []
    carried = [*listed, *added]
    steps.append(("counted", with_columns(carried, rule.counts, "masked")))
    carried += [name for name, _ in rule.counts]
    if rule.figures:
        steps.append(("figured", with_columns(carried, rule.figures, "counted")))
        carried += [name for name, _ in rule.figures]
    if rule.comparisons:
        steps.append(("compared", with_columns(carried, rule.comparisons, "figured")))
    met = "\n      AND ".join(rule.conditions)
    stays = f"CASE WHEN {met}\n    THEN 1 ELSE 0 END"
    steps.append(("judged", with_columns([*listed, *added], [("aegis_kept", stays)], steps[-1][0])))
    return steps


LOST = (
    ("aegis_lost", f"MAX(1 - aegis_kept) OVER (PARTITION BY {PERSON})"),
    ("aegis_turn", f"ROW_NUMBER() OVER (PARTITION BY {PERSON} ORDER BY {PERSON})"),
)
"""Name and SQL of two columns: whether the person of a row loses any row, and the number of the row
among the rows of the person, from 1.
"""


def limits(listed: list[str], rule: RuleQuery, before: str, *, unseen: bool, person: bool) -> str:
    """Return the query that counts rows or (if `person`) persons of the whole table, from the step
    `before`. A later step checks the limits of the rule on these counts.
    """
    carried = list(listed)
    added = []
    if rule.conditions:
        carried.append("aegis_kept")
        lost = "CASE WHEN aegis_turn = 1 THEN aegis_lost ELSE 0 END" if person else "1 - aegis_kept"
        each = "SUM(CASE WHEN aegis_turn = 1 THEN 1 ELSE 0 END)" if person else "COUNT(*)"
        added.append(("aegis_suppressed", f"SUM({lost}) OVER ()"))
        added.append(("aegis_total", f"{each} OVER ()"))
    if unseen:
        added.append(("aegis_unseen_rows", "SUM(aegis_unseen) OVER ()"))
    return with_columns(carried, added, before)


def with_columns(carried: Sequence[str], added: Sequence[tuple[str, str]], before: str) -> str:
    """Return the query that adds columns (name, expression) to the columns `carried` of `before`."""
    columns = [*carried, *(f"{expression} AS {name}" for name, expression in added)]
    return "SELECT\n  " + ",\n  ".join(columns) + f"\nFROM {before}"


def assemble(steps: list[tuple[str, str]], listed: list[str], conditions: list[str]) -> str:
    """Return the whole query: all named steps, then the listed columns of rows that meet all conditions."""
    # A first query that is not laid out has a name or text of several lines: see `_compiled`.
    margin = "  " if steps[0][1].startswith("SELECT\n") else ""
    queries = ",\n".join(f"{name} AS (\n{indent(query, margin)}\n)" for name, query in steps)
    where = "\nWHERE " + "\n  AND ".join(conditions) if conditions else ""
    return f"WITH {queries}\nSELECT\n  " + ",\n  ".join(listed) + f"\nFROM {steps[-1][0]}{where}"


def plain(number: float) -> str:
    """Return a share as text without an exponent, because not every dialect reads exponents
    exactly.
    """
    return f"{number:.12f}".rstrip("0")
