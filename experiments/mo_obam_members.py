"""Why the published counts of MO-OBAM's (k,l)-member are not reached: arithmetic and variants.

- Tables IV(a) and V(a) of Wei et al. against themselves: records at risk above 1/20, 1/13.3 and 1/10
  stand in classes of fewer than 20, 14 and 10, and k records make a class at least. So each row allows
  at most a certain number of classes, whatever the method.
- German, 24 readings of (k,l)-member (Zheng et al. 2019, known by summary only): distance in years,
  in standard deviations or in shares of the range; to the seed or to the centroid; seeds farthest
  from the one before or drawn; l distinct values from the first record on or at the end. Ten seeds.

Of each: clusters, centroids that differ, classes of equal released values, loss on unscaled numbers, records at risk.

Adult: `mo_obam_members_adult.py`.

    python experiments/mo_obam_members.py
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.anonymizers import encode_for, information_loss
from aegis.anonymizers.groups import RecordGroups, centroid
from aegis.anonymizers.records import Records
from aegis.policy import AttributeKind
from common import write_csv, write_json
from mo_obam import LABEL, PUBLISHED, PUBLISHED_BEYOND
from records import ROLES, german, policy_of, released_classes, risks

NAME = "mo_obam_members"
KS = (5, 10, 15, 20)
STARTS = 10
"""Seeds of each reading on German."""
BELOW = {"at_risk_0.1": 10, "at_risk_0.075": 14, "at_risk_0.05": 20}
"""The least class that is not at risk: 1/size above .1 is a size below 10, above .075 below 14."""
SIZE = {"German": 1000, "Adult": 45_222}
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Reading:
    """One way to build (k,l)-member from its summary."""

    unit: str = "years"
    near: str = "seed"
    seeds: str = "farthest"
    diverse: str = "end"


READINGS = tuple(
    Reading(*one)
    for one in product(
        ("years", "deviations", "range"),
        ("seed", "centroid"),
        ("farthest", "drawn"),
        ("first", "end"),
    )
)


def most_classes(name: str, k: int, row: dict[str, float]) -> int:
    """Return the most classes of k or more that a table's records at risk allow."""
    most, least, counted = 0, k, 0
    for figure, size in BELOW.items():
        inside = int(row[figure]) - counted
        if size > k:
            most += inside // max(least, k)
        counted, least = int(row[figure]), size
    return most + (SIZE[name] - counted) // max(least, k)


def bounds() -> list[dict[str, Any]]:
    """Return the published count of classes beside what its own columns allow, by row."""
    rows = []
    for name, k in product(("German", "Adult"), KS):
        for method in ("mdav", "kl-member"):
            row = PUBLISHED[name, method] if k == 5 else PUBLISHED_BEYOND[name, method, k]
            rows.append(
                {
                    "data": name,
                    "method": method,
                    "k": k,
                    "published": int(row["clusters"]),
                    "at_most": most_classes(name, k, row),
                }
            )
    return rows


def features(records: Records, unit: str) -> tuple[Floats, Floats]:
    """Return numbers in the unit of the reading, shape (N, A), and codes of categories, (N, B)."""
    numbers, codes = [], []
    for one in records.attributes:
        if one.kind is not AttributeKind.NUMERIC:
            codes.append(one.codes.astype(np.float64))
            continue
        values = one.numbers[one.codes]
        scale = {"years": 1.0, "deviations": float(values.std()), "range": float(np.ptp(values))}
        numbers.append(values / scale[unit])
    return np.column_stack(numbers), np.column_stack(codes)


class Clusters:
    """Greedy clusters of k by one reading."""

    def __init__(self, records: Records, reading: Reading, *, distinct: int, seed: int) -> None:
        self.numbers, self.codes = features(records, reading.unit)
        self.secrets = np.column_stack([one.codes for one in records.sensitive])
        self.reading, self.distinct = reading, distinct
        self.random = np.random.default_rng(seed)
        self.free = np.ones(len(records), dtype=bool)

    def distance(self, number: Floats, code: Floats) -> Floats:
        """Return the squared distance of each free record to a point, mismatches counting 1."""
        apart = np.where(self.free, 0.0, np.inf)
        for column, value in zip(self.numbers.T, number, strict=True):
            apart += (column - value) ** 2
        for column, value in zip(self.codes.T, code, strict=True):
            apart += column != value
        return apart

    def middle(self, members: list[int]) -> tuple[Floats, Floats]:
        """Return what records are held near to: the seed, or means and modes of the members."""
        if self.reading.near == "seed":
            return self.numbers[members[0]], self.codes[members[0]]
        modes = [np.bincount(column.astype(np.int64)).argmax() for column in self.codes[members].T]
        return self.numbers[members].mean(axis=0), np.array(modes, dtype=np.float64)

    def missing(self, members: list[int]) -> list[int]:
        """Return the sensitive attributes of which members have too few values."""
        values = self.secrets[members].T
        return [place for place, own in enumerate(values) if len(set(own)) < self.distinct]

    def grow(self, seed: int, k: int) -> list[int] | None:
        """Return the members of a cluster; None where the records cannot complete it."""
        members = [seed]
        self.free[seed] = False
        apart: Floats | None = None
        while True:
            missing = self.missing(members)
            if len(members) >= k and not missing:
                return members
            if apart is None or self.reading.near == "centroid":
                apart = self.distance(*self.middle(members))
            allowed = apart
            if missing and (self.reading.diverse == "first" or len(members) >= k):
                known = [np.isin(self.secrets[:, p], self.secrets[members, p]) for p in missing]
                allowed = np.where(np.all(known, axis=0), np.inf, apart)
            chosen = int(allowed.argmin())
            if not np.isfinite(allowed[chosen]):
                return None
            members.append(chosen)
            self.free[chosen] = False
            apart[chosen] = np.inf

    def run(self, k: int) -> RecordGroups:
        """Return the groups; records that are left join the nearest cluster."""
        labels = np.full(len(self.free), -1, dtype=np.int64)
        middles, last = [], int(self.random.integers(len(self.free)))
        while self.free.sum() >= k:
            if self.reading.seeds == "drawn":
                last = int(self.random.choice(np.flatnonzero(self.free)))
            else:
                apart = self.distance(self.numbers[last], self.codes[last])
                last = int(np.where(self.free, apart, -1.0).argmax())
            members = self.grow(last, k)
            if members is None:
                break
            labels[members] = len(middles)
            middles.append(self.middle(members))
        numbers, codes = (np.array(part) for part in zip(*middles, strict=True))
        for record in np.flatnonzero(labels < 0):
            apart = ((numbers - self.numbers[record]) ** 2).sum(axis=1)
            labels[record] = (apart + (codes != self.codes[record]).sum(axis=1)).argmin()
        return RecordGroups.number(labels)


def distinct_centroids(records: Records, groups: RecordGroups) -> int:
    """Return how many groups differ in their centroids before rounding."""
    shown = [centroid(one, groups) for one in records.attributes]
    return len(np.unique(np.round(np.column_stack(shown), 9), axis=0))


def variants(k: int) -> Iterator[dict[str, Any]]:
    """Yield a row of figures for each reading and seed, on German with l = 2."""
    table = german()
    records = encode_for(table, policy_of("German", table, LABEL["German"]))
    for reading, seed in product(READINGS, range(STARTS)):
        groups = Clusters(records, reading, distinct=2, seed=seed).run(k)
        shown = risks(released_classes(records, groups), table, ROLES["German"][1])
        row = {
            "data": "German",
            "k": k,
            "l": 2,
            **vars(reading),
            "seed": seed,
            "groups": len(groups),
            "centroids": distinct_centroids(records, groups),
            "classes": shown.pop("clusters"),
            "il": information_loss(records, groups, k).unscaled,
            **shown,
        }
        print(row, flush=True)
        yield row


def main() -> None:
    """Count, cluster and write."""
    write_json(NAME, {"bounds": bounds()})
    rows = [row for k in KS for row in variants(k)]
    write_csv(NAME, rows)


if __name__ == "__main__":
    main()
