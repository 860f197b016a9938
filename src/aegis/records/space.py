"""The coordinates in which microaggregation measures distance.

The squared distance is a sum over attributes. The term of a numeric attribute is the squared
difference of z-scores; the term of an ordinal attribute is the squared difference of ranks divided
by V - 1; the term of a categorical attribute is 0 or 1. A missing number counts as the mean, and a
missing rank as the middle of the scale, at a distance of one unit in a separate dimension. The
module `groups` uses the same metric, so the methods minimise the loss that is reported.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aegis.anonymizers.records import Codes, Records
from aegis.arrays import Floats, Ints
from aegis.policy import AttributeKind


@dataclass(frozen=True, eq=False)
class Space:
    """Records as coordinates, between which microaggregation measures distances.

    Attributes
    ----------
    points
        P coordinates (numbers and ranks) of each of the N records, shape (P, N).
    ranked
        For each of the P coordinates, whether it is ordinal, so that its centre is a median; shape
        (P,).
    nominal
        Codes of the Q categorical attributes in each of the N records, shape (Q, N).
    sizes
        Number of values of each categorical attribute, shape (Q,).
    """

    points: Floats
    ranked: tuple[bool, ...]
    nominal: Codes
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, records: Records, *, scaled: bool = True) -> Space:
        """Return the coordinates of `records`; numbers become z-scores, if `scaled`."""
        points: list[Floats] = []
        ranked: list[bool] = []
        nominal: list[Codes] = []
        sizes: list[int] = []
        for attribute in records.attributes:
            if attribute.kind is AttributeKind.CATEGORICAL:
                nominal.append(attribute.codes)
                sizes.append(attribute.size)
                continue
            numeric = attribute.kind is AttributeKind.NUMERIC
            places = np.zeros(attribute.size)
            if numeric:
                places = (attribute.numbers - attribute.centre) / attribute.spread
            elif attribute.present > 1:
                places[: attribute.present] = np.linspace(-0.5, 0.5, attribute.present)
            unit = attribute.spread if numeric and not scaled else 1.0
            missing = attribute.missing
            if missing >= 0:
                places[missing] = 0.0
            points.append(unit * places[attribute.codes])
            ranked.append(not numeric)
            if missing >= 0 and np.any(attribute.codes == missing):
                points.append(unit * (attribute.codes == missing))
                ranked.append(True)
        return cls(
            np.array(points).reshape(len(points), len(records)),
            tuple(ranked),
            np.array(nominal, dtype=np.int32).reshape(len(nominal), len(records)),
            tuple(sizes),
        )

    def __len__(self) -> int:
        return int(self.points.shape[1] if len(self.points) else self.nominal.shape[1])

    def take(self, rows: Ints) -> Space:
        """Return the coordinates of the records with the indices `rows`."""
        return Space(
            np.ascontiguousarray(self.points[:, rows]),
            self.ranked,
            np.ascontiguousarray(self.nominal[:, rows]),
            self.sizes,
        )

    def centre(self) -> tuple[Floats, Codes]:
        """Return the average record: means, lower medians of ranks, and modes (the lowest code)."""
        middle = (len(self) - 1) // 2
        coordinates = np.array(
            [
                np.partition(row, middle)[middle] if ranked else row.mean()
                for row, ranked in zip(self.points, self.ranked, strict=True)
            ]
        )
        modes = np.array(
            [
                np.argmax(np.bincount(codes, minlength=size))
                for codes, size in zip(self.nominal, self.sizes, strict=True)
            ],
            dtype=np.int32,
        )
        return coordinates, modes

    def at(self, row: int) -> tuple[Floats, Codes]:
        """Return the coordinates and the codes of categories of the record with the index `row`."""
        return self.points[:, row], self.nominal[:, row]

    def distances(self, point: tuple[Floats, Codes]) -> Floats:
        """Return the squared distance between each record and `point`, shape (N,)."""
        total = np.zeros(len(self))
        difference = np.empty(len(self))
        for row, value in zip(self.points, point[0], strict=True):
            np.subtract(row, value, out=difference)
            np.multiply(difference, difference, out=difference)
            total += difference
        for codes, code in zip(self.nominal, point[1], strict=True):
            total += codes != code
        return total
