"""The hybrid scheme of Majeed and Hwang (2023): noise for some records, generalisation for others.

The paper claims two guarantees that its release does not give. The release is not differentially
private: categorical values of the non-violating part are released exactly, the partition depends on
the data, and the epsilons of several attributes add up. The release is not k-anonymous: the
non-violating part is not grouped, and noisy numbers differ within a cluster. With `strict`, the
release is k-anonymous, and this is verified.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from aegis.anonymizers.base import Anonymizer, Options, Outcome, Style, at_least, within
from aegis.anonymizers.groups import InformationLoss, RecordGroups, extent, squared_distances
from aegis.anonymizers.mondrian_cuts import mondrian
from aegis.anonymizers.records import (
    Codes,
    RecordAttribute,
    Records,
    SensitiveAttribute,
    distinct_rows,
)
from aegis.anonymizers.release import SUPPRESSED_VALUE, ancestors, code_range, interval
from aegis.arrays import Flags, Floats, Ints
from aegis.errors import PolicyError
from aegis.files import Progress
from aegis.policy import AttributeKind
from aegis.records.forest import Forest
from aegis.records.members import k_member
from aegis.words import json_fields


class ReleasedCells:
    """The values to release for N records: for each category a level of its hierarchy, for each
    number a range.

    An exact or noisy number is a range whose ends are equal. An ordinal attribute without a
    hierarchy also becomes a range, or "*" if numbers are not generalised.
    """

    def __init__(self, records: Records) -> None:
        self.records = records
        self._heights: dict[str, Ints] = {}
        self._low: dict[str, Floats] = {}
        self._high: dict[str, Floats] = {}
        self._ranks: dict[str, tuple[Codes, Codes]] = {}
        for attribute in records.attributes:
            if attribute.kind is AttributeKind.NUMERIC:
                self._low[attribute.name] = attribute.numbers[attribute.codes]
                self._high[attribute.name] = attribute.numbers[attribute.codes]
            else:
                self._heights[attribute.name] = np.zeros(len(records), dtype=np.int64)

    def generalise(
        self, rows: Ints, labels: Ints, diversity: float, *, numbers: bool, exact_below: int = 0
    ) -> None:
        """Generalise values so that all records of a group are equal. `labels` has the group of
        each record in `rows`.

        Categories are generalised to the lowest level on which they are equal. If the entropy of a
        sensitive attribute in the group is below `diversity`, they are generalised at least to the
        middle level; groups with an index below `exact_below` are exempt. With `numbers`, numbers
        and ordinal attributes without a hierarchy are generalised to the range of the group.
        """
        part = self.records.take(rows)
        groups = RecordGroups(labels)
        low_diversity = ~self._diverse(part, groups, diversity)
        low_diversity[:exact_below] = False
        for attribute in part.attributes:
            covered = extent(attribute, groups)
            if attribute.kind is AttributeKind.NUMERIC:
                if numbers:
                    self._low[attribute.name][rows] = attribute.numbers[covered.low][labels]
                    self._high[attribute.name][rows] = attribute.numbers[covered.high][labels]
                continue
            if numbers and attribute.ordered and attribute.hierarchy is None:
                codes = self.records.attribute(attribute.name).codes
                low, high = self._ranks.setdefault(attribute.name, (codes.copy(), codes.copy()))
                low[rows], high[rows] = covered.low[labels], covered.high[labels]
                continue
            middle = (attribute.tree.height + 1) // 2
            heights = np.where(low_diversity, np.maximum(covered.height, middle), covered.height)
            self._heights[attribute.name][rows] = heights[labels]

    def _diverse(self, part: Records, groups: RecordGroups, diversity: float) -> Flags:
        diverse = np.ones(len(groups), dtype=bool)
        for attribute in part.sensitive:
            pairs, counts = np.unique(
                groups.of * attribute.size + attribute.codes, return_counts=True
            )
            of = pairs // attribute.size
            shares = counts / groups.sizes[of]
            nats = np.bincount(of, weights=-shares * np.log(shares), minlength=len(groups))
            diverse &= nats >= diversity - 1e-12
        return diverse

    def perturb(
        self, epsilon: Floats, sensitivity: float | None, random: np.random.Generator
    ) -> None:
        """Add Laplace noise of scale `sensitivity` / `epsilon` to every number; `epsilon` has one
        value per record.

        A sensitivity of None means the range of the attribute. Values outside this range are set to
        its end, and all values are rounded to the attribute's resolution. Missing values stay
        missing.
        """
        for attribute in self.records.attributes:
            if attribute.kind is not AttributeKind.NUMERIC:
                continue
            least, most = attribute.bounds
            width = most - least if sensitivity is None else sensitivity
            noise = random.laplace(0.0, 1.0, len(epsilon)) * width / epsilon
            values = np.clip(self._low[attribute.name] + noise, least, most)
            if attribute.resolution:
                values = np.round(values / attribute.resolution) * attribute.resolution
            self._low[attribute.name] = self._high[attribute.name] = values

    def columns(self) -> list[list[Any]]:
        """Return the released values by quasi-identifier: numbers if exact, else text."""
        return [self._column(attribute) for attribute in self.records.attributes]

    def _column(self, attribute: RecordAttribute) -> list[Any]:
        if attribute.name in self._ranks:
            least, most = (codes.tolist() for codes in self._ranks[attribute.name])
            return [code_range(attribute, *pair) for pair in zip(least, most, strict=True)]
        if attribute.kind is not AttributeKind.NUMERIC:
            return list(ancestors(attribute, attribute.codes, self._heights[attribute.name]))
        low, high = self._low[attribute.name], self._high[attribute.name]
        whole_numbers = attribute.resolution == 1.0
        exact = np.array_equal(low, high, equal_nan=True)
        values: list[Any] = []
        for start, end in zip(low.tolist(), high.tolist(), strict=True):
            if np.isnan(start):
                values.append(None)
            elif np.isnan(end):
                values.append(SUPPRESSED_VALUE)
            else:
                ends = (int(start), int(end)) if whole_numbers else (start, end)
                values.append(ends[0] if exact else interval(*ends))
        return values

    def classes(self) -> Ints:
        """Return the class of each record, shape (N,): equal released values, equal numbers."""
        columns: list[Codes] = []
        for values in self.columns():
            texts = np.array([str(value) for value in values])
            columns.append(np.unique(texts, return_inverse=True)[1].astype(np.int32))
        return distinct_rows(columns)[1]

    def originality(self) -> float:
        """Return the share of the values that are released unchanged, from 0 to 1."""
        covered = 0
        for attribute in self.records.attributes:
            if attribute.kind is AttributeKind.NUMERIC:
                numbers = attribute.numbers[attribute.codes]
                low, high = self._low[attribute.name], self._high[attribute.name]
                same = (low == numbers) & (high == numbers)
                covered += int(np.count_nonzero(same | (np.isnan(low) & np.isnan(numbers))))
            elif attribute.name in self._ranks:
                covered += int(np.count_nonzero(np.equal(*self._ranks[attribute.name])))
            else:
                covered += int(np.count_nonzero(self._heights[attribute.name] == 0))
        return covered / (len(self.records) * len(self.records.attributes))

    def distortion(self) -> float:
        """Return the mean distortion of a value, from 0 to 1, with equal weights for all
        attributes.

        For a category, it is its level divided by the height of the hierarchy. For numbers and
        ordinal values, it is the distance between the true value and the farther end of the
        released range, divided by the range of the attribute.
        """
        shares = [float(np.mean(self._moved(a))) for a in self.records.attributes]
        return float(np.mean(shares))

    def _moved(self, attribute: RecordAttribute) -> Floats:
        if attribute.name in self._ranks:
            positions = attribute.positions[attribute.codes]
            low, high = (attribute.positions[codes] for codes in self._ranks[attribute.name])
            return np.minimum(np.maximum(positions - low, high - positions), 1.0)
        if attribute.kind is not AttributeKind.NUMERIC:
            return self._heights[attribute.name] / attribute.tree.height
        numbers = attribute.numbers[attribute.codes]
        span = _span(attribute)
        low, high = self._low[attribute.name], self._high[attribute.name]
        moved = np.maximum(np.abs(low - numbers), np.abs(high - numbers)) / span
        mixed = np.isnan(high) & ~np.isnan(low)
        moved = np.where(np.isnan(moved), 0.0, np.minimum(moved, 1.0))
        return np.where(mixed, 1.0, moved)

    def loss(self, labels: Ints, k: int, *, left_out: int) -> InformationLoss:
        """Return the information loss. A number is compared with the middle of its released range, and a
        generalised category counts as lost. `left_out` further records count as suppressed.
        """
        groups = RecordGroups.number(labels)
        grouped = np.flatnonzero(labels >= 0)
        penalty = sum(float(self._penalty(a)[grouped].sum()) for a in self.records.attributes)
        width = len(self.records.attributes)
        penalty += (groups.suppressed + left_out) * width
        return InformationLoss.of(
            groups,
            k,
            partial(self._deviation, grouped),
            penalty / ((len(self.records) + left_out) * width),
            left_out=left_out,
        )

    def _penalty(self, attribute: RecordAttribute) -> Floats:
        if attribute.kind is AttributeKind.NUMERIC:
            span = _span(attribute)
            low, high = self._low[attribute.name], self._high[attribute.name]
            width = (high - low) / span
            return np.where(np.isnan(high) & ~np.isnan(low), 1.0, np.nan_to_num(width))
        if attribute.name in self._ranks:
            least, most = (attribute.positions[codes] for codes in self._ranks[attribute.name])
            return np.minimum(most - least, 1.0)
        heights = self._heights[attribute.name]
        return np.where(heights > 0, attribute.tree.shares[attribute.codes, heights], 0.0)

    def _deviation(self, grouped: Ints, *, scaled: bool) -> float:
        within = total = 0.0
        for attribute in self.records.attributes:
            codes = attribute.codes[grouped]
            if attribute.kind is AttributeKind.NUMERIC:
                low, high = self._low[attribute.name][grouped], self._high[attribute.name][grouped]
                middle = np.where(np.isnan(high), low, (low + high) / 2)
                centre = np.full(len(grouped), attribute.centre)
                moved, spread = (
                    float(squared_distances(attribute, codes, numbers, scaled=scaled).sum())
                    for numbers in (middle, centre)
                )
                within, total = within + moved, total + spread
            else:
                changed = self._heights[attribute.name] > 0
                if attribute.name in self._ranks:
                    changed = np.not_equal(*self._ranks[attribute.name])
                within += float(np.count_nonzero(changed[grouped]))
                counts = np.bincount(codes, minlength=1)
                total += float(len(grouped) - counts.max())
        return within / total if total > 0 else 0.0


def _span(attribute: RecordAttribute) -> float:
    """Return the range of a numeric attribute, as a divisor: 1 if all values are equal."""
    least, most = attribute.bounds
    return most - least if most > least else 1.0


BANDS = ("super-major", "major", "minor", "super-minor")


@dataclass(frozen=True)
class HybridOptions(Options):
    """Options of the hybrid scheme.

    Attributes
    ----------
    epsilon
        Numbers in records that meet the rule get Laplace noise of scale sensitivity / epsilon;
        above 0.
    epsilon_violating
        The epsilon for records that break the rule.
    sensitivity
        Two values at this distance are hidden with a privacy loss of epsilon. With 1 (as in the
        paper's example), these are neighbouring whole numbers; values at distance r then have a
        privacy loss of epsilon times r. With None, it is the range of the attribute. Only then is
        each number epsilon-differentially private.
    diversity
        A cluster counts as diverse if the entropy of the sensitive attribute (natural logarithm) is
        at least this. The default is the entropy of two equally frequent values.
    coverage
        An attribute is pattern-friendly if its one or two most frequent values cover at least this
        share of the rows.
    importance
        An attribute is pattern-friendly if shuffling it costs the forest at most this much
        accuracy, 0..1.
    bands
        Smallest shares of rows for a super-major, a major and a minor value. Rarer values are
        super-minor.
    pattern_friendly
        Names of the pattern-friendly attributes. By default, a random forest finds them.
    trees
        Number of trees in the random forest that finds pattern-friendly attributes.
    strict
        Make a k-anonymous release without noise. Aegis then shows numbers as the interval of their
        group, and suppresses groups of fewer than k records.
    drop_incomplete
        Leave out records with a missing quasi-identifier.
    drop_duplicates
        If records are equal in quasi-identifiers and sensitive attributes, keep only the first.
    limits
        Triples (attribute, lower limit, upper limit). A record with a number outside its limits is
        an outlier, and Aegis leaves it out.
    """

    epsilon: float = 5.0
    epsilon_violating: float = 3.0
    sensitivity: float | None = 1.0
    diversity: float = 0.6931
    coverage: float = 0.8
    importance: float = 0.01
    bands: tuple[float, float, float] = (0.5, 0.05, 0.01)
    pattern_friendly: tuple[str, ...] | None = None
    trees: int = 100
    strict: bool = False
    drop_incomplete: bool = False
    drop_duplicates: bool = False
    limits: tuple[tuple[str, float, float], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("epsilon", self.epsilon, 0, strictly=True)
        at_least("epsilon_violating", self.epsilon_violating, 0, strictly=True)
        if self.sensitivity is not None:
            at_least("sensitivity", self.sensitivity, 0, strictly=True)
        at_least("diversity", self.diversity, 0)
        within("coverage", self.coverage, 0, 1)
        within("importance", self.importance, 0, 1)
        at_least("trees", self.trees, 1)
        if not 1 >= self.bands[0] >= self.bands[1] >= self.bands[2] >= 0:
            raise PolicyError(
                f"bands = {self.bands} is not valid.",
                hint="Give three shares between 0 and 1, the largest first.",
            )
        if self.l > 1 and not self.strict:
            raise PolicyError(
                f"The published hybrid scheme cannot guarantee l = {self.l}.",
                hint="Set `strict`, or raise `diversity` instead.",
            )

    @property
    def by_chance(self) -> bool:
        """Return whether the method adds noise. If it does, the random seed must stay secret."""
        return not self.strict

    def check(self, records: Records) -> None:
        """Raise an error if the records are too few or too alike for k or l, if no attribute is
        sensitive, or if an option names an attribute of the wrong kind.
        """
        super().check(records)
        if not records.sensitive:
            raise PolicyError(
                "The hybrid scheme needs a sensitive attribute, but no column is sensitive.",
                hint="Give a column the role 'sensitive'.",
            )
        for name in self.pattern_friendly or ():
            if records.attribute(name).kind is not AttributeKind.CATEGORICAL:
                raise PolicyError(
                    f"Pattern-friendly attribute {name!r} is not categorical.",
                    hint="Name categorical quasi-identifiers only.",
                )
        for name, least, most in self.limits:
            if records.attribute(name).kind is not AttributeKind.NUMERIC:
                raise PolicyError(
                    f"Column {name!r} is not numeric, so it cannot have limits.",
                    hint="Give limits for numeric quasi-identifiers only.",
                )
            if least > most:
                raise PolicyError(
                    f"The lower limit {least:g} of {name!r} is above its upper limit {most:g}.",
                    hint="Give the lower limit first.",
                )


@dataclass(frozen=True)
class Pattern:
    """The figures that decide whether a categorical quasi-identifier is pattern-friendly: whether
    it hardly helps to predict the sensitive attribute, and few values cover most rows.

    Attributes
    ----------
    name
        The attribute.
    drop
        Accuracy that the forest loses when the values of this attribute are shuffled; NaN if the
        user named the attribute.
    coverage
        Share of rows that have one of the two most frequent values of the attribute.
    friendly
        Whether the attribute is pattern-friendly.
    bands
        Triples (value, rows, frequency band such as `major`), the most frequent value first.
    """

    name: str
    drop: float
    coverage: float
    friendly: bool
    bands: tuple[tuple[Any, int, str], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures under the names that reports use, as JSON values. Values and their
        counts are left out, because some may be in suppressed rows only.
        """
        return json_fields(self, "name", "accuracy_drop=drop", "coverage", "friendly")


def patterns(
    records: Records, options: HybridOptions, random: np.random.Generator
) -> tuple[Pattern, ...]:
    """Find the pattern-friendly attributes (step 2 of the scheme). Return the figures of all
    categorical quasi-identifiers.

    A forest predicts the first sensitive attribute from all quasi-identifiers. An attribute is
    pattern-friendly if shuffling its values lowers the accuracy by at most `importance`, and its
    two most frequent values cover at least the share `coverage` of the rows.
    """
    categorical = [
        (number, attribute)
        for number, attribute in enumerate(records.attributes)
        if attribute.kind is AttributeKind.CATEGORICAL
    ]
    drops = {number: float("nan") for number, _ in categorical}
    if options.pattern_friendly is None and categorical:
        features = np.array([a.codes for a in records.attributes], dtype=np.int64).T
        target = records.sensitive[0].codes.astype(np.int64)
        forest = Forest(features, target, random, trees=options.trees)
        drops = {number: forest.drop_without(number, random) for number, _ in categorical}
    return tuple(_pattern(a, drops[number], options) for number, a in categorical)


def _pattern(attribute: RecordAttribute, drop: float, options: HybridOptions) -> Pattern:
    counts = np.bincount(attribute.codes, minlength=attribute.size)
    order = np.argsort(-counts, kind="stable")
    shares = counts / max(counts.sum(), 1)
    coverage = float(shares[order[:2]].sum())
    if options.pattern_friendly is None:
        friendly = drop <= options.importance and coverage >= options.coverage
    else:
        friendly = attribute.name in options.pattern_friendly
    bands = tuple(
        (attribute.domain[code], int(counts[code]), band(float(shares[code]), options.bands))
        for code in order
    )
    return Pattern(attribute.name, drop, coverage, friendly, bands)


def band(share: float, limits: tuple[float, float, float]) -> str:
    """Return the frequency band of a value that this share of the rows has: super-major, major,
    minor or super-minor. `limits` has the smallest shares of the first three bands.
    """
    return BANDS[sum(share < limit for limit in limits)]


def _violating(records: Records, figures: tuple[Pattern, ...], options: HybridOptions) -> Ints:
    """Return the records with a rare value in a pattern-friendly attribute; all if none is
    pattern-friendly.
    """
    violating = np.zeros(len(records), dtype=bool)
    friendly = [pattern.name for pattern in figures if pattern.friendly]
    for name in friendly:
        attribute = records.attribute(name)
        shares = np.bincount(attribute.codes, minlength=attribute.size) / len(records)
        violating |= shares[attribute.codes] < options.bands[1]
    return np.flatnonzero(violating if friendly else ~violating)


def _dropped(records: Records, options: HybridOptions) -> dict[str, Ints]:
    """Return the records to leave out before the scheme begins, by the first reason that applies."""
    dropped = np.zeros(len(records), dtype=bool)
    reasons: dict[str, Ints] = {}
    outliers = np.zeros(len(records), dtype=bool)
    for name, least, most in options.limits:
        numbers = records.attribute(name).numbers[records.attribute(name).codes]
        outliers |= (numbers < least) | (numbers > most)
    reasons["outliers"] = np.flatnonzero(outliers)
    dropped |= outliers
    if options.drop_incomplete:
        lacking = np.zeros(len(records), dtype=bool)
        for attribute in records.attributes:
            lacking |= attribute.codes == attribute.missing
        reasons["incomplete"] = np.flatnonzero(lacking & ~dropped)
        dropped |= lacking
    if options.drop_duplicates:
        every: list[RecordAttribute | SensitiveAttribute] = [
            *records.attributes,
            *records.sensitive,
        ]
        remaining = np.flatnonzero(~dropped)
        first, _ = distinct_rows([a.codes[remaining] for a in every])
        repeated = np.ones(len(remaining), dtype=bool)
        repeated[first] = False
        reasons["duplicates"] = remaining[repeated]
    return {reason: rows for reason, rows in reasons.items() if len(rows)}


def _run(
    records: Records, options: HybridOptions, random: np.random.Generator, progress: Progress
) -> Outcome:
    dropped = _dropped(records, options)
    stays = np.ones(len(records), dtype=bool)
    for rows in dropped.values():
        stays[rows] = False
    if np.count_nonzero(stays) < options.k:
        raise PolicyError(
            f"Preprocessing leaves {np.count_nonzero(stays)} of {len(records)} records, "
            f"fewer than k = {options.k}.",
            hint="Widen `limits`, or keep incomplete or duplicate records.",
        )
    chosen = np.flatnonzero(stays)
    inner = records.take(chosen)
    with progress.step("hybrid", 3) as step:
        figures = patterns(inner, options, random)
        step.advance()
        violating = np.zeros(len(inner), dtype=bool)
        violating[_violating(inner, figures, options)] = True
        make = _strict if options.strict else _published
        cells, labels = make(inner, violating, options, random)
        step.advance()
        outcome = _outcome(records, chosen, cells, labels, options)
        step.advance()
    details = {
        "patterns": [pattern.to_dict() for pattern in figures],
        "violating": int(violating.sum()),
        "non_violating": int((~violating).sum()),
        "dropped": {reason: len(rows) for reason, rows in dropped.items()},
        "epsilon": _accounted(inner, options),
        "originality": cells.originality(),
        "distortion": cells.distortion(),
    }
    notes = _notes(options, figures, dropped, int(np.count_nonzero(outcome.labels[chosen] < 0)))
    return Outcome(outcome.labels, notes, details, outcome.columns, options.strict, outcome.loss)


def _accounted(records: Records, options: HybridOptions) -> Mapping[str, float]:
    """Return the epsilon that makes any two records hard to distinguish, summed over numeric
    attributes, for violating and for other records. If the sensitivity is smaller than the range of
    an attribute, its epsilon grows by their ratio. Strict releases have no noise, so both figures
    are 0.
    """
    spent = 0.0
    for attribute in records.attributes:
        if attribute.kind is AttributeKind.NUMERIC and not options.strict:
            width = attribute.bounds[1] - attribute.bounds[0]
            spent += 1.0 if options.sensitivity is None else width / options.sensitivity
    return {
        "non_violating": options.epsilon * spent,
        "violating": options.epsilon_violating * spent,
    }


def _notes(
    options: HybridOptions, figures: Sequence[Pattern], dropped: Mapping[str, Ints], suppressed: int
) -> tuple[str, ...]:
    notes = [f"Left out before grouping: {len(rows)} {what}." for what, rows in dropped.items()]
    if not any(pattern.friendly for pattern in figures):
        notes.append("No attribute is pattern-friendly, so every record counts as violating.")
    if options.strict:
        notes.append("Strict: no noise was added, so no differential privacy is claimed.")
        if suppressed:
            notes.append(
                f"{suppressed} records are suppressed: they fit no group that meets k and l."
            )
    else:
        notes.append(
            "As published, the release as a whole is neither differentially private nor k-anonymous. "
            "With `strict`, Aegis verifies k."
        )
    return tuple(notes)


def _published(
    records: Records, violating: Flags, options: HybridOptions, random: np.random.Generator
) -> tuple[ReleasedCells, Ints]:
    """Generalise violating records and add noise to all (steps 3 and 4); return cells and classes."""
    cells = ReleasedCells(records)
    rows = np.flatnonzero(violating)
    if len(rows):
        part = records.take(rows)
        labels = (
            k_member(part, options.k, random)
            if len(rows) >= options.k
            else np.zeros(len(rows), dtype=np.int64)
        )
        cells.generalise(rows, labels, options.diversity, numbers=False)
    epsilon = np.where(violating, options.epsilon_violating, options.epsilon)
    cells.perturb(epsilon, options.sensitivity, random)
    return cells, cells.classes()


def _strict(
    records: Records, violating: Flags, options: HybridOptions, random: np.random.Generator
) -> tuple[ReleasedCells, Ints]:
    """Make a k-anonymous release: categories that k records share stay exact, all other records are
    clustered. Return the released values and classes; -1 is suppressed.
    """
    labels = np.full(len(records), -1, dtype=np.int64)
    shared = _shared(records, np.flatnonzero(~violating), options, labels)
    rest = np.flatnonzero(labels < 0)
    if _fits(records, rest, options):
        inside = k_member(records.take(rest), options.k, random, distinct=options.l)
        labels[rest] = inside + shared
    cells = ReleasedCells(records)
    grouped = np.flatnonzero(labels >= 0)
    if len(grouped):
        cells.generalise(
            grouped, labels[grouped], options.diversity, numbers=True, exact_below=shared
        )
    return cells, labels


def _shared(records: Records, rows: Ints, options: HybridOptions, labels: Ints) -> int:
    """Write to `labels` the groups of the records `rows` that share all categories and have k
    records and l values of each sensitive attribute. Return the number of groups.
    """
    exact = [a for a in records.attributes if a.kind is not AttributeKind.NUMERIC]
    if not len(rows):
        return 0
    if exact:
        _, of = distinct_rows([a.codes[rows] for a in exact])
    else:
        of = np.zeros(len(rows), dtype=np.int64)
    order = np.argsort(of, kind="stable")
    bounds = np.flatnonzero(np.diff(of[order])) + 1
    count = 0
    for members in np.split(rows[order], bounds):
        if _fits(records, members, options):
            inside = mondrian(records.take(members), options.k, distinct=options.l)
            labels[members] = inside + count
            count += int(inside.max()) + 1
    return count


def _fits(records: Records, rows: Ints, options: HybridOptions) -> bool:
    """Return whether the records `rows` can form a group under k and l."""
    varied = all(len(np.unique(a.codes[rows])) >= options.l for a in records.sensitive)
    return len(rows) >= options.k and varied


def _outcome(
    records: Records, chosen: Ints, cells: ReleasedCells, labels: Ints, options: HybridOptions
) -> Outcome:
    """Return the outcome for all records, from the cells and classes of the `chosen` ones."""
    everyone = np.full(len(records), -1, dtype=np.int64)
    everyone[chosen] = labels
    columns: dict[str, tuple[Any, ...]] = {}
    for attribute, values in zip(records.attributes, cells.columns(), strict=True):
        column: list[Any] = [None] * len(records)
        for row, value in zip(chosen.tolist(), values, strict=True):
            column[row] = value
        columns[attribute.name] = tuple(column)
    loss = cells.loss(labels, options.k, left_out=len(records) - len(chosen))
    return Outcome(everyone, columns=columns, loss=loss)


HYBRID = Anonymizer(
    "hybrid",
    "Adds noise to numbers, and generalises categories only in groups that violate the rule.",
    "Majeed and Hwang 2023",
    HybridOptions,
    Style.GENERALISED,
    "N D, for the violating part",
    True,
    _run,
)
