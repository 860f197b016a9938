"""Measure how well released columns predict the values of a column that is hidden by its mask, and
find columns that make most rows unique.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.arrays import counts_by_key

Codes = npt.NDArray[np.integer[Any]]

FIXED = 0.99
"""A value of a released column determines a hidden value if at least this share of its rows have
the hidden value.

All other rows are considered typing errors.
"""
FEWEST_ROWS = 5
"""If a released value has fewer rows than this, it means nothing that they all have one hidden
value.
"""
WORTH_SAYING = 0.2
"""Smallest lift (see `lift`) for which a released column is reported."""
ERRORS = 3.0
"""A column is reported only if it exceeds what chance explains by this number of standard errors."""
LEAK = 0.8
"""A single column that explains at least this share of the label may repeat it in other words."""
MOST_VALUES = 0.2
"""A column is compared only if its number of values is at most this share of the number of rows;
otherwise, each value has too few rows.
"""
MOST_PAIRS = 2_000
"""Largest number of pairs of columns that are compared."""
_SCREENED_ROWS = 50_000
"""Number of rows on which pairs are compared first; only promising pairs are then counted in full."""


@dataclass(frozen=True)
class Predictability:
    """How well one can guess the values of a column if one knows the group of each row.

    Attributes
    ----------
    right
        Share of the rows that are guessed right. The guess is the most frequent value among the
        other rows of the group. For a row that is alone in its group, it is the most frequent value
        of all rows.
    fixed
        Share of the rows that are in groups of at least five rows, of which at least 99 % have the
        same value.
    at_most
        Share of the rows that have the most frequent value of their group. This is the accuracy of
        a guess that also uses the row itself, so it is at least `right`.
    """

    right: float
    fixed: float
    at_most: float


@dataclass(frozen=True)
class Implication:
    """A released column from which one can guess a column that a mask hides.

    Attributes
    ----------
    hidden, released
        The two columns.
    right
        Share of the released rows whose hidden value is guessed right from the released column and
        the masked value of the hidden column.
    right_without
        The same share if only the masked value is used. This guess may use the row itself, so the
        gain is underestimated.
    fixed
        Share of the released rows whose hidden value follows from the released column and the
        masked value together: at least five rows share both, and at least 99 % of them have the
        same hidden value.
    """

    hidden: str
    released: str
    right: float
    right_without: float
    fixed: float

    @property
    def lift(self) -> float:
        """How many more rows are guessed right because of the released column, as a share of the
        largest possible increase, from 0 to 1.

        It is (right - right_without) / (1 - right_without), and at least 0.
        """
        return lift(self.right, self.right_without)


def lift(right: float, right_without: float) -> float:
    """Return the increase from `right_without` to `right`, two shares of right guesses, as a share
    of the largest possible increase; at least 0.
    """
    return max(0.0, (right - right_without) / (1 - right_without)) if right_without < 1 else 0.0


def predictability(groups: Codes, values: Codes, counts: Codes) -> Predictability:
    """Compute how well the groups of rows predict their values, from the number of rows by group
    and value.

    A guess never uses the row itself. So groups of single rows, such as the values of a key,
    predict nothing.

    Parameters
    ----------
    groups, values, counts
        The group, the value and the number of rows of each non-empty cell, shape (cells,); cells
        of one group follow each other.
    """
    rows = int(counts.sum())
    if not rows:
        return Predictability(0.0, 0.0, 0.0)
    most_frequent = int(np.bincount(values, weights=counts).argmax())
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    sizes = np.add.reduceat(counts, first)
    largest = np.maximum.reduceat(counts, first)
    cells = np.diff(first, append=len(groups))
    # A guess without the row itself is right if no other cell is as large as the rest of the largest.
    rivals = np.add.reduceat(counts >= np.repeat(largest - 1, cells), first, dtype=np.int64)
    guessed = largest[(rivals == 1) & (largest > 1)].sum()
    guessed += int(((sizes == 1) & (values[first] == most_frequent)).sum())
    fixed = sizes[(sizes >= FEWEST_ROWS) & (largest >= FIXED * sizes)].sum()
    return Predictability(*(float(hits / rows) for hits in (guessed, fixed, largest.sum())))


def predictability_of_rows(groups: Codes, values: Codes) -> Predictability:
    """Compute how well the groups of N rows predict the values of the rows, as `predictability`
    does. `groups` and `values` have the group and the value of each row, shape (N,).
    """
    width = _size(values)
    keys = _combined(groups, values, width)
    cells, counts = counts_by_key(keys, None, _size(groups) * width)
    return predictability(*np.divmod(cells, width), counts)


def find_implications(
    hidden: Mapping[str, tuple[Codes, Codes]], released: Mapping[str, Codes]
) -> tuple[Implication, ...]:
    """Return, for each column that a mask hides, the released column that predicts it best, if it
    predicts it well.

    Parameters
    ----------
    hidden
        For each column that is hidden by its mask, two arrays of shape (N,): the true value and the
        masked value of each of N rows.
    released
        For each released column, the released value of each row, shape (N,).

    Returns
    -------
    tuple
        At most one entry per hidden column; the entry with the largest lift comes first.
    """
    rows = max((len(masked) for masked in released.values()), default=0)
    few = {n: c for n, c in released.items() if 1 < _size(c) <= max(MOST_VALUES * rows, 2)}
    pairs = [
        (name, other)
        for name, (true, _) in sorted(hidden.items())
        if 1 < _size(true) <= max(MOST_VALUES * rows, 2)
        for other in sorted(few)
        if other != name
    ]
    best: dict[str, tuple[float, Implication]] = {}
    step = -(-rows // _SCREENED_ROWS)

    @cache
    def of_hidden(name: str, step: int) -> tuple[Codes, Codes, Predictability]:
        true, masked = (np.ascontiguousarray(codes[::step]) for codes in hidden[name])
        return true, masked, predictability_of_rows(masked, true)

    @cache
    def of_released(name: str, step: int) -> Codes:
        return np.ascontiguousarray(few[name][::step])

    def compare(name: str, other: str, step: int) -> tuple[float, Implication]:
        true, masked, without = of_hidden(name, step)
        return _compare(name, other, without, true, masked, of_released(other, step))

    for name, other in pairs[:MOST_PAIRS]:
        if step > 1 and compare(name, other, step)[0] < WORTH_SAYING / 2:
            continue
        gain, implication = compare(name, other, 1)
        if gain >= WORTH_SAYING and gain > best.get(name, (0.0, None))[0]:
            best[name] = gain, implication
    ranked = sorted(best.values(), key=lambda entry: (-entry[0], entry[1].hidden))
    return tuple(implication for _, implication in ranked)


def _compare(
    name: str, other: str, without: Predictability, true: Codes, masked: Codes, released: Codes
) -> tuple[float, Implication]:
    """Return by how much the released column `other` improves guesses of the hidden column `name`,
    and both columns as an `Implication`. `true`, `masked` and `released` are the true, the masked
    and the other column's value of each row; `without` says how well the masked value alone
    predicts.
    """
    both = _combined(masked, released, _size(released))
    together = predictability_of_rows(both, true)
    implication = Implication(name, other, together.right, without.at_most, together.fixed)
    error = np.sqrt(without.at_most * (1 - without.at_most) / len(true))
    by_guesses = implication.lift if together.right - without.at_most > ERRORS * error else 0.0
    fixed = together.fixed - without.fixed
    if fixed >= WORTH_SAYING:
        fixed = min(fixed, together.fixed - _fixed_by_chance(true, masked, both))
    return max(by_guesses, fixed), implication


def _fixed_by_chance(true: Codes, masked: Codes, both: Codes) -> float:
    """Return the largest share of rows with a fixed value (`Predictability.fixed`) that chance
    explains.

    If most rows with one masked value have the same true value, a small group of these rows often
    has only this value, however the rows are divided. If chance divides them, the number of its
    rows with this value is binomial. The result is the mean over such divisions plus `ERRORS`
    standard deviations.

    Parameters
    ----------
    true, masked
        The true and the masked value of each of N rows, shape (N,).
    both
        The group of each row: its masked value and the other column's value together, shape (N,).
    """
    from scipy.special import bdtrc  # takes long to load

    _, first, sizes = np.unique(both, return_index=True, return_counts=True)
    large = sizes >= FEWEST_ROWS
    value_of_class, sizes = masked[first[large]], sizes[large]
    cells, counts = np.unique(masked.astype(np.int64) * _size(true) + true, return_counts=True)
    largest = np.zeros(_size(masked), dtype=np.int64)
    np.maximum.at(largest, cells // _size(true), counts)
    least = np.ceil(FIXED * sizes)
    chance = bdtrc(least - 1, sizes, largest[value_of_class] / np.bincount(masked)[value_of_class])
    mean = (sizes * chance).sum()
    deviation = np.sqrt((sizes**2 * chance * (1 - chance)).sum())
    return float((mean + ERRORS * deviation) / len(true))


def _combined(first: Codes, second: Codes, width: int) -> Codes:
    """Return a number for each pair of codes; the codes in `second` are below `width`."""
    # Numbers of 32 bits are computed and sorted in half the time of those of 64.
    small = _size(first) * width < 2**31
    both: Codes = first.astype(np.int32 if small else np.int64)
    both *= width
    both += second
    return both


def _size(codes: Codes) -> int:
    return int(codes.max(initial=0)) + 1


MOST_COLUMNS = 4
"""Largest number of columns in such a set; an attacker seldom knows more about one person."""
MOST_CANDIDATES = 10
"""Largest number of columns that are tried: those with the most values."""
ENOUGH = 0.9
"""The search stops when this share of the unique rows is unique in the chosen columns."""

RowCounts = tuple[int, int]
"""The number of rows that are unique in some columns, and the number of value combinations of these
columns.
"""


@dataclass(frozen=True)
class Singling:
    """A few columns that together make many rows unique.

    Attributes
    ----------
    columns
        One to four columns that the rule does not cover; the first one distinguishes the most rows.
    unique_rows
        Number of rows that are unique in these columns and the quasi-identifiers together.
    """

    columns: tuple[str, ...]
    unique_rows: int


def find_singling(
    values: Mapping[str, int],
    unique_rows: int,
    count: Callable[[Sequence[tuple[str, ...]]], Sequence[RowCounts]],
) -> Singling | None:
    """Find a few columns that together make most rows unique; return None if there are none.

    Each step adds the column that gives the most combinations of values (in ARX: distinction).
    There may be a better set of columns.

    Parameters
    ----------
    values
        Number of values of each column that the rule does not cover.
    unique_rows
        Number of rows that are unique in all columns together.
    count
        Function that returns, for several sets of columns together with the quasi-identifiers, the
        number of unique rows and the number of combinations of values.
    """
    varying = [name for name, distinct in values.items() if distinct > 1]
    candidates = sorted(varying, key=lambda name: (-values[name], name))[:MOST_CANDIDATES]
    chosen: tuple[str, ...] = ()
    alone = 0
    while unique_rows and len(chosen) < MOST_COLUMNS and alone < ENOUGH * unique_rows:
        wider = [(*chosen, name) for name in candidates if name not in chosen]
        if not wider:
            break
        counts = count(wider)
        best = max(range(len(wider)), key=lambda index: counts[index][1])
        chosen, alone = wider[best], counts[best][0]
    return Singling(chosen, alone) if alone else None
