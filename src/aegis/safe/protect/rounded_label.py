"""Protect a number to predict: round each row's number at random to one of its declared bounds.

A number y becomes the upper bound with the probability (y - low) / (high - low), so the expected
mean of the rounded numbers is the mean of the numbers. A number outside the bounds counts as the
nearer bound. The label then has two declared classes, the bounds. A label table (rows by value and
class) replaces sums of the number, and one row changes it by 1, as for a label with classes. So
noise, cell keys, the account of epsilon, the audit of small cells and the scorer are the same as
for classes. Rows are rounded independently, so if the rounded table is protected by differential
privacy, the table is, too.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from aegis.arrays import Floats
from aegis.errors import PolicyError
from aegis.policy import Label, Policy
from aegis.safe.protect.columns import numbers_one_by_one
from aegis.safe.protect.model import Protection
from aegis.sources import Source, open_table
from aegis.summary.codes import show


def with_rounded_label(
    source: Source, policy: Policy, *, person: str | None = None, key: bytes | None = None
) -> tuple[Source, Policy]:
    """Round a numeric label at random to one of two declared bounds, and return the table and the
    policy with these bounds as two classes.

    Parameters
    ----------
    source
        The table. The columns of the policy are read into memory.
    policy
        A policy whose label is a number.
    person
        A column to keep.
    key
        The secret key of level counts. With it, equal rows are rounded in the same way, in any
        order and in later versions of the table. None uses the system's randomness.

    Raises
    ------
    PolicyError
        The policy declares no bounds, or one row could change how the numbers of all rows are read.
    DataError
        The table has no such column.
    """
    label = policy.label
    if label.bounds is None:
        raise PolicyError(
            f"The label {label.column!r} is a number, and the policy does not declare its bounds, by which a "
            "protected summary limits what one row can change.",
            hint=f"Write `label: {{column: {label.column}, kind: number, bounds: [LOW, HIGH]}}`, with bounds that "
            "are public knowledge and hold most numbers; or declare `cuts` in place of `kind`.",
        )
    if policy.label_mask is not None:
        raise PolicyError(
            f"The label {label.column!r} has the mask {policy.label_mask}, and a protected summary rounds each "
            "number to a bound instead.",
            hint="Leave the label out of `attributes` to protect the table. A release masks it later.",
        )
    source.require(label.column, where="the policy's label")
    if label.column in source.by_context:
        raise PolicyError(
            f"Other values decide how each number of {label.column!r} is read (marks or units): one row "
            "could change the whole column, which would reveal the row.",
            hint="Write numbers as 1234.5, or store the table as Parquet.",
        )
    named = {label.column, *policy.attributes, *([] if person is None else [person])}
    table = source.collect(source.table.select(*(n for n in source.columns if n in named)))
    place = table.column_names.index(label.column)
    rounded = _rounded(table[label.column].combine_chunks(), label.bounds, _chances(table, key))
    made = open_table(table.set_column(place, label.column, rounded))
    return (
        replace(made, origin=source.origin, by_context=source.by_context),
        replace(policy, label=Label(label.column, classes=label.bounds), measure=None),
    )


def _rounded(
    values: pa.Array, bounds: tuple[int | float, int | float], chances: Floats
) -> pa.Array:
    """Return the text of one of the two `bounds` for each value; null if the value is not a number.

    `chances` has one number from 0 to 1 for each value, shape (n,). The upper bound is returned if
    this number is below the value's relative position between the bounds.
    """
    low, high = bounds
    numbers = numbers_one_by_one(values)
    above = chances < (np.clip(numbers, low, high) - low) / (high - low)
    shown = np.where(above, show(high), show(low))
    return pa.array(shown.tolist(), pa.string(), mask=np.isnan(numbers))


def _chances(table: pa.Table, key: bytes | None) -> Floats:
    """Return a number from 0 to 1 for each row: a hash of its content, or random without a key.

    Rows of equal content are numbered, and the number is part of the hash. If the hash used the
    position of a row, readers of many files with other orders of rows could average the noise away.
    """
    if key is None:
        drawn = os.urandom(8 * len(table))
    else:
        secret, seen = blake2b(b"rounded label\x1f" + key).digest(), Counter[str]()
        digests = []
        for row in zip(*(table[n].to_pylist() for n in sorted(table.column_names)), strict=True):
            content = repr(row)
            digests.append(
                blake2b(f"{seen[content]} {content}".encode(), key=secret, digest_size=8).digest()
            )
            seen[content] += 1
        drawn = b"".join(digests)
    return np.frombuffer(drawn, dtype="<u8") / 2.0**64


def with_bounds(protection: Protection, label: Label) -> Protection:
    """Return the protection of a table whose numeric label was rounded.

    In this protection, the source of the label's classes is listed as the source of the label's
    bounds.
    """
    domains = tuple(
        replace(own, what="bounds") if (own.what, own.column) == ("classes", label.column) else own
        for own in protection.domains or ()
    )
    return replace(protection, domains=domains)


def note_on_rounding(label: Label) -> str:
    """Return a note for readers of a summary whose label was rounded to its bounds."""
    low, high = (f"{bound:,}" for bound in label.bounds or ())
    return (
        f"{label.column} is a number: each row's was rounded at random to one of its declared bounds, {low} or "
        f"{high}, so that the mean of many rows is kept. Scores say how well masks predict the rounded number; they "
        "rank masks nearly as R2 does, and are smaller"
    )
