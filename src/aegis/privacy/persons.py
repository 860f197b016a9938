"""Count distinct persons instead of rows, class by class, if persons have several rows.

A person is in a class if one of the person's rows is. So a person is in several classes if these
rows differ in the quasi-identifiers. Counts of distinct persons do not add up over classes: to
count the persons of several classes, name the classes (`Persons.within`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class Persons(ABC):
    """The persons of each class of a table.

    Attributes
    ----------
    rows
        Rows of each class, shape (n_classes,), int64.
    total
        Distinct persons of the table.
    """

    rows: IntArray
    total: int

    @abstractmethod
    def within(self, classes: BoolArray) -> int:
        """Count the distinct persons in classes with True in `classes`, shape (n_classes,)."""

    @abstractmethod
    def keep(self, classes: BoolArray) -> Persons:
        """Return the persons of only the classes with True in `classes`, shape (n_classes,)."""


@dataclass(frozen=True, eq=False)
class KnownPersons(Persons):
    """The persons of each class, in memory.

    Attributes
    ----------
    rows
        Rows of each class, shape (n_classes,).
    alone
        For each class, shape (n_classes,), the number of persons all of whose rows are in one cell
        of the counted table. None of them is in two classes.
    classes, persons
        The other persons: one entry for each class of each person, shape (n,). The class is
        0..n_classes-1, the person is numbered from 0.
    others
        The number of other persons.
    """

    rows: IntArray
    alone: IntArray
    classes: IntArray
    persons: IntArray
    others: int

    @property
    def total(self) -> int:  # type: ignore[override]
        """Distinct persons of the table."""
        return self.within(np.ones(len(self.rows), dtype=np.bool_))

    def within(self, classes: BoolArray) -> int:
        """Count the distinct persons in classes with True in `classes`, shape (n_classes,)."""
        seen = np.zeros(self.others, dtype=np.bool_)
        seen[self.persons[classes[self.classes]]] = True
        return int(self.alone[classes].sum()) + int(np.count_nonzero(seen))

    def keep(self, classes: BoolArray) -> KnownPersons:
        """Return the persons of only the classes with True in `classes`, shape (n_classes,)."""
        inside = classes[self.classes]
        numbers = np.cumsum(classes) - 1
        return KnownPersons(
            self.rows[classes],
            self.alone[classes],
            numbers[self.classes[inside]],
            self.persons[inside],
            self.others,
        )
