"""Group persons who have several rows, by giving record-level methods one record for each person."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aegis.anonymizers.base import Grouped
from aegis.anonymizers.groups import RecordGroups
from aegis.anonymizers.losses import information_loss
from aegis.anonymizers.records import Codes, Integers, Records
from aegis.errors import PolicyError


def middle_of_each(records: Records, persons: Integers) -> Records:
    """Return one record per person, with the lower median of the person's codes in each attribute.

    The lower median is always a value that the person has, even for categories.

    Parameters
    ----------
    records
        All N records.
    persons
        The person of each record, shape (N,), numbered from 0 without gaps.
    """
    counts = np.bincount(persons)
    middle = np.cumsum(counts) - counts + (counts - 1) // 2

    def chosen(codes: Codes) -> Integers:
        rows: Integers = np.lexsort((codes, persons))[middle]
        return rows

    return Records(
        tuple(attribute.take(chosen(attribute.codes)) for attribute in records.attributes),
        tuple(attribute.take(chosen(attribute.codes)) for attribute in records.sensitive),
        records.left_out,
    )


def rows_of_persons(grouped: Grouped, records: Records, persons: Integers) -> Grouped:
    """Turn groups of persons into groups of their rows, with the information loss of the rows.

    Raises
    ------
    PolicyError
        The method releases values record by record instead of groups.
    """
    if grouped.columns is not None:
        raise PolicyError(
            f"{grouped.method} cannot count persons, because it releases values record by record.",
            hint="Choose a method that shows groups. If each person has one row, leave out `person`.",
        )
    groups = RecordGroups.number(grouped.groups.of[persons])
    loss = information_loss(records, groups, grouped.options.k, rounded=grouped.options.rounded)
    note = "persons were grouped by the median of their rows; all rows of a person are in one group"
    return replace(grouped, groups=groups, loss=loss, notes=(*grouped.notes, note))
