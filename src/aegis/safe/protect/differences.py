"""Find what two files reveal together, such as two versions of a table, or a merged table and its part."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from aegis.errors import PolicyError
from aegis.safe.protect.budget import epsilon_of
from aegis.safe.protect.leak import PartLeak, part_of
from aegis.safe.protect.model import ProtectedSummary, ProtectionLevel
from aegis.summary import AttributeSummary, Summary


@dataclass(frozen=True)
class Difference:
    """What the differences between two files, such as summaries of an older and a newer table,
    reveal.

    Attributes
    ----------
    other
        Name of the file with which this file was compared.
    rows
        Number of rows of this file minus number of rows of the other file.
    parts
        For each part of the files, the number of cells whose counts differ by few rows. Such a cell
        contains few of the rows that were added or removed.
    findings
        Conclusions, one sentence each.
    """

    other: str
    rows: int
    parts: tuple[PartLeak, ...]
    findings: tuple[str, ...]

    @property
    def small(self) -> int:
        """Number of cells whose counts differ by at least one row, but fewer than the threshold."""
        return sum(p.small for p in self.parts)


def compare(
    newer: Summary | ProtectedSummary,
    older: Summary | ProtectedSummary,
    *,
    other: str = "the other",
    threshold: int = 5,
) -> Difference:
    """Return what two summaries reveal together but neither reveals alone.

    Exact counts are subtracted: an added row gives a difference of 1. The privacy costs of noisy
    summaries add up. In perturbed summaries (level `counts`), different counts show that rows
    changed. `other` is the name of the older file in sentences. Differences of fewer rows than
    `threshold` count as small.

    Raises
    ------
    PolicyError
        One summary is exact and the other is protected, or they have no attribute in common.
    """
    shared = [n for n in newer.attributes if n in older.attributes]
    if isinstance(newer, ProtectedSummary) and isinstance(older, ProtectedSummary):
        difference = _protected(newer, older, shared, other, threshold)
    elif isinstance(newer, Summary) and isinstance(older, Summary):
        difference = _exact(newer, older, shared, other, threshold)
    else:
        raise PolicyError(
            "One summary is exact and the other protected: the exact one alone reveals everything.",
            hint="Compare two of one kind.",
        )
    if not shared:
        raise PolicyError(
            "The summaries have no attribute in common.", hint="Compare versions of one table."
        )
    return difference


def _exact(
    newer: Summary, older: Summary, shared: list[str], other: str, threshold: int
) -> Difference:
    tables: Counter[Any] = Counter()
    for name in shared:
        tables.update(_label_table(name, newer.attributes[name], newer, 1))
        tables.update(_label_table(name, older.attributes[name], older, -1))
    parts = [_part("label tables", tables, threshold)]
    if newer.frequency is not None and older.frequency is not None:
        cells: Counter[Any] = Counter()
        cells.update(_frequency(newer, 1))
        cells.update(_frequency(older, -1))
        parts.append(_part("frequency table", cells, threshold))
    moved = max((p.alone for p in parts), default=0)
    findings = []
    if moved:
        findings.append(
            f"{moved:,} counts differ by one row: a reader can read the values of that row"
        )
    if newer.rows != older.rows:
        findings.append(
            f"{abs(newer.rows - older.rows):,} rows were {'added' if newer.rows > older.rows else 'left out'}"
        )
    return Difference(other, newer.rows - older.rows, tuple(parts), tuple(findings))


def _label_table(
    name: str, attribute: AttributeSummary, summary: Summary, sign: int
) -> dict[Any, int]:
    texts = [str(v) for v in attribute.values.to_pylist()]
    return {
        (name, text, summary.label.classes[y]): sign * int(n)
        for text, row in zip(texts, attribute.joint, strict=True)
        for y, n in enumerate(row)
        if n
    }


def _frequency(summary: Summary, sign: int) -> dict[Any, int]:
    """Return `sign` times the rows of each combination of masked values in the frequency table."""
    frequency = summary.frequency
    if frequency is None:
        return {}
    columns = []
    for name, codes in frequency.codes.items():
        value_ids = frequency.representatives[name]
        if name in summary.attributes:
            attribute = summary.attributes[name]
            masked_values = [
                "\x1e".join(c.labels[int(c.groups[v])] for c in attribute.candidates)
                for v in value_ids.tolist()
            ]
        else:
            labels = (*summary.label.classes, "null")
            masked_values = [labels[min(v, len(labels) - 1)] for v in value_ids.tolist()]
        columns.append(np.array(masked_values, dtype=object)[codes])
    rows_by_shown: dict[Any, int] = {}
    for row in zip(*columns, frequency.counts.tolist(), strict=True):
        rows_by_shown[row[:-1]] = rows_by_shown.get(row[:-1], 0) + sign * int(row[-1])
    return rows_by_shown


def _part(name: str, differences: Counter[Any], threshold: int) -> PartLeak:
    return part_of(name, [np.abs(np.array([*differences.values()], dtype=np.int64))], threshold)


def _protected(
    newer: ProtectedSummary,
    older: ProtectedSummary,
    shared: list[str],
    other: str,
    threshold: int,
) -> Difference:
    rows = round(newer.rows - older.rows)
    findings = []
    costs = [s.protection.rho for s in (newer, older)]
    if (
        newer.level is ProtectionLevel.NOISE
        and older.level is ProtectionLevel.NOISE
        and None not in costs
    ):
        total = sum(c for c in costs if c is not None)
        delta = max(s.protection.delta or 0 for s in (newer, older))
        findings.append(
            f"if both files are about the same people, their noise together guarantees epsilon "
            f"{epsilon_of(total, delta):.3g} at delta {delta:g} (rho {total:.4g})"
        )
        return Difference(other, rows, (), tuple(findings))
    findings.append(
        "level counts gives no guarantee for two files together: a count that differs shows that its "
        "rows changed"
    )
    differing: Counter[Any] = Counter()
    for name in shared:
        a, b = newer.attributes[name], older.attributes[name]
        if a.table.shape == b.table.shape:
            changed = np.argwhere(a.table != b.table)
            differing.update({(name, *map(int, cell)): threshold for cell in changed})
    return Difference(other, rows, (_part("label tables", differing, threshold),), tuple(findings))
