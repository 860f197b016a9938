"""Define `Summary`, which has all counts that advice uses; it is a sufficient statistic (theory.md,
section 2).

A `Summary` is immutable and has only aggregates. For each attribute, it has the distinct values
with their counts by class, and the groups into which each candidate mask divides the values. It
also has the co-occurrence counts of all pairs of attributes by class, and a frequency table of the
quasi-identifiers. The packages that use a `Summary` need no rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from aegis.arrays import Array, Floats, Int32s, Ints, group_sums
from aegis.errors import InternalError, PolicyError, member, require_known
from aegis.masks import SHARED_ROWS, Kind, Mask, NoiseMask, ValueCounts, refines
from aegis.masks.categories import text_of
from aegis.measures import LabelKind
from aegis.options import checks_types
from aegis.policy import Role, Serve, Terms
from aegis.sources.dialect import TextDialect
from aegis.summary.codes import in_natural_order, numbers_of
from aegis.summary.cooccurrence import PairCounts
from aegis.summary.frequency import FrequencyTable
from aegis.summary.responses import NumberUnit
from aegis.summary.weights import TableWeights
from aegis.words import jsonable


class Information(StrEnum):
    """What a summary contains about the values of an attribute in addition to the joint counts of
    its masked values (AEGIS paper, section 4).
    """

    RAW = "raw"
    """The joint counts of its values and the label."""
    HISTOGRAM = "histogram"
    """The number of rows of each value (AEGIS+1D)."""
    NOTHING = "nothing"
    """Nothing else (AEGIS-1D)."""

    @classmethod
    def of(cls, know: Information | str) -> Information:
        """Return the member of this class that `know` names; raise `PolicyError` if there is none."""
        return member(cls, know, "information setting")


@dataclass(frozen=True, eq=False)
class Domain:
    """The values of an attribute whose joint counts with the label are not in the summary.

    Attributes
    ----------
    values
        The V distinct values of the table, shape (V,), in ascending order, with null last.
    cells
        The index of each value's cell, shape (V,). A cell is a set of values that no candidate
        distinguishes.
    counts
        Number of labelled rows per value, shape (V,); None if it is not known.
    """

    values: pa.Array
    cells: Int32s
    counts: Ints | None


@dataclass(frozen=True, eq=False)
class Candidate:
    """A candidate mask of an attribute, with the groups into which it divides the attribute's
    values.

    Attributes
    ----------
    mask
        The mask, fitted to the data.
    declared
        The mask as the policy wrote it.
    groups
        The group of each of the V distinct values, shape (V,).
    masked_values
        The masked value of each group, shape (size,).
    levels
        The level of each of the A atoms (sets of values that no candidate distinguishes), shape
        (A,). A level is a group in measures of several attributes; if there are more groups than
        the summary's `max_levels`, the rarest groups share one level.
    ranges
        The range of each atom, shape (A,). A range joins neighbouring groups, for models that split
        numbers at thresholds; ranges are numbered in the order of the values
        (`aegis.summary.attributes`). None for noise masks, and None if the values have no order.
    """

    mask: Mask
    declared: Mask
    groups: Int32s
    masked_values: pa.Array
    levels: Int32s
    ranges: Int32s | None = None

    @property
    def size(self) -> int:
        """The number of groups into which the mask divides the values."""
        return len(self.masked_values)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The masked value of each group as text."""
        values = self.masked_values.to_pylist()
        return tuple("null" if v is None else str(text_of(v)) for v in values)

    @cached_property
    def noise(self) -> NoiseMask | None:
        """The mask if it adds noise, otherwise None. Under such a mask, each value is a group of
        its own.
        """
        return self.mask if isinstance(self.mask, NoiseMask) else None

    @cached_property
    def in_order(self) -> tuple[Int32s, tuple[str, ...]]:
        """The group of each value, shape (V,), and the text of each group, in natural order: by the
        first number in their text, then by the text. Ordered distances need an order that an audit
        can repeat, and an audit sees only the texts.
        """
        rank, labels = in_natural_order(self.labels)
        return rank.astype(np.int32)[self.groups], labels

    @cached_property
    def n_levels(self) -> int:
        """The number of levels under this mask: groups, of which the rarest may be pooled."""
        return int(self.levels.max(initial=-1)) + 1

    @property
    def scored(self) -> Int32s:
        """The range of each atom if the values are ordered, otherwise its level, shape (A,)."""
        return self.levels if self.ranges is None else self.ranges


@dataclass(frozen=True, eq=False)
class AttributeSummary:
    """The counts of one attribute: its rows by value, by class, and by candidate mask.

    Attributes
    ----------
    name, role, kind, weight
        Name, role and weight in the policy, and the kind of the values.
    values
        The V distinct values, shape (V,), in ascending order, with NaN before null and null last.
    counts
        Rows per value, shape (V,).
    joint
        Number of rows (or sum of weights) per value and for C label classes, shape (V, C). Rows
        without a label do not count.
    atoms
        The atom of each value, shape (V,). An atom is a set of values that have the same level and
        the same range under every mask.
    candidates
        The candidate masks, in the order of the policy.
    unmasked
        The identity mask as the baseline, even if the policy does not allow it.
    nulls
        Number of rows in which the attribute is null.
    domain
        None in a usual summary. In a summary from which `withhold` removed joint counts, the values
        of the table. In this case `values` has the first value of each set of values that no
        candidate distinguishes, and `unmasked` shows each of these sets separately.
    """

    name: str
    role: Role
    kind: Kind
    weight: float
    values: pa.Array
    counts: Ints
    joint: Array
    atoms: Int32s
    candidates: tuple[Candidate, ...]
    unmasked: Candidate
    nulls: int
    domain: Domain | None = None

    @property
    def information(self) -> Information:
        """Which counts of the attribute's values the summary contains."""
        if self.domain is None:
            return Information.RAW
        return Information.NOTHING if self.domain.counts is None else Information.HISTOGRAM

    @property
    def all_values(self) -> pa.Array:
        """The distinct values in the table, shape (V,), even if their joint counts were withheld."""
        return self.values if self.domain is None else self.domain.values

    @cached_property
    def data(self) -> ValueCounts:
        """The values and their counts, to which masks are fitted."""
        return ValueCounts(self.kind, self.values, self.counts)

    @property
    def n_atoms(self) -> int:
        """The number of atoms: sets of values that no candidate mask distinguishes."""
        return len(self.unmasked.levels)

    @property
    def excluded(self) -> bool:
        """Whether measures of whole configurations leave out this attribute (`exclude_attributes`)."""
        return self.n_atoms == 1 and self.unmasked.size > 1

    @property
    def numbers(self) -> Floats | None:
        """The values as numbers, shape (V,), with NaN for null; None if the attribute has no order."""
        if not self.kind.ordered:
            return None
        return numbers_of(self.all_values)

    @cached_property
    def atom_numbers(self) -> tuple[Floats, Floats]:
        """How many distinct numbers the labelled rows of each atom have, and their sum, shape (A,)
        both. Each number counts once, so the result does not depend on counts that `withhold`
        removes.
        """
        rows, atoms = self.joint.sum(axis=1), self.atoms
        if self.domain is not None:
            value_counts = self.domain.counts
            rows = np.ones(len(self.all_values)) if value_counts is None else value_counts
            atoms = atoms[self.domain.cells]
        numbers = numbers_of(self.all_values)
        counted = np.isfinite(numbers) & (rows > 0)
        count, total = (
            group_sums(atoms, weights, self.n_atoms)
            for weights in (counted, np.where(counted, numbers, 0.0))
        )
        return count, total

    def candidate(self, mask: Mask) -> Candidate:
        """Return the candidate for a declared or fitted mask.

        Raises
        ------
        PolicyError
            The mask is not among the candidates that were summarised.
        """
        for candidate in self.candidates:
            if mask in (candidate.mask, candidate.declared):
                return candidate
        names = ", ".join(str(c.declared) for c in self.candidates)
        raise PolicyError(
            f"Mask {mask} of attribute {self.name!r} is not among the summarised candidates.",
            hint=f"Candidates: {names}. Add the mask to the policy, then summarise again.",
        )

    @cached_property
    def untouched(self) -> Candidate:
        """The candidate that shows every value unmasked. If no candidate does, it is `unmasked`."""
        unmasked = self.unmasked
        alike = (c for c in self.candidates if c.mask == unmasked.mask)
        return next((c for c in alike if np.array_equal(c.levels, unmasked.levels)), unmasked)

    @cached_property
    def finest_key(self) -> Candidate | None:
        """The candidate by whose groups the frequency table counts this attribute; None: by its
        values.
        """
        finest = max(self.candidates, key=lambda c: c.size, default=self.unmasked)
        coarser = finest.size < len(self.values)
        if coarser and all(refines(finest.groups, c.groups) for c in self.candidates):
            return finest
        return None

    @property
    def key_groups(self) -> tuple[Int32s, Int32s, pa.Array]:
        """The group by which the frequency table counts each value, the index of one value in each
        group, and the masked value that each group shows.
        """
        if (finest := self.finest_key) is None:
            every = np.arange(len(self.values), dtype=np.int32)
            return every, every, self.values
        first = np.unique(finest.groups, return_index=True)[1].astype(np.int32)
        return finest.groups, first, finest.masked_values


@dataclass(frozen=True, eq=False)
class LabelSummary:
    """The label: its column, and its classes with their numbers of rows, or the unit of its
    numbers.

    Attributes
    ----------
    column
        Name of the label column. It is empty if there is no label; then all rows are one class.
    classes
        The text of each class, in class order.
    counts
        Number of rows of each of C classes, shape (C,).
    unlabelled
        Number of rows whose label is null. No joint count includes them.
    mask
        The quantile mask that cut a numeric label into classes; None if there is none.
    unit
        For a numeric label, the unit of its sums; None for a label with classes. Every number is a
        whole multiple of the unit, and all rows are in one class.
    totals
        Sums of the weights of the rows of each class, shape (C,); None if each row counts once.
    ends
        For a numeric label, the smallest and the largest number, in units. None for other labels
        and in bundles of earlier versions.
    """

    column: str
    classes: tuple[str, ...]
    counts: Ints
    unlabelled: int
    mask: Mask | None = None
    unit: NumberUnit | None = None
    totals: Array | None = None
    ends: tuple[int, int] | None = None

    @property
    def weighted(self) -> Array:
        """The number of rows of each class, or the sum of their weights, shape (C,). Scores use
        these.
        """
        return self.counts if self.totals is None else self.totals

    @property
    def there(self) -> bool:
        """Whether the policy has a label at all."""
        return bool(self.column)

    @property
    def kind(self) -> LabelKind:
        """The kind of label that the table has: classes, a number, or none."""
        if not self.column:
            return LabelKind.NONE
        return LabelKind.CLASSES if self.unit is None else LabelKind.NUMBER

    @property
    def has_classes(self) -> bool:
        """Whether the label has classes."""
        return self.kind is LabelKind.CLASSES


@dataclass(frozen=True, eq=False)
class Summary:
    """The counts of one table that Aegis needs to advise on every combination of candidate masks.

    Attributes
    ----------
    rows
        Number of rows of the table.
    label
        The class label and its counts.
    attributes
        The scored attributes by name, without the label.
    label_attribute
        The label as an attribute with candidate masks, if the policy gives it a role. Its values
        are the classes.
    pairs
        Co-occurrence counts by class of all pairs of attributes.
    frequency
        The frequency table of quasi-identifiers, sensitive attributes and label. None if the
        policy has no quasi-identifiers, or if the table would have too many cells.
    max_levels
        Largest number of levels of an attribute in measures of several attributes.
    unnamed
        Columns of the table that the policy does not name. Aegis neither scores nor releases them.
    digests
        SHA-256 digests of the inputs of the summary, by name (`policy`, and `input` if requested).
    shared_rows
        Every bound that a mask learns from the data is shared by at least this many rows.
    dialects
        The dialects of the text files from which the summary was made; empty for other sources.
    read_by_context
        Columns of text files in which other values decide how Aegis reads a value, for example
        whether the day or the month comes first. None if this is not known, as in files of earlier
        versions.
    timings
        Seconds per step.
    terms
        The policy of the summary, and whether its privacy rule is locked. None if this is not
        known, as in files of earlier versions.
    several
        If there are several labels, the summary for each; else None. If it is given, `label` is
        empty, and `attributes` include every label that has a role.
    weights
        The weights of the rows, if counts by class and counts of pairs are sums of weights. None if
        each row counts once.

    Examples
    --------
    >>> import aegis
    >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
    >>> study.summary.rows, study.summary.label.classes
    (32561, ('<=50K', '>50K'))
    """

    rows: int
    label: LabelSummary
    attributes: Mapping[str, AttributeSummary]
    label_attribute: AttributeSummary | None
    pairs: PairCounts
    frequency: FrequencyTable | None
    max_levels: int
    unnamed: tuple[str, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    shared_rows: int = SHARED_ROWS
    dialects: tuple[TextDialect, ...] = ()
    read_by_context: tuple[str, ...] | None = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    terms: Terms | None = None
    several: SeveralSummaries | None = None
    weights: TableWeights | None = None

    def __post_init__(self) -> None:
        if self.pairs.names != tuple(self.attributes):
            raise InternalError("Co-occurrence counts and attributes of a summary differ.")

    @property
    def information(self) -> Information:
        """Which counts of values the summary contains, for the attribute about which it contains
        the fewest.

        `Information.RAW` has the most counts, `Information.NOTHING` the fewest.
        """
        contained = {attribute.information for attribute in self.attributes.values()}
        return next((i for i in reversed(Information) if i in contained), Information.RAW)

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The names of the columns that models predict."""
        if self.several is not None:
            return tuple(task.column for task in self.several.tasks)
        return (self.label.column,) if self.label.there else ()

    @property
    def sampled(self) -> bool:
        """Whether the pairs of values were counted on a sample of the rows."""
        return self.pairs.rows < self.rows - self.label.unlabelled

    def in_effective_rows(self) -> Summary:
        """Return a copy of the summary for computing scores, with sums of weights w scaled so that
        all rows together count as (sum of w)^2 / (sum of w^2) effective rows.

        If rows have no weights, return this summary.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> study.summary.in_effective_rows() is study.summary
        True
        """
        return self if self.weights is None or self.pairs.in_rows else self._in_rows

    @cached_property
    def _in_rows(self) -> Summary:
        assert self.weights is not None
        in_rows, label = self.weights.labelled.in_rows, self.label_attribute
        converted = replace(
            self,
            attributes={
                name: replace(attribute, joint=in_rows(attribute.joint))
                for name, attribute in self.attributes.items()
            },
            label_attribute=None if label is None else replace(label, joint=in_rows(label.joint)),
            label=replace(self.label, totals=in_rows(self.label.weighted)),
            pairs=self.pairs.in_effective_rows(),
        )
        converted.__dict__["number"] = self.number
        return converted

    @cached_property
    def number(self) -> dict[str, float] | None:
        """The mean and standard deviation of a numeric label, over the rows on which pairs of
        values were counted.

        The entry `one_row` is the largest share of the variance that a single row contributes, at
        most 1. If rows have weights, it is the share of a row of average weight.
        """
        sums, unit, rows = self.pairs.responses, self.label.unit, self.pairs.counted
        if sums is None or unit is None:
            return None
        mean, deviation = Fraction(int(sums.total.sum()), rows), sums.deviation(rows)
        figures = {"mean": float(mean * unit.exact), "deviation": deviation * unit.size}
        if self.label.ends is not None and deviation > 0:
            away = max(abs(float(end - mean)) for end in self.label.ends)
            figures["one_row"] = min((away / deviation) ** 2 / int(self.label.counts.sum()), 1.0)
        return figures

    def refuse_weights(self, what: str) -> None:
        """Raise `PolicyError` if the counts are sums of survey weights, because the operation
        `what` needs numbers of rows.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> study.summary.refuse_weights("A reconstruction")
        """
        if self.weights is not None:
            raise PolicyError(
                f"{what} counts each row once, but this summary weights rows by "
                f"{self.weights.column!r}.",
                hint="Summarise the table under a policy without `weight`.",
            )

    @checks_types
    def attribute(self, name: str) -> AttributeSummary:
        """Return an attribute by name. For the label's name, return `label_attribute` if it is not
        None.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> [candidate.size for candidate in study.summary.attribute("sex").candidates]
        [2, 1]
        """
        if self.label_attribute is not None and name == self.label.column:
            return self.label_attribute
        require_known("attribute", name, self.attributes)
        return self.attributes[name]

    @property
    def all_attributes(self) -> tuple[AttributeSummary, ...]:
        """The attributes that are scored, and the label if it has candidate masks."""
        labels = (self.label_attribute,) if self.label_attribute is not None else ()
        return (*self.attributes.values(), *labels)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures that a report shows, as plain JSON values.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> study.summary.to_dict()["classes"]
        {'<=50K': 24720, '>50K': 7841}
        """
        return {
            "rows": self.rows,
            "label": self.label.column or None,
            "classes": dict(zip(self.label.classes, self.label.counts.tolist(), strict=True))
            if self.label.has_classes
            else {},
            **({} if (number := self.number) is None else {"label_number": number}),
            "unlabelled_rows": self.label.unlabelled,
            **({} if self.several is None else {"labels": self.several.to_dict()}),
            **({} if self.weights is None else {"weights": self.weights.to_dict()}),
            "attributes": {
                a.name: {
                    "role": str(a.role),
                    "kind": str(a.kind),
                    "values": len(a.all_values),
                    "nulls": a.nulls,
                    "candidates": [str(c.mask) for c in a.candidates],
                }
                for a in self.all_attributes
            },
            "cooccurrence_rows": self.pairs.rows,
            "sampled": self.sampled,
            "information": str(self.information),
            "quasi_identifier_classes": None if self.frequency is None else self.frequency.cells,
            "not_in_policy": list(self.unnamed),
            "digests": dict(self.digests),
            "shared_rows": self.shared_rows,
            "dialects": jsonable(self.dialects),
            "made_under": None if self.terms is None else self.terms.owner.to_dict(),
        }

    def __repr__(self) -> str:
        kind = "sampled" if self.sampled else "exact"
        what = f"with {len(self.label.classes)} classes" if self.label.has_classes else "a number"
        label = f"label {self.label.column!r} {what}".replace("' a number", "', a number")
        label = label if self.label.there else "no label"
        label = label if self.several is None else f"{len(self.several.tasks)} labels"
        return (
            f"Summary({self.rows:,} rows, {label}, {len(self.attributes)} attributes, "
            f"{kind} co-occurrence of {self.pairs.rows:,} rows)"
        )


@dataclass(frozen=True, eq=False)
class TaskSummary:
    """One of several labels, with its summary of the table, its weight and its measure.

    Attributes
    ----------
    summary
        The summary of the table with this label as the only label. The classes for the privacy rule
        are in the summary of the whole table.
    weight
        Weight of the label when labels are combined.
    measure
        Name of the label's measure; None for the default measure of the label's kind.
    """

    summary: Summary
    weight: float
    measure: str | None

    @property
    def column(self) -> str:
        """The name of the label's column."""
        return self.summary.label.column


@dataclass(frozen=True, eq=False)
class SeveralSummaries:
    """Several labels, with the summary of the table for each, in the order of the policy, and how
    the advice combines the shares of their utility that masks keep: by their `mean` or the `worst`
    of them.
    """

    tasks: tuple[TaskSummary, ...]
    serve: Serve

    def to_dict(self) -> dict[str, Any]:
        """Return, for each label, its classes, or the mean and deviation of a numeric label, as
        JSON values.
        """
        return {
            task.column: {
                name: value
                for name, value in task.summary.to_dict().items()
                if name in ("classes", "label_number", "unlabelled_rows")
            }
            for task in self.tasks
        }
