"""Whether a table meets a rule, and no more: what a search asks thousands of times."""

from __future__ import annotations

import numpy as np

from aegis.privacy.classes import ClassTable
from aegis.privacy.rule import PrivacyRule


def admits(rule: PrivacyRule, table: ClassTable, room: int | None = None) -> bool:
    """Return whether `rule.check` finds a table admissible, as soon as that is known.

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
