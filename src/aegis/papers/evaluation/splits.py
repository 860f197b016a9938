"""Split rows into training and test rows, stratified and in the same way for each configuration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aegis.arrays import Ints
from aegis.errors import DataError, PolicyError

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Split:
    """A split of the labelled rows into training and test rows.

    Attributes
    ----------
    number
        Number of the split, from 0.
    train, test
        Row numbers, ascending. Each labelled row is in exactly one of them.
    """

    number: int
    train: Rows
    test: Rows


def make_splits(
    label: Ints, *, count: int, test_share: float, seed: int, persons: Ints | None = None
) -> tuple[Split, ...]:
    """Split the labelled rows `count` times, with each class in the same proportion.

    For each class, floor(test_share * rows + 1/2) rows are test rows, but at least one row is a
    training row. So a class with one row is never tested. If `persons` is not None, the function
    splits persons in this way instead of rows, and keeps all rows of a person together. The class
    of a person is the class of the person's first labelled row.

    Parameters
    ----------
    label
        Class of each row, shape (n,); rows with -1 are in no split.
    count
        Number of splits, at least 1.
    test_share
        Share of the rows to test on, above 0 and below 1.
    seed
        Seed of the splits. With a larger `count`, the first splits stay the same.
    persons
        The person of each row, shape (n,); None means that each row is a different person.

    Raises
    ------
    PolicyError
        A parameter is out of range.
    DataError
        There is no row to test on.
    """
    if count < 1:
        raise PolicyError(f"{count} splits were asked for.", hint="Ask for at least 1.")
    if not 0 < test_share < 1:
        raise PolicyError(
            f"The share of test rows is {test_share}.",
            hint="Give a share above 0 and below 1, such as 0.3.",
        )
    if persons is None:
        splits = tuple(_split(number, _members(label), test_share, seed) for number in range(count))
    else:
        labelled = np.flatnonzero(label >= 0)
        _, first, person = np.unique(persons[labelled], return_index=True, return_inverse=True)
        members = _members(label[labelled][first])
        divided = (_split(number, members, test_share, seed) for number in range(count))
        splits = tuple(_of_rows(split, labelled, person) for split in divided)
    if not len(splits[0].test):
        raise DataError(
            f"No row is left to test on: {int((label >= 0).sum())} labelled rows at a test share "
            f"of {test_share:g}.",
            hint="Give more rows or a larger share of test rows.",
        )
    return splits


def _members(label: Ints) -> list[Rows]:
    return [np.flatnonzero(label == c) for c in range(int(label.max(initial=-1)) + 1)]


def _of_rows(split: Split, labelled: Rows, person: Rows) -> Split:
    """Turn a split of persons into a split of rows. `labelled` has the indices of the labelled
    rows, and `person` the person of each.
    """
    tested = np.isin(person, split.test)
    return Split(split.number, labelled[~tested], labelled[tested])


def _split(number: int, members: list[Rows], test_share: float, seed: int) -> Split:
    random = np.random.default_rng([seed, number])
    train, test = [], []
    for rows in members:
        shuffled = random.permutation(rows)
        tested = min(int(np.floor(test_share * len(rows) + 0.5)), len(rows) - 1)
        test.append(shuffled[: max(tested, 0)])
        train.append(shuffled[max(tested, 0) :])
    return Split(number, np.sort(np.concatenate(train)), np.sort(np.concatenate(test)))


def rare_classes(splits: tuple[Split, ...], label: Ints) -> Rows:
    """Return the indices of the classes that have only one training row in at least one split.
    `label` has the class of each row.
    """
    classes = int(label.max(initial=-1)) + 1
    counts = np.array([np.bincount(label[s.train], minlength=classes) for s in splits])
    return np.flatnonzero((counts == 1).any(axis=0))
