"""Count the equivalence classes of any configuration, and their persons, from a frequency table of
the quasi-identifiers.

If classes merge, their numbers of persons cannot be added, because a person in several of these
classes counts once. So a plan needs the persons of each cell. Most persons have all their rows in
one cell; for these, a count per cell is enough. For all other persons, each pair of cell and person
is listed. Persons are numbered within this process, and the list is never written to a bundle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from aegis.arrays import Integers, Ints, distinct_keys, exact_sums, number
from aegis.privacy import ClassTable, KnownPersons

Sensitive = Mapping[str, tuple[Integers, tuple[str, ...]]]


@dataclass(frozen=True, eq=False)
class PersonCells:
    """The persons who have rows in each cell of a frequency table.

    Attributes
    ----------
    alone
        For each cell, the number of persons with all their rows in this cell, shape (cells,).
    cells, persons
        For all other persons, the n distinct pairs of cell and person, shape (n,) each. Persons are
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
        """Return the equivalence classes that the cells form, whose sizes are numbers of distinct
        persons, from the class (any integer) and the rows of each cell, shape (cells,). `sensitive`
        and `hierarchies` are as in `FrequencyTable.count`.
        """
        unique, index = number(ids)
        classes, persons, sizes = self._distinct(index, len(unique))
        class_persons = KnownPersons(
            np.bincount(index, weights=rows, minlength=len(unique)).astype(np.int64),
            np.bincount(index, weights=self.alone, minlength=len(unique)).astype(np.int64),
            classes,
            persons,
            self.others,
        )
        tables = {}
        for name, (codes, labels) in sensitive.items():
            width = max(len(labels), 1)
            keys, key_index = number(index * width + np.asarray(codes, dtype=np.int64))
            counts = self._distinct(key_index, len(keys))[2]
            tables[name] = (keys // width, keys % width, counts, labels)
        return ClassTable.from_persons(
            sizes, class_persons, tables, ids=unique, hierarchies=hierarchies
        )

    def _distinct(self, index: Ints, groups: int) -> tuple[Ints, Ints, Ints]:
        """Count persons by group of cells. Return the distinct pairs of group and person, for
        persons with rows in several cells, and the number of all persons in each group.
        """
        # Sorted, of which the first of each run: a tenth of the time of np.unique, which hashes.
        keys = np.sort(index[self.cells] * max(self.others, 1) + self.persons)
        keys = keys[np.diff(keys, prepend=-1) > 0]
        group, person = np.divmod(keys, max(self.others, 1))
        counts = np.bincount(index, weights=self.alone, minlength=groups)
        counts += np.bincount(group, minlength=groups)
        return group, person, counts.astype(np.int64)


Codes = npt.NDArray[np.int32]
LARGEST_KEY = 1 << 62
BLOCK = 1 << 20
"""Rows whose keys are in memory at a time."""


@dataclass(frozen=True, eq=False)
class FrequencyTable:
    """The number of rows that have each combination of quasi-identifiers, sensitive attributes and
    label. Each combination with rows is a cell.

    Attributes
    ----------
    quasi
        Names of the quasi-identifiers, in order.
    sensitive
        Names of the sensitive attributes. The label may be a sensitive attribute or a
        quasi-identifier.
    label
        Name of the label; the table always counts by it.
    codes
        For each column, the code of each cell, shape (cells,).
    counts
        Number of rows per cell, shape (cells,).
    representatives
        For each column and code, the index of one value that has this code, shape (codes,). The
        group of this value under a candidate is the group of the code.
    persons
        The persons in the cells, if the policy counts persons instead of rows.
    earlier
        For each cell, a number that identifies what earlier releases show of the cell,
        shape (cells,); 0 if no release shows it. Cells with different numbers are in different
        classes. None if there are no earlier releases.
    """

    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    label: str
    codes: Mapping[str, Codes]
    counts: Ints
    representatives: Mapping[str, Codes]
    persons: PersonCells | None = None
    earlier: Ints | None = None

    @classmethod
    def of(
        cls,
        names: tuple[tuple[str, ...], tuple[str, ...], str],
        codes: Mapping[str, Integers],
        representatives: Mapping[str, Codes],
        rows: Ints | None = None,
    ) -> tuple[FrequencyTable, Integers]:
        """Return the frequency table of N entries, whose cells are sorted by their codes, and the
        cell of each entry, shape (N,).

        `names` are the quasi-identifiers, the sensitive attributes and the label; `codes` has the
        code of each entry for each column, and `rows` the number of rows that each entry counts, by
        default one. Without `representatives` of the label, its codes are its classes; the code
        after the last class, which represents null, is there only if a label is missing.
        """
        entries, label = len(codes[names[2]]), names[2]
        if label not in representatives:
            classes = np.arange(int(codes[label].max(initial=0)) + 1, dtype=np.int32)
            representatives = {**representatives, label: classes}
        first, cell, counts = distinct_rows(list(codes.values()), entries)
        by_cell = {name: of_entries[first].astype(np.int32) for name, of_entries in codes.items()}
        counts = counts if rows is None else exact_sums(cell, rows, len(first))
        return cls(*names, by_cell, counts, representatives), cell

    @property
    def cells(self) -> int:
        """The number of cells, that is, of combinations that occur in the table."""
        return len(self.counts)

    @cached_property
    def rows(self) -> int:
        """The number of rows in all cells together."""
        return int(self.counts.sum())

    def class_ids(self, groups: Mapping[str, Integers]) -> Ints:
        """Return the equivalence class of each cell, shape (cells,), for the group of each value of
        each quasi-identifier, shape (V,).
        """
        columns = (groups[q][self.representatives[q]].take(self.codes[q]) for q in self.quasi)
        return combine(self._beside_earlier(columns), self.cells)

    def class_keys(self) -> Ints:
        """Return a number for each cell: equal for equal combinations of quasi-identifiers."""
        return combine(self._beside_earlier(self.codes[q] for q in self.quasi), self.cells)

    def _beside_earlier(self, columns: Iterable[Integers]) -> Iterable[Integers]:
        return columns if self.earlier is None else (self.earlier, *columns)

    def roll_up(
        self,
        groups: Mapping[str, Integers],
        sensitive: Mapping[str, tuple[Integers, tuple[str, ...]]] | None = None,
        hierarchies: Mapping[str, Ints] | None = None,
    ) -> ClassTable:
        """Return the equivalence classes that a configuration forms: `groups` has the group of each
        value of each quasi-identifier, and `sensitive` and `hierarchies` are as in `count`.
        """
        ids = self.class_ids(groups)
        cells = {
            name: (grouping[self.representatives[name]][self.codes[name]], labels)
            for name, (grouping, labels) in (sensitive or {}).items()
        }
        return self.count(ids, cells, hierarchies)

    def count(
        self,
        ids: Ints,
        sensitive: Mapping[str, tuple[Integers, tuple[str, ...]]],
        hierarchies: Mapping[str, Ints] | None = None,
    ) -> ClassTable:
        """Return the equivalence classes that the cells form, from the class of each cell, shape
        (cells,). If persons are counted, class sizes are numbers of persons.

        `sensitive` has the group of each value and the text of each group, and `hierarchies` the
        ancestors of each group on each of L levels, shape (groups, L), both by sensitive attribute.
        """
        if self.persons is not None:
            return self.persons.classes(ids, self.counts, sensitive, hierarchies)
        return ClassTable.from_cells(
            ids, self.counts, sensitive, hierarchies=hierarchies, earlier=self.earlier
        )


def combine(columns: Iterable[Integers], rows: int) -> Ints:
    """Return a number for each of `rows` rows, equal if and only if they have the same codes in all
    columns. Any number of columns is possible.
    """
    key = np.zeros(rows, dtype=np.int64)
    space = 1
    for column in columns:
        size = int(column.max(initial=0)) + 1
        if size == 1:
            continue
        if space * size >= LARGEST_KEY:
            key = distinct_keys(key)[1]
            space = int(key.max(initial=0)) + 1
        key *= size
        key += column
        space *= size
    return key


def distinct_rows(columns: Sequence[Integers], rows: int) -> tuple[Ints, Integers, Ints]:
    """Return, for the combinations of codes that occur, in ascending order: the first row that has
    each; the position of each row's combination; and the rows of each. Rows are combined in blocks,
    which needs little memory.
    """
    sizes = [int(column.max(initial=0)) + 1 for column in columns]
    if rows <= BLOCK or prod(sizes) >= LARGEST_KEY:
        return distinct_keys(combine(columns, rows))
    parts, of_rows = [], []
    for start in range(0, rows, BLOCK):
        key = mixed((column[start : start + BLOCK] for column in columns), sizes)
        first, in_block, counts = distinct_keys(key)
        parts.append((key[first], first + start, counts))
        of_rows.append(in_block.astype(np.uint32))
    keys, firsts, of_parts = map(np.concatenate, zip(*parts, strict=True))
    _, first_entry, cell = np.unique(keys, return_index=True, return_inverse=True)
    starts = np.cumsum([0, *(len(block_keys) for block_keys, _, _ in parts)])
    small = cell.astype(np.uint32)
    joined = [small[start:][in_block] for start, in_block in zip(starts, of_rows, strict=False)]
    counted = np.bincount(cell, weights=of_parts).astype(np.int64)
    return firsts[first_entry], np.concatenate(joined), counted


def mixed(columns: Iterable[Integers], sizes: Sequence[int]) -> Ints:
    """Return one number for each row, whose digits are its codes in all `columns`, with the bases
    `sizes`.
    """
    key: Ints = np.zeros(1, dtype=np.int64)
    for column, size in zip(columns, sizes, strict=True):
        key = key * size + column
    return key
