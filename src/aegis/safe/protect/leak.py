"""Audit what a file reveals: small cells, persons who are alone, and counts that can be derived.

In an exact summary all counts are known, so small cells are counted. If counts were withheld, the
remaining counts bound them. In a protected summary, linear programming bounds the true counts. The
audit itself shows no value of a person, only the number of such values in each part of the file.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aegis.arrays import Array
from aegis.errors import PolicyError, member
from aegis.options import checks_types
from aegis.safe.protect.budget import delta_of, epsilon_of, is_number, rho_of
from aegis.safe.protect.cells import learned
from aegis.safe.protect.derive.cells import derivable_cells
from aegis.safe.protect.derive.pairs import PairAudit, audit_pairs
from aegis.safe.protect.model import (
    DomainSource,
    ProtectedSummary,
    Protection,
    ProtectionLevel,
)
from aegis.summary import AttributeSummary, Information, Summary
from aegis.words import brief, json_fields

_LARGEST_EXPONENT = 700.0
"""Largest exponent that does not overflow."""
THRESHOLD = 5
"""Number of rows from which a cell of an exact summary counts as large."""
PARTS = {
    "label tables": "rows by value of one attribute and label",
    "histograms": "rows by value of one attribute",
    "pairs by class": "rows by values of two attributes and label",
    "pairs, by moments": "rows by values of two attributes, derived from their correlations",
    "frequency table": "rows by quasi-identifiers, sensitive attributes and label",
    "folds": "the same counts for ten parts of the rows",
    "sums of the label": "sums of a numeric label by value",
}
"""What the counts of each part of a file are."""


@dataclass(frozen=True)
class PartLeak:
    """What one part of a file reveals.

    Attributes
    ----------
    part
        Name of the part, such as `label tables` (rows by value and label class) or `frequency
        table` (rows by quasi-identifiers, sensitive attributes and label).
    cells
        Number of cells (values or combinations of values) that have at least one row.
    small
        Number of cells that have at least one row, but are known to have fewer than the threshold.
    alone
        Number of cells that are known to have exactly one row.
    """

    part: str
    cells: int
    small: int
    alone: int


@dataclass(frozen=True)
class AttributeLeak:
    """What a file reveals about the values of one attribute.

    Attributes
    ----------
    attribute
        Name of the attribute.
    named
        Number of values or groups that the file names.
    rare
        Number of values with fewer rows than the threshold; None if the file does not show this.
    disclosed
        Number of values whose rows all have the same label class; such a value reveals the class.
        None if the file does not show this.
    derivable
        Number of withheld or protected counts that a reader can derive to a range narrower than the
        threshold.
    """

    attribute: str
    named: int
    rare: int | None
    disclosed: int | None
    derivable: int


@dataclass(frozen=True, eq=False)
class LeakAudit:
    """The result of an audit of a summary: what it reveals, and whether it keeps its protection
    level.

    Attributes
    ----------
    subject
        The audited file, in words.
    level
        The protection level that the file states.
    demanded
        The protection level against which the file was checked.
    threshold
        Number of rows from which a cell counts as large.
    parts
        The small cells of each part of the file.
    attributes
        The rare and revealing values of each attribute.
    persons_alone
        Number of rows that are the only row with their combination of values of the
        quasi-identifiers. None if the file has no frequency table.
    classes_disclosed
        Number of rows in equivalence classes of two or more rows that all have the same label
        class. None if the file has no frequency table.
    findings
        Other facts for the reader, one sentence each.
    exceptions
        In words, the content that the protection level does not cover: the owner declared it
        public, or it comes from the table unchanged (at level `counts`). Empty if there is none.
    shortfalls
        Reasons why the file does not keep the demanded level; empty if it does.
    """

    subject: str
    level: ProtectionLevel
    demanded: ProtectionLevel
    threshold: int
    parts: tuple[PartLeak, ...] = ()
    attributes: tuple[AttributeLeak, ...] = ()
    persons_alone: int | None = None
    classes_disclosed: int | None = None
    findings: tuple[str, ...] = ()
    exceptions: str = ""
    shortfalls: tuple[str, ...] = field(default=())

    @property
    def keeps_level(self) -> bool:
        """Whether the file keeps the demanded level."""
        return not self.shortfalls

    def to_dict(self) -> dict[str, Any]:
        """Return the documented JSON form (docs/reference/json.md)."""
        return json_fields(self) | {"held": self.keeps_level}


@checks_types
def audit_leak(
    subject: Summary | ProtectedSummary,
    *,
    level: ProtectionLevel | str | None = None,
    threshold: int | None = None,
) -> LeakAudit:
    """Return what a summary reveals, checked against a protection level.

    Parameters
    ----------
    subject
        An exact or a protected summary.
    level
        The level to check against; by default the level that the summary states.
    threshold
        Number of rows from which a cell counts as large; by default the threshold of a protected
        summary, or 5.

    Raises
    ------
    PolicyError
        The threshold is below 2 or above the number of rows, the level is unknown, or counts are sums of
        weights.
    """
    demanded = None if level is None else member(ProtectionLevel, level, "level of protection")
    if threshold is not None and not (
        is_number(threshold, integer=True) and 2 <= threshold <= subject.rows
    ):
        raise PolicyError(
            f"The threshold is {brief(threshold)}, and the summary is of {subject.rows:,.0f} rows.",
            hint="Give from 2 up to the number of rows.",
        )
    if isinstance(subject, ProtectedSummary):
        return _protected(subject, demanded or subject.level, threshold)
    return _exact(subject, demanded or ProtectionLevel.NONE, threshold or THRESHOLD)


def part_legend(parts: Iterable[str]) -> str:
    """Return one sentence for each of the named parts of a file, on what its counts are."""
    return " ".join(f"{name}: {PARTS[name]}." for name in parts)


def verdict(level: ProtectionLevel | str, exceptions: str = "", *, passed: bool = True) -> str:
    """Return the result of an audit in words; `exceptions` are not covered by the level."""
    if str(level) == ProtectionLevel.NONE:
        return "The file is unprotected: keep it as safe as the table"
    if not passed:
        return f"Failed: the file does not keep protection level {level}"
    less = f". It shows these as the table has them: {exceptions}" if exceptions else ""
    return f"Passed: the file keeps protection level {level}{less}"


def _exact(summary: Summary, demanded: ProtectionLevel, threshold: int) -> LeakAudit:
    summary.refuse_weights("An audit of small cells")
    parts = list(_parts(summary, threshold))
    attributes = tuple(_attribute(a, threshold) for a in summary.all_attributes)
    alone, disclosed = _persons(summary)
    shortfalls = []
    if demanded is ProtectionLevel.NOISE:
        shortfalls.append("the counts are exact: no noise was added")
    if demanded is not ProtectionLevel.NONE:
        shortfalls += [
            f"{p.part}: {p.small:,} counts are of 1 to {threshold - 1} rows"
            for p in parts
            if p.small
        ]
        rare = sum(a.rare or 0 for a in attributes)
        if rare:
            shortfalls.append(
                f"the file names {rare:,} values that fewer than {threshold} rows have"
            )
    return LeakAudit(
        subject=f"Unprotected summary (exact counts) of {summary.rows:,} rows",
        level=ProtectionLevel.NONE,
        demanded=demanded,
        threshold=threshold,
        parts=tuple(parts),
        attributes=attributes,
        persons_alone=alone,
        classes_disclosed=disclosed,
        findings=tuple(_summary_findings(summary, alone)),
        shortfalls=tuple(shortfalls),
    )


def _parts(summary: Summary, threshold: int) -> Iterable[PartLeak]:
    """Yield how many cells have few rows, for every part of the summary that has counts."""
    every = list(summary.all_attributes)
    yield part_of("label tables", [a.joint for a in every], threshold)
    withheld = [
        a.domain.counts for a in every if a.domain is not None and a.domain.counts is not None
    ]
    if withheld:
        yield part_of("histograms", withheld, threshold)
    pairs, folds = summary.pairs, summary.pairs.folds
    by_class, by_fold = [], []
    for pair in pairs.count:  # both at once: a pair may be counted from the rows when it is read
        by_class.append(pairs.count[pair])
        if folds is not None:
            by_fold.append(folds.count[pair])
    yield part_of("pairs by class", by_class, threshold)
    if summary.frequency is not None:
        yield part_of("frequency table", [summary.frequency.counts], threshold)
    if folds is not None:
        yield part_of("folds", [*by_fold, *folds.atom_counts], threshold)
    if summary.pairs.responses is not None:
        yield part_of("sums of the label", _summed_rows(summary), threshold)


def _summed_rows(summary: Summary) -> list[Array]:
    """Return the rows behind each sum of a numeric label, in total and for each fold."""
    folds = summary.pairs.folds
    return [*summary.pairs.atom_counts, *(() if folds is None else folds.atom_counts)]


def part_of(name: str, counts: Sequence[Array], threshold: int) -> PartLeak:
    """Return how many of the counts of the part `name` are above 0, small, and 1."""
    cells = small = alone = 0
    for array in counts:
        cells += int((array > 0).sum())
        small += int(((array > 0) & (array < threshold)).sum())
        alone += int((array == 1).sum())
    return PartLeak(name, cells, small, alone)


def _attribute(attribute: AttributeSummary, threshold: int) -> AttributeLeak:
    counts = attribute.counts if attribute.domain is None else attribute.domain.counts
    totals = attribute.joint.sum(axis=1)
    disclosed = (totals > 0) & (attribute.joint.max(axis=1, initial=0) == totals)
    return AttributeLeak(
        attribute=attribute.name,
        named=len(attribute.all_values),
        rare=None if counts is None else int(((counts > 0) & (counts < threshold)).sum()),
        disclosed=int(disclosed.sum()) if attribute.joint.shape[1] > 1 else 0,
        derivable=withheld_cells(attribute, threshold),
    )


def withheld_cells(attribute: AttributeSummary, threshold: int) -> int:
    """Return how many withheld counts by value and class can be derived to a range that is narrower than
    the threshold.

    The reader knows the rows of each value (r), and for each group of values that no mask distinguishes
    the rows of each class (c) and of the group (n). So a count lies between max(0, r + c - n) and
    min(r, c). Counts that must be 0 or are known to be large are not included.
    """
    domain = attribute.domain
    if domain is None or domain.counts is None:
        return 0
    rows = domain.counts[:, None]
    columns = attribute.joint[domain.cells]
    total = columns.sum(axis=1, keepdims=True)
    low = np.maximum(rows + columns - total, 0)
    high = np.minimum(rows, columns)
    shared = np.bincount(domain.cells)[domain.cells][:, None] > 1
    narrow = shared & (high > 0) & (low < threshold) & (high - low + 1 < threshold)
    return int(narrow.sum())


def _persons(summary: Summary) -> tuple[int | None, int | None]:
    """Return how many rows are alone in their equivalence class, and how many are in larger classes
    of one label class; None for both if there is no frequency table.
    """
    frequency = summary.frequency
    if frequency is None:
        return None, None
    classes = np.unique(frequency.class_keys(), return_inverse=True)[1]
    label = frequency.codes[frequency.label].astype(np.int64)
    sizes = np.bincount(classes, weights=frequency.counts)
    width = int(label.max(initial=0)) + 1
    by_label = np.bincount(
        classes * width + label, weights=frequency.counts, minlength=len(sizes) * width
    ).reshape(-1, width)
    # Without a label, or with one class, there is nothing to disclose.
    uniform = (sizes >= 2) & (by_label.max(axis=1) == sizes) & (width > 1)
    return int((sizes == 1).sum()), int(sizes[uniform].sum())


def _summary_findings(summary: Summary, alone: int | None) -> Iterable[str]:
    if alone:
        share = 100 * alone / max(summary.rows, 1)
        read = "find this row" if summary.pairs.responses is not None else "read the label"
        yield (
            f"{alone:,} rows ({share:.0f} %) are alone in their equivalence class: anybody who knows a "
            f"person's quasi-identifiers can {read} in the frequency table"
        )
    if summary.pairs.responses is not None:
        rows = _summed_rows(summary)
        single, two = (sum(int((of_sums == n).sum()) for of_sums in rows) for n in (1, 2))
        if single or two:
            yield (
                f"{single:,} sums of {summary.label.column} are of one row, whose number they are, and {two:,} of "
                "two rows, where each person can work out the number of the other (p-percent rule): "
                "keep the file where the table is"
            )
    if summary.information is Information.RAW:
        yield "the file lists every value in the table, with exact counts"
    if summary.frequency is not None and summary.pairs.folds is not None:
        yield "the file also has the counts of ten parts of the rows, and their differences reveal small counts"


def _protected(
    summary: ProtectedSummary, demanded: ProtectionLevel, threshold: int | None
) -> LeakAudit:
    protection = summary.protection
    held_at = threshold or protection.threshold or THRESHOLD
    derivable = derivable_cells(summary, held_at)
    likely = [d for d in derivable if d.range.high < held_at]
    hits = Counter(d.attribute for d in derivable)
    pairs = audit_pairs(summary, held_at)
    shortfalls: list[str] = []
    if demanded is not ProtectionLevel.NONE:
        shortfalls += _shortfalls(summary, demanded, len(likely), len(pairs.derivable), held_at)
    return LeakAudit(
        subject=f"Protected summary (level {summary.level}) of {summary.rows_words}",
        level=summary.level,
        demanded=demanded,
        threshold=held_at,
        parts=(
            PartLeak(
                "label tables",
                sum(a.table.size for a in summary.attributes.values()),
                len(likely),
                sum(d.range.low == d.range.high == 1 for d in derivable),
            ),
            PartLeak(
                "pairs, by moments",
                pairs.cells,
                len(pairs.derivable),
                sum(d.range.low == d.range.high == 1 for d in pairs.derivable),
            ),
        ),
        attributes=tuple(
            AttributeLeak(
                name, len({s for c in a.candidates for s in c.labels}), None, None, hits[name]
            )
            for name, a in summary.attributes.items()
        ),
        findings=tuple(_findings(summary, pairs)),
        exceptions=protection.items_from(DomainSource.TABLE, summary.label),
        shortfalls=tuple(shortfalls),
    )


def _shortfalls(
    summary: ProtectedSummary,
    demanded: ProtectionLevel,
    likely: int,
    pairs: int,
    held_at: int,
) -> Iterator[str]:
    """Yield a sentence for each reason why the summary does not keep the demanded level. `likely`
    cells and `pairs` of cells can be derived to a range narrower than `held_at`.
    """
    if demanded is ProtectionLevel.NOISE and summary.level is not ProtectionLevel.NOISE:
        yield "level counts gives no formal guarantee, and level noise requires one"
    if likely:
        yield (
            f"linear programming derives {likely:,} small counts to a range narrower than {held_at}"
        )
    if pairs:
        yield (
            f"linear programming derives {pairs:,} counts of two attributes to a "
            f"range narrower than {held_at}"
        )
    yield from _unstated(summary)
    yield from _overspent(summary.protection)


def _findings(summary: ProtectedSummary, pairs: PairAudit) -> Iterator[str]:
    """Yield sentences that a reader of a protected summary should know, such as its guarantee."""
    protection = summary.protection
    if pairs.cells:
        partly = pairs.looked_at < pairs.cells
        yield (
            f"Aegis tried to derive {pairs.looked_at:,} of {pairs.cells:,} counts of two attributes by "
            "linear programming"
            + (": in large pairs, those with the most influence on correlations" if partly else "")
        )
    if protection.epsilon is not None:
        unit = str(protection.unit).removesuffix("s")
        yield (
            f"differential privacy with {protection.words()}: a reader's odds that any one {unit} is "
            f"in the data change at most {math.exp(min(protection.epsilon, _LARGEST_EXPONENT)):.3g}-fold"
        )
    else:
        yield "level counts gives no formal guarantee: Aegis checks it by linear programming alone"
    yield from _sources(protection, summary.label)
    if summary.verdicts:
        yield f"the file states for {len(summary.verdicts):,} configurations whether they meet the privacy rule"


def _sources(protection: Protection, label: str) -> Iterable[str]:
    """Yield sentences on where names of values and classes, types and cut points come from."""
    if of_table := protection.items_from(DomainSource.TABLE, label):
        yield (
            f"level counts shows these as the table has them: {of_table}"
            if protection.level is ProtectionLevel.COUNTS
            else f"the file shows these as the table has them, because its owner declares them public: {of_table}"
        )
    if declared := protection.items_from(DomainSource.POLICY, label):
        yield f"these are from the policy, and so reveal nothing of the table: {declared}"
    if bought := protection.items_from(DomainSource.BUDGET, label):
        yield f"the epsilon also covers these: {bought}"
    if frequent := protection.items_from(DomainSource.THRESHOLD, label):
        yield f"the file shows these, because at least {protection.threshold} rows have each: {frequent}"


def _unstated(summary: ProtectedSummary) -> Iterable[str]:
    """Yield sentences on published content whose source the summary does not state."""
    domains = summary.protection.domains
    if domains is None:
        yield (
            "an earlier version of Aegis wrote the file, with label classes, cut points and column types "
            "as the table has them, even if only one person has them: protect the table again"
        )
        return
    items_with_source = {(d.what, d.column) for d in domains}
    if not {(what, summary.label) for what in ("classes", "cuts", "bounds")} & items_with_source:
        yield f"the file does not state the source of the classes of {summary.label}"
    for name, attribute in summary.attributes.items():
        required_items = ["kind", "values"] if summary.level is ProtectionLevel.NOISE else []
        for what in [*required_items, *(["bounds"] if learned(attribute) else [])]:
            if (what, name) not in items_with_source:
                yield f"the file does not state the source of the {what} of {name}"


def _overspent(protection: Protection) -> Iterable[str]:
    """Yield a sentence if noise and thresholds, priced again, cost more epsilon than stated."""
    if protection.epsilon is None or protection.delta is None:
        return
    noise_delta = protection.delta - math.fsum(delta_of(t) for t in protection.thresholds)
    rho = math.fsum(rho_of(r.sensitivity, r.sigma) for r in protection.rounds)
    spent = epsilon_of(rho, noise_delta) if noise_delta > 0 else math.inf
    if spent > protection.epsilon * (1 + 1e-6):
        yield (
            f"its noise and thresholds cost epsilon {spent:.4g} at delta {protection.delta:g}, more than the "
            f"{protection.epsilon:g} that the file states"
        )
