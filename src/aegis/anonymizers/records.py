"""The encoded table that every record-level method works on.

Each quasi-identifier is a column of integer codes into its own sorted domain, whatever the kind:
numbers ascending, ordinal values in their given order, categories in the order of their hierarchy
(or of their text). Ranges, medians and cuts are then all made on codes, and a missing value is one
more code, the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.errors import DataError, InternalError
from aegis.policy import AttributeKind
from aegis.privacy.classes import check_levels
from aegis.summary.frequency import combine

Codes = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ValueTree:
    """A generalisation hierarchy over the domain of one attribute.

    Attributes
    ----------
    levels
        Shape (V, L), int32: `levels[v, h]` is the number of the group that value v belongs to at
        height h. Column 0 distinguishes all values, the last column puts them in one group, and
        each column is a coarsening of the one before.
    labels
        Per height the text of each group.

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
        """Height of the root: the number of levels above the values."""
        return int(self.levels.shape[1]) - 1

    @cached_property
    def shares(self) -> Floats:
        """Share of the domain under each value's group, shape (V, L)."""
        shares = np.empty(self.levels.shape)
        for height in range(self.levels.shape[1]):
            groups = self.levels[:, height]
            shares[:, height] = np.bincount(groups)[groups] / len(groups)
        return shares

    def heights_to(self, code: int) -> Codes:
        """Return, per value, the height of the lowest common ancestor with `code`, shape (V,)."""
        heights: Codes = np.argmax(self.levels == self.levels[code], axis=1).astype(np.int32)
        return heights

    @classmethod
    def flat(cls, labels: tuple[str, ...]) -> ValueTree:
        """Return the hierarchy of one root above all values."""
        levels = np.zeros((len(labels), 2), dtype=np.int32)
        levels[:, 0] = np.arange(len(labels))
        return cls(levels, (labels, ("*",)))


@dataclass(frozen=True, eq=False)
class RecordAttribute:
    """One quasi-identifier, encoded.

    Attributes
    ----------
    name
        Column of the table.
    kind
        How values compare.
    codes
        Shape (N,), int32, indices into `domain`.
    domain
        The V values in the attribute's order; None, when present, is last and means missing.
    hierarchy
        Over the same V values; None for an attribute that is generalised to ranges or sets.
    numbers
        Numeric attributes: the value of each code, shape (V,), NaN for missing.
    centre, spread
        Numeric attributes: mean and population standard deviation of the present values (spread 1
        where all are equal), the scale of z-scores. They stay those of the whole table when
        records are taken from it.
    resolution
        Numeric attributes: the step on which the values lie, to which a centroid can be rounded;
        0 where there is none.
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
            raise InternalError(f"The hierarchy of {self.name!r} has another domain.")

    @property
    def size(self) -> int:
        """Number of distinct values V, a missing one included."""
        return len(self.domain)

    @property
    def missing(self) -> int:
        """Code of the missing value, or -1."""
        return self.size - 1 if self.size and self.domain[-1] is None else -1

    @property
    def present(self) -> int:
        """Number of distinct values that are not missing."""
        return self.size - (self.missing >= 0)

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and largest present number of a numeric attribute; zeros where none is present."""
        if not self.present:
            return 0.0, 0.0
        return float(self.numbers[0]), float(self.numbers[self.present - 1])

    @property
    def ordered(self) -> bool:
        """Whether a range of values is a generalisation, because other values lie between two
        values.
        """
        return self.kind is not AttributeKind.CATEGORICAL

    @cached_property
    def positions(self) -> Floats:
        """Place of each value on a scale from 0 to 1, shape (V,); a missing value is at 2.

        Numeric values by size, the others by rank. One whole range lies between the largest
        present value and the missing one, so that the two are first to be parted.
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
        """The hierarchy, or the flat one of a root above all values."""
        if self.hierarchy is not None:
            return self.hierarchy
        return ValueTree.flat(tuple("*" if value is None else str(value) for value in self.domain))

    def take(self, rows: Integers) -> RecordAttribute:
        """Return the attribute of the records `rows`, on the same domain and scale."""
        return replace(self, codes=self.codes[rows])


@dataclass(frozen=True, eq=False)
class SensitiveAttribute:
    """One sensitive attribute: codes of shape (N,), int32, into its domain."""

    name: str
    codes: Codes
    domain: tuple[Any, ...]

    @property
    def size(self) -> int:
        """Number of distinct values."""
        return len(self.domain)

    def take(self, rows: Integers) -> SensitiveAttribute:
        """Return the attribute of the records `rows`, on the same domain."""
        return replace(self, codes=self.codes[rows])


@dataclass(frozen=True, eq=False)
class Records:
    """An encoded table of N records.

    Attributes
    ----------
    attributes
        The quasi-identifiers, at least one.
    sensitive
        The sensitive attributes, possibly none.
    left_out
        Columns that no release may hold: identifiers, and what is to be ignored.
    persons
        Whose record each one is, shape (N,), numbered from 0, for methods that work on records and
        count persons; None if records are counted.

    Raises
    ------
    DataError
        There is no quasi-identifier, or no record.
    """

    attributes: tuple[RecordAttribute, ...]
    sensitive: tuple[SensitiveAttribute, ...] = ()
    left_out: tuple[str, ...] = ()
    persons: Integers | None = None

    def __post_init__(self) -> None:
        if not self.attributes:
            raise DataError(
                "No quasi-identifier to group records by.",
                hint="Give at least one column the role 'quasi-identifier'.",
            )
        lengths = {len(a.codes) for a in self.attributes}
        lengths |= {len(a.codes) for a in self.sensitive}
        if len(lengths) != 1:
            raise InternalError(f"Attributes of unequal length: {sorted(lengths)}.")
        if lengths == {0}:
            raise DataError("The table has no rows.", hint="Give a table with at least k rows.")

    def __len__(self) -> int:
        return len(self.attributes[0].codes)

    def take(self, rows: Integers) -> Records:
        """Return the records `rows`, on the same domains and scales."""
        return Records(
            tuple(a.take(rows) for a in self.attributes),
            tuple(a.take(rows) for a in self.sensitive),
            self.left_out,
            None if self.persons is None else self.persons[rows],
        )

    @cached_property
    def subjects(self) -> int:
        """The units that classes count: records, or distinct persons if they are known."""
        return len(self) if self.persons is None else len(np.unique(self.persons))

    @cached_property
    def combinations(self) -> tuple[Integers, Integers]:
        """Distinct combinations of quasi-identifier values.

        Returns
        -------
        first
            Shape (D,): the first record of each combination, ascending.
        of
            Shape (N,): the combination of each record.
        """
        return distinct_rows([a.codes for a in self.attributes])

    def attribute(self, name: str) -> RecordAttribute:
        """Return the quasi-identifier called `name`; raise `DataError` that lists them."""
        by_name: Mapping[str, RecordAttribute] = {a.name: a for a in self.attributes}
        if name not in by_name:
            raise DataError.unknown_column(name, by_name, where="quasi-identifiers")
        return by_name[name]


def distinct_rows(columns: list[Codes]) -> tuple[Integers, Integers]:
    """Number the distinct rows of code columns in the order in which they first occur.

    Returns the first row of each distinct one, shape (D,), and the number of each row, (N,).
    """
    keys = combine(columns, len(columns[0]))
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    return first[order].astype(np.int64), number[inverse]
