"""The clusters of the local search, with statistics from which the change of loss by a move or a
swap is computed exactly.

The statistics of a cluster are its size, sums of coordinates, and counts of each category and each
sensitive value. The time to compute a change of loss does not depend on the size of the clusters:
sums of squares use the update of Hartigan and Wong, and mismatches use the counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aegis.anonymizers.records import Records
from aegis.arrays import Flags, Floats, Ints
from aegis.records.space import Space

BLOCK = 2**21
"""Largest number of cells of a distance matrix in memory at once."""


@dataclass(frozen=True, eq=False)
class Instance:
    """The records that the search clusters, as arrays.

    Attributes
    ----------
    points
        P coordinates (numbers and ordinal values) of each of the N records, shape (N, P).
    nominal
        Codes of the Q categorical attributes in each record, shape (N, Q). `nominal_sizes` has the
        number of values of each attribute.
    sensitive
        Codes of the S sensitive attributes in each record, shape (N, S). `sensitive_sizes` has the
        number of values of each attribute.
    first, of
        For each distinct combination of quasi-identifiers, the index of its first record; and for
        each record, the index of its combination.
    """

    points: Floats
    nominal: Ints
    nominal_sizes: tuple[int, ...]
    sensitive: Ints
    sensitive_sizes: tuple[int, ...]
    first: Ints
    of: Ints

    @classmethod
    def build(cls, records: Records, *, scaled: bool) -> Instance:
        """Return the arrays of `records`, with numbers as z-scores if `scaled`."""
        space = Space.of(records, scaled=scaled)
        first, of = records.combinations
        encoded = [np.unique(a.codes, return_inverse=True) for a in records.sensitive]
        sensitive = np.array([codes for _, codes in encoded], dtype=np.int64)
        return cls(
            np.ascontiguousarray(space.points.T),
            np.ascontiguousarray(space.nominal.T).astype(np.int64),
            space.sizes,
            sensitive.reshape(len(encoded), len(of)).T,
            tuple(len(values) for values, _ in encoded),
            first,
            of,
        )

    def __len__(self) -> int:
        return len(self.of)

    @property
    def total(self) -> float:
        """Return the loss if all records form one cluster, by which others are divided."""
        return State(self, np.zeros(len(self), dtype=np.int64), 1).loss


def entropy(counts: Ints) -> Floats:
    """Return the entropy in bits over the last axis of counts; 0 if all are 0."""
    totals = np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    shares = counts / totals
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    bits: Floats = -np.sum(shares * logs, axis=-1)
    return np.maximum(bits, 0.0)


class State:
    """An assignment of N records to C clusters, with the statistics of each cluster."""

    def __init__(self, instance: Instance, of: Ints, clusters: int) -> None:
        self.instance = instance
        self.of = of.astype(np.int64)
        self.sizes: Ints = np.bincount(of, minlength=clusters).astype(np.int64)
        self.sums = np.zeros((clusters, instance.points.shape[1]))
        for column, values in enumerate(instance.points.T):
            self.sums[:, column] = np.bincount(of, weights=values, minlength=clusters)
        self.counts = [
            _counted(of, codes, clusters, size)
            for codes, size in zip(instance.nominal.T, instance.nominal_sizes, strict=True)
        ]
        self.tops = [counts.max(axis=1) for counts in self.counts]
        # How many values share the top: a lone one loses its place when a record leaves.
        self.peaks = [
            np.count_nonzero(counts == top[:, None], axis=1)
            for counts, top in zip(self.counts, self.tops, strict=True)
        ]
        self.sensitive_counts = [
            _counted(of, codes, clusters, size)
            for codes, size in zip(instance.sensitive.T, instance.sensitive_sizes, strict=True)
        ]
        self.entropies = [entropy(counts) for counts in self.sensitive_counts]
        self.loss = self._loss()

    @property
    def clusters(self) -> int:
        """Return the number of clusters C."""
        return len(self.sizes)

    def copy(self) -> State:
        """Return an independent copy; its statistics are computed again."""
        return State(self.instance, self.of.copy(), self.clusters)

    def _loss(self) -> float:
        squares = float(np.sum(self.instance.points**2))
        sizes = np.maximum(self.sizes, 1)
        within = squares - float(np.sum(np.sum(self.sums**2, axis=1) / sizes))
        return max(within, 0.0) + float(sum(np.sum(self.sizes - top) for top in self.tops))

    def centres(self) -> Floats:
        """Return the means of the coordinates of each cluster, shape (C, P)."""
        return self.sums / np.maximum(self.sizes, 1)[:, None]

    def distances(self, combinations: Ints) -> Floats:
        """Return the squared distance of each combination to each centre, shape (D, C)."""
        rows = self.instance.first[combinations]
        total = self._coordinate_distances(rows)
        for codes, counts in zip(self.instance.nominal[rows].T, self.counts, strict=True):
            total += codes[:, None] != np.argmax(counts, axis=1)[None, :]
        return total

    def _coordinate_distances(self, rows: Ints) -> Floats:
        """Return the squared distances of records to centres, shape (M, C)."""
        points, centres = self.instance.points[rows], self.centres()
        total = np.zeros((len(rows), self.clusters))
        for column in range(points.shape[1]):
            total += (points[:, column, None] - centres[None, :, column]) ** 2
        return total

    def costs_of_adding(self, combinations: Ints) -> Floats:
        """Return how much the loss rises if one of each combination joins each cluster, (D, C)."""
        rows = self.instance.first[combinations]
        total = self._coordinate_distances(rows)
        total *= self.sizes / (self.sizes + 1)
        for codes, counts, top in zip(
            self.instance.nominal[rows].T, self.counts, self.tops, strict=True
        ):
            total += (counts < top[:, None]).T[codes]
        return total

    def gains_of_removing(self, records: Ints) -> Floats:
        """Return how much the loss falls if each record leaves its cluster, shape (M,)."""
        of = self.of[records]
        points = self.instance.points[records]
        centres = self.sums[of] / self.sizes[of][:, None]
        shrink = self.sizes[of] / np.maximum(self.sizes[of] - 1, 1)
        gain: Floats = shrink * np.sum((points - centres) ** 2, axis=1)
        for codes, counts, top, peaks in zip(
            self.instance.nominal[records].T, self.counts, self.tops, self.peaks, strict=True
        ):
            gain += ~((counts[of, codes] == top[of]) & (peaks[of] == 1))
        return gain

    def costs_of_joining(self, cluster: int, records: Ints) -> Floats:
        """Return how much the loss rises if each record joins `cluster`, shape (M,)."""
        size = int(self.sizes[cluster])
        offsets = self.instance.points[records] - self.sums[cluster] / max(size, 1)
        cost: Floats = size / (size + 1) * np.sum(offsets**2, axis=1)
        for codes, counts, top in zip(
            self.instance.nominal[records].T, self.counts, self.tops, strict=True
        ):
            cost = cost + (counts[cluster, codes] < top[cluster])
        return cost

    def best_moves(self, margin: Flags) -> tuple[Ints, Ints, Floats]:
        """For each record that may leave its cluster, find the other cluster that it joins at the
        least information loss.

        Parameters
        ----------
        margin
            For each of the C clusters, whether a record may leave it, shape (C,).

        Returns
        -------
        records, targets, changes
            The M records that may move, the best cluster for each, and how much this move changes
            the information loss; each of shape (M,).
        """
        records = np.flatnonzero(margin[self.of])
        if not len(records) or self.clusters < 2:
            return records, records, np.empty(0)
        gains = self.gains_of_removing(records)
        targets = np.empty(len(records), dtype=np.int64)
        costs = np.empty(len(records))
        combination = self.instance.of[records]
        order = np.argsort(combination, kind="stable")
        distinct, inverse = np.unique(combination[order], return_inverse=True)
        step = max(BLOCK // self.clusters, 1)
        for start in range(0, len(distinct), step):
            block = distinct[start : start + step]
            table = self.costs_of_adding(block)
            span = np.searchsorted(inverse, [start, start + len(block)])
            chosen = order[span[0] : span[1]]
            rows = inverse[span[0] : span[1]] - start
            best, second = _two_best(table)
            source = self.of[records[chosen]]
            target = np.where(best[rows] == source, second[rows], best[rows])
            targets[chosen] = target
            costs[chosen] = table[rows, target]
        return records, targets, costs - gains

    def move_change(self, record: int, target: int) -> float:
        """Return exactly how much the loss changes when a record moves to `target`."""
        source = int(self.of[record])
        point = self.instance.points[record]
        source_size, target_size = int(self.sizes[source]), int(self.sizes[target])
        away = point - self.sums[source] / source_size
        change = 0.0
        if source_size > 1:
            change -= source_size / (source_size - 1) * float(away @ away)
        if target_size:
            towards = point - self.sums[target] / target_size
            change += target_size / (target_size + 1) * float(towards @ towards)
        for number, counts in enumerate(self.counts):
            code = self.instance.nominal[record, number]
            change += self._unmatched(number, source, code) + float(
                counts[target, code] < self.tops[number][target]
            )
        return change

    def _unmatched(self, number: int, source: int, code: int) -> float:
        """Return the change of mismatches, 0 or -1, if a record with `code` leaves `source`. A
        mismatch is a record that does not have the most frequent code of its cluster.
        """
        at_top = self.counts[number][source, code] == self.tops[number][source]
        return 0.0 if at_top and self.peaks[number][source] == 1 else -1.0

    def swap_changes(self, record: int, others: Ints) -> Floats:
        """Return exactly the change of loss by swaps with `others` of other clusters, shape (M,)."""
        source, targets = int(self.of[record]), self.of[others]
        step = self.instance.points[others] - self.instance.points[record]
        squared = np.sum(step**2, axis=1)
        # |S + d|^2 / n - |S|^2 / n = (2 S.d + |d|^2) / n; sums of |x|^2 cancel over the two.
        change: Floats = -(2 * step @ self.sums[source] + squared) / self.sizes[source]
        inward = np.sum(self.sums[targets] * step, axis=1)
        change -= (squared - 2 * inward) / self.sizes[targets]
        # A nominal attribute costs the records that differ from the most frequent value of their
        # cluster; what is gained are records that agree with it, in the cluster that `record`
        # leaves (one `code` less, one of the other's codes more) and in each that it enters.
        for number, counts in enumerate(self.counts):
            code = int(self.instance.nominal[record, number])
            codes = self.instance.nominal[others, number]
            top = self.tops[number]
            differ = codes != code  # equal values change no count
            base = top[source] - 1 - self._unmatched(number, source, code)
            gained = np.maximum(base, counts[source, codes] + 1) - top[source]
            alone = self.peaks[number][targets] == 1  # no other value is as frequent
            rest = top[targets] - ((counts[targets, codes] == top[targets]) & alone)
            gained = gained + np.maximum(rest, counts[targets, code] + 1) - top[targets]
            change -= np.where(differ, gained, 0)
        return change

    def move(self, record: int, target: int, change: float) -> None:
        """Move a record to cluster `target`; `change` is the change of loss by this move."""
        source = int(self.of[record])
        self.of[record] = target
        self.sizes[source] -= 1
        self.sizes[target] += 1
        self.sums[source] -= self.instance.points[record]
        self.sums[target] += self.instance.points[record]
        for number, counts in enumerate(self.counts):
            code = self.instance.nominal[record, number]
            counts[source, code] -= 1
            counts[target, code] += 1
            both = [source, target]
            self.tops[number][both] = counts[both].max(axis=1)
            self.peaks[number][both] = np.count_nonzero(
                counts[both] == self.tops[number][both][:, None], axis=1
            )
        for number, table in enumerate(self.sensitive_counts):
            code = self.instance.sensitive[record, number]
            table[source, code] -= 1
            table[target, code] += 1
            self.entropies[number][[source, target]] = entropy(table[[source, target]])
        self.loss += change

    def swap(self, record: int, other: int, change: float) -> None:
        """Exchange two records of different clusters; `change` is the change of loss."""
        source, target = int(self.of[record]), int(self.of[other])
        self.move(record, target, change)
        self.move(other, source, 0.0)

    def diversity_after(self, record: int, target: int, other: int | None) -> list[float]:
        """Return `diversity` after a move to `target`, or an exchange with `other`."""
        changed = [int(self.of[record]), target]
        least = []
        for table, values, entropies in zip(
            self.sensitive_counts, self.instance.sensitive.T, self.entropies, strict=True
        ):
            rest, counts = entropies.copy(), table[changed]
            counts[:, values[record]] += (-1, 1)
            if other is not None:
                counts[:, values[other]] += (1, -1)
            rest[changed] = entropy(counts)
            least.append(float(rest.min()))
        return least

    def diversity(self) -> list[float]:
        """Return the lowest entropy over clusters of each sensitive attribute, in bits."""
        return [float(values.min()) for values in self.entropies]


def _counted(of: Ints, codes: Ints, clusters: int, size: int) -> Ints:
    flat = np.bincount(of * size + codes, minlength=clusters * size)
    return flat.reshape(clusters, size).astype(np.int64)


def _two_best(table: Floats) -> tuple[Ints, Ints]:
    """Return the columns of the smallest and the second smallest entry of each row."""
    best = np.argmin(table, axis=1)
    rows = np.arange(len(table))
    best_counts = table[rows, best].copy()
    table[rows, best] = np.inf
    second = np.argmin(table, axis=1)
    table[rows, best] = best_counts
    return best, second
