"""Count the distinct persons of equivalence classes, in the engine of the data.

One query counts the rows and persons of each class. Distinct counts cannot be added, so one more
query for each sensitive attribute counts the persons of each value. All rows without a person count
as one unknown person. This is the smallest possible number, so no figure looks safer than it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa

from aegis.arrays import Flags, Ints
from aegis.errors import DataError
from aegis.masks import Hierarchy
from aegis.privacy import ClassTable, Persons
from aegis.sources import Source
from aegis.summary.codes import encode, in_natural_order, show
from aegis.summary.frequency import combine


@dataclass(frozen=True, eq=False)
class _PersonsInEngine(Persons):
    """The persons in selected equivalence classes. Their identifiers stay in the engine, so each
    figure needs a query.

    Attributes
    ----------
    rows
        Rows of each selected class, shape (n_classes,).
    counter
        Function that counts the distinct persons in some classes, from a Boolean for each of all
        classes.
    places
        Index of each selected class among all classes, shape (n_classes,).
    every
        Number of all classes.
    """

    rows: Ints
    counter: Callable[[Flags], int]
    places: Ints
    every: int

    @cached_property
    def total(self) -> int:  # type: ignore[override]
        return self.within(np.ones(len(self.rows), dtype=np.bool_))

    def within(self, classes: Flags) -> int:
        """Return the number of distinct persons with a row in the selected classes."""
        if not classes.any():
            return 0
        chosen = np.zeros(self.every, dtype=np.bool_)
        chosen[self.places[classes]] = True
        return self.counter(chosen)

    def keep(self, classes: Flags) -> _PersonsInEngine:
        """Return the persons of only the selected classes."""
        return _PersonsInEngine(self.rows[classes], self.counter, self.places[classes], self.every)


@dataclass(frozen=True, eq=False)
class PersonClasses:
    """The equivalence classes of a table, with their numbers of distinct persons and the values
    that form each class.

    Attributes
    ----------
    source
        The source whose engine runs the queries.
    rows
        The table that was counted.
    person
        The column that identifies persons.
    classes
        One row per class, with columns `k0`, `k1`, ... for the quasi-identifiers, `n` for the
        number of rows, and `p` for the number of distinct persons.
    values
        For each sensitive attribute, one row per class and value, with columns `k0`, `k1`, ..., `v`
        for the value, and `p`.
    quasi, sensitive, hierarchies
        The columns that form the classes, the columns whose values are counted within a class, and
        the hierarchies of sensitive columns.
    """

    source: Source
    rows: ir.Table
    person: str
    classes: pa.Table
    values: Mapping[str, pa.Table]
    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict)

    @cached_property
    def _ids(self) -> list[Ints]:
        """The class, from 0, of each row of `classes`, then of each table in `values`."""
        parts = [self.classes, *self.values.values()]
        lengths = [part.num_rows for part in parts]
        columns = (
            encode(pa.concat_arrays([part[f"k{i}"].combine_chunks() for part in parts]))[0]
            for i in range(len(self.quasi))
        )
        ids = combine(columns, sum(lengths))
        own = ids[: lengths[0]]
        dense = np.searchsorted(np.sort(own), ids)
        return np.split(dense, np.cumsum(lengths)[:-1])

    @cached_property
    def _order(self) -> Ints:
        """The index of each class among the rows of `classes`, shape (n_classes,)."""
        return np.argsort(self._ids[0])

    @cached_property
    def table(self) -> ClassTable:
        """The number of persons in each class and their sensitive values, without the
        quasi-identifiers' values.
        """
        order = self._order
        sizes = self.classes["p"].to_numpy().astype(np.int64)[order]
        rows = self.classes["n"].to_numpy().astype(np.int64)[order]
        cells, levels = {}, {}
        for name, ids in zip(self.sensitive, self._ids[1:], strict=True):
            codes, values = encode(self.values[name]["v"].combine_chunks())
            rank, labels = in_natural_order([show(value) for value in values.to_pylist()])
            counts = self.values[name]["p"].to_numpy().astype(np.int64)
            cells[name] = (ids, rank[codes], counts, labels)
            if name in self.hierarchies:
                levels[name] = self.hierarchies[name].ancestry(labels)
        persons = _PersonsInEngine(rows, self._count, np.arange(len(rows)), len(rows))
        return ClassTable.from_persons(sizes, persons, cells, hierarchies=levels)

    def members(self, classes: Flags) -> pa.Table:
        """Return the values of the quasi-identifiers in each class for which `classes` is True, one
        row per class.
        """
        keys = self.classes.select([f"k{i}" for i in range(len(self.quasi))])
        return keys.take(pa.array(self._order[classes]))

    def _count(self, classes: Flags) -> int:
        """Return the number of distinct persons in the classes for which `classes` is True."""
        rows = self.rows
        if not classes.all():
            members = self.members(classes)
            chosen = self.source.upload(members)
            rows = rows.semi_join(chosen, same_class(rows, chosen, self.quasi, members))
        counted = self.source.collect(count_persons(rows, {}, self.person))
        return int(counted["p"][0].as_py())


def same_class(
    rows: ir.Table, classes: ir.Table, quasi: Sequence[str], members: pa.Table
) -> list[ir.BooleanValue]:
    """Return conditions of an SQL join that are true if a row belongs to one of these classes. Null
    equals null.

    All conditions are equalities, because every engine can hash these. If a condition used `IS NOT
    DISTINCT FROM`, PostgreSQL would compare every row with every class.

    Parameters
    ----------
    rows
        The rows.
    classes
        The values of `members`, as a table in the engine of the rows.
    quasi
        The columns of the rows that form the classes.
    members
        The values that form the classes, one row per class, with columns `k0`, `k1`, ... in the
        order of `quasi`.
    """
    same: list[ir.BooleanValue] = []
    for i, name in enumerate(quasi):
        own, other, values = rows[name], classes[f"k{i}"], members[f"k{i}"]
        if values.null_count:
            same.append(own.isnull() == other.isnull())
            known = values.drop_null()
            if not len(known):
                continue
            filler = ibis.literal(known[0].as_py(), type=own.type())
            own, other = own.coalesce(filler), other.coalesce(filler)
        same.append(own == other)
    return same


def count_persons(rows: ir.Table, keys: Mapping[str, ir.Value], person: str) -> ir.Table:
    """Return a query that counts rows, in a column `n`, and distinct persons, in a column `p`, by
    `keys`.

    The query first groups by person. Engines differ in whether they count null as a distinct value,
    but all of them put nulls into a group.
    """
    each = rows.group_by(**keys, aegis_p=rows[person]).aggregate(aegis_n=rows.count())
    grouped = each.group_by(list(keys)) if keys else each
    return grouped.aggregate(n=each["aegis_n"].sum().cast("int64"), p=each.count())


def count_person_classes(
    source: Source,
    rows: ir.Table,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    person: str,
    hierarchies: Mapping[str, Hierarchy] | None = None,
) -> PersonClasses:
    """Count the rows and the distinct persons in each equivalence class of the table `rows`, and
    the persons by sensitive value. `quasi` are the columns that form the classes.

    Raises
    ------
    DataError
        The table has no rows.
    """
    keys = {f"k{i}": rows[name] for i, name in enumerate(quasi)}
    classes = source.collect(count_persons(rows, keys, person))
    if classes.num_rows == 0 or not classes["n"][0].as_py():
        raise DataError(f"{source.origin} has no rows.", hint="Give a table with rows.")
    values = {
        name: source.collect(count_persons(rows, {**keys, "v": rows[name]}, person))
        for name in dict.fromkeys(sensitive)
    }
    return PersonClasses(
        source,
        rows,
        person,
        classes,
        values,
        tuple(quasi),
        tuple(values),
        hierarchies or {},
    )
