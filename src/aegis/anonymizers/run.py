"""Read a table as records under a policy, and make record-level releases of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from aegis.anonymizers.base import Grouped, Style
from aegis.anonymizers.encode import encode_declared, least_mask, roles_of, with_masks
from aegis.anonymizers.groups import RecordGroups, information_loss
from aegis.anonymizers.recipe import Recipe
from aegis.anonymizers.records import Codes, Records, RecordTable
from aegis.anonymizers.release import build_release
from aegis.arrays import Ints
from aegis.blas import one_blas_thread
from aegis.errors import DataError, PolicyError
from aegis.files import SILENT, Progress
from aegis.masking import check_classes, count_unseen, fit_masks, masked_table, refuse_unseen
from aegis.masks import Mask
from aegis.policy import Policy, Role, Unseen
from aegis.privacy import PrivacyRule, Verdict
from aegis.sources import Source, open_table
from aegis.summary import PERSON
from aegis.summary.codes import encode
from aegis.words import json_fields


@dataclass(frozen=True, eq=False)
class Anonymized:
    """A record-level release that has not been checked against the privacy rule.

    Attributes
    ----------
    recipe
        The recipe with all options filled in.
    grouped
        The groups, their information loss and the time they took.
    data
        The released rows.
    rows
        Number of rows of the original table.
    persons
        The person of each of the N rows of the original table, shape (N,), numbered from 0; None if
        rows are counted.
    masks
        Mask, as text, of each quasi-identifier that was masked before the method.
    """

    recipe: Recipe
    grouped: Grouped
    data: pa.Table
    rows: int
    persons: Ints | None = None
    masks: Mapping[str, str] = field(default_factory=dict)

    @property
    def judged(self) -> pa.Table:
        """The released rows; if persons are counted, with the additional column `PERSON`."""
        if self.persons is None:
            return self.data
        persons = self.persons[self.grouped.groups.of >= 0]
        return self.data.append_column(PERSON, pa.array(persons))


def _carried_masks(policy: Policy) -> dict[str, Mask | None]:
    """Return the mask (None: no mask) of each released column but the quasi-identifiers, which the
    method changes. Identifiers are left out, or tokenised if the policy says so.
    """
    return policy.with_label(
        {
            a.name: None if a.role is Role.QUASI_IDENTIFIER else least_mask(a)
            for a in policy.released()
        }
    )


def read_records(
    source: Source,
    policy: Policy,
    *,
    kinds: Mapping[str, str] | None = None,
    orders: Mapping[str, Sequence[Any]] | None = None,
) -> RecordTable:
    """Read the released columns into memory, and encode the quasi-identifiers as records.

    The policy states roles, hierarchies and masks of columns that are not quasi-identifiers;
    `kinds` and `orders` override it, as in `encode`.

    Raises
    ------
    DataError
        The table has no rows, it lacks a column, or a column is not usable (see `encode`); or a
        mask does not cover a value, and the policy says `unseen: error`.
    PolicyError
        There is no quasi-identifier, a mask does not fit its column, or the table is on Spark.
    """
    source.engine.require_here(
        "Record-level methods read all rows, which would come",
        "Leave them out (--with, or `anonymizers` in the policy), or read the table without Spark.",
    )
    policy.refuse_weight("A record-level method")
    source.refuse_other_table(policy.with_label(dict.fromkeys(policy.attributes)))
    for name in policy.with_label(dict.fromkeys(policy.attributes)):
        source.require(name, where="named in the policy")
    if source.rows == 0:
        raise DataError(f"{source.origin} has no rows.", hint="Give a table with rows.")
    masks = fit_masks(source, _carried_masks(policy), policy.shared_rows)
    unseen = count_unseen(source, masks)
    if policy.unseen is Unseen.ERROR:
        refuse_unseen(unseen)
    table = source.collect(masked_table(source, masks, person=policy.person))
    persons = None
    if policy.person is not None:
        persons = encode(table[PERSON].combine_chunks())[0].astype(np.int64)
        table = table.drop_columns([PERSON])
    records = encode_declared(table, roles_of(table, policy), policy, kinds=kinds, orders=orders)
    notes = tuple(
        f"{name} is masked by {mask}, because the policy does not list identity for it"
        for name, mask in masks.items()
        if mask is not None and policy.attributes[name].role is not Role.IDENTIFIER
    )
    quasi = {a.name for a in records.attributes}
    carried = {
        name: "identity" if mask is None else str(mask)
        for name, mask in masks.items()
        if name not in quasi
    }
    return RecordTable(policy, table, records, unseen, notes, carried, persons)


@one_blas_thread
def anonymize_records(
    read: RecordTable, recipe: Recipe, *, seed: int | None = None, progress: Progress = SILENT
) -> Anonymized:
    """Group the records of the table `read` by the method of `recipe`, and build the released rows.

    If persons are counted, the method groups persons by the median of their rows. All rows of a
    person are then in one group, which has at least k persons. Methods that suppress single cells
    work on rows instead, in classes of at least k persons.

    If the recipe has no seed, `seed` makes its draws repeatable, for estimates. Do not give it for
    a release (`Recipe.for_draws`).

    Raises
    ------
    PolicyError, DataError
        The method does not accept the options, or no release of these records can meet them.
    """
    method, records = recipe.anonymizer, read.records
    by_cell = method.by_cell or method.sampled
    draw_seed = recipe.for_draws(seed)
    if method.by_row and read.persons is not None:
        raise PolicyError(
            f"{method.name} moves values between rows, so it cannot protect persons who have several.",
            hint="Give a table with one row for each person, and leave `person` out.",
        )
    if by_cell:
        masks_given = _masks_given(read, recipe, draw_seed, progress)
        read = with_masks(read, masks_given, learning=not method.sampled)
        records = read.records
    elif read.persons is not None:
        records = middle_of_each(records, read.persons)
    options = recipe.resolve(read.policy, records)
    grouped = method.group(records, options, seed=draw_seed, progress=progress)
    if method.sampled:
        masks = {name: read.masks.get(name, "identity") for name in read.quasi}
        note = "masks before the method: " + ", ".join(f"{n}: {mask}" for n, mask in masks.items())
        details = {**grouped.details, "masks": masks}
        grouped = replace(grouped, details=details, notes=(note, *grouped.notes))
    if read.persons is not None and not by_cell:
        grouped = rows_of_persons(grouped, read.records, read.persons)
    style = None if recipe.style is None else Style(recipe.style)
    data = _without_null_types(build_release(read.table, read.records, grouped, style=style))
    repeats = recipe.seed if recipe.by_chance else draw_seed
    full = replace(recipe, options=json_fields(options), seed=repeats)
    return Anonymized(full, grouped, data, read.table.num_rows, read.persons, read.masks)


def _masks_given(read: RecordTable, recipe: Recipe, seed: int, progress: Progress) -> Any:
    """Return the masks that the recipe's options name, or those that the method draws."""
    draw = recipe.anonymizer.masks
    if draw is None:
        return recipe.options.get("masks")
    options = recipe.resolve(read.policy, read.records)
    options.check(read.records)
    drawn_masks = draw(read.table, read.policy, options, seed, progress)
    return recipe.options.get("masks") if drawn_masks is None else drawn_masks


def _without_null_types(table: pa.Table) -> pa.Table:
    """Return the table with columns that hold no value typed as text, which file formats support."""
    fields = [
        field.with_type(pa.string()) if pt.is_null(field.type) else field for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def check_release(anonymized: Anonymized, policy: Policy) -> tuple[Source, Source, Verdict]:
    """Check a release against the privacy rule, and suppress the classes that fail it.

    Rows that the method left out also count as suppressed.

    Returns
    -------
    tuple
        The release, the release without the failing classes, and the verdict of the rule. The
        verdict counts rows relative to the original table.
    """
    rule, released = policy.privacy, open_table(anonymized.judged)
    if not anonymized.data.num_rows:
        allowed = rule.allowed_rows(anonymized.rows)
        return released, released, _nothing_left(anonymized.rows, allowed)
    quasi = [a.name for a in policy.quasi_identifiers]
    checked = check_classes(
        released, released.table, quasi, rule.sensitive, rule, policy.protected_hierarchies
    )
    total = _with_left_out(anonymized, rule, checked.verdict)
    return released, Source(checked.kept_rows(), released.origin), total


def _with_left_out(release: Anonymized, rule: PrivacyRule, verdict: Verdict) -> Verdict:
    """Return the verdict of the rule on `release`, with the rows that the method left out
    counted as suppressed.

    If persons are counted, the limit is a share of the persons. The method and the rule leave out
    either all rows of a person or none, so no person counts twice.
    """
    rows_left_out = release.rows - release.data.num_rows
    if release.persons is None:
        subjects, left_out, unit = release.rows, rows_left_out, "rows"
        failing = verdict.suppressed_rows
    else:
        subjects = int(release.persons.max(initial=-1)) + 1
        left_out = len(np.unique(release.persons[release.grouped.groups.of < 0]))
        failing, unit = verdict.suppressed_persons or 0, "persons"
    allowed = rule.allowed_rows(subjects)
    bounded = left_out + failing <= allowed or not rule.criteria
    admissible = verdict.smallest_class > 0 and bounded
    violations = () if admissible else verdict.violations
    if left_out and not bounded:
        sentence = (
            f"suppression: the method leaves out {left_out:,} {unit}, and {failing:,} more are in "
            f"classes that fail the rule; the rule allows {allowed:,}"
        )
        violations = (*violations, sentence)
    total = replace(
        verdict,
        admissible=admissible,
        suppressed_rows=rows_left_out + verdict.suppressed_rows,
        violations=violations,
    )
    if release.persons is None:
        return replace(total, allowed_rows=allowed)
    return replace(
        total, persons=subjects, suppressed_persons=left_out + failing, allowed_persons=allowed
    )


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


def middle_of_each(records: Records, persons: Ints) -> Records:
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

    def chosen(codes: Codes) -> Ints:
        rows: Ints = np.lexsort((codes, persons))[middle]
        return rows

    return Records(
        tuple(attribute.take(chosen(attribute.codes)) for attribute in records.attributes),
        tuple(attribute.take(chosen(attribute.codes)) for attribute in records.sensitive),
        records.left_out,
    )


def rows_of_persons(grouped: Grouped, records: Records, persons: Ints) -> Grouped:
    """Turn groups of persons into groups of their rows, and compute the information loss of the
    rows. `records` are all rows, and `persons` has the person of each row.

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
