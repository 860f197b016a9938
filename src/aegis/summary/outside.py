"""Find risks that a privacy rule does not cover, such as rows that are unique in all columns
together, and count the population from which a table is a sample.

A rule covers only the quasi-identifiers. Somebody who knows a person's values in other columns may
find the person's row by these.

The population is the table that the policy names. If the policy names none, the number of people in
a class is estimated as the sum of the survey weights of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aegis.arrays import Array, Floats, Ints, number
from aegis.errors import DataError, PolicyError
from aegis.masks import Kind, Mask, Tokenise, evaluate
from aegis.policy import Policy, Role
from aegis.privacy import ClassTable
from aegis.privacy.inference import WORTH_SAYING, Implication, RowCounts, Singling, find_singling
from aegis.sources import Source, open_table
from aegis.summary.classes import PERSON, WEIGHT, cast_population, count_persons, count_population
from aegis.summary.coded_rows import CodedRows
from aegis.summary.codes import encode, settle
from aegis.summary.frequency import FrequencyTable, combine
from aegis.summary.model import Candidate, Summary
from aegis.words import joined, json_fields, percent

NEAR_KEY = 0.5
"""A column is nearly a key if it shows at least this many different values per row; most values
then occur in one or two rows.
"""
MOST_ROWS = 2_000_000
"""Largest number of rows of a table whose rows are compared in all columns."""
MOST_NAMED = 3
"""Largest number of columns that sentences name because they are nearly keys, or because released
columns predict them; the record lists all.
"""


@dataclass(frozen=True, kw_only=True)
class Outside:
    """The risks in a table from which the privacy rule does not protect.

    Attributes
    ----------
    rows, unique_rows
        The number of rows, and the number of unique rows: no other row has the same values in all
        columns or, if persons are counted, no row of another person has. None if the rows were not
        available, if their values are drawn with noise, or if there are more than two million rows.
    near_keys
        Columns in which nearly every row has a different value, and the number of values of each.
    singling
        A few columns that together with the quasi-identifiers make most of the unique rows unique;
        None if there are no such columns.
    implied
        Released columns that predict masked values; None if the true values were not available.
    label
        Name of the label, if it is known. For the label, the sentences on risks propose a different
        remedy.
    persons
        Whether persons are counted.
    """

    rows: int | None
    unique_rows: int | None
    near_keys: Mapping[str, int] = field(default_factory=dict)
    singling: Singling | None = None
    implied: tuple[Implication, ...] | None = None
    label: str | None = None
    persons: bool = False

    @classmethod
    def from_dict(
        cls, entries: Mapping[str, Any], label: str | None = None, *, persons: bool = False
    ) -> Outside:
        """Rebuild the record from JSON values; earlier versions of Aegis wrote fewer fields."""
        few, implied = entries.get("singling"), entries.get("implied")
        return cls(
            rows=entries.get("rows"),
            unique_rows=entries.get("unique_rows"),
            near_keys=entries.get("near_keys") or {},
            singling=None if few is None else Singling(tuple(few["columns"]), few["unique_rows"]),
            implied=None if implied is None else tuple(Implication(**entry) for entry in implied),
            label=label,
            persons=persons,
        )

    @property
    def unique_title(self) -> str:
        """A title for the number of unique rows."""
        if self.persons:
            return "rows with values of one person only"
        return "rows unique in all columns"

    @property
    def sentences(self) -> tuple[str, ...]:
        """The risks as sentences for a privacy officer."""
        return (
            *self._unique(),
            *self._near_keys(),
            *(
                _implied(implication, self.label)
                for implication in (self.implied or ())[:MOST_NAMED]
            ),
        )

    def _unique(self) -> tuple[str, ...]:
        if not self.unique_rows or self.rows is None:
            return ()
        few = ""
        if self.singling is not None:
            verb = "singles out" if len(self.singling.columns) == 1 else "single out"
            few = (
                f" ({joined(self.singling.columns)} {verb} {self.singling.unique_rows:,} of them within "
                "their classes)"
            )
        unique = "are the only ones with their values in all columns together"
        if self.persons:
            unique = "have values of one person only in all columns together"
        return (
            f"{self.unique_rows:,} of {self.rows:,} released rows {unique}{few}: the rule covers only "
            "the quasi-identifiers, and somebody who knows more about a person can find the row",
        )

    def _near_keys(self) -> tuple[str, ...]:
        """Return a sentence for each column that is nearly a key; if there are many, one for the
        label and one for all others.
        """
        others = {name: n for name, n in self.near_keys.items() if name != self.label}
        if len(others) <= MOST_NAMED:
            return tuple(self._near_key(name, n) for name, n in self.near_keys.items())
        label_sentences = [
            self._near_key(name, self.near_keys[name]) for name in self.near_keys.keys() - others
        ]
        most = sorted(others, key=lambda name: -others[name])
        named = joined((f"{name} with {others[name]:,} values" for name in most), MOST_NAMED)
        return (
            *label_sentences,
            f"{len(others):,} columns are nearly keys ({named}): somebody who knows such a value finds the "
            "row. Mask these columns, make them quasi-identifiers, or leave them out (--leave-out)",
        )

    def _near_key(self, name: str, values: int) -> str:
        remedy = "Mask it, make it a quasi-identifier, or leave it out (--leave-out)"
        if name == self.label:
            remedy = (
                f"It is the label: to release ranges of it, write `label: {name}` without kind and bins, and "
                f"`{name}: {{role: feature, masks: [{{quantiles: {{count: 5}}}}]}}` under `attributes`"
            )
        return f"The column {name} shows {values:,} values and is nearly a key: somebody who knows the value finds the row. {remedy}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return json_fields(self, "rows", "unique_rows", "near_keys", "singling", "implied")


def _implied(implication: Implication, label: str | None) -> str:
    hidden, released = implication.hidden, implication.released
    fixed = (
        f"in {percent(100 * implication.fixed, 0)} of the released rows only one value is possible"
    )
    guessed = (
        f"a guess from {released} is right in {percent(100 * implication.right, 0)} of the released rows, and "
        f"without it in {percent(100 * implication.right_without, 0)}"
    )
    if implication.lift < WORTH_SAYING:  # reported only because some values follow from it
        guessed, fixed = fixed, ""
    elif implication.fixed < 0.01:
        fixed = ""
    remedy = f"Mask {released} more coarsely, or leave it out (--leave-out)"
    if released == label:
        remedy = "It is the label, which a release shows: only a coarser label can prevent it"
    also = f". {fixed[0].upper()}{fixed[1:]}" if fixed else ""
    return f"The column {released} gives away {hidden}, which is masked: {guessed}{also}. {remedy}"


@contextmanager
def _counted(
    source: Source,
    table: ir.Table,
    columns: Sequence[str],
    covered: Sequence[str],
    person: str | None,
) -> Iterator[tuple[ir.Table, list[str]]]:
    """Yield a table for finding unique rows, and the names of those of its columns that represent
    the columns `covered` by the rule.

    Column `v3` of the table has the values of `columns[3]`. If rows are counted and not persons,
    each distinct row is kept once, with its number `n`. On a database server, which compares texts
    slowly, the column `c` numbers the combinations of values in the covered columns.
    """
    named = {f"v{index}": table[name] for index, name in enumerate(columns)}
    keys = [f"v{index}" for index, name in enumerate(columns) if name in covered]
    if person is not None:
        yield table.select(**named, **{PERSON: table[person]}), keys
        return
    distinct = table.group_by(**named).aggregate(n=table.count())
    if keys and not source.engine.in_process:
        order = [distinct[key] for key in keys]
        distinct, keys = distinct.mutate(c=ibis.dense_rank().over(order_by=order)), ["c"]
    with source.keep(distinct) as stored:
        yield stored, keys


def _sizes(table: ir.Table, columns: Sequence[str]) -> ir.Table:
    """Return a query for three numbers: of rows, of rows whose combination of values in `columns`
    no other row has, and of different combinations.
    """
    if PERSON in table.columns:
        sizes = count_persons(table, {name: table[name] for name in columns}, PERSON)
        alone = sizes["p"] == 1
    else:
        distinct = set(table.columns) <= {*columns, "n", "c"}
        sizes = table if distinct else table.group_by(columns).aggregate(n=table["n"].sum())
        alone = sizes["n"] == 1
    return sizes.aggregate(
        rows=sizes["n"].sum(), alone=sizes["n"].sum(where=alone), groups=sizes.count()
    )


def outside_of(
    source: Source,
    quasi: Sequence[str],
    *,
    table: ir.Table | None = None,
    person: str | None = None,
    tokens: Collection[str] = (),
    coded_rows: CodedRows | None = None,
    label: str | None = None,
) -> Outside | None:
    """Find the risks in a table from which the privacy rule does not protect; None if it has more
    than two million rows.

    Parameters
    ----------
    source, quasi
        The table, and the quasi-identifiers, which the rule covers.
    table
        The rows to examine, if they were computed from the rows of the source.
    person
        Column with the identifier of the person; the column itself is not compared. Rows count as
        unique if all rows with the same values belong to one person.
    tokens
        Columns of tokens that replace identifiers. They are not compared, because nobody knows a
        person's token without the key.
    coded_rows
        Columns as codes, if they have already been read and rows are counted. If a compared column
        is missing, the engine compares the rows.
    label
        Name of the label.
    """
    if source.rows > MOST_ROWS:
        return None
    table = source.table if table is None else table
    columns = [name for name in comparable(table, person) if name not in tokens]
    if coded_rows is not None and all(name in coded_rows.values for name in columns):
        return outside_of_codes(coded_rows, columns, quasi, label)
    if not columns:
        rows = int(source.collect(table.aggregate(n=table.count()))["n"][0].as_py())
        return Outside(rows=rows, unique_rows=int(rows == 1), label=label)
    with _counted(source, table, columns, quasi, person) as (counted, keys):
        outside = _outside_in(source, counted, columns, quasi, keys, label)
    return replace(outside, persons=person is not None)


def _outside_in(
    source: Source,
    table: ir.Table,
    columns: Sequence[str],
    quasi: Sequence[str],
    keys: Sequence[str],
    label: str | None,
) -> Outside:
    """Find the risks in the table that `_counted` yields; `keys` are its columns that represent the
    quasi-identifiers.
    """
    named = {name: f"v{index}" for index, name in enumerate(columns)}

    def count(sets: Sequence[Sequence[str]]) -> list[tuple[int, int, int]]:
        sizes = [_sizes(table, names).mutate(place=index) for index, names in enumerate(sets)]
        counted = source.collect(ibis.union(*sizes).order_by("place"))
        return [
            (int(row["rows"] or 0), int(row["alone"] or 0), int(row["groups"]))
            for row in counted.to_pylist()
        ]

    def more(sets: Sequence[tuple[str, ...]]) -> list[RowCounts]:
        return [n[1:] for n in count([[*keys, *(named[name] for name in names)] for names in sets])]

    rows, alone, groups = count([list(named.values())])[0]
    if not alone and groups < NEAR_KEY * rows:
        # A column has at most as many values as there are different rows: none is nearly a key.
        return Outside(rows=rows, unique_rows=alone, label=label)
    figures = source.collect(table.aggregate(**{v: table[v].nunique() for v in named.values()}))
    values = {name: int(figures[v][0].as_py() or 0) for name, v in named.items()}
    return _outside(rows, alone, values, quasi, more, label)


def _outside(
    rows: int,
    alone: int,
    values: Mapping[str, int],
    quasi: Sequence[str],
    more: Callable[[Sequence[tuple[str, ...]]], list[RowCounts]],
    label: str | None,
) -> Outside:
    return Outside(
        rows=rows,
        unique_rows=alone,
        near_keys={name: n for name, n in values.items() if n >= NEAR_KEY * rows > 1},
        singling=find_singling({n: values[n] for n in values if n not in quasi}, alone, more),
        label=label,
    )


def outside_of_codes(
    coded_rows: CodedRows, columns: Iterable[str], quasi: Sequence[str], label: str | None = None
) -> Outside:
    """Find the same risks as `outside_of` in rows in memory, of which `columns` are compared."""
    codes, listed = coded_rows.codes, coded_rows.values
    values = {name: len(listed[name]) - listed[name].null_count for name in columns}
    rows = max((len(codes[name]) for name in values), default=0)
    covered = [name for name in values if name in quasi]

    def count(sets: Sequence[tuple[str, ...]]) -> list[RowCounts]:
        wider = ([*covered, *names] for names in sets)
        sizes = [
            np.bincount(number(combine((codes[n] for n in names), rows))[1]) for names in wider
        ]
        return [(int((size == 1).sum()), len(size)) for size in sizes]

    alone = count([tuple(name for name in values if name not in quasi)])[0][0]
    return _outside(rows, alone, values, quasi, count, label)


def comparable(table: ir.Table, person: str | None = None) -> list[str]:
    """Return the columns whose type a mask accepts, except `person`; only these can be compared."""
    left_out = {person, PERSON}
    schema = table.schema()
    return [n for n in table.columns if n not in left_out and Kind.of(schema[n]) is not None]


def patterns_of_tokens(policy: Policy) -> dict[str, str]:
    """Return the identifiers that a release replaces by tokens, each with a regular expression that
    all tokens match.
    """
    return {
        attribute.name: f"^[0-9a-f]{{{mask.length}}}$"
        for attribute in policy.with_role(Role.IDENTIFIER)
        for mask in attribute.masks
        if isinstance(mask, Tokenise)
    }


@dataclass(frozen=True, eq=False)
class Population:
    """How many people in a population have each combination of quasi-identifiers.

    Attributes
    ----------
    values
        For each quasi-identifier, its distinct values.
    codes
        For each quasi-identifier, the index of each cell's value, shape (cells,). A cell is a
        combination of values.
    counts
        Number of people per cell, shape (cells,): whole numbers, or sums of weights.
    finest
        For each quasi-identifier that the frequency table counts by groups, not by single values:
        the candidate mask that forms these groups, which is the finest one.
    """

    values: Mapping[str, pa.Array]
    codes: Mapping[str, Ints]
    counts: Ints | Floats
    finest: Mapping[str, Candidate] = field(default_factory=dict)
    _groups: dict[tuple[str, Mask], Ints] = field(default_factory=dict, repr=False)

    def with_people(
        self, table: ClassTable, frequency: FrequencyTable, choice: Mapping[str, Candidate]
    ) -> ClassTable:
        """Add the number of people in the population to each class that a configuration (`choice`)
        forms, which `frequency.roll_up` counted (`table`).

        Raises
        ------
        DataError
            A class has more rows than people in the population.
        """
        ids = frequency.class_ids({name: choice[name].groups for name in frequency.quasi})
        counted = {name: self._counted(name, choice[name]) for name in frequency.quasi}
        columns = (
            np.concatenate(
                [
                    candidate.groups[frequency.representatives[q]][frequency.codes[q]].astype(
                        np.int64
                    ),
                    self.groups(q, candidate)[self.codes[q]],
                ]
            )
            for q, candidate in counted.items()
        )
        both = number(combine(columns, frequency.cells + len(self.counts)))[1]
        people: Array = np.bincount(
            both[frequency.cells :], weights=self.counts, minlength=int(both.max(initial=0)) + 1
        ).astype(self.counts.dtype, copy=False)
        index = np.arange(len(table)) if table.ids is None else np.searchsorted(table.ids, ids)
        sizes = np.zeros(len(table), dtype=people.dtype)
        sizes[index] = people[both[: frequency.cells]]
        absent = round(float(self.counts.sum() - sizes.sum()))
        return replace(table, population=sizes, absent=absent)

    def _counted(self, name: str, candidate: Candidate) -> Candidate:
        """Return the candidate or, if the frequency table counts coarser groups, the one with these
        groups.
        """
        finest = self.finest.get(name, candidate)
        return finest if candidate.size > finest.size else candidate

    def groups(self, name: str, candidate: Candidate) -> Ints:
        """Return the group of each value that a quasi-identifier has in the population under a
        candidate. Groups that do not occur in the table have the highest numbers.
        """
        key = (name, candidate.mask)
        if key not in self._groups:
            (grouping,) = evaluate([candidate.mask], self.values[name])
            masked = settle(
                cast_population(grouping.masked_values, candidate.masked_values.type, name)
            )
            positions = pc.index_in(masked, value_set=settle(candidate.masked_values))
            group = positions.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
            new = group < 0
            group[new] = candidate.size + np.arange(int(new.sum()))
            self._groups[key] = group[grouping.codes]
        return self._groups[key]


def people_of(policy: Policy, source: Source | None) -> Source | None:
    """Return the table of the population that the rule needs; None if it needs none.

    It is the table that the policy names or, without one, the table itself, where a row represents
    as many people as its weight, and at least one person.

    Raises
    ------
    PolicyError
        The rule needs a population, but the weights are not numbers of people.
    """
    if not policy.privacy.by_crowd:
        return None
    if policy.population is not None:
        return open_table(policy.population, reading=policy.reading)
    if policy.weight is None or source is None:
        return None
    weights = source.require(policy.weight, where="the policy's weight").cast("float64")
    sums = source.collect(source.table.aggregate(n=source.table.count(), people=weights.sum()))
    if not _people_are_counted(policy, sums["people"][0].as_py() or 0.0, sums["n"][0].as_py()):
        return None
    return Source(
        source.table.mutate(**{WEIGHT: ibis.greatest(weights, ibis.literal(1.0))}), source.origin
    )


def _people_are_counted(policy: Policy, people: float, rows: int) -> bool:
    """Return whether the weights of `rows` rows, which add up to `people`, count people."""
    if people >= rows and policy.person is None:
        return True
    if policy.privacy.needs_population and policy.person is not None:
        raise PolicyError(
            f"The weights {policy.weight!r} say how many people a row stands for, and the policy counts "
            f"persons, who may have several rows ({policy.person}).",
            hint="Leave out one of the two, or name a table of the population (population: FILE).",
        )
    if policy.privacy.needs_population:
        raise PolicyError(
            f"The rule needs to know how many people there are, and the weights {policy.weight!r} add up to "
            f"{people:g}, less than the {rows:,} rows: they are relative weights and do not count people.",
            hint="Give weights that count people, name a table of the population (population: FILE), "
            "or ask for k.",
        )
    return False


def population_of(policy: Policy, summary: Summary, source: Source | None) -> Population | None:
    """Return the population of a table; None if there is none, or if the rule does not need one.

    Raises
    ------
    DataError
        The table of the population cannot be read, or a quasi-identifier is missing there or has
        another type. Or people are counted by weights, and there is only a summary.
    PolicyError
        The policy counts persons, or classes are counted in the engine, or the weights of rows,
        from which the population follows, are not numbers of people.
    """
    if policy.population is not None and policy.person is not None and policy.privacy.by_crowd:
        raise PolicyError(
            "The policy names a population, which counts rows, but its rule counts persons "
            f"({policy.person}).",
            hint="Leave out `population` or `person`.",
        )
    people = people_of(policy, source)
    weights = summary.weights
    lone = source is None and policy.privacy.by_crowd and policy.population is None
    if lone and weights and _people_are_counted(policy, weights.population, summary.rows):
        raise DataError(
            f"The rule counts people by the weights {weights.column!r}, and a summary does not hold their sums "
            "by class.",
            hint="Give the table itself.",
        )
    if people is None:
        return None
    if summary.frequency is None:
        raise PolicyError(
            "The table has too many classes to be compared with a population in memory.",
            hint="Give fewer or coarser candidate masks.",
        )
    quasi = tuple(a.name for a in policy.quasi_identifiers)
    counted = count_population(people, quasi)
    attributes = {a.name: a for a in summary.all_attributes}
    values, codes = {}, {}
    for i, name in enumerate(quasi):
        column = counted[f"k{i}"].combine_chunks()
        codes[name], values[name] = encode(
            cast_population(column, attributes[name].values.type, name)
        )
    finest = {n: a.finest_key for n, a in attributes.items() if a.finest_key is not None}
    return Population(values, codes, counted["n"].to_numpy(), finest)
