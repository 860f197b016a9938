"""Decide quickly whether a table meets a rule, for searches that check thousands of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from aegis.arrays import Floats
from aegis.errors import InternalError
from aegis.privacy.classes import ClassTable
from aegis.privacy.histograms import Histograms
from aegis.privacy.model import Compared, Criterion
from aegis.privacy.rule import PrivacyRule


def admits(rule: PrivacyRule, table: ClassTable, room: int | None = None) -> bool:
    """Return whether a table meets `rule` after suppression, without computing everything that
    `rule.check` returns.

    The check drops failing classes, and returns False as soon as it has dropped more than `room`
    rows.

    Parameters
    ----------
    rule
        The rule.
    table
        The classes and the sensitive counts of the table. Classes that are too small for the
        criteria on sizes may be left out beforehand.
    room
        Number of rows (or persons) that may be dropped from `table`; by default, the suppression
        limit.

    Examples
    --------
    >>> from aegis.privacy import ClassTable, PrivacyRule
    >>> rule = PrivacyRule.parse({"k": 2, "suppression": 0.25})
    >>> admits(rule, ClassTable.from_cells([0, 1], [3, 1])), admits(rule, ClassTable.from_cells([0, 1], [2, 1]))
    (True, False)
    """
    room = rule.allowed_rows(table.subjects) if room is None else room
    for criterion in rule.criteria:
        criterion.require(table)
    stays = np.ones(len(table), dtype=np.bool_)
    for criterion in rule.criteria:
        if criterion.local:
            stays &= ~criterion.failing(table)
    compared = [criterion for criterion in rule.criteria if not criterion.local]
    while table.subjects_in(~stays) <= room and stays.any():
        rest = table.keep(stays)
        fails = np.zeros(len(rest), dtype=np.bool_)
        for criterion in compared:
            fails |= criterion.failing(rest)
        if not fails.any():
            return True
        stays[np.flatnonzero(stays)[fails]] = False
    return False


def admits_dense(
    criteria: Sequence[Criterion],
    tables: Mapping[str, Histograms],
    sizes: Floats,
    room: int,
    inputs: Mapping[str, Floats] = MappingProxyType({}),
) -> bool:
    """Return whether a table meets criteria beyond class sizes after suppression, computed from
    matrices with the rows by class and value, shape (n, V), of each sensitive attribute. The model
    of each criterion must have the function `dense`.

    `sizes` are the rows of each class, without those that are too small, and `room` is the number
    of rows that may be dropped. For criteria that compare with the table before suppression,
    `inputs` has the rows of that table with each value, shape (V,).
    """
    remaining, most = dict(tables), float(room)
    for local in (True, False):
        part = [criterion for criterion in criteria if criterion.local is local]
        while part and len(sizes):
            fails = np.zeros(len(sizes), dtype=np.bool_)
            for criterion in part:
                dense = criterion.model.dense
                if dense is None:
                    raise InternalError(f"{criterion} defines no `dense`.")
                table = remaining[criterion.attribute or ""]
                if criterion.reference is Compared.INPUT:
                    table = replace(table, compared=inputs[criterion.attribute or ""])
                fails |= criterion.beyond(dense(table, criterion))
            if not fails.any():
                break
            most -= float(sizes[fails].sum())
            if most < 0:
                return False
            sizes = sizes[~fails]
            remaining = {name: table.keep(~fails) for name, table in remaining.items()}
            if local:
                break
    return len(sizes) > 0
