"""Count the equivalence classes of a table, and their persons, in its engine.

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
from aegis.policy import Configuration
from aegis.policy.terms import require_as_certified
from aegis.privacy import ClassTable, Persons, PrivacyRule, Verdict, joined, released_cells, traces
from aegis.sources import Source
from aegis.summary.coded_rows import CodedRows, count_by
from aegis.summary.codes import encode, in_natural_order, show
from aegis.summary.frequency import combine


@dataclass(frozen=True, eq=False)
class _PersonsInEngine(Persons):
    """The persons in selected classes. Their identifiers stay in the engine, so each figure needs a
    query.

    Attributes
    ----------
    rows, indices
        Rows of each selected class, and its index among all classes, shape (n_classes,).
    counter
        Function that counts the distinct persons in some of all classes.
    every
        Number of all classes.
    """

    rows: Ints
    counter: Callable[[Flags], int]
    indices: Ints
    every: int

    @cached_property
    def total(self) -> int:  # type: ignore[override]
        return self.within(np.ones(len(self.rows), dtype=np.bool_))

    def within(self, classes: Flags) -> int:
        """Return the number of distinct persons with a row in the selected classes."""
        if not classes.any():
            return 0
        chosen = np.zeros(self.every, dtype=np.bool_)
        chosen[self.indices[classes]] = True
        return self.counter(chosen)

    def keep(self, classes: Flags) -> _PersonsInEngine:
        """Return the persons of only the selected classes."""
        return _PersonsInEngine(self.rows[classes], self.counter, self.indices[classes], self.every)


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
        dense = np.searchsorted(np.sort(ids[: lengths[0]]), ids)
        return np.split(dense, np.cumsum(lengths)[:-1])

    @cached_property
    def _order(self) -> Ints:
        """The row of `classes` in which each class is, shape (n_classes,)."""
        return np.argsort(self._ids[0])

    @cached_property
    def table(self) -> ClassTable:
        """The persons in each class and their sensitive values, without the quasi-identifiers'
        values.
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
        """Return the values of the quasi-identifiers in the selected classes, one row per class."""
        keys = self.classes.select([f"k{i}" for i in range(len(self.quasi))])
        return keys.take(pa.array(self._order[classes]))

    def _count(self, classes: Flags) -> int:
        """Return the number of distinct persons in the selected classes."""
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
    """Return conditions of an SQL join that are true if a row belongs to one of these `classes`, a
    table in the engine with the values of `members`: one row per class, with columns `k0`, `k1`,
    ... in the order of `quasi`. Null equals null.
    """
    same: list[ir.BooleanValue] = []
    # Every engine can hash equalities; PostgreSQL would compare each row with each class under
    # IS NOT DISTINCT FROM.
    for i, name in enumerate(quasi):
        column, other, values = rows[name], classes[f"k{i}"], members[f"k{i}"]
        if values.null_count:
            same.append(column.isnull() == other.isnull())
            valid = values.drop_null()
            if not len(valid):
                continue
            filler = ibis.literal(valid[0].as_py(), type=column.type())
            column, other = column.coalesce(filler), other.coalesce(filler)
        same.append(column == other)
    return same


def count_persons(rows: ir.Table, keys: Mapping[str, ir.Value], person: str) -> ir.Table:
    """Return a query that counts rows `n` and distinct persons `p` by `keys`.

    It first groups by person. Engines differ in whether they count null as a distinct value, but
    all of them put nulls into a group.
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
    the persons by sensitive value.

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


PERSON = "aegis_person"
"""Name of the column with the persons in a masked table; it exists only until the classes are
checked.
"""


@dataclass(frozen=True)
class ShownColumns:
    """The columns of one release, in a table that joins the columns of several releases.

    Attributes
    ----------
    quasi
        The columns that form the equivalence classes of the release.
    sensitive
        The column of each sensitive attribute.
    after
        Positions of the earlier releases that were considered when the release was checked.
    configuration
        The configuration of the release, with what its certificate states; None for a new release.
    """

    quasi: tuple[str, ...]
    sensitive: Mapping[str, str]
    after: frozenset[int] = frozenset()
    configuration: Configuration | None = None


@dataclass(frozen=True, eq=False)
class LastRelease:
    """The classes that a release forms together with all earlier releases, and whether these
    classes meet the rule.

    Attributes
    ----------
    table
        The classes of rows that have equal values in every release. That a release lacks a row
        counts as a value, too.
    verdict
        Whether these classes meet the rule, and which of them do not.
    left_out
        The rows that the last release suppresses, identified by their quasi-identifiers `k0`, `k1`,
        ...
    """

    table: ClassTable
    verdict: Verdict
    left_out: pa.Table


@dataclass(frozen=True, eq=False)
class CountedClasses:
    """The equivalence classes of a table, with their counts and with the values that form each
    class.

    Attributes
    ----------
    cells
        One row per combination of class and sensitive values. Its columns are `k0`, `k1`, ...,
        first for the quasi-identifiers, then for the sensitive attributes, each in their order, and
        the count `n`.
    quasi, sensitive
        The columns that form the classes, and the columns whose values are counted within a class.
    hierarchies
        Hierarchies of sensitive columns, for models that need them.
    population
        A table of the population with columns `k0`, `k1`, ... for the quasi-identifiers, and the
        number of people `n`. None if the population is not known.
    """

    cells: pa.Table
    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict)
    population: pa.Table | None = None

    @cached_property
    def _codes(self) -> dict[str, tuple[Ints, pa.Array]]:
        names = dict.fromkeys((*self.quasi, *self.sensitive))
        return {name: encode(self.cells[f"k{i}"].combine_chunks()) for i, name in enumerate(names)}

    @cached_property
    def _ids(self) -> Ints:
        """The class of each row of `cells`, shape (cells,)."""
        if self.population is not None:
            return self._ids_with_population(self.population)[: self.cells.num_rows]
        if not self.sensitive and self.quasi:
            return np.arange(self.cells.num_rows)
        return combine((self._codes[name][0] for name in self.quasi), self.cells.num_rows)

    @cached_property
    def table(self) -> ClassTable:
        """The sizes of the classes and their counts of sensitive values."""
        sensitive, levels = self._protected({name: name for name in self.sensitive})
        if self.population is None:
            return ClassTable.from_cells(self._ids, self._counts, sensitive, hierarchies=levels)
        return self._with_population(self.population, self._counts, sensitive, levels)

    @property
    def _counts(self) -> Ints:
        """The rows of the table that each row of `cells` counts, shape (cells,)."""
        rows: Ints = self.cells["n"].to_numpy().astype(np.int64)
        return rows

    def _protected(
        self, columns: Mapping[str, str]
    ) -> tuple[dict[str, tuple[Ints, tuple[str, ...]]], dict[str, Ints]]:
        """Return, by sensitive attribute, the code of the value in each cell and the text of each
        code; and, with a hierarchy, the group of each value on each level. `columns` names the
        column of each.
        """
        sensitive = {name: self._in_order(column) for name, column in columns.items()}
        levels = {
            name: self.hierarchies[name].ancestry(texts)
            for name, (_, texts) in sensitive.items()
            if name in self.hierarchies
        }
        return sensitive, levels

    def after(self, rule: PrivacyRule, releases: Sequence[ShownColumns]) -> LastRelease:
        """Return the classes that the last release forms together with all earlier releases.

        `releases` has the columns of each, which must be among the counted columns, in the order of
        release. Every release had to meet the rule together with the earlier releases that it took
        into account.

        Raises
        ------
        PolicyError
            The certificate of an earlier release states another number of suppressed rows.
        """

        def count(position: int, ids: Ints, trace: Ints) -> ClassTable:
            sensitive, levels = self._protected(releases[position].sensitive)
            return ClassTable.from_cells(
                ids, self._counts, sensitive, hierarchies=levels, earlier=trace
            )

        def codes(release: ShownColumns) -> Ints:
            columns = (self._codes[name][0] for name in release.quasi)
            return combine(columns, self.cells.num_rows)

        start = np.zeros(self.cells.num_rows, dtype=np.int64)
        earlier = [codes(release) for release in releases[:-1]]
        considered = [release.after for release in releases]
        released = released_cells(rule, earlier, count, start, considered)
        certified, lost = [], []
        for release, cells in zip(releases, released, strict=False):
            if release.configuration is not None:
                certified.append(release.configuration)
                lost.append(int(self._counts[~cells].sum()))
        require_as_certified(certified, lost, rule)
        trace = traces(earlier, released, start)
        ids = joined(trace, codes(releases[-1]))
        table = count(len(releases) - 1, ids, trace)
        verdict = rule.check(table)
        failing = np.isin(ids, table.kept_ids(~verdict.kept_classes))
        keys = self.cells.select([f"k{i}" for i in range(len(self.quasi))])
        left_out = keys.filter(pa.array(failing)).group_by(keys.column_names).aggregate([])
        return LastRelease(table, verdict, left_out)

    def _with_population(
        self,
        population: pa.Table,
        counts: Ints,
        sensitive: Mapping[str, tuple[Ints, tuple[str, ...]]],
        levels: Mapping[str, Ints],
    ) -> ClassTable:
        """Return the classes of the table, with their numbers of rows and of people in the
        population.

        Combinations of the population count as having no rows, and those of the table as having no
        people, so that nobody counts twice. `counts`, `sensitive` and `levels` describe the cells
        of the table.
        """
        cells, others = self.cells.num_rows, population.num_rows
        padding = np.zeros(others, dtype=np.int64)
        return ClassTable.from_cells(
            self._ids_with_population(population),
            np.concatenate([counts, padding]),
            {
                n: (np.concatenate([codes, padding]), texts)
                for n, (codes, texts) in sensitive.items()
            },
            population=np.pad(population["n"].to_numpy(), (cells, 0)),
            hierarchies=levels,
        )

    def _ids_with_population(self, population: pa.Table) -> Ints:
        """Return the class of each cell, followed by that of each row of the population. Those with
        equal quasi-identifiers are in the same class.
        """
        columns = []
        for i, name in enumerate(self.quasi):
            values = self.cells[f"k{i}"].combine_chunks()
            people = cast_population(population[f"k{i}"].combine_chunks(), values.type, name)
            columns.append(encode(pa.concat_arrays([values, people]))[0])
        return combine(columns, self.cells.num_rows + population.num_rows)

    def _in_order(self, name: str) -> tuple[Ints, tuple[str, ...]]:
        """Return the code of each cell's value in a column, and the text of each code, in natural
        order.
        """
        codes, values = self._codes[name]
        rank, labels = in_natural_order([show(value) for value in values.to_pylist()])
        return rank[codes], labels

    def members(self, classes: Flags) -> pa.Table:
        """Return the values of the quasi-identifiers in the selected classes, one row per class."""
        _, first = np.unique(self._ids, return_index=True)
        keys = self.cells.select([f"k{i}" for i in range(len(self.quasi))])
        return keys.take(pa.array(first[classes]))


def count_classes(
    source: Source,
    quasi: Sequence[str],
    sensitive: Sequence[str] = (),
    *,
    table: ir.Table | None = None,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    person: str | None = None,
    population: Source | None = None,
    coded_rows: CodedRows | None = None,
) -> CountedClasses | PersonClasses:
    """Count the rows of each equivalence class of a table as it is, without masking it.

    Parameters
    ----------
    source
        The table, and the engine that runs the query.
    quasi
        Columns that form the classes; null and NaN count as values. Without columns, all rows are
        one class.
    sensitive
        Columns whose values are counted within each class.
    table
        Another table of the same engine to count instead, such as the masked table.
    hierarchies
        Hierarchies of sensitive columns, for models that need them.
    person
        Column that identifies persons; then persons are counted instead of rows.
    population
        The population from which the rows were drawn, with the quasi-identifiers masked as in the
        table. It has one row per person, or a column `rows` with counts. It is not allowed together
        with `person`.
    coded_rows
        The rows, if they have already been read. They are used instead of a query, unless persons
        are counted.

    Raises
    ------
    DataError
        A column is missing, or the table has no rows.
    """
    rows = source.table if table is None else table
    names = tuple(dict.fromkeys((*quasi, *sensitive)))
    for name in (*names, *(() if person is None else (person,))):
        if name not in rows.columns:
            raise DataError.unknown_column(name, rows.columns)
    if person is not None:
        return count_person_classes(source, rows, quasi, sensitive, person, hierarchies)
    if coded_rows is not None:
        counted = coded_rows.cells(names)
    else:
        keys = {f"k{i}": rows[name] for i, name in enumerate(names)}
        counted = source.collect(count_by(source, rows, keys))
    if counted.num_rows == 0 or not counted["n"][0].as_py():
        raise DataError(f"{source.origin} has no rows.", hint="Give a table with rows.")
    people = None if population is None else count_population(population, quasi)
    return CountedClasses(counted, tuple(quasi), tuple(sensitive), hierarchies or {}, people)


ROWS = "rows"
"""Column of a population that says how many persons a row represents."""
WEIGHT = "aegis_weight"
"""Column of the weights of rows, in a masked table that is scored before it is released."""


def count_population(population: Source, quasi: Sequence[str]) -> pa.Table:
    """Count the people who have each combination of quasi-identifiers, in columns `k0`, `k1`, ...
    and `n`: the number of rows, or the sum of the column `ROWS` or `WEIGHT`, if there is one.
    """
    table = population.table
    keys = {
        f"k{i}": population.require(name, where="of the population") for i, name in enumerate(quasi)
    }
    counted = ROWS in table.columns and ROWS not in quasi
    if counted and not table[ROWS].type().is_integer():
        raise DataError(
            f"Column {ROWS!r} of {population.origin} holds no whole numbers.",
            hint="It says how many persons a row represents; leave it out where each row is one.",
        )
    grouped = table.group_by(**keys) if keys else table
    if WEIGHT in table.columns:
        return population.collect(grouped.aggregate(n=table[WEIGHT].sum().cast("float64")))
    number = table[ROWS].sum().fill_null(0) if counted else table.count()
    return population.collect(grouped.aggregate(n=number.cast("int64")))


def cast_population(values: pa.Array, table_type: pa.DataType, name: str) -> pa.Array:
    """Convert the values of a quasi-identifier in the population to their type in the table."""
    try:
        return values.cast(table_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise DataError(
            f"{name!r} is {values.type} in the population and {table_type} in the table.",
            hint="Give the population with its quasi-identifiers as the table shows them.",
        ) from None
