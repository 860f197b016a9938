"""Count the population of a sample, for the equivalence classes of any configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from aegis.errors import DataError, PolicyError
from aegis.masks import Mask, evaluate
from aegis.policy import Policy
from aegis.privacy import ClassTable
from aegis.privacy.classes import number
from aegis.sources import open_table
from aegis.summary.classes import count_population
from aegis.summary.codes import encode, settle
from aegis.summary.frequency import FrequencyTable, combine
from aegis.summary.model import AttributeSummary, Candidate, Summary

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Population:
    """The numbers of people in a population by combination of quasi-identifiers.

    Attributes
    ----------
    values
        For each quasi-identifier, its distinct values.
    codes
        For each quasi-identifier, the index of each cell's value, shape (cells,).
    counts
        People per cell, shape (cells,).
    """

    values: Mapping[str, pa.Array]
    codes: Mapping[str, Ints]
    counts: Ints
    _groups: dict[tuple[str, Mask], Ints] = field(default_factory=dict, repr=False)

    def with_people(
        self, table: ClassTable, frequency: FrequencyTable, choice: Mapping[str, Candidate]
    ) -> ClassTable:
        """Add the sizes in the population to the classes of a configuration.

        Parameters
        ----------
        table
            The classes, from `frequency.roll_up`.
        frequency
            The frequency table that the classes were counted from.
        choice
            The configuration: a candidate per quasi-identifier.

        Raises
        ------
        DataError
            A class has more rows than people.
        """
        groups = {name: choice[name].groups for name in frequency.quasi}
        own = frequency.class_ids(groups)
        columns = (
            np.concatenate(
                [
                    groups[q][frequency.representatives[q]][frequency.codes[q]].astype(np.int64),
                    self.groups(q, choice[q])[self.codes[q]],
                ]
            )
            for q in frequency.quasi
        )
        both = number(combine(columns, frequency.cells + len(self.counts)))[1]
        people = np.bincount(
            both[frequency.cells :], weights=self.counts, minlength=int(both.max(initial=0)) + 1
        ).astype(np.int64)
        places = np.arange(len(table)) if table.ids is None else np.searchsorted(table.ids, own)
        sizes = np.zeros(len(table), dtype=np.int64)
        sizes[places] = people[both[: frequency.cells]]
        absent = int(self.counts.sum()) - int(sizes.sum())
        return replace(table, population=sizes, absent=absent)

    def groups(self, name: str, candidate: Candidate) -> Ints:
        """Return the group of each of the population's values under a candidate.

        Groups that do not occur in the table have the highest numbers.
        """
        key = (name, candidate.mask)
        if key not in self._groups:
            (grouping,) = evaluate([candidate.mask], self.values[name])
            shown = settle(_cast(grouping.shown, candidate.shown.type, name))
            places = pc.index_in(shown, value_set=settle(candidate.shown))
            known = places.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
            new = known < 0
            known[new] = candidate.size + np.arange(int(new.sum()))
            self._groups[key] = known[grouping.codes]
        return self._groups[key]


def population_of(policy: Policy, summary: Summary) -> Population | None:
    """Read the population of a policy; None if it has none or its rule does not need one.

    Raises
    ------
    DataError
        The population's table cannot be read, lacks a quasi-identifier, or has another type for it.
    PolicyError
        The policy counts persons, or classes are counted in the engine.
    """
    if policy.population is None or not policy.privacy.by_crowd:
        return None
    if policy.person is not None:
        raise PolicyError(
            "The policy names a population, which is counted in rows, and counts persons "
            f"({policy.person}).",
            hint="Leave out one of the two.",
        )
    if summary.frequency is None:
        raise PolicyError(
            "The table has too many classes to be compared with a population in memory.",
            hint="Give fewer or coarser candidate masks.",
        )
    quasi = tuple(a.name for a in policy.quasi_identifiers)
    counted = count_population(open_table(policy.population, reading=policy.reading), quasi)
    attributes = {a.name: a for a in summary.all_attributes}
    values, codes = {}, {}
    for i, name in enumerate(quasi):
        column = counted[f"k{i}"].combine_chunks()
        codes[name], values[name] = encode(_as_values(column, attributes[name]))
    return Population(values, codes, counted["n"].to_numpy().astype(np.int64))


def _as_values(column: pa.Array, attribute: AttributeSummary) -> pa.Array:
    return _cast(column, attribute.values.type, attribute.name)


def _cast(values: pa.Array, wanted: pa.DataType, name: str) -> pa.Array:
    if values.type == wanted:
        return values
    try:
        return values.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise DataError(
            f"{name!r} is {values.type} in the population and {wanted} in the table.",
            hint="Give the population with its quasi-identifiers as the table has them.",
        ) from None
