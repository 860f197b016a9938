"""Store the persons of each cell of the frequency table, so that plans count persons exactly.

If classes merge, their numbers of persons cannot be added, because a person in several of these
classes counts once. So a plan needs the persons of each cell. Most persons have all their rows in
one cell; for these, a count per cell is enough. For all other persons, each pair of cell and person
is listed. Persons are numbered within this process, and the list is never written to a bundle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aegis.arrays import Integers, Ints
from aegis.privacy import ClassTable, KnownPersons
from aegis.privacy.classes import number

Sensitive = Mapping[str, tuple[Integers, tuple[str, ...]]]


@dataclass(frozen=True, eq=False)
class PersonCells:
    """The persons who have rows in each cell of a frequency table.

    Attributes
    ----------
    alone
        For each cell, the number of persons with all their rows in this cell, shape (cells,).
    cells, persons
        For all other persons, each distinct pair of cell and person, shape (n,). Persons are
        numbered from 0.
    others
        The number of these other persons.
    """

    alone: Ints
    cells: Ints
    persons: Ints
    others: int

    @classmethod
    def of_pairs(cls, cells: Ints, persons: Ints, n_cells: int) -> PersonCells:
        """Return the persons of `n_cells` cells, from all distinct pairs of a cell and a person,
        shape (n,).
        """
        spread = np.bincount(persons)
        single = spread[persons] == 1
        alone = np.bincount(cells[single], minlength=n_cells).astype(np.int64)
        several, numbers = number(persons[~single])
        return cls(alone, cells[~single], numbers, len(several))

    @property
    def total(self) -> int:
        """The number of distinct persons in the table."""
        return int(self.alone.sum()) + self.others

    def classes(
        self,
        ids: Ints,
        rows: Ints,
        sensitive: Sensitive,
        hierarchies: Mapping[str, npt.ArrayLike] | None = None,
    ) -> ClassTable:
        """Return the equivalence classes that the cells form. The sizes of the classes are numbers
        of distinct persons.

        Parameters
        ----------
        ids
            The class of each cell, shape (cells,); any integers are allowed.
        rows
            Number of rows of each cell, shape (cells,).
        sensitive, hierarchies
            For each sensitive attribute: the code of each cell's value, with the text of each code;
            and the group of each value on each level of a hierarchy.
        """
        unique, index = number(ids)
        classes, persons, sizes = self._distinct(index, len(unique))
        known = KnownPersons(
            np.bincount(index, weights=rows, minlength=len(unique)).astype(np.int64),
            np.bincount(index, weights=self.alone, minlength=len(unique)).astype(np.int64),
            classes,
            persons,
            self.others,
        )
        tables = {}
        for name, (codes, labels) in sensitive.items():
            width = max(len(labels), 1)
            keys, place = number(index * width + np.asarray(codes, dtype=np.int64))
            counts = self._distinct(place, len(keys))[2]
            tables[name] = (keys // width, keys % width, counts, labels)
        return ClassTable.from_persons(sizes, known, tables, ids=unique, hierarchies=hierarchies)

    def _distinct(self, index: Ints, groups: int) -> tuple[Ints, Ints, Ints]:
        """Count persons by group of cells. For persons with rows in several cells, return the
        distinct pairs of group and person, as two arrays; then the number of all persons in each
        group.

        `index` is the group of each cell, shape (cells,).
        """
        # Sorted, of which the first of each run: a tenth of the time of np.unique, which hashes.
        keys = np.sort(index[self.cells] * max(self.others, 1) + self.persons)
        keys = keys[np.diff(keys, prepend=-1) > 0]
        group, person = np.divmod(keys, max(self.others, 1))
        counts = np.bincount(index, weights=self.alone, minlength=groups)
        counts += np.bincount(group, minlength=groups)
        return group, person, counts.astype(np.int64)
