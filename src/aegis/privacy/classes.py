"""Define the class-frequency table, from which privacy models and disclosure risk are computed.

Rows that agree on every quasi-identifier form an *equivalence class*. Every model of this package
needs only the size of each class, and how often each value of a sensitive attribute occurs in the
class. The rows themselves are not needed. Null counts as a value, both of a quasi-identifier and of
a sensitive attribute: the code that builds the table gives null a separate code.

If a person may have several rows, the distinct persons of each class are counted instead of its
rows. A person is in a class if at least one row of the person is in the class. So a person whose
rows differ in the quasi-identifiers is in several classes. The numbers of persons of several
classes cannot be added, because a person would count several times: use `Persons.within` to count
the persons of several classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from aegis.arrays import Array, Flags, Floats, Ints, counts_by_key, number
from aegis.errors import DataError, InternalError


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
        All other persons, with one of n entries for each class of each person, shape (n,): the
        class, 0..n_classes-1, and the number of the person, from 0.
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
        """Return how many distinct persons have rows in the selected classes."""
        has_rows = np.zeros(self.others, dtype=np.bool_)
        has_rows[self.persons[classes[self.classes]]] = True
        return int(self.alone[classes].sum()) + int(np.count_nonzero(has_rows))

    def keep(self, classes: Flags) -> KnownPersons:
        """Return only the persons who have rows in the selected classes."""
        inside = classes[self.classes]
        numbers = np.cumsum(classes) - 1
        return KnownPersons(
            self.rows[classes],
            self.alone[classes],
            numbers[self.classes[inside]],
            self.persons[inside],
            self.others,
        )


Number = TypeVar("Number", np.int64, np.float64)
Counts = Ints | Floats

_DENSE = 32
"""Cells are added up in a plain array if that array has at most this many places per cell."""


@dataclass(frozen=True, eq=False)
class SensitiveCounts:
    """The number of rows by equivalence class and value of one sensitive attribute, as a sparse
    table.

    Only non-empty cells are stored, in ascending order of class and, within a class, of value.
    Every class has at least one cell.

    Attributes
    ----------
    classes
        The class of each of the nnz cells, 0..n_classes-1, shape (nnz,), int64.
    values
        The code of each cell's sensitive value, 0..V-1, shape (nnz,), int64.
    counts
        Number of rows of each cell, at least 1, shape (nnz,), int64.
    labels
        The text of each of the V values, in the order that ordered distances use. Null is a value
        with a label, too. Values without rows are allowed; they do not change any figure.
    levels
        The hierarchy of the values, shape (V, L), or None. It has the code of each value's group at
        the heights 0 (the value itself), 1, ..., L-1; groups are nested. Hierarchical distances
        need it.
    persons
        Number of distinct persons of each class, shape (n_classes,), if `counts` counts persons;
        None if it counts rows. A person with several values in a class is counted for each value.

    Raises
    ------
    InternalError
        The arrays have different lengths, are not sorted, or contain codes or counts that are out
        of range.
    DataError
        The hierarchy has a different number of values, or its groups are not nested.
    """

    classes: Ints
    values: Ints
    counts: Ints
    labels: tuple[str, ...]
    levels: Ints | None = None
    persons: Ints | None = None

    def __post_init__(self) -> None:
        self._check_cells()
        if self.levels is not None:
            check_levels(self.levels, len(self.labels))

    def _check_cells(self) -> None:
        cells = len(self.classes)
        if len(self.values) != cells or len(self.counts) != cells:
            raise InternalError(
                "classes, values and counts of a sensitive attribute differ in length."
            )
        if not cells:
            return
        if self.values.min() < 0 or self.values.max() >= len(self.labels):
            raise InternalError(
                f"Codes of a sensitive attribute must lie in 0..{len(self.labels) - 1}; "
                f"given {self.values.min()}..{self.values.max()}."
            )
        if self.counts.min() < 1:
            raise InternalError("Cells of a sensitive attribute hold at least one row each.")
        steps = np.diff(self.classes)
        ordered = (steps == 1) | ((steps == 0) & (np.diff(self.values) > 0))
        if self.classes[0] != 0 or not ordered.all():
            raise InternalError("Cells of a sensitive attribute must be sorted, without gaps.")

    @cached_property
    def starts(self) -> Ints:
        """The index of the first cell of each class, shape (n_classes,)."""
        return np.flatnonzero(np.diff(self.classes, prepend=-1)).astype(np.int64, copy=False)

    @cached_property
    def lengths(self) -> Ints:
        """The number of distinct sensitive values in each class, shape (n_classes,)."""
        return np.diff(self.starts, append=len(self.classes)).astype(np.int64, copy=False)

    @cached_property
    def sizes(self) -> Ints:
        """The sum of the counts in each class; a person counts once for each of their values."""
        return self.sum_by_class(self.counts)

    @cached_property
    def members(self) -> Ints:
        """The number of rows, or of persons if they are counted, in each class, shape (n_classes,)."""
        return self.sizes if self.persons is None else self.persons

    @cached_property
    def certain(self) -> Flags:
        """Whether there is a sensitive value that all members of a class have, shape (n_classes,).

        If rows are counted, this means that the class has only one value. A person may have several
        values, so all persons may share a value although the class also has other values.
        """
        if self.persons is None:
            return np.asarray(self.lengths == 1)
        return np.asarray(self.max_by_class(self.counts.astype(np.float64)) >= self.persons)

    @cached_property
    def shares(self) -> Floats:
        """The share q of each cell's value in its class, in (0, 1], shape (nnz,)."""
        return self.counts / np.repeat(self.sizes, self.lengths)

    @cached_property
    def totals(self) -> Ints:
        """The number of rows that each of the V values has in the whole table, shape (V,)."""
        sums = np.bincount(self.values, weights=self.counts, minlength=len(self.labels))
        return sums.astype(np.int64)

    @cached_property
    def reference(self) -> Floats:
        """The share p of each value in the whole table, shape (V,); all 0 if the table has no rows."""
        return self.totals / max(int(self.totals.sum()), 1)

    @cached_property
    def descending(self) -> Ints:
        """The counts of the cells, from the largest to the smallest within each class, shape
        (nnz,).
        """
        if not len(self.counts):
            return self.counts
        base = int(self.counts.max()) + 1
        # One sort of plain integers is several times quicker than an indirect sort of pairs.
        keys = np.sort(self.classes * base + (base - 1 - self.counts))
        return base - 1 - (keys - self.classes * base)

    def sum_by_class(self, figures: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Return the sum of `figures`, shape (nnz,), over the cells of each class, shape
        (n_classes,).
        """
        # bincount adds in float64, exact for fewer than 2**53 rows, and beats reduceat on the
        # short runs that classes are.
        return np.bincount(self.classes, weights=figures).astype(figures.dtype, copy=False)

    def max_by_class(self, figures: Floats) -> Floats:
        """Return the largest of `figures`, shape (nnz,), among the cells of each class, shape
        (n_classes,).
        """
        if not len(self.starts):
            return figures[:0]
        return np.maximum.reduceat(figures, self.starts)

    def keep(self, mask: Flags) -> SensitiveCounts:
        """Return the counts of only the classes in `mask`, which get new numbers."""
        cells = np.repeat(mask, self.lengths)
        numbers = np.cumsum(mask) - 1
        return SensitiveCounts(
            numbers[self.classes[cells]],
            self.values[cells],
            self.counts[cells],
            self.labels,
            self.levels,
            None if self.persons is None else self.persons[mask],
        )


@dataclass(frozen=True, eq=False)
class ClassTable:
    """The equivalence classes of a table, with their sizes and with the counts of sensitive values
    in each class.

    Attributes
    ----------
    sizes
        Number of rows per class, at least 1, shape (n_classes,), int64; number of distinct persons
        if persons are counted.
    sensitive
        For each sensitive attribute, its contingency table with the classes.
    population
        Number of people per class in the population from which the table is a sample,
        shape (n_classes,), or None. The numbers are counts or sums of survey weights, and never
        below `sizes`. Journalist risk, k-map and delta-presence need them.
    absent
        Number of people of the population in classes that have no row in the table; 0 if there is
        no population.
    ids
        The identifier of each class as given to `from_cells`, shape (n_classes,), ascending; None
        if the classes are simply numbered.
    persons
        The persons of the classes, if persons are counted instead of rows; else None.
    hidden
        For each class, the share of the quasi-identifiers' information (in bits) that the masks
        hide, from 0 to 1, shape (n_classes,). None if it was not computed.
    earlier
        A number for each class, shape (n_classes,): two classes have the same number if all earlier
        releases show them in the same way, and 0 if no earlier release shows the class. None if
        there are no earlier releases.

    Raises
    ------
    InternalError
        A class has no rows, or the counts of a sensitive attribute do not add up to `sizes`.
    DataError
        In some class, the population is smaller than the table.
    """

    sizes: Ints
    sensitive: Mapping[str, SensitiveCounts] = field(default_factory=lambda: MappingProxyType({}))
    population: Counts | None = None
    absent: int = 0
    ids: Ints | None = None
    persons: Persons | None = None
    hidden: Floats | None = None
    earlier: Ints | None = None

    def __post_init__(self) -> None:
        if len(self.sizes) and self.sizes.min() < 1:
            raise InternalError("An equivalence class has at least one row.")
        for name, counts in self.sensitive.items():
            if not np.array_equal(counts.members, self.sizes):
                raise InternalError(f"Counts of {name!r} do not add up to the class sizes.")
        if self.population is not None:
            if len(self.population) != len(self.sizes):
                raise DataError(
                    f"{len(self.population)} population sizes for {len(self.sizes)} classes."
                )
            short = int((self.population < self.sizes).sum())
            if short:
                raise DataError(
                    f"The population is smaller than the table in {short:,} of {len(self.sizes):,} classes.",
                    hint="The table must be a sample of the population, masked in the same way.",
                )

    @property
    def class_rows(self) -> Ints:
        """The number of rows in each class, shape (n_classes,), even if `sizes` counts persons."""
        return self.sizes if self.persons is None else self.persons.rows

    @property
    def crowds(self) -> Counts:
        """The number of people in each class whom an adversary cannot distinguish: in the
        population, or in the table if the population is not known.
        """
        return self.sizes if self.population is None else self.population

    @cached_property
    def rows(self) -> int:
        """The number of rows in the table."""
        return int(self.class_rows.sum())

    @cached_property
    def subjects(self) -> int:
        """The number of rows, or of distinct persons if they are counted, of which the suppression
        limit is a share.
        """
        return self.rows if self.persons is None else self.persons.total

    def subjects_in(self, classes: Flags) -> int:
        """Return the number of rows, or of distinct persons if they are counted, in the selected
        classes.
        """
        if self.persons is None:
            return int(self.sizes[classes].sum())
        return self.persons.within(classes)

    def __len__(self) -> int:
        return len(self.sizes)

    @classmethod
    def from_cells(
        cls,
        class_ids: npt.ArrayLike,
        counts: npt.ArrayLike,
        sensitive: Mapping[str, tuple[npt.ArrayLike, tuple[str, ...]]] | None = None,
        *,
        population: npt.ArrayLike | None = None,
        hierarchies: Mapping[str, npt.ArrayLike] | None = None,
        earlier: Ints | None = None,
    ) -> ClassTable:
        """Build the table from cells (combinations of values), several of which may form a class.

        Parameters
        ----------
        class_ids
            The identifier of the class of each of n cells, shape (n,): any integers. Classes are
            numbered in ascending order of their identifiers.
        counts
            Number of rows of each cell, shape (n,). Cells without rows are left out.
        sensitive
            For each sensitive attribute, the code of each cell's value, shape (n,), and the label
            of each code. Codes are in the order of the values.
        population
            Number of people of the population in each cell, shape (n,), summed over each class.
        hierarchies
            For each sensitive attribute, the groups of its values: see `SensitiveCounts.levels`.
        earlier
            A number for each cell, shape (n,), equal if all earlier releases show two cells alike;
            0 if none shows the cell. It must be the same for all cells of a class.

        Raises
        ------
        DataError
            Arrays have different lengths, a count is negative, or the population is smaller than
            the table.
        """
        ids = np.asarray(class_ids, dtype=np.int64)
        rows = np.asarray(counts, dtype=np.int64)
        people = None if population is None else np.asarray(population)
        codes = {
            name: np.asarray(pair[0], dtype=np.int64) for name, pair in (sensitive or {}).items()
        }
        _check_cells(ids, rows, people, codes)
        absent = 0
        if len(rows) and not rows.all():
            full = np.isin(ids, ids[rows > 0]) if people is not None else rows > 0
            absent = 0 if people is None else int(people[~full].sum())
            ids, rows = ids[full], rows[full]
            people = None if people is None else people[full]
            earlier = None if earlier is None else earlier[full]
            codes = {name: column[full] for name, column in codes.items()}
        unique, index = number(ids)
        sizes = _add_up(index, rows, len(unique))
        tables = {
            name: _count(index, column, rows, tuple((sensitive or {})[name][1]), name, hierarchies)
            for name, column in codes.items()
        }
        grouped = None if people is None else _add_up(index, people, len(unique))
        trace = None if earlier is None else _of_each_class(index, earlier, len(unique))
        return cls(sizes, MappingProxyType(tables), grouped, absent, unique, earlier=trace)

    @classmethod
    def from_persons(
        cls,
        sizes: Ints,
        persons: Persons,
        sensitive: Mapping[str, tuple[Ints, Ints, Ints, tuple[str, ...]]],
        *,
        ids: Ints | None = None,
        hierarchies: Mapping[str, npt.ArrayLike] | None = None,
    ) -> ClassTable:
        """Build the table from classes in which the distinct persons (`sizes`) have already been
        counted.

        `sensitive` has, for each attribute, the class, the code of the value and the distinct
        persons of each cell, shape (nnz,), in any order, and the labels of the codes. `ids` and
        `hierarchies` are as in `from_cells`.
        """
        tables = {}
        for name, (classes, codes, counts, labels) in sensitive.items():
            order = np.lexsort((codes, classes))
            groups = (hierarchies or {}).get(name)
            levels = None if groups is None else np.asarray(groups, dtype=np.int64)
            tables[name] = SensitiveCounts(
                classes[order], codes[order], counts[order], labels, levels, sizes
            )
        return cls(sizes, MappingProxyType(tables), ids=ids, persons=persons)

    def kept_ids(self, mask: Flags) -> Ints:
        """Return the identifiers of the classes for which `mask`, shape (n_classes,), is True."""
        ids = np.arange(len(self.sizes)) if self.ids is None else self.ids
        return ids[mask]

    def keep(self, mask: npt.ArrayLike) -> ClassTable:
        """Return the table with only the classes in `mask`, which get new numbers. The population
        of all other classes counts as absent.
        """
        chosen = np.asarray(mask, dtype=np.bool_)
        if len(chosen) != len(self.sizes):
            raise InternalError(
                f"A mask of {len(chosen)} classes does not fit a table of {len(self.sizes)}."
            )
        if chosen.all():
            return self
        tables = {name: counts.keep(chosen) for name, counts in self.sensitive.items()}
        people = self.population
        return replace(
            self,
            sizes=self.sizes[chosen],
            sensitive=MappingProxyType(tables),
            population=None if people is None else people[chosen],
            absent=self.absent + (0 if people is None else int(people[~chosen].sum())),
            ids=None if self.ids is None else self.ids[chosen],
            persons=None if self.persons is None else self.persons.keep(chosen),
            hidden=None if self.hidden is None else self.hidden[chosen],
            earlier=None if self.earlier is None else self.earlier[chosen],
        )

    def as_shown_earlier(self) -> ClassTable:
        """Return a table in which all classes that earlier releases show in the same way are merged
        into one, whose entry in `ids` is their number in `earlier`.

        Raises
        ------
        InternalError
            There are no earlier releases, or persons are counted.
        """
        if self.earlier is None or self.persons is not None:
            raise InternalError(
                "Classes of earlier releases exist only if there are earlier releases and rows are counted."
            )
        unique, index = number(self.earlier)
        sensitive = {
            name: _count(
                index[counts.classes],
                counts.values,
                counts.counts,
                counts.labels,
                name,
                None if counts.levels is None else {name: counts.levels},
            )
            for name, counts in self.sensitive.items()
        }
        people = self.population
        return ClassTable(
            _add_up(index, self.sizes, len(unique)),
            MappingProxyType(sensitive),
            None if people is None else _add_up(index, people, len(unique)),
            self.absent,
            unique,
        )


def check_levels(levels: npt.NDArray[np.generic], values: int) -> None:
    """Raise `DataError` unless `levels`, shape (values, L), has nested groups of the values."""
    if levels.ndim != 2 or levels.shape[0] != values or not levels.shape[1]:
        raise DataError(
            f"A hierarchy of shape {levels.shape} does not fit {values} sensitive values.",
            hint=f"Give one row per value and one column per level: ({values}, L).",
        )
    for height in range(1, levels.shape[1]):
        pairs = np.unique(levels[:, height - 1 : height + 1], axis=0)
        if len(pairs) != len(np.unique(pairs[:, 0])):
            raise DataError(
                f"The hierarchy is not a tree: a group of level {height - 1} lies in two groups of "
                f"level {height}.",
                hint="Give values that share a group the same groups on all levels above.",
            )


def _of_each_class(index: Ints, values: Ints, classes: int) -> Ints:
    """Return the value of each class, shape (classes,), from class (`index`) and value of each
    cell.
    """
    by_class = np.zeros(classes, dtype=np.int64)
    by_class[index] = values
    return by_class


def _add_up(index: Ints, rows: Array, groups: int) -> Array:
    # bincount adds in float64, which is exact below 2**53 rows.
    return np.bincount(index, weights=rows, minlength=groups).astype(rows.dtype, copy=False)


def _count(
    index: Ints,
    codes: Ints,
    rows: Ints,
    labels: tuple[str, ...],
    name: str,
    hierarchies: Mapping[str, npt.ArrayLike] | None,
) -> SensitiveCounts:
    if len(codes) and (codes.min() < 0 or codes.max() >= len(labels)):
        raise DataError(
            f"Codes of {name!r} must lie in 0..{len(labels) - 1}, one per label; "
            f"given {codes.min()}..{codes.max()}."
        )
    width = max(len(labels), 1)
    keys = index * width + codes
    keys, counts = counts_by_key(keys, rows, int(keys.max(initial=-1)) + 1, dense=_DENSE)
    classes = keys // width
    groups = (hierarchies or {}).get(name)
    levels = None if groups is None else np.asarray(groups, dtype=np.int64)
    return SensitiveCounts(classes, keys - classes * width, counts, labels, levels)


def _check_cells(ids: Ints, rows: Ints, people: Counts | None, codes: Mapping[str, Ints]) -> None:
    lengths = {"counts": len(rows)} | {name: len(column) for name, column in codes.items()}
    if people is not None:
        lengths["population"] = len(people)
    for name, length in lengths.items():
        if length != len(ids):
            raise DataError(f"{len(ids)} class identifiers, but {length} entries of {name!r}.")
    if len(rows) and rows.min() < 0:
        raise DataError(f"A cell has {rows.min()} rows; counts are 0 or more.")
