"""From a table and its policy to the records that methods group, and to a release of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from aegis.anonymizers.base import Grouped, Style
from aegis.anonymizers.encode import encode_declared
from aegis.anonymizers.recipe import Recipe, options_dict
from aegis.anonymizers.records import Records
from aegis.anonymizers.release import build_release
from aegis.errors import DataError, PolicyError
from aegis.masking import count_unseen, fit_masks, masked_table, refuse_unseen, suppress
from aegis.masks import Identity, Mask
from aegis.policy import Attribute, Policy, Role, Unseen
from aegis.privacy import Verdict
from aegis.progress import SILENT, Progress
from aegis.sources import Source, open_table


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
    """

    policy: Policy
    table: pa.Table
    records: Records
    unseen: Mapping[str, int]
    notes: tuple[str, ...] = ()
    carried: Mapping[str, str] = field(default_factory=dict)

    @property
    def quasi(self) -> tuple[str, ...]:
        """Names of the quasi-identifiers."""
        return tuple(a.name for a in self.records.attributes)


@dataclass(frozen=True, eq=False)
class Anonymized:
    """One record-level release before the rule has been held against it.

    Attributes
    ----------
    recipe
        How it came about, all options filled in.
    grouped
        The groups, their cost and the time they took.
    data
        The released rows.
    rows
        Rows of the original.
    """

    recipe: Recipe
    grouped: Grouped
    data: pa.Table
    rows: int


def carried_masks(policy: Policy) -> dict[str, Mask | None]:
    """Return the mask of each released column; None where it is kept as it is.

    Quasi-identifiers are left to the method. Another column stays as it is where the policy has
    `identity` among its candidates, or names none; else its first candidate that draws nothing at
    random is applied, because the policy does not want to see it as it is. Identifiers are left
    out, or tokenised as the policy says.

    Raises
    ------
    PolicyError
        All candidates of such a column are noise.
    """
    found: dict[str, Mask | None] = {}
    for attribute in policy.released():
        as_it_is = attribute.role is Role.QUASI_IDENTIFIER or not attribute.masks
        if as_it_is or Identity() in attribute.masks:
            found[attribute.name] = None
        else:
            found[attribute.name] = _first_deterministic(attribute)
    return policy.with_label(found)


def _first_deterministic(attribute: Attribute) -> Mask:
    for mask in attribute.masks:
        if mask.deterministic:
            return mask
    raise PolicyError(
        f"All candidate masks of {attribute.name!r} draw noise, which record-level releases "
        "do not add to columns that are no quasi-identifier.",
        hint="Give it one that draws nothing, or leave the record-level methods out.",
    )


def read_records(
    source: Source,
    policy: Policy,
    *,
    kinds: Mapping[str, str] | None = None,
    orders: Mapping[str, Sequence[Any]] | None = None,
) -> RecordTable:
    """Read the columns that a release holds into memory and encode the quasi-identifiers.

    Parameters
    ----------
    source
        The table.
    policy
        Roles, hierarchies, masks of columns that are no quasi-identifier.
    kinds, orders
        As in `encode`; they come before those of the policy.

    Raises
    ------
    DataError
        The table has no rows or lacks a column, or a column is not usable (see `encode`); values
        that a mask does not know where the policy says `unseen: error`.
    PolicyError
        There is no quasi-identifier, or a mask does not fit its column; or the table is on Spark.
    """
    source.engine.require_here(
        "Record-level methods read all rows, which would come",
        "Leave them out (--with, or `anonymizers` in the policy), or read the table without Spark.",
    )
    if policy.person is not None:
        raise PolicyError(
            f"Record-level methods group rows, and the policy counts persons ({policy.person}).",
            hint="Leave them out, or leave `person` out where each person has one row.",
        )
    for name in policy.with_label(dict.fromkeys(policy.attributes)):
        source.require(name, where="named in the policy")
    if source.rows == 0:
        raise DataError(f"{source.origin} has no rows.", hint="Give a table with rows.")
    masks = fit_masks(source, carried_masks(policy), policy.shared_rows)
    unseen = count_unseen(source, masks)
    if policy.unseen is Unseen.ERROR:
        refuse_unseen(unseen)
    table = source.collect(masked_table(source, masks))
    records = encode_declared(table, _roles(table, policy), policy, kinds=kinds, orders=orders)
    notes = tuple(
        f"{name} is released under {mask}, as the policy does not name identity for it"
        for name, mask in masks.items()
        if mask is not None and policy.attributes[name].role is not Role.IDENTIFIER
    )
    quasi = {a.name for a in records.attributes}
    carried = {
        name: "identity" if mask is None else str(mask)
        for name, mask in masks.items()
        if name not in quasi
    }
    return RecordTable(policy, table, records, unseen, notes, carried)


def _roles(table: pa.Table, policy: Policy) -> dict[str, str]:
    """Return roles for `encode`: a protected label that is a quasi-identifier is grouped by."""
    roles: dict[str, str] = dict.fromkeys(table.column_names, Role.FEATURE)
    roles |= dict.fromkeys((n for n in policy.sensitive if n in roles), Role.SENSITIVE)
    return roles | {a.name: Role.QUASI_IDENTIFIER for a in policy.quasi_identifiers}


def anonymize_records(
    read: RecordTable, recipe: Recipe, *, progress: Progress = SILENT
) -> Anonymized:
    """Group the records of a table as `recipe` says, and show the groups.

    Raises
    ------
    PolicyError, DataError
        Options that the method does not take or that no release of these records can meet.
    """
    options = recipe.resolve(read.policy, read.records)
    grouped = recipe.anonymizer.group(read.records, options, seed=recipe.seed, progress=progress)
    style = None if recipe.style is None else Style(recipe.style)
    data = _without_null_types(build_release(read.table, read.records, grouped, style=style))
    full = replace(recipe, options=options_dict(options))
    return Anonymized(full, grouped, data, read.table.num_rows)


def _without_null_types(table: pa.Table) -> pa.Table:
    """Give columns without any value a type that files can hold."""
    fields = [
        field.with_type(pa.string()) if pt.is_null(field.type) else field for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def check_release(anonymized: Anonymized, policy: Policy) -> tuple[Source, Source, Verdict]:
    """Hold a release against the rule, suppressing whole classes that fail it.

    Rows that the method left out count as suppressed, too.

    Returns
    -------
    tuple
        The release, the release without the classes that fail, and what the rule says of it,
        relative to the rows of the original.
    """
    rule, allowed = policy.privacy, policy.privacy.allowed_rows(anonymized.rows)
    own = anonymized.rows - anonymized.data.num_rows
    released = open_table(anonymized.data)
    if not anonymized.data.num_rows:
        return released, released, _nothing_left(anonymized.rows, allowed)
    quasi = [a.name for a in policy.quasi_identifiers]
    kept, verdict = suppress(
        released, released.table, quasi, rule.sensitive, rule, policy.protected_hierarchies
    )
    removed = own + verdict.suppressed_rows
    bounded = removed <= allowed or not rule.criteria
    admissible = verdict.smallest_class > 0 and bounded
    violations = () if admissible else verdict.violations
    if own and not bounded:
        sentence = (
            f"suppression: the method leaves out {own:,} rows and {verdict.suppressed_rows:,} lie "
            f"in classes that fail the rule; {allowed:,} may be left out"
        )
        violations = (*violations, sentence)
    total = replace(
        verdict,
        admissible=admissible,
        suppressed_rows=removed,
        allowed_rows=allowed,
        violations=violations,
    )
    return released, Source(kept, released.origin), total


def _nothing_left(rows: int, allowed: int) -> Verdict:
    return Verdict(
        admissible=False,
        suppressed_rows=rows,
        suppressed_classes=0,
        allowed_rows=allowed,
        smallest_class=0,
        smallest_before=0,
        violations=("the method leaves out every row, so nothing would be released",),
        kept_classes=np.zeros(0, dtype=np.bool_),
    )
