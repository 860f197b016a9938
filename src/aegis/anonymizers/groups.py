"""Groups of records, and the values that represent a group in a release: its centroid or its
generalised value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aegis.anonymizers.records import Codes, RecordAttribute, Records
from aegis.arrays import Array, Floats, Ints
from aegis.policy import AttributeKind

SUPPRESSED = -1
"""Group number of a record that is left out of the release."""


@dataclass(frozen=True, eq=False)
class RecordGroups:
    """A partition of records into groups 0..G-1.

    Attributes
    ----------
    of
        Shape (N,), int64: the group of each record, or `SUPPRESSED`. Groups are numbered in the
        order of their first record, so equal partitions are equal arrays.
    """

    of: Ints

    @classmethod
    def number(cls, labels: Ints) -> RecordGroups:
        """Return the groups of records with equal labels; `labels` has shape (N,); records with
        negative labels are suppressed.
        """
        grouped = np.flatnonzero(labels >= 0)
        of = np.full(len(labels), SUPPRESSED, dtype=np.int64)
        _, first, inverse = np.unique(labels[grouped], return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first, kind="stable")] = np.arange(len(first))
        of[grouped] = rank[inverse]
        return cls(of)

    @cached_property
    def sizes(self) -> Ints:
        """The number of records in each of the G groups, shape (G,)."""
        return np.bincount(self.of[self.of >= 0]).astype(np.int64)

    @property
    def suppressed(self) -> int:
        """The number of records that belong to no group."""
        return int(np.count_nonzero(self.of < 0))

    @cached_property
    def order(self) -> Ints:
        """The indices of the records that belong to a group, sorted by group and then by record,
        shape (N - suppressed,).
        """
        order = np.argsort(self.of, kind="stable")
        return order[self.suppressed :].astype(np.int64)

    @cached_property
    def starts(self) -> Ints:
        """For each of the G groups, the index in `order` of the first record, shape (G,)."""
        return (np.cumsum(self.sizes) - self.sizes).astype(np.int64)

    def __len__(self) -> int:
        return len(self.sizes)


def centroid(attribute: RecordAttribute, groups: RecordGroups, *, rounded: bool = False) -> Array:
    """Return the value of an attribute that represents each of G groups, shape (G,): the mean of a
    numeric attribute, as a number, and otherwise a code: the median of an ordinal attribute, the
    most frequent value of a categorical one. Ties go to the lower code.

    The value is missing (NaN for a number) if more than half of the group's values are missing.
    `rounded` rounds means to the attribute's resolution, if it has one.
    """
    if attribute.kind is AttributeKind.NUMERIC:
        return _means(attribute, groups, rounded=rounded)
    if attribute.kind is AttributeKind.ORDINAL:
        return _medians(attribute, groups)
    return _modes(attribute, groups)


def _means(attribute: RecordAttribute, groups: RecordGroups, *, rounded: bool) -> Floats:
    of = groups.of[groups.order]
    # Offsets from the overall mean keep the digits of attributes that sit far from zero.
    offsets = attribute.numbers[attribute.codes[groups.order]] - attribute.centre
    present = ~np.isnan(offsets)
    counts = np.bincount(of[present], minlength=len(groups))
    sums = np.bincount(of[present], weights=offsets[present], minlength=len(groups))
    with np.errstate(invalid="ignore"):
        means = attribute.centre + sums / counts
    if rounded and attribute.resolution:
        means = np.round(means / attribute.resolution) * attribute.resolution
    means[2 * counts < groups.sizes] = np.nan
    return means


def _medians(attribute: RecordAttribute, groups: RecordGroups) -> Codes:
    """Return the code of the lower median of each of G groups, without missing values, shape (G,).
    If most values of a group are missing, its code is that of the missing value.
    """
    of = groups.of[groups.order]
    codes = attribute.codes[groups.order]
    present = codes != attribute.missing
    counts = np.bincount(of[present], minlength=len(groups))
    key = np.sort(of * attribute.size + codes)
    # Missing is the last code, so the present ranks come first in each sorted group.
    place = groups.starts + np.maximum(counts - 1, 0) // 2
    medians: Codes = (key[place] % attribute.size).astype(np.int32)
    medians[2 * counts < groups.sizes] = attribute.missing
    return medians


def _modes(attribute: RecordAttribute, groups: RecordGroups) -> Codes:
    key = groups.of[groups.order] * attribute.size + attribute.codes[groups.order]
    pairs, counts = np.unique(key, return_counts=True)
    group, code = pairs // attribute.size, pairs % attribute.size
    best = np.lexsort((code, -counts, group))
    _, first = np.unique(group[best], return_index=True)
    modes: Codes = code[best][first].astype(np.int32)
    return modes


@dataclass(frozen=True, eq=False)
class Extent:
    """The range of values, and their common ancestor, that each of G groups of records covers in
    one attribute.

    Attributes
    ----------
    low, high
        Lowest and highest code in each of the G groups, shape (G,).
    height
        Height of the lowest common ancestor in the attribute's hierarchy, shape (G,).
    """

    low: Codes
    high: Codes
    height: Codes


def extent(attribute: RecordAttribute, groups: RecordGroups) -> Extent:
    """Return, for each group, the range of its values and their lowest common ancestor in the
    hierarchy.
    """
    codes = attribute.codes[groups.order]
    low = np.minimum.reduceat(codes, groups.starts)
    high = np.maximum.reduceat(codes, groups.starts)
    height = np.zeros(len(groups), dtype=np.int32)
    for level in range(attribute.tree.height):
        at = attribute.tree.levels[codes, level]
        split = np.minimum.reduceat(at, groups.starts) != np.maximum.reduceat(at, groups.starts)
        height[split] = level + 1
    return Extent(low, high, height)


def distinct_values(attribute: RecordAttribute, groups: RecordGroups) -> tuple[Ints, Codes]:
    """Return the P distinct pairs of a group and a value of the attribute, in ascending order: the
    groups, and the codes of the values, shape (P,) each.
    """
    key = np.unique(groups.of[groups.order] * attribute.size + attribute.codes[groups.order])
    return key // attribute.size, (key % attribute.size).astype(np.int32)


def squared_distances(
    attribute: RecordAttribute, codes: Codes, shown: Array, *, scaled: bool
) -> Floats:
    """Return the squared distance between the values of N records and the values that represent
    them in a release, shape (N,).

    Numbers are compared as z-scores (unchanged if not `scaled`), ordinal values by rank divided by
    V - 1, where V is the number of values. For categories the distance is 0 or 1. A missing value
    counts as the mean (for ordinal attributes, as the middle of the scale), at a distance of one
    unit in a separate dimension. For numbers that are not scaled, the unit is their standard
    deviation.

    Parameters
    ----------
    codes
        The values of the N records, shape (N,).
    shown
        The value that represents each record, shape (N,): a number for numeric attributes, a code
        for all others.
    """
    if attribute.kind is AttributeKind.CATEGORICAL:
        mismatches: Floats = (codes != shown).astype(np.float64)
        return mismatches
    if attribute.kind is AttributeKind.NUMERIC:
        own = (attribute.numbers[codes] - attribute.centre) / attribute.spread
        other = (shown - attribute.centre) / attribute.spread
        unit = 1.0 if scaled else attribute.spread**2
    else:
        ranks = np.linspace(-0.5, 0.5, attribute.present) if attribute.present > 1 else np.zeros(1)
        if attribute.missing >= 0:
            ranks = np.append(ranks[: attribute.present], np.nan)
        own, other, unit = ranks[codes], ranks[shown], 1.0
    aside = np.isnan(own) != np.isnan(other)
    squared: Floats = (np.nan_to_num(own) - np.nan_to_num(other)) ** 2 + aside
    return squared * unit


def total_groups(records: Records) -> RecordGroups:
    """Return the partition in which all records form one group."""
    return RecordGroups(np.zeros(len(records), dtype=np.int64))
