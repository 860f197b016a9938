"""The sufficient statistic: everything that estimators see of a table (theory.md, section 2).

A `Summary` is frozen and holds aggregates only: per attribute its distinct values with their
class counts and each candidate mask's grouping of them, co-occurrence counts of all attribute
pairs by class, and one frequency table of the quasi-identifiers. Nothing to the right of this
room needs a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegis.errors import InternalError, PolicyError
from aegis.masks import SHARED_ROWS, Kind, Mask, NoiseMask, ValueCounts, refines
from aegis.masks.mapping import text_of
from aegis.measures import LabelKind
from aegis.policy import Role, Terms
from aegis.sources.dialect import TextDialect
from aegis.summary.codes import natural_order, numbers_of
from aegis.summary.cooccurrence import PairCounts
from aegis.summary.frequency import FrequencyTable
from aegis.summary.responses import NumberUnit

Ints = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]


class Information(StrEnum):
    """The known information on an attribute beyond its masked joints (AEGIS, section 4)."""

    RAW = "raw"
    """The joint of its values and the label."""
    HISTOGRAM = "histogram"
    """How many rows hold each value (AEGIS+1D)."""
    NOTHING = "nothing"
    """Nothing more (AEGIS-1D)."""

    @classmethod
    def of(cls, know: Information | str) -> Information:
        """Return the setting called `know`; raise `PolicyError` for another name."""
        try:
            return cls(know)
        except ValueError:
            raise PolicyError.unknown("information setting", know, [str(i) for i in cls]) from None


@dataclass(frozen=True, eq=False)
class Domain:
    """The values of an attribute whose joint with the label is not in the summary.

    Attributes
    ----------
    values
        Distinct values of the table, shape (V,), in the order of `AttributeSummary.values`.
    cells
        Which of the attribute's cells each value belongs to, shape (V,).
    counts
        Labelled rows per value, shape (V,); None if they are not known.
    """

    values: pa.Array
    cells: Ints
    counts: Counts | None


@dataclass(frozen=True, eq=False)
class Candidate:
    """One candidate mask of an attribute, and how it groups the attribute's values.

    Attributes
    ----------
    mask
        The mask, fitted to the data.
    declared
        The mask as the policy wrote it.
    groups
        Group of each distinct value, shape (V,).
    shown
        The masked value of each group, shape (size,).
    levels
        Level of each atom, shape (A,): the groups as multi-attribute measures see them, the
        rarest pooled where there are more than the summary's `max_levels`.
    ranges
        Range of each atom, shape (A,): neighbouring groups together, numbered in the order of the
        values (`aegis.summary.ordered`). None if the values have no order, and for noise.
    """

    mask: Mask
    declared: Mask
    groups: Ints
    shown: pa.Array
    levels: Ints
    ranges: Ints | None = None

    @property
    def size(self) -> int:
        """Number of groups."""
        return len(self.shown)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The shown value of each group, as text."""
        return tuple("null" if v is None else str(text_of(v)) for v in self.shown.to_pylist())

    @cached_property
    def noise(self) -> NoiseMask | None:
        """The mask if it is a noise mask, else None; its groups and levels are then the original
        values.
        """
        return self.mask if isinstance(self.mask, NoiseMask) else None

    @cached_property
    def in_order(self) -> tuple[Ints, tuple[str, ...]]:
        """The groups (V,) renumbered in the natural order of their shown values, and these values.

        Ordered distances need an order that plan and audit agree on: see `natural_order`.
        """
        order = natural_order(self.labels)
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        return rank[self.groups], tuple(self.labels[i] for i in order)

    @cached_property
    def n_levels(self) -> int:
        """Number of levels."""
        return int(self.levels.max(initial=-1)) + 1

    @property
    def n_columns(self) -> int:
        """Number of columns in scores of models: thresholds if there is an order, otherwise
        levels.
        """
        return self.n_levels if self.ranges is None else int(self.ranges.max(initial=-1)) + 1


@dataclass(frozen=True, eq=False)
class AttributeSummary:
    """The summary of one attribute.

    Attributes
    ----------
    name, role, kind, weight
        As the policy and the table's schema say.
    values
        Distinct values, shape (V,), ascending, NaN before null and null last.
    counts
        Rows per value, shape (V,).
    joint
        Rows per value and class, shape (V, C); rows without a label are not in it.
    atoms
        Atom of each value, shape (V,): values with one atom are on one level under every mask.
    candidates
        The candidate masks, in the order of the policy.
    unmasked
        The identity mask as a candidate, whether or not the policy allows it: the baseline.
    nulls
        Rows where the attribute is null.
    domain
        Where information was withheld (`withhold`): the values of the table. `values` are then
        cells of values that all candidates treat in the same way, each named by its first value, and
        `unmasked` shows them apart.
    """

    name: str
    role: Role
    kind: Kind
    weight: float
    values: pa.Array
    counts: Counts
    joint: Counts
    atoms: Ints
    candidates: tuple[Candidate, ...]
    unmasked: Candidate
    nulls: int
    domain: Domain | None = None

    @property
    def information(self) -> Information:
        """The known information on the attribute's values."""
        if self.domain is None:
            return Information.RAW
        known = self.domain.counts is not None
        return Information.HISTOGRAM if known else Information.NOTHING

    @property
    def all_values(self) -> pa.Array:
        """Distinct values of the table, shape (V,), also those without a known joint."""
        return self.values if self.domain is None else self.domain.values

    @cached_property
    def data(self) -> ValueCounts:
        """The values and their counts, as masks are fitted to them."""
        return ValueCounts(self.kind, self.values, self.counts)

    @property
    def n_atoms(self) -> int:
        """Number of atoms."""
        return len(self.unmasked.levels)

    @property
    def aside(self) -> bool:
        """Whether measures of whole configurations leave the attribute out: see `set_aside`."""
        return self.n_atoms == 1 and self.unmasked.size > 1

    @property
    def numbers(self) -> npt.NDArray[np.float64] | None:
        """All values as numbers, shape (V,), null as NaN; None for an attribute without order."""
        if not self.kind.ordered:
            return None
        return numbers_of(self.all_values)

    @cached_property
    def atom_numbers(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """For each atom, the count and the sum of its numbers in labelled rows, shape (A,) each.

        Each number counts once, so that withheld counts change nothing.
        """
        rows, atoms = self.joint.sum(axis=1), self.atoms
        if self.domain is not None:
            known = self.domain.counts
            rows = np.ones(len(self.all_values)) if known is None else known
            atoms = atoms[self.domain.cells]
        numbers = numbers_of(self.all_values)
        shown = np.isfinite(numbers) & (rows > 0)
        count, total = (
            np.bincount(atoms, own, self.n_atoms).astype(np.float64)
            for own in (shown, np.where(shown, numbers, 0.0))
        )
        return count, total

    def candidate(self, mask: Mask) -> Candidate:
        """Return the candidate for `mask`, given as declared or as fitted.

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
            hint=f"Candidates: {names}. Add it to the policy and summarise again.",
        )

    @cached_property
    def untouched(self) -> Candidate:
        """The candidate that shows every value unchanged; if there is none, `unmasked`."""
        own = self.unmasked
        alike = (c for c in self.candidates if c.mask == own.mask)
        return next((c for c in alike if np.array_equal(c.levels, own.levels)), own)

    @property
    def finest_key(self) -> Candidate | None:
        """The candidate by which an attribute is counted; None if its values are counted."""
        finest = max(self.candidates, key=lambda c: c.size, default=self.unmasked)
        coarser = finest.size < len(self.values)
        if coarser and all(refines(finest.groups, c.groups) for c in self.candidates):
            return finest
        return None


@dataclass(frozen=True, eq=False)
class LabelSummary:
    """The class label.

    Attributes
    ----------
    column
        Name of the label column; empty if there is no label: all rows are then one class.
    classes
        What each class shows, in class order.
    counts
        Rows per class, shape (C,).
    unlabelled
        Rows whose label is null; they are in no joint count.
    mask
        The quantile mask that cut a numeric label into classes, or None.
    unit
        What a number to predict is a whole multiple of, as its sums are kept; its rows are of one
        class. None of a label of classes.
    """

    column: str
    classes: tuple[str, ...]
    counts: Counts
    unlabelled: int
    mask: Mask | None = None
    unit: NumberUnit | None = None

    @property
    def there(self) -> bool:
        """Whether there is a label."""
        return bool(self.column)

    @property
    def kind(self) -> LabelKind:
        """The kind of label: a class, a number, or none."""
        if not self.column:
            return LabelKind.NONE
        return LabelKind.CLASSES if self.unit is None else LabelKind.NUMBER

    @property
    def has_classes(self) -> bool:
        """Whether classes are predicted."""
        return self.kind is LabelKind.CLASSES


@dataclass(frozen=True, eq=False)
class Summary:
    """Aggregates of one table, sufficient for advice on every combination of candidate masks.

    Attributes
    ----------
    rows
        Rows of the table.
    label
        The class label and its counts.
    attributes
        Scored attributes by name, the label left out.
    label_attribute
        The label's candidate masks, if the policy gives it a role; its values are the
        classes.
    pairs
        Co-occurrence counts by class of all pairs of attributes.
    frequency
        The frequency table of quasi-identifiers, sensitive attributes and label; None when the
        policy has no quasi-identifiers or the table would exceed its limit of cells.
    max_levels
        Most levels of one attribute in multi-attribute measures.
    unnamed
        Columns of the table that the policy does not name: neither scored nor released.
    digests
        SHA-256 of what the summary was made from, by name (`policy`, and `input` when asked for).
    shared_rows
        Rows that share each bound that a mask has learnt.
    dialects
        How the text files that it was made from are written, each dialect once; empty for others.
    read_by_context
        Columns of text files in which other values decide how to read a value, such as the order of
        day and month; None if it is not known, as for bundles of earlier versions.
    timings
        Seconds per step.
    terms
        The policy that it was made under, and whether its rule is locked; None if it is not
        known, as for bundles of earlier versions.

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

    def __post_init__(self) -> None:
        if self.pairs.names != tuple(self.attributes):
            raise InternalError("Co-occurrence counts and attributes of a summary differ.")

    @property
    def information(self) -> Information:
        """The information that the summary has on every attribute; on some it may have more."""
        known = {attribute.information for attribute in self.attributes.values()}
        return next((i for i in reversed(Information) if i in known), Information.RAW)

    @property
    def sampled(self) -> bool:
        """Whether the co-occurrence counts come from a sample of the rows."""
        return self.pairs.rows < self.rows - self.label.unlabelled

    @property
    def number(self) -> dict[str, float] | None:
        """Mean and standard deviation of a number to predict, of the rows behind the pair counts."""
        sums, unit, rows = self.pairs.responses, self.label.unit, self.pairs.rows
        if sums is None or unit is None:
            return None
        mean = Fraction(int(sums.total.sum()), rows) * unit.exact
        return {"mean": float(mean), "deviation": sums.deviation(rows) * unit.size}

    def attribute(self, name: str) -> AttributeSummary:
        """Return an attribute, the label's own entry included.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> [candidate.size for candidate in study.summary.attribute("sex").candidates]
        [2, 1]
        """
        if self.label_attribute is not None and name == self.label.column:
            return self.label_attribute
        if name not in self.attributes:
            raise PolicyError.unknown("attribute", name, self.attributes)
        return self.attributes[name]

    @property
    def all_attributes(self) -> tuple[AttributeSummary, ...]:
        """The scored attributes and, if it has candidates, the label."""
        own = (self.label_attribute,) if self.label_attribute is not None else ()
        return (*self.attributes.values(), *own)

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
            "dialects": [dialect.to_dict() for dialect in self.dialects],
            "made_under": None if self.terms is None else self.terms.owner.to_dict(),
        }

    def __repr__(self) -> str:
        kind = "sampled" if self.sampled else "exact"
        what = f"with {len(self.label.classes)} classes" if self.label.has_classes else "a number"
        label = f"label {self.label.column!r} {what}".replace("' a number", "', a number")
        label = label if self.label.there else "no label"
        return (
            f"Summary({self.rows:,} rows, {label}, {len(self.attributes)} attributes, "
            f"{kind} co-occurrence of {self.pairs.rows:,} rows)"
        )
