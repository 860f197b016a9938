"""Define the protected summary, a separate type that may leave your organisation, and what can be
done with it alone: check its use under a policy, and reduce it to fewer candidates and attributes.

It is not a `Summary` and has none of its contents: no values, no pairs, no frequency table, no
folds. Functions that need exact counts do not accept this type.

To protect a number to predict, each row's number is rounded at random to one of its declared
bounds. A number y becomes the upper bound with the probability (y - low) / (high - low), so the
expected mean of the rounded numbers is the mean of the numbers. A number outside the bounds counts
as the nearer bound. The label then has two declared classes, the bounds. A label table (rows by
value and class) replaces sums of the number, and one row changes it by 1, as for a label with
classes. So noise, cell keys, the account of epsilon, the audit of small cells and the scorer are
the same as for classes. Rows are rounded independently, so if the rounded table is protected by
differential privacy, the table is, too.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from aegis.arrays import Floats, Ints
from aegis.errors import InternalError, PolicyError
from aegis.masks import Kind, Mask
from aegis.policy import (
    Configuration,
    Label,
    OwnerRule,
    Policy,
    Role,
    RuleOverride,
    required_mask,
    rule_of,
)
from aegis.privacy import Strength, strength
from aegis.safe.protect.budget import NamingThreshold, NoiseRound, Unit
from aegis.safe.protect.columns import numbers_one_by_one
from aegis.sources import Source, open_table
from aegis.summary.codes import show
from aegis.words import counted, joined, json_fields

GRID = 1 << 10
"""Number of code steps per standard deviation. Codes are whole numbers, so the noise can be whole,
too.
"""


class ProtectionLevel(StrEnum):
    """How a summary is protected: not at all, by perturbed counts, or by noise (differential
    privacy).
    """

    NONE = "none"
    """Exact counts: a `Summary`, which must stay with its owner."""
    COUNTS = "counts"
    """Small cells are perturbed and audited by linear programming; no formal guarantee."""
    NOISE = "noise"
    """Differential privacy."""


_ITEMS = {"kind": "type", "cuts": "cut points"}
"""The words for items of a protected summary, where they differ from the names in its file."""


class DomainSource(StrEnum):
    """Where published content other than counts, such as the names of values, comes from."""

    POLICY = "policy"
    """Declared in the policy: public knowledge that does not depend on the table."""
    BUDGET = "budget"
    """Paid for from the privacy budget, by noise."""
    TABLE = "table"
    """Taken unchanged from the table: its owner declares it public, or level `counts` keeps it."""
    THRESHOLD = "threshold"
    """At level `counts`: taken from the table if enough rows have it."""


@dataclass(frozen=True)
class PublishedDomain:
    """Where an item of a protected summary that is not a count, such as the names of values, comes
    from.

    Attributes
    ----------
    what
        The item: `classes`, `cuts` or `bounds` of the label; `kind`, `values` or `bounds` of an
        attribute. Bounds of a label are the two numbers to which a numeric label was rounded.
        Bounds of an attribute are parameters that masks learn: cut points, frequent values.
    column
        The column.
    source
        Where it comes from: the policy, counts paid from the privacy budget, or public data.
    """

    what: str
    column: str
    source: DomainSource


class CellMethod(StrEnum):
    """The method that perturbs counts at level `counts`: random rounding, or changes that a secret
    key determines.
    """

    ROUNDING = "rounding"
    CELL_KEYS = "cell-keys"


@dataclass(frozen=True)
class Protection:
    """The method by which a summary was protected, and its guarantee.

    Attributes
    ----------
    level, unit
        The protection level, and the unit that it protects (rows or persons).
    rows_per_person
        Largest number of rows of one person; 1 if the unit is a row.
    epsilon, delta, rho
        The guarantee of level `noise`, as epsilon and delta, and as rho (zero-concentrated
        differential privacy). None for level `counts`. Delta covers the noise and the names that
        are published.
    rounds
        The sets of figures to which noise was added, in order.
    method, threshold, step, variance
        For level `counts`: the method of perturbation, the number of rows from which a cell counts
        as large, the base of rounding or the largest change by a cell key, and the variance of this
        change.
    public
        Attributes whose values and cuts were declared public, so that they cost no budget.
    thresholds
        The thresholds for publishing the names of values, cells (sets of values) and classes, in
        order.
    domains
        Where all published content other than counts comes from. None in files of earlier versions,
        which do not say so.
    """

    level: ProtectionLevel
    unit: Unit = Unit.ROWS
    rows_per_person: int = 1
    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    rounds: tuple[NoiseRound, ...] = ()
    method: CellMethod | None = None
    threshold: int | None = None
    step: int | None = None
    variance: float | None = None
    public: tuple[str, ...] = ()
    thresholds: tuple[NamingThreshold, ...] = ()
    domains: tuple[PublishedDomain, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return json_fields(self)

    def items_from(self, source: DomainSource, label: str) -> str:
        """Return in words which published items come from `source`, such as "type and values of
        age and sex; classes of income". `label` is the column of the label.
        """
        items: dict[str, list[str]] = {}
        for domain in self.domains or ():
            if domain.source is source:
                learnt = domain.what == "bounds" and domain.column != label
                word = "learnt groups" if learnt else _ITEMS.get(domain.what, domain.what)
                items.setdefault(domain.column, []).append(word)
        columns: dict[str, list[str]] = {}
        for name, what in items.items():
            columns.setdefault(joined(what), []).append(name)
        return "; ".join(f"{what} of {joined(names)}" for what, names in columns.items())

    def words(self) -> str:
        """Return the parameters of the protection in words, as screens and reports show them."""
        if self.epsilon is None:
            return f"method {self.method}, small counts are those below {self.threshold}; no formal guarantee"
        unit = (
            "row"
            if self.unit == "rows"
            else f"person with at most {counted(self.rows_per_person, 'row')}"
        )
        return f"epsilon {self.epsilon:g} and delta {self.delta:g} for each {unit}"


@dataclass(frozen=True, eq=False)
class ProtectedCandidate:
    """A candidate mask of an attribute, with the groups that it forms of the attribute's K cells. A
    cell is a set of values that no candidate mask distinguishes.

    Attributes
    ----------
    mask, declared
        The fitted mask, and the mask as written in the policy. A mask that learns from the data was
        fitted to protected counts, unless its attribute is public.
    groups
        Number of the group to which each cell belongs, shape (K,).
    labels
        The masked value of each group, as text.
    """

    mask: Mask
    declared: Mask
    groups: Ints
    labels: tuple[str, ...]

    @property
    def size(self) -> int:
        """The number of groups that the mask forms."""
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class ProtectedAttribute:
    """The protected counts and the candidate masks of one attribute.

    Attributes
    ----------
    name, role, kind, weight
        Name, role, kind of values, and weight in a mean over attributes, as in the exact summary.
    table
        Protected number of rows in each of the K cells and C classes, shape (K, C). The numbers are
        whole and may be negative. A cell is a set of values that no candidate mask distinguishes.
    candidates
        The candidate masks, in the order of the policy.
    units
        Number of noisy counts whose errors add up in the count of each cell, shape (K,). It is 1,
        except for the cell of all values without a published name: its count is the class total
        minus the counts of all other cells.
    codes
        q codes of each of the K cells: numbers that describe how the cell is associated with the
        label, as integers in units of 1 / `GRID`, shape (K, q). None if the summary has no moments
        (mean products of codes).
    """

    name: str
    role: Role
    kind: Kind
    weight: float
    table: Ints
    candidates: tuple[ProtectedCandidate, ...]
    units: Ints
    codes: Ints | None = None

    def candidate(self, mask: Mask) -> ProtectedCandidate:
        """Return the candidate for a mask, given as declared in the policy or as fitted.

        Raises
        ------
        PolicyError
            The mask is not among the candidates.
        """
        for candidate in self.candidates:
            if mask in (candidate.mask, candidate.declared):
                return candidate
        names = ", ".join(str(c.declared) for c in self.candidates)
        raise PolicyError(
            f"Mask {mask} of attribute {self.name!r} is not among the protected candidates.",
            hint=f"Candidates: {names}. Add the mask to the policy, then protect a summary again.",
        )


@dataclass(frozen=True, eq=False)
class Moments:
    """The mean, over all rows, of the product of each two codes. Codes are numbers that describe
    how a row's value of an attribute is associated with the label.

    Attributes
    ----------
    matrix
        One row and column for each of the p codes of all attributes, shape (p, p), symmetric.
        Entries for two codes of the same attribute are not used.
    error
        Standard deviation that protection adds to an entry.
    """

    matrix: Floats
    error: float

    @classmethod
    def of_upper(cls, upper: Floats, size: int, error: float) -> Moments:
        """Return moments (mean products of each two of `size` codes) from the entries of their
        matrix above the diagonal, `upper`, row by row. `error` is the standard deviation that
        protection adds to an entry.
        """
        matrix = np.zeros((size, size))
        matrix[np.triu_indices(size, 1)] = upper
        return cls(matrix + matrix.T, error)


@dataclass(frozen=True)
class StatedVerdict:
    """The owner's statement whether one configuration meets the privacy rule.

    Attributes
    ----------
    choice
        Index of the candidate of each attribute, in the order of the summary's attributes.
    admissible
        Whether the rule is met; None if this is uncertain because of noise.
    """

    choice: tuple[int, ...]
    admissible: bool | None


@dataclass(frozen=True, eq=False)
class ProtectedSummary:
    """The protected counts of one table, with its candidate masks and the guarantee.

    Attributes
    ----------
    protection
        How the counts were protected, and what is guaranteed.
    label
        Name of the label column.
    classes
        The text of each of the C label classes.
    class_counts
        Protected number of rows in each class, shape (C,), estimated from the label tables (rows by
        cell, a set of values, and class) of all attributes together.
    attributes
        The scored attributes by name.
    moments
        Statistics of each two attributes: mean products of their codes. None if noise or rounding
        would hide all their information.
    verdicts
        Whether configurations meet the rule, where the owner states it.
    rule
        The privacy rule that the verdicts are about, as a policy writes it; None if there are no
        verdicts.
    cell_error
        Standard deviation of the error that protection adds to a count of a label table.
    policy
        SHA-256 of the policy.
    owner
        The privacy rule under which the exact summary was made, and whether this rule is locked;
        None if unknown. Advice from the protected summary must also follow this rule.
    """

    protection: Protection
    label: str
    classes: tuple[str, ...]
    class_counts: Floats
    attributes: Mapping[str, ProtectedAttribute]
    moments: Moments | None
    verdicts: tuple[StatedVerdict, ...] = ()
    rule: Mapping[str, Any] | None = None
    cell_error: float = 0.0
    policy: str = ""
    notes: tuple[str, ...] = field(default=())
    owner: OwnerRule | None = None
    summary_format: ClassVar[str] = "protected"

    def __post_init__(self) -> None:
        width = len(self.classes)
        for attribute in self.attributes.values():
            if attribute.table.ndim != 2 or attribute.table.shape[1] != width:
                raise InternalError(
                    f"The label table of {attribute.name!r} has no {width} classes."
                )

    @property
    def level(self) -> ProtectionLevel:
        """The protection level."""
        return self.protection.level

    @cached_property
    def rows(self) -> float:
        """Number of labelled rows, estimated from the protected tables; at least 1."""
        return max(float(self.class_counts.sum()), 1.0)

    @property
    def rows_words(self) -> str:
        """The number of labelled rows, in words; unknown if noise hides every value of a row."""
        if float(self.class_counts.sum()) < 1:
            return "an unknown number of labelled rows: the noise hides every count"
        return f"about {self.rows:,.0f} labelled rows"

    @cached_property
    def shares(self) -> Floats:
        """The share of rows in each of the C classes, shape (C,), above 0."""
        counts = np.maximum(self.class_counts, 0.5)
        shares: Floats = counts / counts.sum()
        return shares

    @cached_property
    def offsets(self) -> Ints:
        """The index at which the codes of each of the m attributes begin in the list of all codes,
        and the number of all codes, shape (m + 1,). Codes are numbers that describe how a value is
        associated with the label.
        """
        sizes = [0 if a.codes is None else a.codes.shape[1] for a in self.attributes.values()]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @cached_property
    def _verdicts(self) -> dict[tuple[int, ...], bool | None]:
        return {v.choice: v.admissible for v in self.verdicts}

    @property
    def rounded(self) -> bool:
        """Whether the label is a number that was rounded to two bounds, which are its classes."""
        domains = self.protection.domains or ()
        return any((d.what, d.column) == ("bounds", self.label) for d in domains)

    @property
    def all_attributes(self) -> tuple[ProtectedAttribute, ...]:
        """The attributes that have candidate masks, in their order."""
        return tuple(self.attributes.values())

    @property
    def combinations(self) -> int:
        """The number of configurations that the candidates allow, with one candidate for each
        attribute.
        """
        return math.prod(len(a.candidates) for a in self.all_attributes)

    def choose(self, configuration: Configuration) -> tuple[int, ...]:
        """Return, for a configuration, the index of each attribute's candidate mask.

        Raises
        ------
        PolicyError
            The configuration lacks an attribute, or a mask is not among the candidates.
        """
        return tuple(
            a.candidates.index(a.candidate(required_mask(configuration, a.name)))
            for a in self.all_attributes
        )

    def configuration(self, name: str, choice: tuple[int, ...]) -> Configuration:
        """Return the configuration called `name`, with fitted masks. `choice` has the index of each
        attribute's candidate mask.
        """
        pairs = zip(self.attributes.values(), choice, strict=True)
        return Configuration(name, {a.name: a.candidates[index].mask for a, index in pairs})

    def verdict(self, choice: tuple[int, ...]) -> bool | None:
        """Return whether a configuration meets the rule, as the owner states it; None if the owner
        does not state it or is uncertain because of noise. `choice` has the index of each
        attribute's candidate mask.
        """
        return self._verdicts.get(choice)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures that describe the summary, without label tables, as JSON values."""
        return {
            "protection": self.protection.to_dict(),
            "rows": self.rows,
            "label": self.label,
            "classes": dict(zip(self.classes, self.class_counts.tolist(), strict=True)),
            **({"label_rounded": list(self.classes)} if self.rounded else {}),
            "attributes": {
                a.name: {
                    "role": str(a.role),
                    "kind": str(a.kind),
                    "cells": len(a.table),
                    "candidates": [str(c.declared) for c in a.candidates],
                }
                for a in self.attributes.values()
            },
            "cell_error": self.cell_error,
            "moment_error": None if self.moments is None else self.moments.error,
            "verdicts": len(self.verdicts),
            "notes": list(self.notes),
            "policy": self.policy,
            "made_under": None if self.owner is None else self.owner.to_dict(),
        }

    def __repr__(self) -> str:
        protection = self.protection
        promise = (
            f"epsilon {protection.epsilon:g} at delta {protection.delta:g}"
            if protection.epsilon
            else "no epsilon"
        )
        return (
            f"ProtectedSummary({protection.level}, {promise}, {self.rows_words}, label "
            f"{self.label!r}, {len(self.attributes)} attributes)"
        )


def require_policy(summary: ProtectedSummary, policy: Policy) -> None:
    """Raise `PolicyError` if a protected summary was made for another label, other roles or other
    masks than the policy's.
    """
    in_policy = {a.name: (a.role, a.masks) for a in policy.features if a.scored}
    in_summary = {
        a.name: (a.role, tuple(c.declared for c in a.candidates))
        for a in summary.attributes.values()
    }
    differing = [n for n in {**in_policy, **in_summary} if in_policy.get(n) != in_summary.get(n)]
    if summary.label != policy.label.column:
        differing.append(policy.label.column or summary.label)
    if differing:
        raise PolicyError(
            "The protected summary was made for another policy: label, role or masks differ for "
            f"{', '.join(dict.fromkeys(differing))}.",
            hint="Ask for one that was made with this policy.",
        )


def summary_under(
    summary: ProtectedSummary, policy: Policy, *, rule_override: bool = False
) -> tuple[ProtectedSummary, RuleOverride | None]:
    """Return a protected summary for use under a policy. Also return the owner's rule if the user
    uses another rule, else None.

    If the summary's verdicts (whether configurations meet the rule) are about another rule than the
    policy's, the result has no verdicts, and its notes say so.

    Parameters
    ----------
    summary
        The summary as published by its owner.
    policy
        The policy of the user.
    rule_override
        Whether the user intends to use another rule than the owner's.

    Raises
    ------
    PolicyError
        The summary was made for other masks; or its rule differs from the policy's rule, and is
        locked or was not overridden.
    """
    require_policy(summary, policy)
    override = None
    if summary.owner is not None:
        override = summary.owner.require(
            policy.privacy, override=rule_override, what="The protected summary"
        )
    if summary.rule is None:
        return summary, override
    summary_rule = replace(rule_of(summary.rule), person=policy.privacy.person)
    if strength(policy.privacy, summary_rule) is Strength.SAME:
        return summary, override
    note = f"its verdicts are on another rule than the policy's, {summary_rule}, and were left out"
    return replace(summary, verdicts=(), rule=None, notes=(*summary.notes, note)), override


def narrowed(
    summary: ProtectedSummary, candidates: Mapping[str, Collection[Mask]]
) -> ProtectedSummary:
    """Return a protected summary with only some of its attributes and candidates.

    `candidates` are the masks to keep of each attribute to keep, as declared. Masks that are not
    candidates of the summary are ignored, because the summary has no data on them. If no attribute
    is dropped, the verdicts on configurations whose masks are all kept are kept, too.

    Raises
    ------
    PolicyError
        No mask of any attribute would be kept.
    """
    attributes, columns = {}, list[int]()
    moved: dict[int, dict[int, int]] = {}
    for index, (name, attribute) in enumerate(summary.attributes.items()):
        masks = candidates.get(name, ())
        staying = [i for i, c in enumerate(attribute.candidates) if c.declared in masks]
        if not staying:
            continue
        attributes[name] = replace(
            attribute, candidates=tuple(attribute.candidates[i] for i in staying)
        )
        columns += range(summary.offsets[index], summary.offsets[index + 1])
        moved[index] = {old: new for new, old in enumerate(staying)}
    if not attributes:
        raise PolicyError(
            "No candidate of the protected summary is left.",
            hint="Keep one, or have the table summarised again under this policy.",
        )
    moments = summary.moments
    if moments is not None:
        moments = Moments(moments.matrix[np.ix_(columns, columns)], moments.error)
    verdicts = (
        ()
        if len(moved) < len(summary.attributes)
        else tuple(
            replace(verdict, choice=tuple(moved[i][p] for i, p in enumerate(verdict.choice)))
            for verdict in summary.verdicts
            if all(p in moved[i] for i, p in enumerate(verdict.choice))
        )
    )
    return replace(summary, attributes=attributes, moments=moments, verdicts=verdicts)


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
        The column with the person of each row, which the result keeps, too; None if there is none.
    key
        The secret key of level `counts`. With it, equal rows are rounded in the same way, in any
        order and in later versions of the table. None uses the system's randomness.

    Raises
    ------
    PolicyError
        The policy declares no bounds, or a single value could change how all values of the column
        are parsed.
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
    position = table.column_names.index(label.column)
    rounded = _rounded(table[label.column].combine_chunks(), label.bounds, _chances(table, key))
    rounded_source = open_table(table.set_column(position, label.column, rounded))
    return (
        replace(rounded_source, origin=source.origin, by_context=source.by_context),
        replace(policy, label=Label(label.column, classes=label.bounds), measure=None),
    )


def _rounded(
    values: pa.Array, bounds: tuple[int | float, int | float], chances: Floats
) -> pa.Array:
    """Return the text of one of the two `bounds` for each value; null if the value is not a number.

    `chances` has a random number from 0 to 1 for each value, shape (n,). The upper bound is
    returned with a probability equal to the value's relative position between the bounds.
    """
    low, high = bounds
    numbers = numbers_one_by_one(values)
    above = chances < (np.clip(numbers, low, high) - low) / (high - low)
    texts = np.where(above, show(high), show(low))
    return pa.array(texts.tolist(), pa.string(), mask=np.isnan(numbers))


def _chances(table: pa.Table, key: bytes | None) -> Floats:
    """Return a pseudorandom number from 0 to 1 for each row: a hash of its content with the `key`.
    Without a key, the numbers are random.

    The hash does not depend on the position of the row. Otherwise, readers of many files with other
    orders of rows could average the changes away. Rows of equal content are numbered, and get
    different numbers.
    """
    if key is None:
        random_bytes = os.urandom(8 * len(table))
    else:
        secret, counts = blake2b(b"rounded label\x1f" + key).digest(), Counter[str]()
        digests = []
        for row in zip(*(table[n].to_pylist() for n in sorted(table.column_names)), strict=True):
            content = repr(row)
            digests.append(
                blake2b(f"{counts[content]} {content}".encode(), key=secret, digest_size=8).digest()
            )
            counts[content] += 1
        random_bytes = b"".join(digests)
    return np.frombuffer(random_bytes, dtype="<u8") / 2.0**64


def with_bounds(protection: Protection, label: Label) -> Protection:
    """Return the description of a protection for a table whose numeric label was rounded to two
    bounds. Instead of the source of the label's classes, it states the source of the bounds.
    """
    domains = tuple(
        replace(d, what="bounds") if (d.what, d.column) == ("classes", label.column) else d
        for d in protection.domains or ()
    )
    return replace(protection, domains=domains)


def note_on_rounding(label: Label) -> str:
    """Return a note for readers of a summary whose label was rounded to its bounds."""
    low, high = (f"{bound:,}" for bound in label.bounds or ())
    return (
        f"{label.column} was rounded at random, in each row, to one of its declared bounds, {low} or {high}: "
        "the mean of many rows is kept. Scores say how well masks predict the rounded number; they "
        "rank masks nearly as R2 does, and are smaller"
    )
