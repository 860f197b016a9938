"""Count the distinct persons of each class instead of its rows, because a person may have several
rows.

A person is in a class if at least one row of the person is in the class. So a person whose rows
differ in the quasi-identifiers is in several classes. The numbers of persons of several classes
cannot be added, because a person would count several times: use `Persons.within` to count the
persons of several classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from aegis.arrays import Flags, Ints


class Persons(ABC):
    """The persons who have rows in each class of a table.

    Attributes
    ----------
    rows
        Number of rows of each class, shape (n_classes,), int64.
    total
        Number of distinct persons in the table.
    """

    rows: Ints
    total: int

    @abstractmethod
    def within(self, classes: Flags) -> int:
        """Return how many distinct persons have rows in the selected classes.

        `classes` is a Boolean array of shape (n_classes,): True selects a class.
        """

    @abstractmethod
    def keep(self, classes: Flags) -> Persons:
        """Return only the persons who have rows in the selected classes.

        `classes` is a Boolean array of shape (n_classes,): True selects a class.
        """


@dataclass(frozen=True, eq=False)
class KnownPersons(Persons):
    """The persons who have rows in each class, held in memory.

    Attributes
    ----------
    rows
        Number of rows of each class, shape (n_classes,).
    alone
        For each class, the number of its persons whose rows are all in one cell of the counted
        table, shape (n_classes,). None of these persons is in two classes.
    classes, persons
        All other persons, with one entry for each class of each person, shape (n,): the class,
        0..n_classes-1, and the number of the person, from 0.
    others
        The number of these other persons.
    """

    rows: Ints
    alone: Ints
    classes: Ints
    persons: Ints
    others: int

    @property
    def total(self) -> int:  # type: ignore[override]
        """The number of distinct persons in the table."""
        return self.within(np.ones(len(self.rows), dtype=np.bool_))

    def within(self, classes: Flags) -> int:
        """Return how many distinct persons have rows in the selected classes.

        `classes` is a Boolean array of shape (n_classes,): True selects a class.
        """
        seen = np.zeros(self.others, dtype=np.bool_)
        seen[self.persons[classes[self.classes]]] = True
        return int(self.alone[classes].sum()) + int(np.count_nonzero(seen))

    def keep(self, classes: Flags) -> KnownPersons:
        """Return only the persons who have rows in the selected classes.

        `classes` is a Boolean array of shape (n_classes,): True selects a class.
        """
        inside = classes[self.classes]
        numbers = np.cumsum(classes) - 1
        return KnownPersons(
            self.rows[classes],
            self.alone[classes],
            numbers[self.classes[inside]],
            self.persons[inside],
            self.others,
        )
