"""A fast check whether a table meets a rule, for searches that check thousands of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from aegis.errors import InternalError
from aegis.privacy.classes import ClassTable, FloatArray
from aegis.privacy.histograms import Histograms
from aegis.privacy.model import Criterion
from aegis.privacy.rule import PrivacyRule


def admits(rule: PrivacyRule, table: ClassTable, room: int | None = None) -> bool:
    """Return whether `rule.check` would find a table admissible, and stop as soon as this is known.

    Classes are only ever dropped, so a table fails once more rows are dropped than there is room for.

    Parameters
    ----------
    rule
        The rule.
    table
        As of `PrivacyRule.check`; classes that criteria on sizes alone drop may be left out beforehand.
    room
        Rows (or persons) that may be dropped of `table`; by default what the limit says.

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
    sizes: FloatArray,
    room: int,
) -> bool:
    """Return the result of `admits`, computed from plain matrices.

    Parameters
    ----------
    criteria
        Demands beyond class sizes, each of a model with a `dense` figure.
    tables
        Rows by class and value of each protected attribute, shape (n, V) each.
    sizes
        Rows of each class, shape (n,); those that are too small are left out.
    room
        Rows that may be dropped.
    """
    left, most = dict(tables), float(room)
    for local in (True, False):
        part = [criterion for criterion in criteria if criterion.local is local]
        while part and len(sizes):
            fails = np.zeros(len(sizes), dtype=np.bool_)
            for criterion in part:
                dense = criterion.model.dense
                if dense is None:
                    raise InternalError(f"{criterion} has no figure of plain matrices.")
                fails |= criterion.beyond(dense(left[criterion.attribute or ""], criterion))
            if not fails.any():
                break
            most -= float(sizes[fails].sum())
            if most < 0:
                return False
            sizes = sizes[~fails]
            left = {name: table.keep(~fails) for name, table in left.items()}
            if local:
                break
    return len(sizes) > 0
