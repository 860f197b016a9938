"""Preview a release for its owner: columns before and after, suppressed groups, a few rows.

The preview contains values of the table. It appears only in the owner's report, and in no JSON.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aegis.advisor.advice import Advice
from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.scoring import Choice, Scorer
from aegis.arrays import Flags, Floats, Integers
from aegis.masking import check_classes, masked_population, masked_table
from aegis.masks import Mask
from aegis.policy import Policy
from aegis.sources import Source
from aegis.summary import PERSON, AttributeSummary, Candidate, Information, Summary

FREQUENT = 3
"""Number of values that are shown of each column: the most frequent ones."""
PREVIEWED = 6
"""Number of rows in the preview."""
HIT = 5
"""Number of groups that are named: those that lose the largest share of their rows."""


@dataclass(frozen=True)
class Share:
    """The rows that have one value of a column, and how many of them the release suppresses."""

    column: str
    value: str
    rows: int
    left_out: int

    @property
    def part(self) -> float:
        """The share of the rows with this value that the release suppresses, from 0 to 1."""
        return self.left_out / self.rows if self.rows else 0.0


@dataclass(frozen=True)
class ColumnChange:
    """The most frequent values of a column before and after masking, each with its number of rows.
    `values_before` and `values_after` count all values.
    """

    name: str
    before: tuple[tuple[str, int], ...]
    after: tuple[tuple[str, int], ...]
    values_before: int
    values_after: int


@dataclass(frozen=True)
class ReleaseValues:
    """The values of the table that the report for its owner shows.

    Attributes
    ----------
    columns
        Each scored column before and after masking, if the summary has its counts.
    by_label
        Number of suppressed rows of each label class; empty if no rows are suppressed.
    hardest_hit
        Groups of masked quasi-identifiers that lose the largest share of their rows.
    header, preview
        Column names, and a few masked rows of the release; empty if the rows are not available.
    """

    columns: tuple[ColumnChange, ...]
    by_label: tuple[Share, ...] = ()
    hardest_hit: tuple[Share, ...] = ()
    header: tuple[str, ...] = ()
    preview: tuple[tuple[str, ...], ...] = ()


def show_release(
    advice: Advice,
    summary: Summary,
    plan: PrivacyPlan,
    policy: Policy,
    source: Source | None = None,
) -> ReleaseValues | None:
    """Return a preview of the best release; None if there is none, or if it is a record-level
    release. Without a table (`source`), the preview has no rows.
    """
    best = advice.best
    if best is None or best.method is not None:
        return None
    choice = Scorer(summary).choose(best.configuration)
    columns = tuple(
        _column(attribute, choice[attribute.name])
        for attribute in summary.attributes.values()
        if attribute.information is Information.RAW and choice[attribute.name].noise is None
    )
    by_label, hit = _left_out(summary, plan, choice) if best.suppressed_rows else ((), ())
    header, preview = _preview(source, policy, choice, summary.label.mask)
    return ReleaseValues(columns, by_label, hit, header, preview)


def _column(attribute: AttributeSummary, candidate: Candidate) -> ColumnChange:
    after: Floats = np.bincount(
        candidate.groups, weights=attribute.counts, minlength=candidate.size
    ).astype(float)
    return ColumnChange(
        attribute.name,
        _frequent(attribute.unmasked.labels, attribute.counts.astype(float)),
        _frequent(candidate.labels, after),
        len(attribute.counts),
        candidate.size,
    )


def _frequent(labels: tuple[str, ...], rows: Floats) -> tuple[tuple[str, int], ...]:
    order = np.argsort(-rows, kind="stable")[:FREQUENT]
    return tuple((labels[i], int(rows[i])) for i in order)


def _left_out(
    summary: Summary, plan: PrivacyPlan, choice: Choice
) -> tuple[tuple[Share, ...], tuple[Share, ...]]:
    """Return how many rows a release suppresses in each label class, and which masked values of
    quasi-identifiers lose the largest shares of their rows.
    """
    frequency = summary.frequency
    if frequency is None:
        return (), ()
    kept_cells = plan.kept_cells(choice)
    label = frequency.representatives[frequency.label][frequency.codes[frequency.label]]
    names = (*summary.label.classes, "null")
    by_label: list[Share] = []
    if summary.label.there:
        by_label = _shares(summary.label.column, names, label, frequency.counts, kept_cells)
    hit: list[Share] = []
    for name in frequency.quasi:
        groups = choice[name].groups[frequency.representatives[name][frequency.codes[name]]]
        hit += _shares(name, choice[name].labels, groups, frequency.counts, kept_cells)
    hit.sort(key=lambda share: (-share.part, -share.left_out, share.column, share.value))
    several = [share for share in hit if share.left_out and share.rows < frequency.rows]
    return tuple(by_label), tuple(several[:HIT])


def _shares(
    column: str, labels: tuple[str, ...], groups: Integers, counts: Integers, kept_cells: Flags
) -> list[Share]:
    rows = np.bincount(groups, weights=counts, minlength=len(labels))
    suppressed = np.bincount(groups, weights=counts * ~kept_cells, minlength=len(labels))
    return [
        Share(column, label, int(rows[i]), int(suppressed[i]))
        for i, label in enumerate(labels)
        if rows[i]
    ]


def _preview(
    source: Source | None, policy: Policy, choice: Choice, label_mask: Mask | None
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return the column names and the first rows of the release, as text. Both are empty if no
    table is available, or if a mask adds noise.
    """
    noisy = any(candidate.noise is not None for candidate in choice.values())
    if source is None or noisy:
        return (), ()
    masks = {name: candidate.mask for name, candidate in choice.items()}
    quasi = [attribute.name for attribute in policy.quasi_identifiers]
    rule = policy.privacy
    checked = check_classes(
        source,
        masked_table(source, policy.with_label(masks, label_mask), person=policy.person),
        quasi,
        rule.sensitive,
        rule,
        policy.protected_hierarchies,
        masked_population(policy, source, masks),
    )
    released = checked.kept_rows()
    columns = [name for name in released.columns if name != PERSON]
    rows = source.collect(released.select(*columns).limit(PREVIEWED))
    cells = [["null" if v is None else str(v) for v in row.values()] for row in rows.to_pylist()]
    return tuple(rows.column_names), tuple(map(tuple, cells))
