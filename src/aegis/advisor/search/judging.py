"""Single configurations held against a rule of more than class sizes, from ids of their classes.

What a search asks thousands of times: classes that are too small are dropped first, with all that they
hold; what is left is counted in a plain array of classes by values.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from aegis.advisor.plan import PrivacyPlan
from aegis.privacy import ClassTable
from aegis.privacy.admission import admits
from aegis.privacy.classes import SensitiveCounts
from aegis.summary import Candidate, FrequencyTable

Ids = npt.NDArray[np.int64]


class Judge:
    """Holds configurations against the rule of a plan.

    Parameters
    ----------
    plan
        The rule; `PrivacyPlan.counts_alone` must be so.
    frequency
        The cells, in rows.
    """

    def __init__(self, plan: PrivacyPlan, frequency: FrequencyTable) -> None:
        self._plan = plan
        self._frequency = frequency
        self._rows = frequency.counts.astype(np.float64)
        self._shown: dict[tuple[str, Candidate | None], tuple[Ids, tuple[str, ...]]] = {}
        self._room = plan.rule.allowed_rows(frequency.rows)

    def admits(self, ids: Ids, space: int, masks: Sequence[Candidate | None]) -> bool:
        """Return whether a configuration meets the rule.

        Parameters
        ----------
        ids
            The class of each cell, shape (cells,), from 0.
        space
            Above all ids.
        masks
            The candidate of each sensitive attribute of the rule, in its order; None without one.
        """
        rule = self._plan.rule
        sizes = np.bincount(ids, weights=self._rows, minlength=space)
        large = sizes >= max(rule.minimum_size, 1)
        room = self._room - round(float(sizes.sum(where=~large)))
        if room < 0 or not large.any():
            return False
        number = np.cumsum(large) - 1
        cells = large[ids]
        classes, rows = number[ids[cells]], self._rows[cells]
        counts = {
            name: self._counted(name, mask, classes, rows, cells)
            for name, mask in zip(rule.sensitive, masks, strict=True)
        }
        table = ClassTable(sizes[large].astype(np.int64), MappingProxyType(counts))
        return admits(rule, table, room)

    def _counted(
        self,
        name: str,
        mask: Candidate | None,
        classes: Ids,
        rows: npt.NDArray[np.float64],
        cells: npt.NDArray[np.bool_],
    ) -> SensitiveCounts:
        codes, labels = self._values(name, mask)
        width = len(labels)
        summed = np.bincount(classes * width + codes[cells], weights=rows)
        keys = np.flatnonzero(summed)
        of_class, value = np.divmod(keys, width)
        levels = self._plan.levels({name: labels}).get(name)
        return SensitiveCounts(of_class, value, summed[keys].astype(np.int64), labels, levels)

    def _values(self, name: str, mask: Candidate | None) -> tuple[Ids, tuple[str, ...]]:
        """Return what a protected attribute shows in each cell, shape (cells,), and the labels."""
        key = name, mask
        if key not in self._shown:
            groups, labels = self._plan.protected(name, {} if mask is None else {name: mask})
            frequency = self._frequency
            codes = groups[frequency.representatives[name]][frequency.codes[name]]
            self._shown[key] = codes.astype(np.int64), labels
        return self._shown[key]
