"""The microaggregation methods MDAV and V-MDAV, which build clusters around the records farthest
from the average.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aegis.anonymizers.base import Anonymizer, Options, Style, at_least
from aegis.anonymizers.method import labelled
from aegis.arrays import Floats, Ints
from aegis.files import SILENT_STEP, Step
from aegis.records.space import Space

COMPACT_AT = 8
"""V-MDAV removes assigned records from the arrays once they are more than 1/`COMPACT_AT` of all."""


@dataclass(frozen=True)
class VariableOptions(Options):
    """Options of V-MDAV.

    Attributes
    ----------
    gamma
        A record joins a cluster that already has k records if its distance to the cluster is below
        gamma times its distance to the nearest other record without a cluster. With 0, clusters
        have k records. 0.2 suits scattered data, and 1.1 suits clustered data (Solanas and
        Martinez-Balleste 2006).
    """

    gamma: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("gamma", self.gamma, 0)


class _Unassigned:
    """The coordinates of the records that are in no cluster yet, in ascending order of their index.
    Rows of assigned records stay in the arrays, marked, until they are removed together.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.rows: Ints = np.arange(len(space), dtype=np.int64)
        self._dead = np.zeros(len(space), dtype=bool)
        self._assigned = 0

    def __len__(self) -> int:
        return len(self.rows) - self._assigned

    def compact(self) -> None:
        """Remove the rows of assigned records; the positions of others change."""
        if self._assigned:
            alive = np.flatnonzero(~self._dead)
            self.space, self.rows = self.space.take(alive), self.rows[alive]
            self._dead, self._assigned = np.zeros(len(alive), dtype=bool), 0

    def masked(self, distances: Floats) -> Floats:
        """Return `distances` with infinity at the positions of assigned records."""
        return np.where(self._dead, np.inf, distances)

    def compact_when_worth(self) -> None:
        """Remove the rows of assigned records from the arrays if there are many of them."""
        if COMPACT_AT * self._assigned > len(self.rows):
            self.compact()

    def remove(self, positions: Ints) -> None:
        """Mark the records at `positions` as assigned to a cluster."""
        self._dead[positions] = True
        self._assigned += len(positions)

    def farthest(self, distances: Floats) -> int:
        """Return the first position of the unassigned record at the largest distance."""
        return int(np.argmax(np.where(self._dead, -1.0, distances)))

    def nearest(self, distances: Floats, count: int, position: int) -> Ints:
        """Return the `count` nearest unassigned positions, always with `position` itself."""
        unassigned = self.masked(distances)
        unassigned[position] = -1.0
        return smallest(unassigned, count)


def smallest(values: Floats, count: int) -> Ints:
    """Return the positions of the `count` smallest values, ascending; of equal, the lower one."""
    bound = np.partition(values, count - 1)[count - 1]
    below = np.flatnonzero(values < bound)
    equal = np.flatnonzero(values == bound)[: count - len(below)]
    return np.sort(np.concatenate([below, equal]))


def mdav(space: Space, k: int, step: Step = SILENT_STEP) -> Ints:
    """Cluster the records by MDAV-generic (Domingo-Ferrer and Torra 2005, algorithm 4.1).

    While at least 3k records remain, the record r farthest from the average record and the record
    farthest from r each form a cluster with their k - 1 nearest records. If 2k to 3k - 1 records
    remain, the record farthest from the average forms a cluster in this way, and the rest is the
    last cluster. Fewer than 2k remaining records form one cluster. If several records are equally
    far, the first one is taken.

    Parameters
    ----------
    space
        Coordinates of N records, N >= k.
    k
        Smallest size of a cluster; sizes are k to 2k - 1.

    Returns
    -------
    labels
        Number of the cluster to which each of the N records belongs, shape (N,), int64. The
        function takes O(N^2 / k) time and O(N) memory.
    """
    labels = np.zeros(len(space), dtype=np.int64)
    pool = _Unassigned(space)
    cluster = 0
    while len(pool) >= 3 * k:
        pool.compact()
        from_r = _around_farthest(pool, k, labels, cluster)
        # s was chosen among all records; r's own cluster may have absorbed it, then again.
        s = pool.farthest(from_r)
        near = pool.nearest(pool.space.distances(pool.space.at(s)), k, s)
        labels[pool.rows[near]] = cluster + 1
        pool.remove(near)
        cluster += 2
        step.advance(2 * k)
    pool.compact()
    if len(pool) >= 2 * k:
        _around_farthest(pool, k, labels, cluster)
        cluster += 1
        pool.compact()
    labels[pool.rows] = cluster
    return labels


def _around_farthest(pool: _Unassigned, k: int, labels: Ints, cluster: int) -> Floats:
    """Label the record farthest from the average and its k - 1 nearest records as `cluster`. Return
    the distance of each unassigned record to that farthest record.
    """
    r = pool.farthest(pool.space.distances(pool.space.centre()))
    from_r = pool.space.distances(pool.space.at(r))
    near = pool.nearest(from_r, k, r)
    labels[pool.rows[near]] = cluster
    pool.remove(near)
    return from_r


def v_mdav(space: Space, k: int, gamma: float, step: Step = SILENT_STEP) -> Ints:
    """Cluster the records by V-MDAV (Solanas and Martinez-Balleste 2006).

    While at least k records remain, the record farthest from the centre of the table forms a
    cluster with its k - 1 nearest records. Then the cluster can grow to at most 2k - 1 records: the
    nearest unassigned record is added if its distance to the nearest member is less than `gamma`
    times its distance to the nearest other unassigned record. If fewer than k records remain, each
    joins the cluster with the nearest centre. Distances are Euclidean, not squared.

    `space` has the coordinates of N >= k records. Return the number of the cluster to which each
    record belongs, shape (N,), int64. The remaining records may make a cluster larger than 2k - 1.
    """
    labels = np.full(len(space), -1, dtype=np.int64)
    pool = _Unassigned(space)
    from_centre = space.distances(space.centre())
    cluster = 0
    while len(pool) >= k:
        pool.compact_when_worth()
        seed = pool.farthest(from_centre[pool.rows])
        members = pool.nearest(pool.space.distances(pool.space.at(seed)), k, seed)
        pool.remove(members)
        labels[pool.rows[members]] = cluster
        _extend(pool, members, k, gamma, labels, cluster)
        cluster += 1
        step.advance(k)
    pool.compact()
    _join_nearest(space, pool.rows, labels, cluster)
    return labels


def _extend(
    pool: _Unassigned, members: Ints, k: int, gamma: float, labels: Ints, cluster: int
) -> None:
    if gamma == 0:
        return
    distances = np.min([pool.space.distances(pool.space.at(int(m))) for m in members], axis=0)
    for _ in range(k - 1):
        # The last record has no other to be compared with: it joins by centre, as leftovers do.
        if len(pool) < 2:
            return
        nearest = int(np.argmin(pool.masked(distances)))
        outward = pool.space.distances(pool.space.at(nearest))
        others = pool.masked(outward)
        others[nearest] = np.inf
        if not np.sqrt(distances[nearest]) < gamma * np.sqrt(others.min()):
            return
        pool.remove(np.array([nearest]))
        labels[pool.rows[nearest]] = cluster
        distances = np.minimum(distances, outward)


def _join_nearest(space: Space, rows: Ints, labels: Ints, clusters: int) -> None:
    """Label each of the records `rows` with the cluster of the nearest centre."""
    if not len(rows):
        return
    centres = [space.take(np.flatnonzero(labels == c)).centre() for c in range(clusters)]
    places = Space(
        np.array([c[0] for c in centres]).T.copy(),
        space.ranked,
        np.array([c[1] for c in centres], dtype=np.int32).T.copy(),
        space.sizes,
    )
    labels[rows] = [int(np.argmin(places.distances(space.at(int(row))))) for row in rows]


MDAV = Anonymizer(
    "mdav",
    "Groups k records around the records farthest from the average (microaggregation).",
    "Domingo-Ferrer and Torra 2005, MDAV-generic",
    Options,
    Style.CENTROID,
    "N^2 / k",
    False,
    labelled("mdav", lambda records, options, _, step: mdav(Space.of(records), options.k, step)),
    quadratic=True,
)
V_MDAV = Anonymizer(
    "v-mdav",
    "Works as mdav, but a group grows beyond k records if a neighbour is close.",
    "Solanas and Martinez-Balleste 2006",
    VariableOptions,
    Style.CENTROID,
    "N^2",
    False,
    labelled(
        "v-mdav",
        lambda records, options, _, step: v_mdav(Space.of(records), options.k, options.gamma, step),
    ),
    quadratic=True,
)
