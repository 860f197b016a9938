"""The methods that swap values between records, so that every column keeps its distribution.

`rank-swap` swaps numbers and other ordered values with values of a close rank (Moore, Controlled
data-swapping techniques for masking public use microdata, US Census Bureau, RR 96-04).
`record-swap` swaps the geography between records that are equal in chosen columns; records at risk
come first. This is targeted record swapping, as in the 2021 census round (sdcMicro's recordSwap).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from aegis.anonymizers.base import Anonymizer, Method, Options, Outcome, Style, within
from aegis.anonymizers.groups import (
    InformationLoss,
    RecordGroups,
    relative_deviation,
    squared_distances,
)
from aegis.anonymizers.records import Codes, RecordAttribute, Records, distinct_rows
from aegis.arrays import Floats, Ints
from aegis.errors import PolicyError
from aegis.files import Progress
from aegis.policy import AttributeKind

_TRIES = 32
"""Number of random draws for a free partner before the search lists all free partners."""


@dataclass(frozen=True)
class RankSwapOptions(Options):
    """Options of rank swapping.

    Attributes
    ----------
    percent
        Largest distance between the ranks of two swapped values, in percent of the records: above
        0, up to 100.
    """

    percent: float = 5.0
    by_chance = True

    def __post_init__(self) -> None:
        super().__post_init__()
        within("percent", self.percent, 1e-9, 100)


@dataclass(frozen=True)
class RecordSwapOptions(Options):
    """Options of targeted record swapping.

    Attributes
    ----------
    geography
        Quasi-identifiers that state the place, the coarsest first: `[region, county]`.
    similar
        Quasi-identifiers in which two swapped records must have the same values.
    rate
        Smallest share of the records to swap, whether at risk or not, if there are enough partners.
    """

    geography: tuple[str, ...] = ()
    similar: tuple[str, ...] = ()
    rate: float = 0.05
    by_chance = True

    def __post_init__(self) -> None:
        super().__post_init__()
        within("rate", self.rate, 0, 1)

    def check(self, records: Records) -> None:
        """Raise an error if the records are too few or too alike for k or l, if no geography is
        given, or if a column is not a quasi-identifier or is listed under both options.
        """
        super().check(records)
        for name in (*self.geography, *self.similar):
            records.attribute(name)
        if not self.geography:
            raise PolicyError(
                "record-swap needs `geography`: the columns that state the place of a record.",
                hint="Name quasi-identifiers, the coarsest first: geography=[region, county].",
            )
        both = set(self.geography) & set(self.similar)
        if both:
            raise PolicyError(
                f"Columns cannot be both swapped and kept equal: {', '.join(sorted(both))}.",
                hint="Name a column under `geography` or under `similar`, not both.",
            )


def _rank_swap(
    records: Records, options: RankSwapOptions, random: np.random.Generator, progress: Progress
) -> Outcome:
    ordered = [a for a in records.attributes if a.ordered]
    if not ordered:
        raise PolicyError(
            "rank-swap needs ordered values, but the values of no quasi-identifier are ordered.",
            hint="Give a quasi-identifier with numbers or dates, or give one an `order`.",
        )
    released = {a.name: a.codes for a in records.attributes}
    with progress.step("Swapping ranks", len(ordered)) as step:
        for attribute in ordered:
            released[attribute.name] = swapped_ranks(attribute, options.percent, random)
            step.advance(1)
    names = ", ".join(a.name for a in ordered)
    far = f"{options.percent:g} % of the ranks away"
    note = f"values of {names} are swapped with values at most {far}"
    return _outcome(records, released, options.k, note)


def swapped_ranks(attribute: RecordAttribute, percent: float, random: np.random.Generator) -> Codes:
    """Swap each value with one whose rank differs by at most `percent` of the records; return the codes.

    Equal values are ranked in random order. A value is not swapped if all its partners are taken.
    Missing values are never swapped.
    """
    rows = np.flatnonzero(attribute.codes != attribute.missing)
    ranked = rows[np.lexsort((random.random(len(rows)), attribute.codes[rows]))]
    most_ranks = max(1, math.floor(percent * len(rows) / 100))
    swapped = np.zeros(len(ranked), dtype=np.bool_)
    codes = attribute.codes.copy()
    for rank in range(len(ranked)):
        if swapped[rank]:
            continue
        last = min(rank + most_ranks, len(ranked) - 1)
        partner = _free(swapped, rank + 1, last + 1, random)
        if partner is None:
            continue
        swapped[rank] = swapped[partner] = True
        row, other = ranked[rank], ranked[partner]
        codes[row], codes[other] = attribute.codes[other], attribute.codes[row]
    return codes


def _free(
    swapped: np.ndarray[tuple[int], np.dtype[np.bool_]],
    start: int,
    end: int,
    random: np.random.Generator,
) -> int | None:
    """Return a random index from `start` to `end` - 1 that is not swapped; None if there is none."""
    if start >= end:
        return None
    for index in random.integers(start, end, _TRIES).tolist():
        if not swapped[index]:
            return int(index)
    free = np.flatnonzero(~swapped[start:end])
    return None if not len(free) else start + int(random.choice(free))


def _record_swap(
    records: Records, options: RecordSwapOptions, random: np.random.Generator, progress: Progress
) -> Outcome:
    with progress.step("Swapping records", len(records)):
        places, at_risk, helpless = swapped_places(records, options, random)
    released = {
        a.name: a.codes[places] if a.name in options.geography else a.codes
        for a in records.attributes
    }
    swapped = int((places != np.arange(len(records))).sum())
    note = (
        f"{swapped:,} of {len(records):,} records were swapped; {at_risk:,} were at risk (in classes "
        f"below {options.k:,}), and {helpless:,} of these stayed, because no partner was left"
    )
    details = {"swapped": swapped, "at_risk": at_risk, "without_partner": helpless}
    return _outcome(records, released, options.k, note, details)


def swapped_places(
    records: Records, options: RecordSwapOptions, random: np.random.Generator
) -> tuple[Ints, int, int]:
    """Swap the places of records (the values of the columns of the geography) between records.

    Return, for each of the N records, the index of the record whose place it gets, shape (N,). Also
    return the number of records at risk, and how many of these are not swapped because no partner
    is left.

    A record is at risk if fewer than k records of its area have the same values of the other
    quasi-identifiers. At each level of the geography, the coarsest first, records at risk are
    swapped with records from other areas. Then more records are swapped at the finest level, until
    the rate is reached.
    """
    geography = [records.attribute(name) for name in options.geography]
    others = [a for a in records.attributes if a.name not in options.geography]
    swap = _Swap(records, options, random)
    risky = np.zeros(len(records), dtype=np.bool_)
    for level in range(1, len(geography) + 1):
        area, key = _rows_of(geography[:level]), _rows_of([*geography[:level], *others])
        at_risk = np.bincount(key)[key] < options.k
        risky |= at_risk
        swap.each(np.flatnonzero(at_risk), area)
    target = math.ceil(options.rate * len(records))
    swap.each(np.arange(len(records)), _rows_of(geography), until=target)
    stays = risky & (swap.places == np.arange(len(records)))
    return swap.places, int(risky.sum()), int(stays.sum())


class _Swap:
    """The swaps between records made so far; each record is swapped at most once."""

    def __init__(
        self, records: Records, options: RecordSwapOptions, random: np.random.Generator
    ) -> None:
        self._random = random
        self.places: Ints = np.arange(len(records))
        self._swapped = np.zeros(len(records), dtype=np.bool_)
        similar = [records.attribute(name) for name in options.similar]
        self._alike = _rows_of(similar) if similar else np.zeros(len(records), dtype=np.int64)
        order = np.argsort(self._alike, kind="stable")
        starts = np.flatnonzero(np.diff(self._alike[order], prepend=-1))
        self._pools = np.split(order, starts[1:])

    def each(self, rows: Ints, area: Ints, *, until: int | None = None) -> None:
        """Swap `rows`, in random order, with records of other areas, until so many are swapped."""
        for row in self._random.permutation(rows).tolist():
            if until is not None and int(self._swapped.sum()) >= until:
                return
            if self._swapped[row]:
                continue
            partner = self._partner(row, area)
            if partner is not None:
                self._swapped[row] = self._swapped[partner] = True
                self.places[row], self.places[partner] = partner, row

    def _partner(self, row: int, area: Ints) -> int | None:
        pool = self._pools[int(self._alike[row])]
        for candidate in pool[self._random.integers(0, len(pool), _TRIES)].tolist():
            if not self._swapped[candidate] and area[candidate] != area[row]:
                return int(candidate)
        partners = pool[~self._swapped[pool] & (area[pool] != area[row])]
        return None if not len(partners) else int(self._random.choice(partners))


def _rows_of(attributes: list[RecordAttribute]) -> Ints:
    return distinct_rows([a.codes for a in attributes])[1]


def _outcome(
    records: Records,
    released: Mapping[str, Codes],
    k: int,
    note: str,
    details: Mapping[str, int] | None = None,
) -> Outcome:
    def moved(attribute: RecordAttribute, _: Floats, scaled: bool) -> Floats:
        codes = released[attribute.name]
        numeric = attribute.kind is AttributeKind.NUMERIC
        values = attribute.numbers[codes] if numeric else codes
        return squared_distances(attribute, attribute.codes, values, scaled=scaled)

    deviation = partial(relative_deviation, records, moved)
    _, labels = distinct_rows([released[a.name] for a in records.attributes])
    columns = {
        a.name: tuple(a.domain[code] for code in released[a.name].tolist())
        for a in records.attributes
    }
    changed = float(np.mean([released[a.name] != a.codes for a in records.attributes]))
    warning = (
        "the method does not guarantee class sizes; Aegis checks the rule on the released rows"
    )
    return Outcome(
        labels,
        (f"{note}; {100 * changed:.3g} % of the cells changed", warning),
        {"changed_cells": changed} | dict(details or {}),
        columns,
        claims_k=False,
        loss=InformationLoss.of(RecordGroups.number(labels), k, deviation, changed),
    )


def _swap(
    name: str, summary: str, reference: str, options: type[Options], method: Method
) -> Anonymizer:
    return Anonymizer(
        name, summary, reference, options, Style.GENERALISED, "N log N", False, method, by_row=True
    )


RANK_SWAP = _swap(
    "rank-swap",
    "Swaps ordered values with values of a close rank.",
    "Moore 1996",
    RankSwapOptions,
    _rank_swap,
)
RECORD_SWAP = _swap(
    "record-swap",
    "Swaps the places of records at risk with the places of similar records.",
    "Targeted record swapping, as for the census round of 2021; sdcMicro",
    RecordSwapOptions,
    _record_swap,
)
