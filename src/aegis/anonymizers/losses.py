"""Measures of the information that a grouping loses: deviation from centroids, width of ranges,
size of classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from aegis.anonymizers.groups import (
    RecordGroups,
    centroid,
    distinct_values,
    extent,
    squared_distances,
    total_groups,
)
from aegis.anonymizers.records import RecordAttribute, Records
from aegis.arrays import Floats


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
        """Return the penalty together with the figures on group sizes, which are computed from
        `groups`, and with both deviations.

        `deviation` has the argument `scaled` and returns the figure `scaled` or `unscaled`.
        `left_out` is the number of further records that count as suppressed.
        """
        scaled, unscaled = deviation(scaled=True), deviation(scaled=False)
        size, suppressed = len(groups.of) + left_out, groups.suppressed + left_out
        average = (size - suppressed) / len(groups) if len(groups) else 0.0
        discernibility = int(np.sum(groups.sizes**2)) + size * suppressed
        return cls(scaled, unscaled, penalty, discernibility, average, average / k)


def information_loss(
    records: Records, groups: RecordGroups, k: int, *, rounded: bool = False
) -> InformationLoss:
    """Return all measures of information loss of the groups, in which k records are required.

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
    `scaled`, numbers are compared as z-scores; with `rounded`, means are rounded as in `centroid`.
    The result is 0 if all records are equal or there is no group.
    """
    if not len(groups):
        return 0.0
    released = records.take(groups.order) if groups.suppressed else records
    inside = groups if not groups.suppressed else RecordGroups(groups.of[groups.order])
    return relative_deviation(
        released,
        lambda own, _, scaled: distances_to_centroid(own, inside, scaled=scaled, rounded=rounded),
        scaled=scaled,
    )


def relative_deviation(
    records: Records, moved: Callable[[RecordAttribute, Floats, bool], Floats], *, scaled: bool
) -> float:
    """Return how far a release moves the values of records, relative to their deviation from the
    centroid of the table: a ratio of two sums over attributes, 0 if all records are equal.

    `moved` returns the squared distances between released and original values of an attribute. Its
    arguments are the attribute, the squared distance of each record to the centroid of the table,
    and `scaled`, which says whether numbers are compared as z-scores.
    """
    whole = total_groups(records)
    lost = total = 0.0
    for attribute in records.attributes:
        distances = distances_to_centroid(attribute, whole, scaled=scaled)
        lost += float(moved(attribute, distances, scaled).sum())
        total += float(distances.sum())
    return lost / total if total > 0 else 0.0


def distances_to_centroid(
    attribute: RecordAttribute, groups: RecordGroups, *, scaled: bool, rounded: bool = False
) -> Floats:
    """Return the squared distance between the value of each of the N records and the centroid of
    the record's group, shape (N,).

    Every record must belong to a group. `squared_distances` defines the distance. With `rounded`,
    means are rounded as in `centroid`.
    """
    middle = centroid(attribute, groups, rounded=rounded)[groups.of]
    return squared_distances(attribute, attribute.codes, middle, scaled=scaled)


def certainty_penalty(records: Records, groups: RecordGroups) -> float:
    """Return the mean normalised certainty penalty over all cells, 0..1 (Xu et al. 2006, section 3.1)."""
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
