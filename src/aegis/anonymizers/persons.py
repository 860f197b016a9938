"""Record-level methods for tables in which a person has several rows: one record per person is grouped."""

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

    The median is always a value of the person. This also holds for categories, whose order means
    little.

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
            f"{grouped.method} shows values record by record, and the policy counts persons.",
            hint="Choose a method that shows groups, or leave `person` out where each person has one "
            "row.",
        )
    groups = RecordGroups.number(grouped.groups.of[persons])
    loss = information_loss(records, groups, grouped.options.k, rounded=grouped.options.rounded)
    note = "persons were grouped, each by the middle of its rows; all rows of a person are in one group"
    return replace(grouped, groups=groups, loss=loss, notes=(*grouped.notes, note))
