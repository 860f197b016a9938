"""The encoded table that every record-level method works on, and the table that it encodes.

Each quasi-identifier, of any kind, is a column of integer codes into its sorted domain. Numbers are
in ascending order, ordinal values in their given order, and categories in the order of their
hierarchy or, without a hierarchy, of their text. So ranges, medians and cuts all work on codes. A
missing value has the last code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegis.arrays import Floats, Integers, Ints, by_appearance
from aegis.errors import DataError, InternalError
from aegis.policy import AttributeKind, Policy
from aegis.privacy.classes import check_levels
from aegis.summary.frequency import combine

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class ValueTree:
    """A generalisation hierarchy over the domain of one attribute.

    Attributes
    ----------
    levels
        Shape (V, L), int32, for V values and L heights: `levels[v, h]` is the group of value v at
        height h. In column 0 each value is a group of its own; in the last column, all values are
        in one group. Each column is coarser than the previous one.
    labels
        For each height, the text of each group.

    Raises
    ------
    DataError
        The levels are not nested, or do not end in one group.
    """

    levels: Codes
    labels: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if self.levels.ndim != 2 or self.levels.shape[1] < 2:
            raise DataError("A hierarchy needs at least two levels: the values and one group.")
        if np.any(self.levels[:, -1] != self.levels[0, -1]):
            raise DataError(
                "The last level of a hierarchy must be one group that holds all values."
            )
        check_levels(self.levels, len(self.levels))

    @property
    def height(self) -> int:
        """The height of the root, which is the number of levels above the values."""
        return int(self.levels.shape[1]) - 1

    @cached_property
    def shares(self) -> Floats:
        """The share of all values in the group of each value at each height, shape (V, L)."""
        shares = np.empty(self.levels.shape)
        for height in range(self.levels.shape[1]):
            groups = self.levels[:, height]
            shares[:, height] = np.bincount(groups)[groups] / len(groups)
        return shares

    def heights_to(self, code: int) -> Codes:
        """Return the height of each value's lowest common ancestor with `code`, shape (V,)."""
        heights: Codes = np.argmax(self.levels == self.levels[code], axis=1).astype(np.int32)
        return heights

    @classmethod
    def flat(cls, labels: tuple[str, ...]) -> ValueTree:
        """Return a hierarchy with only a root above the values with these labels."""
        levels = np.zeros((len(labels), 2), dtype=np.int32)
        levels[:, 0] = np.arange(len(labels))
        return cls(levels, (labels, ("*",)))


@dataclass(frozen=True, eq=False)
class RecordAttribute:
    """One quasi-identifier of the table, with its values encoded as integers.

    Attributes
    ----------
    name
        Column of the table.
    kind
        Whether the attribute is numeric, ordinal or categorical.
    codes
        For each of the N records, the index of its value in `domain`, shape (N,), int32.
    domain
        The V values in the attribute's order. None means missing and, if it occurs, is last.
    hierarchy
        Hierarchy over these V values; None if the attribute is generalised to ranges or sets.
    numbers
        For numeric attributes, the number for each of the V codes, shape (V,), NaN for missing.
    centre, spread
        For numeric attributes, mean and population standard deviation of the non-missing values,
        for z-scores. If all values are equal, the standard deviation is set to 1. A subset of the
        records keeps the mean and standard deviation of the whole table.
    resolution
        For numeric attributes, the step of which all values are multiples, for rounding centroids;
        0 if there is none.
    """

    name: str
    kind: AttributeKind
    codes: Codes
    domain: tuple[Any, ...]
    hierarchy: ValueTree | None = None
    numbers: Floats = field(default_factory=lambda: np.empty(0))
    centre: float = 0.0
    spread: float = 1.0
    resolution: float = 0.0

    def __post_init__(self) -> None:
        size = len(self.domain)
        if len(self.codes) and not (self.codes.min() >= 0 and self.codes.max() < size):
            raise InternalError(f"Codes of {self.name!r} lie outside its domain of {size} values.")
        if self.kind is AttributeKind.NUMERIC and len(self.numbers) != size:
            raise InternalError(f"Numeric attribute {self.name!r} lacks its numbers.")
        if self.hierarchy is not None and len(self.hierarchy.levels) != size:
            raise InternalError(f"The hierarchy of {self.name!r} is for a different domain.")

    @property
    def size(self) -> int:
        """The number of distinct values V; missing counts as one value."""
        return len(self.domain)

    @property
    def missing(self) -> int:
        """The code of the missing value, its index in `domain`; -1 if no value is missing."""
        return self.size - 1 if self.size and self.domain[-1] is None else -1

    @property
    def present(self) -> int:
        """The number of distinct values that are not missing."""
        return self.size - (self.missing >= 0)

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest value of a numeric attribute; (0, 0) if all values are missing."""
        if not self.present:
            return 0.0, 0.0
        return float(self.numbers[0]), float(self.numbers[self.present - 1])

    @property
    def ordered(self) -> bool:
        """Whether the values have an order, so that they can be generalised to a range."""
        return self.kind is not AttributeKind.CATEGORICAL

    @cached_property
    def positions(self) -> Floats:
        """The position of each value from 0 to 1, by size for numbers, else by rank, shape (V,).

        Missing is at 2, one whole range above the largest, so that Mondrian's cuts separate it first.
        """
        places = np.arange(self.size, dtype=np.float64)
        if self.kind is AttributeKind.NUMERIC:
            places = self.numbers.copy()
        present = places[: self.present]
        low = present[0] if len(present) else 0.0
        span = present[-1] - low if len(present) else 0.0
        scaled = (places - low) / span if span > 0 else np.zeros(self.size)
        if self.missing >= 0:
            scaled[self.missing] = 2.0
        return scaled

    @cached_property
    def tree(self) -> ValueTree:
        """The hierarchy of the attribute; if it has none, a root above all values."""
        if self.hierarchy is not None:
            return self.hierarchy
        return ValueTree.flat(tuple("*" if value is None else str(value) for value in self.domain))

    def take(self, rows: Ints) -> RecordAttribute:
        """Return the attribute for the records `rows`; domain and scale do not change."""
        return replace(self, codes=self.codes[rows])


@dataclass(frozen=True, eq=False)
class SensitiveAttribute:
    """One sensitive attribute of N records: its codes, shape (N,), int32, index its domain."""

    name: str
    codes: Codes
    domain: tuple[Any, ...]

    @property
    def size(self) -> int:
        """The number of distinct values."""
        return len(self.domain)

    def take(self, rows: Ints) -> SensitiveAttribute:
        """Return the attribute for the records with the indices `rows`; the domain does not change."""
        return replace(self, codes=self.codes[rows])


@dataclass(frozen=True, eq=False)
class Records:
    """N records as encoded attributes, the input of every record-level method.

    Attributes
    ----------
    attributes
        The quasi-identifiers, at least one.
    sensitive
        The sensitive attributes, possibly none.
    left_out
        Columns that are never released: identifiers and ignored columns.
    persons
        The person of each record, shape (N,), numbered from 0; None unless a method that groups
        records counts persons.

    Raises
    ------
    DataError
        There is no quasi-identifier, or no record.
    """

    attributes: tuple[RecordAttribute, ...]
    sensitive: tuple[SensitiveAttribute, ...] = ()
    left_out: tuple[str, ...] = ()
    persons: Ints | None = None

    def __post_init__(self) -> None:
        if not self.attributes:
            raise DataError(
                "There is no quasi-identifier by which to group records.",
                hint="Give at least one column the role 'quasi-identifier'.",
            )
        lengths = {len(a.codes) for a in self.attributes}
        lengths |= {len(a.codes) for a in self.sensitive}
        if len(lengths) != 1:
            raise InternalError(f"The attributes have unequal lengths: {sorted(lengths)}.")
        if lengths == {0}:
            raise DataError("The table has no rows.", hint="Give a table with at least k rows.")

    def __len__(self) -> int:
        return len(self.attributes[0].codes)

    def take(self, rows: Ints) -> Records:
        """Return the records with the indices `rows`; domains and scales do not change."""
        return Records(
            tuple(a.take(rows) for a in self.attributes),
            tuple(a.take(rows) for a in self.sensitive),
            self.left_out,
            None if self.persons is None else self.persons[rows],
        )

    @cached_property
    def subjects(self) -> int:
        """The number of distinct persons or, if they are not known, of records."""
        return len(self) if self.persons is None else len(np.unique(self.persons))

    @cached_property
    def combinations(self) -> tuple[Ints, Ints]:
        """The D distinct combinations of quasi-identifier values, and which of them each of the N
        records has.

        Returns
        -------
        first
            The index of the first record of each combination, ascending, shape (D,).
        of
            The number of each record's combination, shape (N,).
        """
        return distinct_rows([a.codes for a in self.attributes])

    def attribute(self, name: str) -> RecordAttribute:
        """Return the quasi-identifier with this name; raise `DataError` if there is none."""
        by_name: Mapping[str, RecordAttribute] = {a.name: a for a in self.attributes}
        if name not in by_name:
            raise DataError.unknown_column(name, by_name, where="quasi-identifiers")
        return by_name[name]


def distinct_rows(columns: Sequence[Integers]) -> tuple[Ints, Ints]:
    """Number the distinct rows of columns of codes, shape (N,) each, in the order in which they
    first occur. Return the first row of each of D combinations, shape (D,), and the combination of
    each row, shape (N,).
    """
    return by_appearance(combine(columns, len(columns[0])))


@dataclass(frozen=True, eq=False)
class RecordTable:
    """A table in memory, with its quasi-identifiers encoded as records.

    Attributes
    ----------
    policy
        Roles, hierarchies and the rule.
    table
        The columns of a release. Quasi-identifiers are unmasked; all other columns are as they will
        be released.
    records
        The same rows, encoded.
    unseen
        For each masked column, the number of rows whose value its mask does not cover; such values
        are shown as `*`.
    notes
        Sentences on how columns other than quasi-identifiers were changed.
    carried
        Mask of each column that is not a quasi-identifier, as text; `identity` if it is unchanged.
    persons
        The person of each of N rows, shape (N,), numbered from 0; None if the policy does not count
        persons.
    masks
        Mask of each masked quasi-identifier, as text.
    """

    policy: Policy
    table: pa.Table
    records: Records
    unseen: Mapping[str, int]
    notes: tuple[str, ...] = ()
    carried: Mapping[str, str] = field(default_factory=dict)
    persons: Ints | None = None
    masks: Mapping[str, str] = field(default_factory=dict)

    @property
    def quasi(self) -> tuple[str, ...]:
        """The names of the quasi-identifiers."""
        return tuple(a.name for a in self.records.attributes)
