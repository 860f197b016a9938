"""Releases together: what who holds several of them can see by linking their rows.

Each release shows its own classes. If rows can be linked, for instance by their order or by columns
that are shown alike, a person stands in the intersection of the classes of all of them, and the
rule that each release meets may not hold there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.scoring import Choice
from aegis.errors import DataError, PolicyError
from aegis.privacy import ClassTable, Verdict
from aegis.summary import Summary
from aegis.summary.frequency import FrequencyTable, combine

Cells = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Together:
    """What several releases of one table show together.

    Attributes
    ----------
    holds
        Whether every joint class meets the rule as it stands: nothing more can be suppressed of
        what has left.
    rows
        Rows that all of the releases show.
    smallest_class
        Rows of the smallest joint class; 0 where no row is in all of them.
    rows_failing
        Rows in joint classes that break the rule.
    unique_rows
        Rows that are alone in their joint class.
    violations
        What falls short, in plain sentences.
    breaking
        Quasi-identifiers without which fewer rows would fail, the strongest first.
    """

    holds: bool
    rows: int
    smallest_class: int
    rows_failing: int
    unique_rows: int
    violations: tuple[str, ...]
    breaking: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "holds": self.holds,
            "rows": self.rows,
            "smallest_class": self.smallest_class,
            "rows_failing": self.rows_failing,
            "unique_rows": self.unique_rows,
            "violations": list(self.violations),
            "breaking": list(self.breaking),
        }


def together(summary: Summary, plan: PrivacyPlan, choices: Sequence[Choice]) -> Together:
    """Return what releases under several configurations show together.

    Rows that one of the releases leaves out are linked in none: joint classes are formed of the
    rows that all of them show.

    Parameters
    ----------
    summary
        The aggregates, with their frequency table.
    plan
        Holds the rule.
    choices
        The candidates of each release, at least two.

    Raises
    ------
    PolicyError
        Fewer than two releases are given.
    DataError
        The classes are not known: the table has too many cells, or persons are counted.
    """
    if len(choices) < 2:
        raise PolicyError(
            f"{len(choices)} releases are given.", hint="Give at least two to be put together."
        )
    frequency = summary.frequency
    if frequency is None or frequency.persons is not None:
        raise DataError(
            "Releases cannot be put together here: their classes are not counted in rows.",
            hint="Use fewer quasi-identifiers or coarser finest masks, and rows as the unit.",
        )
    joint = _Joint(frequency, plan, choices)
    table, verdict = joint.count(frozenset())
    return Together(
        holds=verdict.suppressed_rows == 0,
        rows=int(joint.counts.sum()),
        smallest_class=int(table.sizes.min()) if len(table.sizes) else 0,
        rows_failing=verdict.suppressed_rows,
        unique_rows=int((table.sizes == 1).sum()),
        violations=verdict.violations,
        breaking=joint.breaking(verdict.suppressed_rows),
    )


class _Joint:
    """The cells that all releases show, and the classes that they form together."""

    def __init__(
        self, frequency: FrequencyTable, plan: PrivacyPlan, choices: Sequence[Choice]
    ) -> None:
        self._frequency = frequency
        self._plan = plan
        self._choices = choices
        kept = np.ones(frequency.cells, dtype=bool)
        for choice in choices:
            kept &= self._released(choice)
        self._kept = kept
        self.counts: Cells = frequency.counts[kept]

    def _released(self, choice: Choice) -> npt.NDArray[np.bool_]:
        """Return which cells a release shows, shape (cells,)."""
        table = self._plan.classes(choice)
        groups = {name: choice[name].groups for name in self._frequency.quasi}
        ids = self._frequency.class_ids(groups)
        verdict = self._plan.rule.check(table)
        known = np.unique(ids) if table.ids is None else table.ids
        released: npt.NDArray[np.bool_] = verdict.kept_classes[np.searchsorted(known, ids)]
        return released

    def count(self, without: frozenset[str]) -> tuple[ClassTable, Verdict]:
        """Return the joint classes that leave out some attributes, and what the rule says."""
        frequency = self._frequency
        columns = [
            choice[name].groups[frequency.representatives[name]][frequency.codes[name]][self._kept]
            for choice in self._choices
            for name in frequency.quasi
            if name not in without
        ]
        ids = combine(columns, int(self._kept.sum()))
        sensitive = {}
        for name in self._plan.rule.sensitive:
            grouping, labels = self._plan.protected(name, self._choices[-1])
            cells = grouping[frequency.representatives[name]][frequency.codes[name]]
            sensitive[name] = (cells[self._kept], labels)
        table = ClassTable.from_cells(ids, self.counts, sensitive)
        return table, self._plan.rule.check(table)

    def breaking(self, failing: int) -> tuple[str, ...]:
        """Return the attributes whose absence would help, the most helpful first."""
        if not failing:
            return ()
        without = {
            name: self.count(frozenset({name}))[1].suppressed_rows for name in self._frequency.quasi
        }
        helpful = [name for name in without if without[name] < failing]
        return tuple(sorted(helpful, key=lambda name: (without[name], name)))
