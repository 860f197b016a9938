"""Groups of records, the values that represent a group in a release (its centroid or its
generalised value), and the information that a grouping loses.

Measures of the information that a grouping loses: deviation from centroids, width of ranges,
size of classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from aegis.anonymizers.records import Codes, RecordAttribute, Records, distinct_rows
from aegis.arrays import Array, Floats, Ints
from aegis.policy import AttributeKind

SUPPRESSED = -1
"""Group number of a record that is left out of the release."""


@dataclass(frozen=True, eq=False)
class RecordGroups:
    """A partition of N records into G groups, numbered 0..G-1.

    Attributes
    ----------
    of
        Shape (N,), int64: the group of each record, or `SUPPRESSED`. Groups are numbered in the
        order of their first record, so equal partitions are equal arrays.
    """

    of: Ints

    @classmethod
    def number(cls, labels: Ints) -> RecordGroups:
        """Return the groups of N records with equal `labels`, shape (N,). Records with a negative
        label are suppressed.
        """
        grouped = np.flatnonzero(labels >= 0)
        of = np.full(len(labels), SUPPRESSED, dtype=np.int64)
        of[grouped] = distinct_rows([labels[grouped]])[1]
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
        """The indices of records in groups, sorted by group, then by record."""
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
    """Return the code of the lower median of each group, without its missing values, shape (G,). If
    most values of a group are missing, it is the code of the missing value.
    """
    of = groups.of[groups.order]
    codes = attribute.codes[groups.order]
    present = codes != attribute.missing
    counts = np.bincount(of[present], minlength=len(groups))
    key = np.sort(of * attribute.size + codes)
    # Missing is the last code, so the present ranks come first in each sorted group.
    middle = groups.starts + np.maximum(counts - 1, 0) // 2
    medians: Codes = (key[middle] % attribute.size).astype(np.int32)
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
    """Return, for each group, the range of its values and their lowest common ancestor."""
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
    """Return the distinct pairs of a group and a value, ascending: groups and codes, shape (P,)."""
    key = np.unique(groups.of[groups.order] * attribute.size + attribute.codes[groups.order])
    return key // attribute.size, (key % attribute.size).astype(np.int32)


def squared_distances(
    attribute: RecordAttribute, codes: Codes, representatives: Array, *, scaled: bool
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
    representatives
        The value that represents each record, shape (N,): a number for numeric attributes, a code
        for all others.
    """
    if attribute.kind is AttributeKind.CATEGORICAL:
        mismatches: Floats = (codes != representatives).astype(np.float64)
        return mismatches
    if attribute.kind is AttributeKind.NUMERIC:
        true = (attribute.numbers[codes] - attribute.centre) / attribute.spread
        masked = (representatives - attribute.centre) / attribute.spread
        unit = 1.0 if scaled else attribute.spread**2
    else:
        ranks = np.linspace(-0.5, 0.5, attribute.present) if attribute.present > 1 else np.zeros(1)
        if attribute.missing >= 0:
            ranks = np.append(ranks[: attribute.present], np.nan)
        true, masked, unit = ranks[codes], ranks[representatives], 1.0
    one_missing = np.isnan(true) != np.isnan(masked)
    squared: Floats = (np.nan_to_num(true) - np.nan_to_num(masked)) ** 2 + one_missing
    return squared * unit


@dataclass(frozen=True)
class InformationLoss:
    """The information loss of one grouping of records, by several measures; lower figures are
    better.

    Different figures are not comparable.

    Attributes
    ----------
    scaled
        IL of Wei et al. on z-scores: the sum of squares within groups divided by the total sum of
        squares. For categories, mismatches are counted instead of squares. If means are not
        rounded, IL is between 0 and 1. For numeric tables it is SSE/SST.
    unscaled
        The same ratio on numbers that are not scaled. The attribute with the widest range dominates
        it.
    penalty
        Normalised certainty penalty (Xu et al. 2006), 0..1, as the mean over cells. For a cell that
        shows a range, it is the width of the range divided by the width of the domain. For a cell
        that shows an ancestor or a set, it is the share of the domain's values that this covers.
        Each cell of a suppressed record counts 1.
    discernibility
        Sum of the squared group sizes, plus N for each suppressed record (Bayardo and Agrawal
        2005).
    average_class_size
        Mean number of records per group.
    normalised_class_size
        `average_class_size` divided by k: C_avg of LeFevre et al. 2006; at least 1.
    """

    scaled: float
    unscaled: float
    penalty: float
    discernibility: int
    average_class_size: float
    normalised_class_size: float

    @classmethod
    def of(
        cls,
        groups: RecordGroups,
        k: int,
        deviation: Callable[..., float],
        penalty: float,
        *,
        left_out: int = 0,
    ) -> InformationLoss:
        """Return all measures of the loss: `groups` give those on sizes, `deviation` (called with
        `scaled`) those on deviations, and `penalty` is the certainty penalty. `left_out` further
        records count as suppressed.
        """
        scaled, unscaled = deviation(scaled=True), deviation(scaled=False)
        size, suppressed = len(groups.of) + left_out, groups.suppressed + left_out
        average = (size - suppressed) / len(groups) if len(groups) else 0.0
        discernibility = int(np.sum(groups.sizes**2)) + size * suppressed
        return cls(scaled, unscaled, penalty, discernibility, average, average / k)


def information_loss(
    records: Records, groups: RecordGroups, k: int, *, rounded: bool = False
) -> InformationLoss:
    """Return all measures of the information loss of groups with at least k records. `rounded` says
    whether means are rounded to the attribute's resolution.

    Suppressed records count in the penalty and in discernibility. They do not count in `scaled` and
    `unscaled`, which compare released records with their originals.
    """
    return InformationLoss.of(
        groups,
        k,
        partial(centroid_loss, records, groups, rounded=rounded),
        certainty_penalty(records, groups),
    )


def centroid_loss(
    records: Records, groups: RecordGroups, *, scaled: bool, rounded: bool = False
) -> float:
    """Return the information loss of Wei et al.: how far records deviate from the centroid of their
    group, relative to their deviation from the centroid of the table.

    It is the ratio of two sums of deviations, which are squared differences or mismatches. With
    `scaled`, numbers are compared as z-scores; with `rounded`, means are rounded to the attribute's
    resolution. The result is 0 if all records are equal or there is no group.
    """
    if not len(groups):
        return 0.0
    released = records.take(groups.order) if groups.suppressed else records
    inside = groups if not groups.suppressed else RecordGroups(groups.of[groups.order])
    return relative_deviation(
        released,
        lambda a, _, scaled: distances_to_centroid(a, inside, scaled=scaled, rounded=rounded),
        scaled=scaled,
    )


def relative_deviation(
    records: Records, moved: Callable[[RecordAttribute, Floats, bool], Floats], *, scaled: bool
) -> float:
    """Return how far a release moves values relative to their deviation from the table's centroid: a ratio
    of two sums over attributes, 0 if all records are equal.

    `moved` returns the squared distances between released and original values of an attribute, from
    the attribute, the squared distances to the centroid of the table, and `scaled`.
    """
    table_group = RecordGroups(np.zeros(len(records), dtype=np.int64))
    lost = total = 0.0
    for attribute in records.attributes:
        distances = distances_to_centroid(attribute, table_group, scaled=scaled)
        lost += float(moved(attribute, distances, scaled).sum())
        total += float(distances.sum())
    return lost / total if total > 0 else 0.0


def distances_to_centroid(
    attribute: RecordAttribute, groups: RecordGroups, *, scaled: bool, rounded: bool = False
) -> Floats:
    """Return the `squared_distances` of N records to the centroids of their groups, shape (N,).
    Every record must belong to a group. `rounded` rounds means to the attribute's resolution.
    """
    middle = centroid(attribute, groups, rounded=rounded)[groups.of]
    return squared_distances(attribute, attribute.codes, middle, scaled=scaled)


def certainty_penalty(records: Records, groups: RecordGroups) -> float:
    """Return which share of its attribute's domain a released cell covers, as a mean over all
    cells, 0..1: the normalised certainty penalty (Xu et al. 2006, section 3.1).
    """
    total = float(groups.suppressed * len(records.attributes))
    if len(groups):
        for attribute in records.attributes:
            total += float(np.sum(penalties(attribute, groups) * groups.sizes))
    return total / (len(records) * len(records.attributes))


def penalties(attribute: RecordAttribute, groups: RecordGroups) -> Floats:
    """Return the normalised certainty penalty (0..1) of the generalised value in each of the G
    groups, shape (G,).

    If the attribute has a hierarchy, the penalty is the share of all values that the ancestor
    covers. Otherwise it is the relative width of the range (ordered attributes) or the share of all
    values that are in the set. A group with both missing and other values is generalised to all
    values and has penalty 1.
    """
    covered = extent(attribute, groups)
    if attribute.hierarchy is not None:
        cost = attribute.hierarchy.shares[covered.low, covered.height].copy()
        cost[covered.height == 0] = 0.0
        return cost
    if attribute.ordered:
        cost = attribute.positions[covered.high] - attribute.positions[covered.low]
    else:
        group, _ = distinct_values(attribute, groups)
        counts = np.bincount(group, minlength=len(groups))
        cost = np.where(counts > 1, counts / max(attribute.present, 1), 0.0)
    mixed = (covered.high == attribute.missing) & (covered.low != attribute.missing)
    cost = np.asarray(cost, dtype=np.float64)
    cost[mixed] = 1.0
    return np.minimum(cost, 1.0)
