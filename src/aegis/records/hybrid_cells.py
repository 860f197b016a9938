"""Build the values that the hybrid scheme releases, and compute their information loss."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from aegis.anonymizers.groups import RecordGroups, extent, squared_distances
from aegis.anonymizers.losses import InformationLoss
from aegis.anonymizers.records import Codes, RecordAttribute, Records, distinct_rows
from aegis.anonymizers.release import SUPPRESSED_VALUE, ancestors, code_range, interval
from aegis.arrays import Flags, Floats, Ints
from aegis.policy import AttributeKind


class ReleasedCells:
    """The values to release: a level of the hierarchy for each category, a range for each number.

    A number is stored as a range [low, high]; for an exact or noisy number both ends are equal. An
    ordinal attribute with a hierarchy is generalised like a category. One without a hierarchy
    becomes a range if numbers are generalised, else "*".
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

        If the entropy of every sensitive attribute in a group is at least `diversity`, categories
        are generalised to the lowest level on which they are equal. Otherwise they are generalised
        at least to the middle level. Groups with a number below `exact_below` keep their
        categories, which are equal already. With `numbers`, numbers and ordinal attributes without
        a hierarchy are generalised to the range of the group.
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
                own = self.records.attribute(attribute.name).codes
                low, high = self._ranks.setdefault(attribute.name, (own.copy(), own.copy()))
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
        """Add Laplace noise of scale sensitivity / epsilon to every number; `epsilon` has one value
        per record.

        A sensitivity of None means the range of the domain. Values beyond the domain are set to its
        end. Values are rounded to the attribute's resolution; missing values stay missing.
        """
        for attribute in self.records.attributes:
            if attribute.kind is not AttributeKind.NUMERIC:
                continue
            least, most = attribute.bounds
            apart = most - least if sensitivity is None else sensitivity
            noise = random.laplace(0.0, 1.0, len(epsilon)) * apart / epsilon
            values = np.clip(self._low[attribute.name] + noise, least, most)
            if attribute.resolution:
                values = np.round(values / attribute.resolution) * attribute.resolution
            self._low[attribute.name] = self._high[attribute.name] = values

    def columns(self) -> list[list[Any]]:
        """Return the values to release: one list for each quasi-identifier, with one value per
        record.

        Numbers that did not become ranges stay numbers; everything else is text.
        """
        return [self._column(attribute) for attribute in self.records.attributes]

    def _column(self, attribute: RecordAttribute) -> list[Any]:
        if attribute.name in self._ranks:
            least, most = (codes.tolist() for codes in self._ranks[attribute.name])
            return [code_range(attribute, *pair) for pair in zip(least, most, strict=True)]
        if attribute.kind is not AttributeKind.NUMERIC:
            return list(ancestors(attribute, attribute.codes, self._heights[attribute.name]))
        low, high = self._low[attribute.name], self._high[attribute.name]
        whole = attribute.resolution == 1.0
        exact = np.array_equal(low, high, equal_nan=True)
        values: list[Any] = []
        for start, end in zip(low.tolist(), high.tolist(), strict=True):
            if np.isnan(start):
                values.append(None)
            elif np.isnan(end):
                values.append(SUPPRESSED_VALUE)
            else:
                ends = (int(start), int(end)) if whole else (start, end)
                values.append(ends[0] if exact else interval(*ends))
        return values

    def classes(self) -> Ints:
        """Number the equivalence classes, and return the number of each of the N records, shape
        (N,). Records with equal released values have the same number.
        """
        columns: list[Codes] = []
        for values in self.columns():
            texts = np.array([str(value) for value in values])
            columns.append(np.unique(texts, return_inverse=True)[1].astype(np.int32))
        return distinct_rows(columns)[1]

    def originality(self) -> float:
        """Return the share of the cells that are released unchanged, 0..1."""
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
        """Return the mean distortion per cell, 0..1, with equal weights for all attributes.

        For a category, it is the level divided by the height of the hierarchy. For numbers and
        ranks, it is the distance between the true value and the farther end of the released range,
        divided by the range of the domain.
        """
        shares = [float(np.mean(self._moved(a))) for a in self.records.attributes]
        return float(np.mean(shares))

    def _moved(self, attribute: RecordAttribute) -> Floats:
        if attribute.name in self._ranks:
            own = attribute.positions[attribute.codes]
            low, high = (attribute.positions[codes] for codes in self._ranks[attribute.name])
            return np.minimum(np.maximum(own - low, high - own), 1.0)
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
        """Return the information loss of the release.

        `labels` has the class of each record. The loss to the centroid compares each number with
        the middle of its released range. A generalised category counts as lost. `left_out` is the
        number of further records that count as suppressed.
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
                    float(squared_distances(attribute, codes, shown, scaled=scaled).sum())
                    for shown in (middle, centre)
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
    """Return the range of a numeric attribute, to divide by: 1 if the range is 0."""
    least, most = attribute.bounds
    return most - least if most > least else 1.0
