"""Build the masked table as a query, with or without the rows of classes that fail a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa

from aegis.errors import InternalError
from aegis.masking import looked_up
from aegis.masks import Hierarchy, Mask, join_lookups, lookup_of
from aegis.privacy import PrivacyRule, Verdict
from aegis.sources import Source
from aegis.sources.source import ROW_NUMBER
from aegis.summary.classes import PERSON, WEIGHT, CountedClasses, ShownColumns, count_classes
from aegis.summary.leaves import ShownLeaves
from aegis.summary.person_classes import same_class

ORDERED_ROWS = 2_000_000
"""Largest number of rows whose order is kept when rows are suppressed."""


def masked_table(
    source: Source,
    masks: Mapping[str, Mask | None],
    *,
    numbered: bool = False,
    person: str | None = None,
    weight: str | None = None,
) -> ir.Table:
    """Return the masked table as a query, with the columns that `masks` names, in the table's
    order.

    Parameters
    ----------
    source
        The table.
    masks
        The fitted mask of each column; None shows the column as it is.
    numbered
        Whether to add the column `ROW_NUMBER` if the engine has row numbers, so that the order of
        rows can be restored later.
    person
        Column that identifies persons, if the rule counts them; it is added as `PERSON`.
    weight
        Column of weights for scores; it is added as `WEIGHT`.
    """
    ordered = source.engine.ordered  # where there is an order, joins must not lose it
    numbered = numbered and ordered
    looked_up_in_tables = any(
        lookup_of(masks.get(name), source.table[name].type()) for name in source.columns
    )
    counted = numbered or (ordered and looked_up_in_tables)
    table = _numbered(source) if counted else source.table
    joined = join_lookups(source, table, {n: masks.get(n) for n in source.columns})
    columns: dict[str, ir.Value] = {n: joined.table[n] for n in source.columns if n in masks}
    rest: dict[str, Mask] = {}
    for name in columns:
        mask = masks[name]
        if mask is None or name in joined.lookups:
            columns[name] = joined.masked(name, mask)
        else:
            rest[name] = mask
    columns |= looked_up.expressions(source, {n: joined.table[n] for n in rest}, rest)
    if person is not None:
        source.require(person, where="the policy's person")
        columns[PERSON] = joined.table[person]
    if weight is not None:
        columns[WEIGHT] = joined.table[weight]
    if counted:
        columns[ROW_NUMBER] = joined.table[ROW_NUMBER]
    shown = joined.table.select(columns)
    if counted and looked_up_in_tables and source.rows <= ORDERED_ROWS:
        shown = shown.order_by(ROW_NUMBER)
    return shown if numbered or not counted else shown.drop(ROW_NUMBER)


def _numbered(source: Source) -> ir.Table:
    if source.numbered is not None:
        return source.numbered
    return source.table.mutate(**{ROW_NUMBER: ibis.row_number()})


@dataclass(frozen=True, eq=False)
class CheckedClasses:
    """The classes of a masked table, checked against a rule.

    Attributes
    ----------
    source, table
        The engine and the masked table.
    verdict
        The verdict of the rule.
    quasi
        Columns whose values form the classes.
    left_out
        The classes that fail the rule, each as a row with its values of the quasi-identifiers in
        the columns `k0`, `k1`, ...; None if no class fails.
    rows
        Rows of the table.
    """

    source: Source
    table: ir.Table
    verdict: Verdict
    quasi: tuple[str, ...]
    left_out: pa.Table | None
    rows: int

    def kept_rows(self) -> ir.Table:
        """Return the table without the rows of classes that fail the rule, in the same order."""
        table, in_order = self.table, ROW_NUMBER in self.table.columns
        if self.left_out is None:
            return table.drop(ROW_NUMBER) if in_order else table
        failing = self.source.upload(self.left_out)
        rest = table.anti_join(failing, same_class(table, failing, self.quasi, self.left_out))
        if not in_order:
            return rest
        # An engine joins in whatever order its threads finish: row numbers bring the rows back into
        # the table's order, but not where sorting would cost more than all else.
        if self.rows <= ORDERED_ROWS:
            rest = rest.order_by(ROW_NUMBER)
        return rest.drop(ROW_NUMBER)


def check_classes(
    source: Source,
    table: ir.Table,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    rule: PrivacyRule,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    population: Source | None = None,
    leaves: ShownLeaves | None = None,
    earlier: Sequence[ShownColumns] = (),
) -> CheckedClasses:
    """Check the classes of a masked table against the rule.

    Parameters
    ----------
    source
        Runs the query that counts the classes.
    table
        The masked table, with row numbers if the order of its rows matters, and with persons
        (`PERSON`) if the rule counts them.
    quasi, sensitive, rule
        Columns whose values form the classes, columns that the rule protects, and the rule.
    hierarchies
        Hierarchies of sensitive columns, for models that need them.
    population
        The table of the population, for models that depend on it.
    leaves
        The number of original values that each masked value of a quasi-identifier may represent;
        only some privacy models need it.
    earlier
        For each earlier release, in their order, the columns of `table` that show the rows as this
        release did. These columns stay in the table.
    """
    if earlier:
        return _check_after(source, table, quasi, sensitive, rule, hierarchies or {}, earlier)
    person = PERSON if rule.person is not None else None
    counted = count_classes(
        source,
        quasi,
        sensitive,
        table=table,
        hierarchies=hierarchies,
        person=person,
        population=population,
    )
    classes = counted.table
    if leaves is not None:
        members = counted.members(np.ones(len(classes), dtype=np.bool_))
        classes = replace(classes, hidden=leaves.hidden(members))
    verdict = rule.check(classes)
    if verdict.kept_classes.all() or not quasi:
        return CheckedClasses(source, table, verdict, tuple(quasi), None, classes.rows)
    left_out = counted.members(~verdict.kept_classes)
    return CheckedClasses(source, table, verdict, tuple(quasi), left_out, classes.rows)


def _check_after(
    source: Source,
    table: ir.Table,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    rule: PrivacyRule,
    hierarchies: Mapping[str, Hierarchy],
    earlier: Sequence[ShownColumns],
) -> CheckedClasses:
    """Check the classes that a release forms together with earlier releases. Rows that are missing
    in a release are distinguished from its other rows.

    The parameters are those of `check_classes`.
    """
    own = ShownColumns(tuple(quasi), {name: name for name in sensitive})
    releases = (*earlier, own)
    names = tuple(name for release in releases for name in release.quasi)
    protected = tuple(name for release in releases for name in release.sensitive.values())
    counted = count_classes(source, names, protected, table=table, hierarchies=hierarchies)
    if not isinstance(counted, CountedClasses):
        raise InternalError("Earlier releases are combined by rows, but the classes count persons.")
    last = counted.after(rule, releases)
    left_out = last.left_out if last.left_out.num_rows and names else None
    return CheckedClasses(source, table, last.verdict, names, left_out, last.table.rows)
