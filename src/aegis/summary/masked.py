"""The masked table as a query, and the same without the rows of classes that fail a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ibis
import ibis.expr.types as ir

from aegis.masks import Hierarchy, Mask
from aegis.privacy import PrivacyRule, Verdict
from aegis.sources import Source
from aegis.summary.classes import count_classes


def masked_table(source: Source, masks: Mapping[str, Mask | None]) -> ir.Table:
    """Return the columns that `masks` names, masked (None: as they are), in the table's order."""
    columns = {}
    for name in source.columns:
        if name in masks:
            mask = masks[name]
            column = source.table[name]
            columns[name] = column if mask is None else mask.expression(column)
    return source.table.select(**columns)


def suppress(
    source: Source,
    table: ir.Table,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    rule: PrivacyRule,
    hierarchies: Mapping[str, Hierarchy] | None = None,
) -> tuple[ir.Table, Verdict]:
    """Leave out the rows of classes that fail the rule.

    Parameters
    ----------
    source
        Runs the query that counts the classes.
    table
        The masked table.
    quasi, sensitive
        Columns that form the classes, and columns that the rule protects.
    rule
        What every class must meet.
    hierarchies
        Hierarchies of sensitive columns, for models that need them.

    Returns
    -------
    tuple
        The table without those rows, and what the rule said.
    """
    counted = count_classes(source, quasi, sensitive, table=table, hierarchies=hierarchies)
    verdict = rule.check(counted.table)
    if verdict.kept.all() or not quasi:
        return table, verdict
    failing = ibis.memtable(counted.members(~verdict.kept))
    matches = [table[name].identical_to(failing[f"k{i}"]) for i, name in enumerate(quasi)]
    return table.anti_join(failing, matches), verdict
