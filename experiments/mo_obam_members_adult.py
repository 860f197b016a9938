"""Which decision moves (k,l)-member's count of classes on Adult, and by how much.

Wei et al. publish 1,066 classes at k = 5 and 895 at k = 10 (Table V(a)). One reading of the method is
changed in one decision at a time: the unit of age, how much a mismatch weighs, how seeds are chosen,
what the next record is near to, how many distinct sensitive values are asked for, and what a release
shows of a cluster. Records of equal quasi-identifiers are interchangeable, so all of this works on the
1,900 combinations that occur, each with the queue of its records.

    python experiments/mo_obam_members_adult.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from common import write_csv
from records import ROLES, adult

NAME = "mo_obam_members_adult"
KS = (5, 10)
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Reading:
    """One way to build (k,l)-member and to release its clusters.

    `unit` divides ages; squared distances of ages and `mismatch` for each category that differs are
    added up, but for `near` "loss", where it is the range of the ages and the categories that vary.
    """

    unit: float = 1.0
    mismatch: float = 1.0
    near: str = "seed"
    seeds: str = "farthest"
    distinct: int = 2
    shown: str = "rounded centroid"


BASE = Reading()
CHANGED: dict[str, Reading] = {
    "years, to the seed, seeds farthest, l = 2, rounded centroids": BASE,
    "ages in shares of their range": replace(BASE, unit=73.0),
    "a mismatch weighs 100 times as much": replace(BASE, mismatch=100.0),
    "a mismatch weighs a tenth": replace(BASE, mismatch=0.1),
    "seeds drawn": replace(BASE, seeds="drawn"),
    "seeds in the order of the file": replace(BASE, seeds="first"),
    "the next record near to the last one": replace(BASE, near="last"),
    "the next record by the loss it adds": replace(BASE, near="loss"),
    "l = 1": replace(BASE, distinct=1),
    "l = 4": replace(BASE, distinct=4),
    "l = 5": replace(BASE, distinct=5),
    "centroids truncated": replace(BASE, shown="truncated centroid"),
    "the seed's values released": replace(BASE, shown="seed"),
    "the commonest combination released": replace(BASE, shown="combination"),
    "seeds drawn, centroids truncated": replace(BASE, seeds="drawn", shown="truncated centroid"),
    "seeds in the order of the file, centroids truncated": replace(
        BASE, seeds="first", shown="truncated centroid"
    ),
    "a tenth, near to the last one, commonest combination": replace(
        BASE, mismatch=0.1, near="last", shown="combination"
    ),
}


class Table:
    """Adult as its combinations of quasi-identifiers: `values` (D, 1 + categories), `of` (N,)."""

    def __init__(self) -> None:
        table = adult()
        (age, *categories), sensitive = ROLES["Adult"]
        self.ages = np.array(table[age], dtype=np.float64)
        self.codes = np.column_stack([_codes(table[name].to_pylist()) for name in categories])
        self.secrets = _codes(table[sensitive[0]].to_pylist())
        self.values, of = np.unique(
            np.column_stack([self.ages, self.codes]), axis=0, return_inverse=True
        )
        self.of = of.ravel()
        modes = [np.bincount(column).argmax() for column in self.codes.T]
        self.deviation = float(
            ((self.ages - self.ages.mean()) ** 2).sum() + (self.codes != modes).sum()
        )


def _codes(texts: Sequence[str]) -> Integers:
    return np.unique(texts, return_inverse=True)[1].ravel().astype(np.int64)


class Queues:
    """The unassigned records of each combination, first to last."""

    def __init__(self, of: Integers) -> None:
        self.order = np.argsort(of, kind="stable")
        counts = np.bincount(of)
        self.end = np.cumsum(counts)
        self.next = self.end - counts
        self.head = self.order[self.next].astype(np.float64)
        self.closed = np.zeros(len(counts))
        self.left = len(of)

    def take(self, combination: int) -> int:
        """Remove and return the first unassigned record of a combination."""
        record = int(self.order[self.next[combination]])
        self.next[combination] += 1
        self.left -= 1
        if self.next[combination] == self.end[combination]:
            self.head[combination] = self.closed[combination] = np.inf
        else:
            self.head[combination] = self.order[self.next[combination]]
        return record

    def least(self, cost: Floats) -> int:
        """Return the open combination of least cost, of equals that of the first record."""
        cost = cost + self.closed
        equal = np.flatnonzero(cost == cost.min())
        return int(equal[np.argmin(self.head[equal])])

    def drawn(self, random: np.random.Generator) -> int:
        """Return the combination of a record that is drawn."""
        upto = np.cumsum(self.end - self.next)
        return int(np.searchsorted(upto, random.integers(upto[-1]), side="right"))


class Clusters:
    """Greedy clusters of k by one reading."""

    def __init__(self, table: Table, reading: Reading) -> None:
        self.table, self.reading = table, reading
        self.ages, self.codes = table.values[:, 0] / reading.unit, table.values[:, 1:]
        self.queues = Queues(table.of)
        self.random = np.random.default_rng(0)

    def distance(self, combination: int) -> Floats:
        """Return the distance of each combination to one, shape (D,)."""
        apart = (self.codes != self.codes[combination]).sum(axis=1) * self.reading.mismatch
        return (self.ages - self.ages[combination]) ** 2 + apart

    def run(self, k: int) -> tuple[Integers, Integers]:
        """Return the cluster of each record and the seed of each cluster, as a combination."""
        labels = np.full(len(self.table.of), -1, dtype=np.int64)
        seeds: list[int] = []
        last = int(self.table.of[self.random.integers(len(self.table.of))])
        while self.queues.left >= k:
            last = self.seed(last)
            members = self.grow(last, k)
            if members is None:
                break
            labels[members] = len(seeds)
            seeds.append(last)
        for record in np.flatnonzero(labels < 0):
            labels[record] = self.distance(int(self.table.of[record]))[seeds].argmin()
        return labels, np.array(seeds)

    def seed(self, last: int) -> int:
        """Return the combination that the next cluster begins with."""
        if self.reading.seeds == "drawn":
            return self.queues.drawn(self.random)
        if self.reading.seeds == "first":
            return int(np.argmin(self.queues.head))
        return self.queues.least(-self.distance(last))

    def grow(self, seed: int, k: int) -> list[int] | None:
        """Return the records of a cluster of k and l or more; None where the records run out.

        The nearest record is taken, whatever its sensitive value, until there are k and l.
        """
        members = [self.queues.take(seed)]
        places = [seed]
        while len(members) < k or self.values_of(members) < self.reading.distinct:
            if not self.queues.left:
                return None
            chosen = self.queues.least(self.cost(places))
            places.append(chosen)
            members.append(self.queues.take(chosen))
        return members

    def values_of(self, members: list[int]) -> int:
        """Return how many sensitive values records have."""
        return len(set(self.table.secrets[members].tolist()))

    def cost(self, places: list[int]) -> Floats:
        """Return what it costs to add each combination to a cluster, shape (D,)."""
        if self.reading.near != "loss":
            return self.distance(places[-1 if self.reading.near == "last" else 0])
        own = self.ages[places]
        width = np.maximum(own.max(), self.ages) - np.minimum(own.min(), self.ages)
        first = self.codes[places[0]]
        varies = (self.codes[places] != first).any(axis=0) | (self.codes != first)
        return width + self.reading.mismatch * varies.sum(axis=1)


def released(table: Table, reading: Reading, labels: Integers, seeds: Integers) -> Floats:
    """Return the values that the release shows of each cluster."""
    count = len(seeds)
    if reading.shown == "seed":
        return table.values[seeds]
    if reading.shown == "combination":
        width = len(table.values)
        rows = np.bincount(labels * width + table.of, minlength=count * width)
        return table.values[rows.reshape(count, width).argmax(axis=1)]
    means = np.bincount(labels, table.ages) / np.bincount(labels)
    whole = np.floor(means) if reading.shown.startswith("truncated") else np.round(means)
    modes = [
        np.bincount(labels * 16 + column, minlength=count * 16).reshape(count, 16).argmax(axis=1)
        for column in table.codes.T
    ]
    return np.column_stack([whole, *modes])


def figures(table: Table, reading: Reading, k: int) -> dict[str, Any]:
    """Return clusters, classes of equal released values, unscaled loss and records at risk."""
    labels, seeds = Clusters(table, reading).run(k)
    shown = released(table, reading, labels, seeds)[labels]
    sizes = np.unique(shown, axis=0, return_counts=True)[1]
    lost = ((shown[:, 0] - table.ages) ** 2).sum() + (shown[:, 1:] != table.codes).sum()
    below = {"at_risk_0.05": 20, "at_risk_0.075": 14, "at_risk_0.1": 10}
    return {
        "clusters": len(seeds),
        "classes": len(sizes),
        "il": float(lost / table.deviation),
        **{name: int(sizes[sizes < size].sum()) for name, size in below.items()},
    }


def main() -> None:
    """Cluster by every reading, count and write."""
    table = Table()
    rows = []
    for k in KS:
        for words, reading in CHANGED.items():
            rows.append({"reading": words, "k": k, **figures(table, reading, k)})
            print(rows[-1], flush=True)
            write_csv(NAME, rows)


if __name__ == "__main__":
    main()
