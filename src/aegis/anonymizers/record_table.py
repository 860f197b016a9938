"""A table in memory, as the record-level methods work on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from aegis.anonymizers.records import Integers, Records
from aegis.policy import Policy


@dataclass(frozen=True, eq=False)
class RecordTable:
    """A table in memory, encoded for the record-level methods.

    Attributes
    ----------
    policy
        Roles, hierarchies and the rule.
    table
        The columns of a release: quasi-identifiers as they are, all others as they are released.
    records
        The same rows, encoded.
    unseen
        Per masked column the rows whose value its mask did not know, shown as `*`.
    notes
        What was done to columns that are no quasi-identifier.
    carried
        Mask of each such column, as text; `identity` where it stays as it is.
    persons
        Whose row each one is, shape (N,), numbered from 0, where the policy counts persons; else None.
    shown
        Mask of each quasi-identifier that is not shown as it is, as text.
    """

    policy: Policy
    table: pa.Table
    records: Records
    unseen: Mapping[str, int]
    notes: tuple[str, ...] = ()
    carried: Mapping[str, str] = field(default_factory=dict)
    persons: Integers | None = None
    shown: Mapping[str, str] = field(default_factory=dict)

    @property
    def quasi(self) -> tuple[str, ...]:
        """Names of the quasi-identifiers."""
        return tuple(a.name for a in self.records.attributes)
