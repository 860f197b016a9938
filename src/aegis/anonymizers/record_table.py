"""A table in memory with its encoded records, the input of the record-level methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from aegis.anonymizers.records import Records
from aegis.arrays import Ints
from aegis.policy import Policy


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
        The person of each row, shape (N,), numbered from 0; None if the policy does not count
        persons.
    shown
        Mask of each masked quasi-identifier, as text.
    """

    policy: Policy
    table: pa.Table
    records: Records
    unseen: Mapping[str, int]
    notes: tuple[str, ...] = ()
    carried: Mapping[str, str] = field(default_factory=dict)
    persons: Ints | None = None
    shown: Mapping[str, str] = field(default_factory=dict)

    @property
    def quasi(self) -> tuple[str, ...]:
        """The names of the quasi-identifiers."""
        return tuple(a.name for a in self.records.attributes)
