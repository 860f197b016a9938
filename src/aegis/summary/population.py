"""Count the population from which a table is a sample, for the classes of any configuration.

The population is the table that the policy names. If the policy names none, the number of people in
a class is estimated as the sum of the survey weights of its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aegis.arrays import Array, Floats, Ints
from aegis.errors import DataError, PolicyError
from aegis.masks import Mask, evaluate
from aegis.policy import Policy
from aegis.privacy import ClassTable
from aegis.privacy.classes import number
from aegis.sources import Source, open_table
from aegis.summary.classes import WEIGHT, cast_population, count_population
from aegis.summary.codes import encode, settle
from aegis.summary.frequency import FrequencyTable, combine
from aegis.summary.model import Candidate, Summary


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
        """Add the number of people in the population to each class that a configuration forms.

        Parameters
        ----------
        table
            The classes, from `frequency.roll_up`.
        frequency
            The frequency table from which the classes were counted.
        choice
            The configuration: a candidate for each quasi-identifier.

        Raises
        ------
        DataError
            A class has more rows than people in the population.
        """
        own = frequency.class_ids({name: choice[name].groups for name in frequency.quasi})
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
        places = np.arange(len(table)) if table.ids is None else np.searchsorted(table.ids, own)
        sizes = np.zeros(len(table), dtype=people.dtype)
        sizes[places] = people[both[: frequency.cells]]
        absent = round(float(self.counts.sum() - sizes.sum()))
        return replace(table, population=sizes, absent=absent)

    def _counted(self, name: str, candidate: Candidate) -> Candidate:
        """Return the candidate of the quasi-identifier `name`. If the frequency table counts
        coarser groups than this candidate has, return the candidate with these groups.
        """
        finest = self.finest.get(name, candidate)
        return finest if candidate.size > finest.size else candidate

    def groups(self, name: str, candidate: Candidate) -> Ints:
        """Return, for each value that the quasi-identifier `name` has in the population, its group
        under a candidate mask.

        Groups that do not occur in the table have the highest numbers.
        """
        key = (name, candidate.mask)
        if key not in self._groups:
            (grouping,) = evaluate([candidate.mask], self.values[name])
            shown = settle(cast_population(grouping.shown, candidate.shown.type, name))
            places = pc.index_in(shown, value_set=settle(candidate.shown))
            known = places.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
            new = known < 0
            known[new] = candidate.size + np.arange(int(new.sum()))
            self._groups[key] = known[grouping.codes]
        return self._groups[key]


def people_of(policy: Policy, source: Source | None) -> Source | None:
    """Return the table of the population that the rule needs; None if the rule needs no population.

    It is the table that the policy names. If the policy names none, it is the table itself, where a
    row represents as many people as its weight, and at least one person.

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
    """Return whether the weights of the `rows` rows of a table, which add up to `people`, say how
    many people each row represents.
    """
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
        The policy counts persons, or classes are counted in the engine, or `people_of` raises this
        error.
    """
    if policy.population is not None and policy.person is not None and policy.privacy.by_crowd:
        raise PolicyError(
            "The policy names a population, which counts rows, but its rule counts persons "
            f"({policy.person}).",
            hint="Leave out `population` or `person`.",
        )
    people = people_of(policy, source)
    own = summary.weights
    lone = source is None and policy.privacy.by_crowd and policy.population is None
    if lone and own is not None and _people_are_counted(policy, own.population, summary.rows):
        raise DataError(
            f"The rule counts people by the weights {own.column!r}, and a summary does not hold their sums "
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
