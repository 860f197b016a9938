"""The clustering methods k-member and (k,l)-member: greedy, by the smallest increase of information
loss.

Records with equal quasi-identifiers are interchangeable for both methods. So they work on distinct
combinations of values, each with a queue of its records. This is exact, and takes much less time
than N^2 on tables with few combinations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aegis.anonymizers.base import Anonymizer, Options, Style
from aegis.anonymizers.groups import RecordGroups, extent
from aegis.anonymizers.method import labelled
from aegis.anonymizers.records import RecordAttribute, Records
from aegis.arrays import Floats, Ints
from aegis.files import SILENT_STEP, Step
from aegis.policy import AttributeKind


@dataclass(frozen=True)
class DiverseOptions(Options):
    """Options of the method kl-member; l is 2 by default."""

    l: int = 2  # noqa: E741 - the field's term


class _Coverage:
    """The values of one attribute that a cluster covers, and the cost of adding each further value.

    The cost is from 0 to 1. For numbers and ordinal values, it is the width that the cluster then
    covers, divided by the attribute's range. With a hierarchy, it is the height of the lowest
    common ancestor divided by the height of the root. A missing value together with another value
    costs 1.
    """

    def __init__(self, attribute: RecordAttribute, combination_codes: Ints) -> None:
        self._codes = combination_codes
        self._tree = attribute.kind is AttributeKind.CATEGORICAL
        self._attribute = attribute
        self._places = attribute.positions[combination_codes]
        self._heights = np.empty(0)

    def begin(self, combination: int) -> Floats:
        """Start a cluster; return the cost of adding each combination to it, 0 to 1, shape (D,)."""
        if self._tree:
            tree = self._attribute.tree
            heights = tree.heights_to(int(self._codes[combination])) / tree.height
            self._heights = heights[self._codes]
            self._covered = 0.0
        else:
            self._low = self._high = float(self._places[combination])
        return self._costs()

    def include(self, combination: int) -> Floats | None:
        """Add a combination; return the new costs, shape (D,), or None if none changes."""
        if self._tree:
            height = float(self._heights[combination])
            if height <= self._covered:
                return None
            self._covered = height
            return self._costs()
        position = float(self._places[combination])
        if self._low <= position <= self._high:
            return None
        self._low, self._high = min(self._low, position), max(self._high, position)
        return self._costs()

    def _costs(self) -> Floats:
        if self._tree:
            return np.maximum(self._heights, self._covered)
        low, high = np.minimum(self._places, self._low), np.maximum(self._places, self._high)
        width: Floats = np.minimum(high - low, 1.0)
        return width


class _Cluster:
    """The cluster that is being built, with the summed cost of adding each combination."""

    def __init__(self, coverages: list[_Coverage], combination: int) -> None:
        self._coverages = coverages
        self._parts = [coverage.begin(combination) for coverage in coverages]
        self.cost: Floats = np.sum(self._parts, axis=0)

    def include(self, combination: int) -> None:
        changed = False
        for number, coverage in enumerate(self._coverages):
            part = coverage.include(combination)
            if part is not None:
                self._parts[number] = part
                changed = True
        if changed:
            self.cost = np.sum(self._parts, axis=0)


class _Queues:
    """The records without a cluster: a queue for each combination, in the order of the records."""

    def __init__(self, of: Ints, count: int) -> None:
        self.order = np.argsort(of, kind="stable")
        sizes = np.bincount(of, minlength=count)
        self._next = np.cumsum(sizes) - sizes
        self._end = self._next + sizes
        self.head: Ints = self.order[self._next].astype(np.int64)
        self.waiting = len(of)
        self.open = np.ones(count, dtype=bool)

    def take(self, combination: int) -> int:
        """Remove the first record from the queue of a combination; return its index."""
        record = int(self.head[combination])
        self._next[combination] += 1
        self.waiting -= 1
        if self._next[combination] == self._end[combination]:
            self.open[combination] = False
        else:
            self.head[combination] = self.order[self._next[combination]]
        return record

    def cheapest(self, cost: Floats) -> int:
        """Return the combination with the least `cost` among those that still have records. Of
        equal ones, return the one whose next record comes first.
        """
        return self._first(np.where(self.open, cost, np.inf))

    def farthest(self, distance: Floats) -> int:
        """Return the combination with the largest `distance` in the same way."""
        return self._first(np.where(self.open, -distance, np.inf))

    def _first(self, cost: Floats) -> int:
        equal = np.flatnonzero(cost == cost.min())
        return int(equal[np.argmin(self.head[equal])])


def k_member(
    records: Records,
    k: int,
    random: np.random.Generator,
    *,
    distinct: int = 1,
    step: Step = SILENT_STEP,
) -> Ints:
    """Cluster the records by k-member (Byun et al. 2007, figure 3), or by (k,l)-member if
    `distinct` is above 1.

    The first cluster starts at the record farthest from a random record, each later one at the
    record farthest from the start of the cluster before. Each step adds the record that increases
    the information loss least, until the cluster has k records. Each remaining record joins the
    cluster whose loss it increases least. The loss of a cluster is its number of records times a
    sum over attributes: its range divided by the attribute's range, or the height of the lowest
    common ancestor divided by the height of the root.

    With `distinct` > 1, a cluster grows further until it has `distinct` different values of each
    sensitive attribute (Zheng et al. 2019, after the abstract). If too few records remain for this,
    they join the other clusters; if there is no other, all records are one cluster.

    Parameters
    ----------
    records
        N >= k encoded records. Ranges determine the loss of ordinal and numeric attributes;
        hierarchies determine the loss of categorical attributes.
    k
        Smallest size of a cluster.
    random
        Generator that picks the random record at the start.

    Returns
    -------
    labels
        Number of the cluster to which each of the N records belongs, shape (N,), int64. The time is
        O(N D A) for D distinct combinations of A attributes.
    """
    first, of = records.combinations
    queues = _Queues(of, len(first))
    coverages = [_Coverage(a, a.codes[first].astype(np.int64)) for a in records.attributes]
    labels = np.full(len(records), -1, dtype=np.int64)
    cluster = 0
    seed = int(of[random.integers(len(records))])
    while queues.waiting >= k:
        distance = _Cluster(coverages, seed).cost
        seed = queues.farthest(distance)
        members = _grow(records, queues, _Cluster(coverages, seed), seed, of, k, distinct)
        if members is None:
            break
        labels[members] = cluster
        cluster += 1
        step.advance(len(members))
    rest = np.flatnonzero(labels < 0)
    if not cluster:
        return np.zeros(len(records), dtype=np.int64)
    _join_cheapest(records, rest, labels)
    return labels


def _grow(
    records: Records, queues: _Queues, cluster: _Cluster, seed: int, of: Ints, k: int, distinct: int
) -> list[int] | None:
    """Add records to a cluster until it has k records and `distinct` values of each sensitive attribute.

    Return the records; None if too few are left. `seed` is the combination to start with, `of` that
    of each record.
    """
    members = [queues.take(seed)]
    sensitive_codes: list[set[int]] = [{int(a.codes[members[0]])} for a in records.sensitive]
    while len(members) < k or (distinct > 1 and min(map(len, sensitive_codes)) < distinct):
        if not queues.waiting:
            return None
        chosen = queues.cheapest(cluster.cost)
        member = queues.take(chosen)
        members.append(member)
        for values, attribute in zip(sensitive_codes, records.sensitive, strict=True):
            values.add(int(attribute.codes[member]))
        cluster.include(int(of[member]))
    return members


def _join_cheapest(records: Records, rest: Ints, labels: Ints) -> None:
    """Label each of the records `rest` with the cluster whose information loss it raises least."""
    groups = RecordGroups(labels.copy())
    sizes = groups.sizes.copy()
    covers = [_Cover(a, groups) for a in records.attributes]
    for record in rest:
        before = np.sum([cover.cost for cover in covers], axis=0)
        after = np.sum([cover.with_code(int(cover.codes[record])) for cover in covers], axis=0)
        best = int(np.argmin((sizes + 1) * after - sizes * before))
        labels[record] = best
        sizes[best] += 1
        for cover in covers:
            cover.include(best, int(cover.codes[record]))


class _Cover:
    """What each of G finished clusters covers of an attribute, as a cost from 0 to 1, shape (G,)."""

    def __init__(self, attribute: RecordAttribute, groups: RecordGroups) -> None:
        self.codes = attribute.codes
        self._attribute = attribute
        self._tree = attribute.kind is AttributeKind.CATEGORICAL
        covered = extent(attribute, groups)
        self._low = attribute.positions[covered.low]
        self._high = attribute.positions[covered.high]
        self._some = covered.low
        self._height = covered.height / attribute.tree.height

    @property
    def cost(self) -> Floats:
        return self._height if self._tree else np.minimum(self._high - self._low, 1.0)

    def with_code(self, code: int) -> Floats:
        """Return the cost of each cluster if the value with this code were added, shape (G,)."""
        if self._tree:
            heights = self._attribute.tree.heights_to(code) / self._attribute.tree.height
            return np.maximum(self._height, heights[self._some])
        position = self._attribute.positions[code]
        width = np.maximum(self._high, position) - np.minimum(self._low, position)
        cost: Floats = np.minimum(width, 1.0)
        return cost

    def include(self, cluster: int, code: int) -> None:
        """Add the value with this code to the cluster with the index `cluster`."""
        position = self._attribute.positions[code]
        self._height[cluster] = self.with_code(code)[cluster] if self._tree else 0.0
        self._low[cluster] = min(self._low[cluster], position)
        self._high[cluster] = max(self._high[cluster], position)


_CLUSTERED = labelled(
    "k-member",
    lambda records, options, random, step: k_member(
        records, options.k, random, distinct=options.l, step=step
    ),
)
K_MEMBER = Anonymizer(
    "k-member",
    "Builds clusters of k records, and each time adds the record that increases the loss least.",
    "Byun, Kamra, Bertino and Li 2007",
    Options,
    Style.GENERALISED,
    "N D",
    False,
    _CLUSTERED,
    quadratic=True,
)
KL_MEMBER = Anonymizer(
    "kl-member",
    "Works like k-member, but clusters grow until they have l distinct sensitive values.",
    "Zheng et al. 2019",
    DiverseOptions,
    Style.GENERALISED,
    "N D",
    True,
    _CLUSTERED,
    quadratic=True,
)
