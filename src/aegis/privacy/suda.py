"""Find special uniques (SUDA): records that are already unique by few of their values.

References: Elliot, Manning, Ford: A computational algorithm for handling the special uniques
problem (IJUFKS 10, 2002); Manning, Haglin, Keane: A recursive search algorithm for statistical
disclosure assessment (DMKD 16, 2008). A *minimal sample unique* of a record is a set of columns in
which the record is unique in the sample, while it is not unique in any smaller part of this set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from aegis.arrays import Flags, Floats, Ints
from aegis.errors import PolicyError
from aegis.privacy.individual import row_keys

MOST_SETS = 100_000
"""Largest number of sets of columns that are examined."""


@dataclass(frozen=True, eq=False)
class SpecialUniques:
    """The minimal sample uniques of a table: the smallest sets of columns in which a record is
    unique.

    Attributes
    ----------
    sizes
        Number of minimal sample uniques of each of N records that have 1, 2, ... `largest` columns,
        shape (N, largest).
    scores
        The SUDA score of each record, shape (N,): the sum over its minimal sample uniques of

            (m - k)(m - k - 1)...(m - largest)

        for m columns in total, of which k are in the minimal sample unique.
    contributions
        For each record and column, the sum of the scores of the record's minimal sample uniques
        that contain the column, shape (N, m).
    chances
        DIS-SUDA: the scores converted to probabilities that a match with the record is right, shape
        (N,).
    match
        DIS: the probability that a match with a record that is unique in the sample is right. It is
        the same for all records.
    """

    sizes: Ints
    scores: Floats
    contributions: Floats
    chances: Floats
    match: float

    @property
    def shares(self) -> Floats:
        """The share of all scores that each column contributes, shape (m,); all 0 if all scores are
        0.
        """
        total = float(self.scores.sum())
        shares: Floats = self.contributions.sum(axis=0) / (total or 1.0)
        return shares


def special_uniques(
    codes: Ints, *, missing: Flags | None = None, largest: int | None = None, fraction: float = 0.01
) -> SpecialUniques:
    """Find, for each record, the smallest sets of columns in which no other record has the same
    values (the minimal sample uniques).

    Parameters
    ----------
    codes
        The code (from 0) of the value of each of N records in each of m columns, shape (N, m).
    missing
        Which values are unknown, shape (N, m). Unknown values are in no minimal sample unique, and
        a record with unknown values matches every record that it might equal. None: all values are
        known.
    largest
        Largest number of columns of a minimal sample unique; by default, the number of all columns.
    fraction
        Share of the population that is in the sample; `chances` depend on it.

    Raises
    ------
    PolicyError
        There are too many sets of columns up to this size.

    Examples
    --------
    >>> import numpy as np
    >>> uniques = special_uniques(np.array([[2, 0, 0], [1, 3, 6], [1, 0, 0]]))
    >>> uniques.scores
    array([2., 4., 2.])
    >>> uniques.shares
    array([0.5  , 0.375, 0.375])
    """
    rows, columns = codes.shape
    most = columns if largest is None else min(largest, columns)
    _check_sets(columns, most)
    alone = _Alone(codes, np.zeros(codes.shape, np.bool_) if missing is None else missing)
    sizes = np.zeros((rows, most), dtype=np.int64)
    contributions = np.zeros((rows, columns))
    scores = np.zeros(rows)
    # A set of all columns counts once, as the product that is empty.
    weigh = [
        math.prod(columns - i for i in range(k, min(most, columns - 1) + 1))
        for k in range(1, most + 1)
    ]
    for size in range(1, most + 1):
        for chosen in combinations(range(columns), size):
            minimal = alone.minimal(chosen)
            sizes[minimal, size - 1] += 1
            scores[minimal] += weigh[size - 1]
            contributions[np.ix_(minimal, np.array(chosen))] += weigh[size - 1]
    # How probable it is that a match with a unique record is right (Skinner and Elliot, 2002).
    keys = np.unique(codes, axis=0, return_counts=True)[1]
    unique, paired = int((keys == 1).sum()), 2 * int((keys == 2).sum())
    share = unique * fraction
    match = share / (share + paired * (1 - fraction)) if unique else 0.0
    return SpecialUniques(sizes, scores, contributions, _chances(scores, codes, match), match)


def _check_sets(columns: int, most: int) -> None:
    sets = sum(math.comb(columns, size) for size in range(1, most + 1))
    if sets > MOST_SETS:
        fewer = next(
            n
            for n in range(most, 0, -1)
            if sum(math.comb(columns, k) for k in range(1, n + 1)) <= MOST_SETS
        )
        raise PolicyError(
            f"{columns} columns form {sets:,} sets of at most {most} columns; at most {MOST_SETS:,} sets are "
            "allowed.",
            hint=f"Allow at most {fewer} columns in a set, or name fewer columns.",
        )


class _Alone:
    """Finds the records that are unique in a set of columns but in no smaller set. Call `minimal`
    for all smaller sets first.
    """

    def __init__(self, codes: Ints, missing: Flags) -> None:
        self._codes = codes
        self._missing = missing
        self._alone: dict[tuple[int, ...], Ints] = {}

    def minimal(self, chosen: tuple[int, ...]) -> Ints:
        """Return the records that are unique in the columns `chosen` but in no proper subset."""
        complete = ~self._missing[:, chosen].any(axis=1)
        places = np.flatnonzero(complete)
        keys = row_keys(self._codes[np.ix_(places, np.array(chosen))])
        alone = places[np.bincount(keys)[keys] == 1] if len(keys) else places
        self._alone[chosen] = alone
        for leave in range(len(chosen)) if len(chosen) > 1 else ():
            part = (*chosen[:leave], *chosen[leave + 1 :])
            alone = np.setdiff1d(alone, self._alone[part], assume_unique=True)
        return alone


def _chances(scores: Floats, codes: Ints, match: float) -> Floats:
    """Convert the SUDA scores of N records to probabilities that a match with the record is right,
    shape (N,).

    The odds of a record with score s are

        p / h * match / (1 - match),  p = s^(1 + (8 - m) / 20),

    for m columns, where h is the harmonic mean of p over the unique records, as in sdcMicro.
    Records with the score 0 get the probability 0. `match` is the probability that a match with a
    unique record is right.
    """
    chances = np.zeros(len(scores))
    scored = scores > 0
    if not scored.any() or not match:
        return chances
    unique = int((np.unique(codes, axis=0, return_counts=True)[1] == 1).sum())
    power = scores[scored] ** (1 + (8 - codes.shape[1]) / 20)
    scale = float((1 / power).sum())
    chances[scored] = 1 / (1 + unique * (1 / match - 1) / (power * scale))
    return chances
