"""Compute all privacy figures of an audit from the class-frequency table.

A figure that is infinite or undefined is null (None), never NaN. The description of each field says
when this happens.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from aegis.arrays import Ints
from aegis.privacy.classes import ClassTable, SensitiveCounts
from aegis.privacy.diversity import (
    distinct_values,
    effective_values,
    enhanced_gain,
    equal_distance,
    hierarchical_distance,
    largest_share,
    log_ratio,
    ordered_distance,
    recursive_ratio,
    relative_gain,
)
from aegis.words import Quoting, counted, finite, joined, json_fields, jsonable

AT_RISK = (0.05, 0.075, 0.1, 0.2)
"""The thresholds tau for which the report counts the records at risk."""

BINS = ((1, 1), (2, 2), (3, 4), (5, 9), (10, 19), (20, 49), (50, 99), (100, None))
"""The smallest and the largest class size of each bin in the histogram of class sizes."""

SHARED = 0.8
"""Least share of one sensitive value in a class, below 1, of which the report warns."""
UNLIKE = 0.1
"""Least distance t of a class to the table (equal distance) at which the report warns of shares."""

NULL = "null"
"""The label of null in a class-frequency table."""

RECURSIVE_L = tuple(range(2, 11))
"""The values of l for which an audit reports the c of recursive (c,l)-diversity."""


KNOWN_TO_BE_THERE = (
    "We assume that the attacker knows that the person is in the table (no population is given)."
)
"""The note on a table whose population is unknown: its journalist risk equals its prosecutor risk.
"""
UNPROTECTED = (
    "The rule protects nothing, because no column is a quasi-identifier: give that role to the columns "
    "that others may know of a person"
)
"""Warning about a policy with a rule but without a quasi-identifier. All rows form one class then, so
every table meets the rule.
"""
FORMER_NOTES = {
    "No population is given, so the table stands for it: journalist risk equals prosecutor "
    "risk.": KNOWN_TO_BE_THERE
}
"""The notes in certificates of version 0.2, and how Aegis words them now."""


@dataclass(frozen=True)
class Risk:
    """The re-identification risk of the rows under one kind of attack. Figures are in [0, 1], and
    null for an empty table.

    Attributes
    ----------
    maximum
        The largest risk of any row.
    average
        The mean risk over the rows, which is the expected share of rows that are re-identified.
    """

    maximum: float | None
    average: float | None


@dataclass(frozen=True)
class SizeBin:
    """A range of class sizes (as text), with the number of its classes and of their rows or
    persons.
    """

    size: str
    classes: int
    rows: int


@dataclass(frozen=True)
class Diversity:
    """How l-diverse the classes are in one sensitive attribute. All figures are null for an empty
    table.

    Attributes
    ----------
    distinct
        The smallest number of distinct values in a class: the l of distinct l-diversity.
    entropy
        The smallest exp(entropy) of a class: the largest l of entropy l-diversity, as a real
        number.
    recursive_c
        For each l (as text), a figure: the table is recursive (c,l)-diverse for every c *above* the
        figure. Null if a class has fewer than l values, because then no c is large enough.
    """

    distinct: int | None
    entropy: float | None
    recursive_c: Mapping[str, float | None]


@dataclass(frozen=True)
class Closeness:
    """How t-close the classes are in one sensitive attribute: for each of three distances (`equal`,
    `ordered`, `hierarchical`), the largest distance between the values of a class and of the whole
    table.

    `hierarchical` is null if there is no hierarchy. All figures are null for an empty table.
    """

    equal: float | None = None
    ordered: float | None = None
    hierarchical: float | None = None


@dataclass(frozen=True)
class Likeness:
    """The smallest beta for which the classes meet beta-likeness in one sensitive attribute. All
    figures are null for an empty table.

    Attributes
    ----------
    basic
        The largest relative gain of a value, (q - p) / p, where q and p are its shares in a class
        and in the table: the beta of basic beta-likeness.
    enhanced
        The smallest beta of enhanced beta-likeness. Null if a value gains more than -ln p, because
        then no beta is large enough.
    enhanced_limit
        min(basic, -ln p of the rarest value): the largest gain that enhanced beta-likeness
        with the basic beta allows any value. Some tools state this figure as the enhanced beta.
    """

    basic: float | None = None
    enhanced: float | None = None
    enhanced_limit: float | None = None


@dataclass(frozen=True)
class DeltaDisclosure:
    """The smallest delta for which the classes meet delta-disclosure privacy in one sensitive
    attribute. All figures are null for an empty table.

    Attributes
    ----------
    all
        A figure: the table has delta-disclosure privacy for every delta *above* it. Null if a class
        lacks a value that the table has, because then no delta is large enough.
    present
        The same figure for only the values that each class has. Tools that ignore absent values
        report this figure.
    """

    all: float | None = None
    present: float | None = None


@dataclass(frozen=True)
class AttributeFigures:
    """The privacy figures of one sensitive attribute.

    Attributes
    ----------
    homogeneous_rows
        Number of rows in classes that have only one value of the attribute; this includes classes
        of one row.
    alpha
        The largest share of one value in a class: the alpha of (alpha, k)-anonymity, where k is the
        size of the smallest class of the table. Null for an empty table.
    diversity, closeness, likeness, disclosure
        The figures of l-diversity, t-closeness, beta-likeness and delta-disclosure.
    """

    homogeneous_rows: int
    alpha: float | None
    diversity: Diversity
    closeness: Closeness
    likeness: Likeness
    disclosure: DeltaDisclosure


_MODELS = {
    "l_diversity": "diversity",
    "t_closeness": "closeness",
    "beta_likeness": "likeness",
    "delta_disclosure": "disclosure",
}
"""Keys of the JSON form, and the fields of `AttributeFigures` with their figures."""


@dataclass(frozen=True, repr=False)
class PrivacyReport:
    """The privacy figures of one table: risks of re-identification, class sizes, and figures of the
    sensitive attributes.

    Attributes
    ----------
    rows
        Number of rows of the table.
    k
        Number of rows of the smallest class; 0 for an empty table.
    uniques
        Number of rows that are alone in their class.
    mean_class_size
        Mean number of rows per class; null for an empty table.
    at_risk
        For each threshold tau (as text), the number of rows with 1/|E| > tau, where |E| is the size
        of the row's class E.
    prosecutor
        The risk of a person who is known to be in the table: 1/|E|.
    journalist
        The risk of any person of the population: 1 / (number of people of the population in E). If
        class sizes of the population are unknown, it equals the prosecutor risk, and `notes` says
        so.
    homogeneous_rows_any
        Number of rows in classes in which *any* sensitive attribute is constant; null if there are
        no sensitive attributes.
    attributes
        The figures of each sensitive attribute.
    class_size_histogram
        Number of classes and rows by class size.
    notes
        Notes on the figures, in sentences.
    persons
        Number of distinct persons in the table, if persons are counted instead of rows. Then `k`,
        `uniques`, `at_risk`, risks, homogeneity and shares refer to persons. None if rows are
        counted.

    Examples
    --------
    >>> import aegis
    >>> audit = aegis.audit("data/adult.parquet", quasi_identifiers=["age", "sex", "race"])
    >>> audit.report.classes, audit.report.k
    (546, 1)
    """

    rows: int
    k: int
    uniques: int
    mean_class_size: float | None
    at_risk: Mapping[str, int]
    prosecutor: Risk
    journalist: Risk
    homogeneous_rows_any: int | None
    attributes: Mapping[str, AttributeFigures]
    class_size_histogram: tuple[SizeBin, ...]
    notes: tuple[str, ...] = ()
    persons: int | None = None

    @property
    def classes(self) -> int:
        """The number of equivalence classes that the quasi-identifiers form."""
        return sum(band.classes for band in self.class_size_histogram)

    @property
    def unit(self) -> str:
        """The unit in which `k`, `uniques`, `at_risk` and the other figures count: "rows" or
        "persons".
        """
        return "rows" if self.persons is None else "persons"

    @property
    def members(self) -> int:
        """The total number of members of all classes, by which every share is divided.

        The members are rows, or persons if they are counted. A person who has rows in several
        classes is a member of each of them.
        """
        return sum(band.rows for band in self.class_size_histogram)

    @property
    def marketer(self) -> float | None:
        """The marketer risk: the share of rows that an attacker can expect to re-identify who tries
        to find the person of every row.
        """
        return self.journalist.average

    @property
    def homogeneous_rows(self) -> dict[str, int]:
        """For each sensitive attribute, how many rows are in classes that have only one value of
        the attribute.
        """
        return {name: figures.homogeneous_rows for name, figures in self.attributes.items()}

    @property
    def cautions(self) -> tuple[str, ...]:
        """Sentences that warn you of risks in these figures before you release the table.

        Examples
        --------
        >>> import aegis
        >>> audit = aegis.audit("data/adult.parquet", quasi_identifiers=["age"], sensitive=["sex"])
        >>> [text[:41] for text in audit.report.cautions]
        ['Some classes have a single value of sex (']
        """
        each = self.attributes.items()
        alphas = {name: figures.alpha for name, figures in each}
        distances = {name: figures.closeness.equal for name, figures in each}
        shared = shared_values(alphas, distances, self.unit)
        return (*same_values(self.homogeneous_rows, self.unit), *shared)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values; figures that are infinite or undefined become None.

        Examples
        --------
        >>> import aegis
        >>> audit = aegis.audit("data/adult.parquet", quasi_identifiers=["age", "sex", "race"])
        >>> audit.report.to_dict()["rows"]
        32561
        """
        each = self.attributes.items()
        sizes = ("rows", "persons", "classes", "k", "uniques", "mean_class_size", "at_risk")
        return {
            **json_fields(self, *sizes),
            "risk": {
                **json_fields(self, "prosecutor", "journalist"),
                "marketer": {"average": self.marketer},
            },
            **json_fields(self, "homogeneous_rows", "homogeneous_rows_any"),
            "alpha_k": {name: {"alpha": figures.alpha, "k": self.k} for name, figures in each},
            **{
                model: {name: jsonable(getattr(figures, field)) for name, figures in each}
                for model, field in _MODELS.items()
            },
            **json_fields(self, "class_size_histogram", "notes"),
        }

    def _table(self) -> list[tuple[str, str]]:
        unit = self.unit
        lines = [
            ("rows", f"{self.rows:,}"),
            *([] if self.persons is None else [("persons", f"{self.persons:,}")]),
            ("equivalence classes", f"{self.classes:,}"),
            ("k (smallest class)", f"{self.k:,}"),
            (f"unique {unit}", f"{self.uniques:,}"),
            ("mean class size", _text(self.mean_class_size)),
        ]
        lines += [(f"{unit} at risk above {tau}", f"{n:,}") for tau, n in self.at_risk.items()]
        for title, risk in (("prosecutor", self.prosecutor), ("journalist", self.journalist)):
            lines.append(
                (
                    f"{title} risk",
                    f"{_text(risk.maximum)} at most, {_text(risk.average)} on average",
                )
            )
        lines.append(("marketer risk", _text(self.marketer)))
        if len(self.attributes) > 1:
            lines.append((f"homogeneous {unit}, any attribute", f"{self.homogeneous_rows_any:,}"))
        for name, figures in self.attributes.items():
            lines += _attribute_lines(name, figures, unit)
        return lines

    def __repr__(self) -> str:
        lines = self._table()
        width = max(len(title) for title, _ in lines)
        text = [f"{title:<{width}}  {figure}" for title, figure in lines]
        return "\n".join(["PrivacyReport", *text, *(f"Note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        lines = "".join(
            f"<tr><th scope='row' style='text-align:left'>{escape(title)}</th>"
            f"<td style='text-align:right'>{escape(figure)}</td></tr>"
            for title, figure in self._table()
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<table><caption>Privacy of the table</caption>{lines}</table>{notes}"


def report(table: ClassTable) -> PrivacyReport:
    """Compute all privacy figures of a table from its equivalence classes. Null counts as a value."""
    sizes, rows = table.sizes, table.rows
    # A person in several classes is found in any of them: each counts.
    members = int(sizes.sum())
    risks = 1.0 / table.crowds
    mean = float((sizes * risks).sum()) / members if rows else None
    constant = [counts.certain for counts in table.sensitive.values()]
    return PrivacyReport(
        rows=rows,
        k=int(sizes.min()) if rows else 0,
        uniques=int((sizes == 1).sum()),
        mean_class_size=members / len(sizes) if rows else None,
        at_risk={f"{tau:g}": rows_at_risk(sizes, tau) for tau in AT_RISK},
        prosecutor=Risk(1.0 / int(sizes.min()), len(sizes) / members) if rows else Risk(None, None),
        journalist=Risk(float(risks.max()), mean) if rows else Risk(None, None),
        homogeneous_rows_any=int(sizes[np.logical_or.reduce(constant)].sum()) if constant else None,
        attributes={name: _measure(classes_of) for name, classes_of in table.sensitive.items()},
        class_size_histogram=histogram(sizes),
        notes=_notes(table),
        persons=None if table.persons is None else table.persons.total,
    )


def same_values(homogeneous_rows: Mapping[str, int], unit: str) -> tuple[str, ...]:
    """Return a tuple with one sentence that names the sensitive attributes of which some classes
    have only a single value; empty if there are none. `homogeneous_rows` has the rows of these
    classes, and `unit` is what they are, such as "rows".
    """
    texts = {name: f"{name} ({rows:,} {unit})" for name, rows in homogeneous_rows.items() if rows}
    if not texts:
        return ()
    remedies = ", ".join(f"{{attribute: {name}, l: 2}}" for name in texts)
    remedy = remedies if len(texts) == 1 else f"[{remedies}]"
    return (
        f"Some classes have a single value of {joined(texts.values())}: somebody who knows that a person is in such "
        f"a class knows the value. To prevent it, uncomment or write `l_diversity: {remedy}` under `privacy` in the "
        "policy",
    )


def shared_values(
    alphas: Mapping[str, float | None], distances: Mapping[str, float | None], unit: str
) -> tuple[str, ...]:
    """Return a sentence for each sensitive attribute of which some class has nearly only one value.

    Two cases are left out: classes with only one value, because `same_values` warns of them; and
    attributes of which all classes have nearly the same shares as the table, because the release
    then reveals little about single persons.

    Parameters
    ----------
    alphas
        For each attribute, the largest share of one value in a class.
    distances
        For each attribute, the largest distance of a class to the table (equal distance).
    unit
        What the shares count, such as "rows".
    """
    return tuple(
        f"In some class, one value of {name} has {_percent(alpha)} of the {unit}: somebody who knows that a person "
        "is in this class guesses the value, and is right with this probability. To limit it, write "
        f"`alpha_k: {{attribute: {name}, alpha: 0.75}}` or `t_closeness` under `privacy` in the policy"
        for name, alpha in alphas.items()
        if alpha is not None and SHARED <= alpha < 1 and (distances.get(name) or 0.0) >= UNLIKE
    )


def _percent(share: float) -> str:
    return "more than 99 %" if share > 0.99 else f"{math.floor(100 * share):d} %"


def rows_at_risk(sizes: Ints, threshold: float) -> int:
    """Return the number of rows whose risk 1/|E| is above the threshold, from the sizes of all
    classes E. The comparison is 1 > threshold * |E| with a tolerance of 1e-9, so that a class of 20
    is not at risk above 0.05.
    """
    return int(sizes[threshold * sizes < 1 - 1e-9].sum())


def histogram(sizes: Ints) -> tuple[SizeBin, ...]:
    """Count the classes and their rows for each range of sizes in `BINS`."""
    starts = np.array([low for low, _ in BINS])
    bins = np.searchsorted(starts, sizes, side="right") - 1
    classes = np.bincount(bins, minlength=len(BINS))
    rows = np.bincount(bins, weights=sizes, minlength=len(BINS))
    return tuple(
        SizeBin(_range(low, high), int(classes[i]), int(rows[i]))
        for i, (low, high) in enumerate(BINS)
    )


def _range(low: int, high: int | None) -> str:
    if high is None:
        return f"{low}+"
    return str(low) if low == high else f"{low}-{high}"


def _measure(counts: SensitiveCounts) -> AttributeFigures:
    if not len(counts.starts):
        none = Diversity(None, None, {str(values): None for values in RECURSIVE_L})
        return AttributeFigures(0, None, none, Closeness(), Likeness(), DeltaDisclosure())
    rarest = float(counts.reference[counts.totals > 0].min())
    basic = float(relative_gain(counts).max())
    tree = counts.levels
    recursive = {
        str(values): finite(float(recursive_ratio(counts, values).max())) for values in RECURSIVE_L
    }
    return AttributeFigures(
        homogeneous_rows=int(counts.members[counts.certain].sum()),
        alpha=float(largest_share(counts).max()),
        diversity=Diversity(
            int(distinct_values(counts).min()),
            float(effective_values(counts).min()),
            recursive,
        ),
        closeness=Closeness(
            float(equal_distance(counts).max()),
            float(ordered_distance(counts).max()),
            None if tree is None else float(hierarchical_distance(counts, tree).max()),
        ),
        likeness=Likeness(
            basic, finite(float(enhanced_gain(counts).max())), min(basic, -math.log(rarest))
        ),
        disclosure=DeltaDisclosure(
            finite(float(log_ratio(counts).max())),
            float(log_ratio(counts, absent=False).max()),
        ),
    )


def _notes(table: ClassTable) -> tuple[str, ...]:
    notes = []
    if table.persons is not None:
        notes.append(
            "For k, risks and shares, Aegis counts distinct persons, not rows. A person in several "
            "classes counts in each class, and a person with several values counts for each value."
        )
    if table.population is None:
        notes.append(KNOWN_TO_BE_THERE)
    if not table.sensitive:
        notes.append("No sensitive attribute is given, so only identity disclosure is measured.")
    for name, counts in table.sensitive.items():
        nulls = sum(
            int(total)
            for label, total in zip(counts.labels, counts.totals, strict=True)
            if label == NULL
        )
        if nulls:
            then = "a class of nulls and one known value has two distinct values."
            counts_as = f"Null counts as a value of {name}"
            notes.append(
                Quoting(f"{counts_as} ({counted(nulls, 'row')}): {then}", f"{counts_as}: {then}")
            )
    return tuple(notes)


def _text(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.4g}"


def _attribute_lines(name: str, figures: AttributeFigures, unit: str) -> list[tuple[str, str]]:
    recursive = ", ".join(
        f"c = {_text(c)} (l = {values})"
        for values, c in figures.diversity.recursive_c.items()
        if c is not None
    )
    closeness = (
        f"{_text(figures.closeness.equal)} equal, {_text(figures.closeness.ordered)} ordered"
    )
    if figures.closeness.hierarchical is not None:
        closeness += f", {_text(figures.closeness.hierarchical)} hierarchical"
    return [
        (f"{name}: homogeneous {unit}", f"{figures.homogeneous_rows:,}"),
        (f"{name}: alpha", _text(figures.alpha)),
        (
            f"{name}: l-diversity",
            f"{_text(figures.diversity.distinct)} distinct, {_text(figures.diversity.entropy)} entropy",
        ),
        (f"{name}: recursive (c,l)-diversity", recursive or "never"),
        (f"{name}: t-closeness", closeness),
        (
            f"{name}: beta-likeness",
            f"{_text(figures.likeness.basic)} basic, {_text(figures.likeness.enhanced)} enhanced",
        ),
        (
            f"{name}: delta-disclosure",
            f"{_text(figures.disclosure.all)}, {_text(figures.disclosure.present)} over present values",
        ),
    ]
