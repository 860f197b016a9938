"""Persons with several rows: counting persons instead of rows in each class.

A person is in a class where one of its rows is, and so in several classes where its rows differ in
the quasi-identifiers. Counts of distinct persons do not add up over classes: whoever asks how many
persons are behind several classes has to say which (`Persons.within`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class Persons(ABC):
    """The persons behind the classes of a table.

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
        """Return how many distinct persons have a row in a class that `classes` (n_classes,) selects."""

    @abstractmethod
    def keep(self, classes: BoolArray) -> Persons:
        """Return the persons of only the classes that `classes` (n_classes,) selects."""


@dataclass(frozen=True, eq=False)
class KnownPersons(Persons):
    """Persons class by class, in memory.

    Attributes
    ----------
    rows
        Rows of each class, shape (n_classes,).
    alone
        Persons all of whose rows lie in one cell of the table that was counted, by the class of
        that cell, shape (n_classes,): nobody among them is in two classes.
    classes, persons
        Each class of each other person once, shape (n,): class 0..n_classes-1, person from 0.
    others
        How many other persons there are.
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
        """Return how many distinct persons have a row in the classes that are selected."""
        seen = np.zeros(self.others, dtype=np.bool_)
        seen[self.persons[classes[self.classes]]] = True
        return int(self.alone[classes].sum()) + int(np.count_nonzero(seen))

    def keep(self, classes: BoolArray) -> KnownPersons:
        """Return the persons of only the classes that are selected."""
        inside = classes[self.classes]
        numbers = np.cumsum(classes) - 1
        return KnownPersons(
            self.rows[classes],
            self.alone[classes],
            numbers[self.classes[inside]],
            self.persons[inside],
            self.others,
        )
