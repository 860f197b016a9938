"""Cut records recursively at the median (Mondrian), all partitions of one depth at a time.

The recursion of LeFevre et al. 2006 runs breadth first. Records stay sorted by partition. So a few
array operations compute the ranges, medians and counts of all partitions of a depth. The cost is
O(N log N) per depth, for any number of partitions.
"""

from __future__ import annotations

import numpy as np

from aegis.anonymizers.records import Codes, Records
from aegis.arrays import Flags, Floats, Ints
from aegis.files import SILENT_STEP, Step


class _Partitions:
    """The records sorted by partition, and the size of each partition."""

    def __init__(self, records: Records, rows: Ints, sizes: Ints) -> None:
        self.records = records
        self.rows = rows
        self.sizes = sizes

    @property
    def starts(self) -> Ints:
        return np.cumsum(self.sizes) - self.sizes

    @property
    def of(self) -> Ints:
        """The partition of each record, in the order of `rows`, shape (N,)."""
        return np.repeat(np.arange(len(self.sizes), dtype=np.int64), self.sizes)

    def widths(self) -> Floats:
        """Return the range of each partition relative to the attribute's, shape (A, P)."""
        starts = self.starts
        widths = np.empty((len(self.records.attributes), len(self.sizes)))
        for row, attribute in zip(widths, self.records.attributes, strict=True):
            codes = attribute.codes[self.rows]
            high = np.maximum.reduceat(codes, starts)
            low = np.minimum.reduceat(codes, starts)
            row[:] = attribute.positions[high] - attribute.positions[low]
        return widths

    def select(self, chosen: Flags) -> _Partitions:
        """Return only the partitions that `chosen` flags."""
        return _Partitions(
            self.records, self.rows[np.repeat(chosen, self.sizes)], self.sizes[chosen]
        )


def mondrian(
    records: Records, k: int, *, distinct: int = 1, relaxed: bool = False, step: Step = SILENT_STEP
) -> Ints:
    """Partition the records by Mondrian (LeFevre, DeWitt and Ramakrishnan 2006, figure 3 and
    section 4).

    A partition is cut at the median of its widest attribute; the width is the range in the
    partition divided by the range of the domain. Both sides must have at least k records and
    `distinct` values of each sensitive attribute; otherwise the next widest attribute is tried. The
    paper leaves some choices open. Here, the median value goes to the side that makes the cut more
    even. Categories are cut in the order of their hierarchy. A missing value lies one range of the
    domain above the largest value.

    Parameters
    ----------
    records
        N >= k encoded records.
    k, distinct
        Smallest number of records, and of distinct values of each sensitive attribute, in a
        partition.
    relaxed
        Whether to split the records in half, even between equal values.

    Returns
    -------
    labels
        Number of the partition to which each of the N records belongs, shape (N,), int64.
    """
    labels = np.empty(len(records), dtype=np.int64)
    active = _Partitions(records, np.arange(len(records)), np.array([len(records)]))
    done = 0
    while len(active.sizes):
        small = active.sizes < 2 * k
        halves, uncut = _cut_all(active, ~small, k, distinct, relaxed)
        finished = active.select(uncut)
        labels[finished.rows] = done + finished.of
        done += len(finished.sizes)
        step.advance(len(finished.rows))
        active = halves
    return labels


def _cut_all(
    active: _Partitions, open_: Flags, k: int, distinct: int, relaxed: bool
) -> tuple[_Partitions, Flags]:
    """Cut all partitions in `open_` that can be cut; return the halves, and which were not cut.
    Both halves must have k records and `distinct` values of each sensitive attribute. If `relaxed`,
    equal values may be divided.
    """
    widths = active.widths()
    ranking = np.argsort(-widths, axis=0, kind="stable")
    uncut = np.ones(len(active.sizes), dtype=bool)
    rows: list[Ints] = []
    sizes: list[Ints] = []
    for rank in range(len(widths)):
        choice = ranking[rank]
        for number in range(len(widths)):
            wide = widths[number] > 0
            tried = uncut & open_ & (choice == number) & wide
            if not tried.any():
                continue
            part = active.select(tried)
            in_left, allowed = _cut(part, number, k, distinct, relaxed)
            halves = _halves(part, in_left, allowed)
            rows.append(halves.rows)
            sizes.append(halves.sizes)
            uncut[np.flatnonzero(tried)[allowed]] = False
    empty = np.empty(0, dtype=np.int64)
    joined = _Partitions(
        active.records,
        np.concatenate([empty, *rows]),
        np.concatenate([empty, *sizes]),
    )
    return joined, uncut


def _halves(part: _Partitions, in_left: Flags, allowed: Flags) -> _Partitions:
    """Return both halves of each partition in `allowed`; `in_left` flags the records of the left
    half. Records keep their order.
    """
    in_left = in_left[np.repeat(allowed, part.sizes)]
    chosen = part.select(allowed)
    of = chosen.of
    lefts = np.bincount(of[in_left], minlength=len(chosen.sizes))
    sizes = np.column_stack([lefts, chosen.sizes - lefts]).ravel()
    # Where each record goes: its half's start plus its rank among the half's records.
    running = np.cumsum(in_left)
    before: Ints = running - in_left
    base = chosen.starts
    lefts_before: Ints = before - np.repeat(before[base], chosen.sizes)
    rank = np.arange(len(of)) - np.repeat(base, chosen.sizes)
    target = np.repeat(base, chosen.sizes) + np.where(
        in_left, lefts_before, np.repeat(lefts, chosen.sizes) + rank - lefts_before
    )
    rows = np.empty_like(chosen.rows)
    rows[target] = chosen.rows
    return _Partitions(part.records, rows, sizes.astype(np.int64))


def _cut(
    part: _Partitions, number: int, k: int, distinct: int, relaxed: bool
) -> tuple[Flags, Flags]:
    """Return the cut of each partition by the attribute `number`: which records go left, shape (N,), and
    for which partitions both sides have k records and `distinct` sensitive values, shape (P,).
    """
    attribute = part.records.attributes[number]
    codes = attribute.codes[part.rows]
    of = part.of
    in_left = (
        _relaxed_sides(part, codes, attribute.size)
        if relaxed
        else _strict_sides(part, codes, attribute.size)
    )
    lefts = np.bincount(of[in_left], minlength=len(part.sizes))
    allowed = (lefts >= k) & (part.sizes - lefts >= k)
    if distinct > 1:
        allowed &= _diverse(part, of, in_left, distinct)
    return in_left, allowed


def _strict_sides(part: _Partitions, codes: Codes, size: int) -> Flags:
    """Return which records go left, shape (N,), if each partition is cut below or above its median
    value, whichever is more even.
    """
    of = part.of
    key = np.sort(of * size + codes)
    median = key[part.starts + (part.sizes - 1) // 2] - np.arange(len(part.sizes)) * size
    threshold = np.repeat(median, part.sizes)
    upto, below = codes <= threshold, codes < threshold
    with_median = np.bincount(of[upto], minlength=len(part.sizes))
    without = np.bincount(of[below], minlength=len(part.sizes))
    include = np.abs(2 * with_median - part.sizes) <= np.abs(2 * without - part.sizes)
    return np.where(np.repeat(include, part.sizes), upto, below)


def _relaxed_sides(part: _Partitions, codes: Codes, size: int) -> Flags:
    """Return which records go left: the lower half of each partition, in stable order, shape (N,)."""
    order = np.argsort(part.of * size + codes, kind="stable")
    rank = np.arange(len(codes)) - np.repeat(part.starts, part.sizes)
    in_left = np.empty(len(codes), dtype=bool)
    in_left[order] = rank < np.repeat(part.sizes // 2, part.sizes)
    return in_left


def _diverse(part: _Partitions, of: Ints, in_left: Flags, distinct: int) -> Flags:
    """Return whether both sides of each cut have `distinct` values of every sensitive attribute."""
    side = 2 * of + in_left
    fine = np.ones(len(part.sizes), dtype=bool)
    for attribute in part.records.sensitive:
        pairs = np.unique(side * attribute.size + attribute.codes[part.rows])
        values = np.bincount(pairs // attribute.size, minlength=2 * len(part.sizes))
        fine &= values.reshape(-1, 2).min(axis=1) >= distinct
    return fine
