"""Score configurations and estimate joint counts from a protected summary, with errors from
protection and from sampling.

The score is the held-out target-coded trace of the masked attributes
(`aegis.measures.target_coded`), computed from label tables and moments of codes. If a summary has
no moments, the mean square contingencies of the attributes are added, as if attributes shared no
information.

A label table of a protected summary may have negative counts, and its class totals may differ from
the class totals of other tables. Joint counts are estimated by the nearest table (by least squares)
that has no negative counts and has the class totals that are estimated from all tables (consistency
as in Hay et al., Boosting the accuracy of differentially private histograms through consistency,
PVLDB 3, 2010).

This module uses only published figures, so it costs no budget and reveals nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from aegis.advisor import utility_kept
from aegis.arrays import Floats, Ints
from aegis.blas import one_blas_thread
from aegis.errors import require_known
from aegis.measures import MEASURES
from aegis.measures.target_coded import held_out_reached, trace_by_separation
from aegis.safe.protect.added_variance import added_variance
from aegis.safe.protect.model import GRID, Moments, ProtectedAttribute, ProtectedSummary
from aegis.safe.protect.noise import coefficients, explained, weights_of
from aegis.words import json_fields

MEASURE = "held-out-target-coded"
"""The measure that scores a protected summary."""
Choice = tuple[int, ...]
FINEST = -1
"""In a choice: all cells of the attribute are distinguished."""
REPLICATES = 24
"""How often the noise of protection is drawn again, to estimate standard errors."""
DIFFERENT = 2.0687
"""Number of standard errors beyond which two scores count as different: the quantile of Student's t
with `REPLICATES` - 1 degrees of freedom (two-sided, five percent).
"""
_MAIN = 0.02
"""Directions of a mask's codes below this share of the strongest one count as uncorrelated."""
_NOTHING = 1e-12
"""An association up to this strength is an error of rounding."""


@dataclass(frozen=True, eq=False)
class MaskedAttribute:
    """The association of one masked attribute with the label.

    Attributes
    ----------
    strength
        Mean square contingency of the masked attribute and the label.
    main
        The r main directions of the association with the C classes, each multiplied by the square
        root of its strength, shape (r, C).
    rest
        Sum of the strengths of all directions that are not in `main`.
    onto
        Coefficients of a regression of the main directions, scaled to variance 1, on the
        attribute's q codes (numbers that describe its values), shape (q, r).
    believed, freedom, skewness
        For each ridge penalty, the share of the association that models explain, and their degrees
        of freedom; and the skewness of the association.
    """

    strength: float
    main: Floats
    rest: float
    onto: Floats
    believed: Floats
    freedom: Floats
    skewness: float


class ProtectedScorer:
    """Scores configurations of one protected summary.

    Parameters
    ----------
    summary
        The protected summary.
    replicate
        If not None, noise like that of the protection is added to the figures with this seed before
        scoring, to estimate its effect on scores.
    """

    def __init__(self, summary: ProtectedSummary, replicate: int | None = None) -> None:
        self.summary = summary
        self._random = None if replicate is None else np.random.default_rng(replicate)
        self._attributes = list(summary.attributes.values())
        self._variances = [added_variance(summary, a) for a in self._attributes]
        self._tables = [
            self._blurred(a.table.astype(np.float64), np.sqrt(variance))
            for a, variance in zip(self._attributes, self._variances, strict=True)
        ]
        self._moments = self._matrix(summary.moments)
        self._masked_attributes: dict[tuple[int, int], MaskedAttribute] = {}
        self._columns: dict[tuple[int, int], Ints] = {}
        self._cross = np.zeros((0, 0))

    @property
    def estimator(self) -> str:
        """From what scores are computed: `codes` if there are moments, else `tables`."""
        return "tables" if self._moments is None else "codes"

    @cached_property
    def unmasked(self) -> float:
        """The score if no mask merges any cells, as an estimate for the unmasked table."""
        return self.score(self.finest)

    def utility_kept(self, score: float) -> float | None:
        """Return a score in percent of `unmasked`, 0 to 100; None if that is not above 0."""
        return utility_kept(score, self.unmasked, MEASURES.get(MEASURE))

    @property
    def finest(self) -> Choice:
        """The choice that merges no cells; it may be finer than every mask of the policy."""
        return (FINEST,) * len(self._attributes)

    def _blurred(self, figures: Floats, error: float | Floats) -> Floats:
        if self._random is None:
            return figures
        return figures + error * self._random.standard_normal(figures.shape)

    def _matrix(self, moments: Moments | None) -> Floats | None:
        if moments is None:
            return None
        if self._random is None:
            return moments.matrix
        upper = np.triu(self._blurred(moments.matrix, moments.error), 1)
        return np.where(moments.matrix != 0, upper + upper.T, 0.0)

    def masked(self, index: int, mask: int) -> MaskedAttribute:
        """Return how an attribute is associated with the label under a mask (`FINEST`: unmasked)."""
        key = (index, mask)
        if key not in self._masked_attributes:
            self._masked_attributes[key] = self._mask(index, mask)
        return self._masked_attributes[key]

    def _mask(self, index: int, mask: int) -> MaskedAttribute:
        summary, attribute, table = self.summary, self._attributes[index], self._tables[index]
        groups = np.arange(len(table)) if mask == FINEST else attribute.candidates[mask].groups
        noise = self._variances[index]
        figures = explained(table, groups, summary.shares, noise, summary.rows)
        values, vectors = np.linalg.eigh(figures.covariance)
        if len(np.unique(groups)) < 2:  # one group tells nothing, even if noise moved its classes
            values = np.zeros_like(values)
        strength = float(values.sum())
        chosen = values > max(_MAIN * float(values.max(initial=0.0)), _NOTHING)
        values, vectors = values[chosen], vectors[:, chosen]
        main = np.sqrt(values)[:, None] * vectors.T
        onto = np.zeros((0, len(values)))
        if attribute.codes is not None and self._moments is not None:
            codes = attribute.codes.astype(np.float64) / GRID
            target = figures.codes[groups] @ (vectors / np.sqrt(values))
            weight = weights_of(table, summary.rows)
            onto = coefficients(codes, target, weight) if codes.size else np.zeros((0, len(values)))
        rest = max(strength - float(values.sum()), 0.0)
        return MaskedAttribute(
            strength, main, rest, onto, figures.believed, figures.freedom, figures.skewness
        )

    def score(self, choice: Choice) -> float:
        """Estimate `MEASURE`, a trace on held-out rows, of a configuration. It is negative if the
        association is weaker than chance alone would produce.
        """
        masked = [self.masked(i, mask) for i, mask in enumerate(choice)]
        alone = math.fsum(m.strength for m in masked)
        explained = sum((m.believed * m.strength for m in masked), np.zeros(1))
        freedom = sum((m.freedom for m in masked), np.zeros(1))
        # Attributes that say the same explain it once, and overfit once.
        once = (
            1.0
            if self._moments is None or alone <= _NOTHING
            else self._trace(choice, masked) / alone
        )
        classes = len(self.summary.classes)
        return held_out_reached(once * explained, once * freedom, classes, self.summary.rows)

    def alone(self, index: int, mask: int) -> float:
        """Return what an attribute adds to a score as if attributes shared no information.

        It is a mean over ridge penalties of the explained association, minus 2 (C - 1) / N for each
        degree of freedom, for C classes and N rows.
        """
        masked = self.masked(index, mask)
        charge = 2 * (len(self.summary.classes) - 1) / self.summary.rows
        return float((masked.believed * masked.strength - charge * masked.freedom).mean())

    def _trace(self, choice: Choice, masked: Sequence[MaskedAttribute]) -> float:
        """Return Pillai's trace of all masked attributes, less what errors in counts add."""
        if len(self.summary.classes) == 2:
            return self._separated(choice, masked)
        main = np.concatenate([m.main for m in masked])
        trace = math.fsum(m.rest for m in masked)
        if len(main):
            solved = np.linalg.solve(self._correlations(choice), main)
            trace += float((main * solved).sum())
        return min(trace, float(len(self.summary.classes) - 1))

    def _separated(self, choice: Choice, masked: Sequence[MaskedAttribute]) -> float:
        """Return Pillai's trace for two classes, from how far attributes separate them."""
        associated = [m for m in masked if len(m.main)]
        if not associated:
            return 0.0
        sign = np.array([math.copysign(1.0, m.main[0, -1]) for m in associated])
        return trace_by_separation(
            self._correlations(choice) * np.outer(sign, sign),
            np.array([m.strength for m in associated]),
            np.array([m.skewness for m in associated]),
            float(self.summary.shares[-1]),
        )

    def _correlations(self, choice: Choice) -> Floats:
        """Return the correlations between the main directions in which the masked attributes are
        associated with the label, made positive definite.
        """
        keys = tuple(enumerate(choice))
        if not self._columns.keys() >= set(keys):
            every = [
                (i, mask)
                for i, a in enumerate(self._attributes)
                for mask in range(len(a.candidates))
            ]
            self._correlate(dict.fromkeys((*self._columns, *keys, *every)))
        columns = np.concatenate([self._columns[key] for key in keys])
        matrix = self._cross[np.ix_(columns, columns)] + np.eye(len(columns))
        moments = self.summary.moments
        error = 0.0 if moments is None else moments.error
        floor = max(error * math.sqrt(len(matrix)), 1e-3)
        values, vectors = np.linalg.eigh(matrix)
        positive: Floats = (vectors * (np.maximum(values, 0.0) + floor)) @ vectors.T
        return positive

    @property
    def candidates(self) -> list[list[MaskedAttribute]]:
        """How each attribute is associated with the label under each of its candidate masks."""
        return [
            [self.masked(index, mask) for mask in range(len(attribute.candidates))]
            for index, attribute in enumerate(self._attributes)
        ]

    def _correlate(self, keys: Collection[tuple[int, int]]) -> None:
        """Compute the correlations of all pairs of masked attributes (index, mask)."""
        if self._moments is None:
            raise ValueError("A summary without moments has no correlations.")
        onto = [self.masked(*key).onto for key in keys]
        ends = np.cumsum([0, *(o.shape[1] for o in onto)])
        stacked = np.zeros((len(self._moments), ends[-1]))
        for (index, _), directions, start, end in zip(keys, onto, ends, ends[1:], strict=False):
            first = self.summary.offsets[index]
            stacked[first : first + len(directions), start:end] = directions
        owner = np.repeat([index for index, _ in keys], np.diff(ends))
        # The main directions of an attribute are uncorrelated.
        others = owner[:, None] != owner
        self._cross = np.where(others, np.clip(stacked.T @ self._moments @ stacked, -1.0, 1.0), 0.0)
        spans = zip(keys, ends, ends[1:], strict=False)
        self._columns = {key: np.arange(start, end) for key, start, end in spans}

    def attributes(self, choice: Choice) -> dict[str, float]:
        """Return the mean square contingency of each masked attribute by itself."""
        return {a.name: self.masked(i, choice[i]).strength for i, a in enumerate(self._attributes)}


def drawing_error(score: float, classes: int, rows: float) -> float:
    """Return the standard error of a score that comes from sampling the rows of the table.

    For a score V (a trace), C classes and N rows, it is

        (C - 1) sqrt(4 r (1 - r)^2 / N),  r = V / (C - 1).

    This is the delta method for a squared multiple correlation (Olkin and Finn, Correlations redux,
    Psychological Bulletin 118, 1995).
    """
    limit = max(classes - 1, 1)
    share = min(max(score / limit, 0.0), 1.0)
    return limit * math.sqrt(4 * share * (1 - share) ** 2 / max(rows, 1.0))


def replicated_scores(summary: ProtectedSummary, choices: Sequence[Choice]) -> Floats:
    """Score n configurations R times, each time with newly drawn noise; shape (R, n)."""
    if not choices:
        return np.zeros((REPLICATES, 0))
    # One scorer at a time: its correlations of all candidates may take many megabytes.
    scorers = (ProtectedScorer(summary, replicate=seed) for seed in range(REPLICATES))
    return np.array([[scorer.score(choice) for choice in choices] for scorer in scorers])


def errors_of(replicated: Floats) -> tuple[Floats, Floats]:
    """Return the standard errors of scores, and of their differences from the first, shape (n,)
    each.
    """
    difference_errors: Floats = (replicated - replicated[:, :1]).std(axis=0, ddof=1)
    return replicated.std(axis=0, ddof=1), difference_errors


@dataclass(frozen=True, eq=False)
class ProtectedJoint:
    """The estimated number of rows by cell of an attribute and label class, with standard errors. A
    cell is a set of values that no candidate mask distinguishes.

    Attributes
    ----------
    attribute, label
        The attribute, and the label column.
    cells
        Description of each cell: its masked values under the candidate masks, the finest first.
    classes
        The text of each class.
    table
        Estimated numbers of rows in each of the K cells and C classes, shape (K, C), at least 0.
        The numbers of each class add up to the total of the class.
    stderr
        Standard error of each estimate due to protection only, shape (K, C).
    contingency, contingency_stderr
        Mean square contingency of the cells and the label, less the part that protection is
        expected to add; and its standard error due to protection.
    """

    attribute: str
    label: str
    cells: tuple[str, ...]
    classes: tuple[str, ...]
    table: Floats
    stderr: Floats
    contingency: float
    contingency_stderr: float

    def to_dict(self) -> dict[str, Any]:
        """Return the documented JSON form (docs/reference/json.md)."""
        tables = {"table": self.table.tolist(), "stderr": self.stderr.tolist()}
        names = json_fields(self, "attribute", "label", "values=cells", "classes")
        return names | tables | json_fields(self, "contingency", "contingency_stderr")


@one_blas_thread
def reconstruct_protected(summary: ProtectedSummary, attribute: str) -> ProtectedJoint:
    """Return the estimated number of rows by cell (set of values) of an attribute and label class.

    Raises
    ------
    PolicyError
        The summary has no such attribute.
    """
    require_known("attribute", attribute, summary.attributes)
    protected_attribute = summary.attributes[attribute]
    index = list(summary.attributes).index(attribute)
    random = np.random.default_rng(0)
    weight = np.maximum(protected_attribute.units, 1).astype(np.float64)
    error = np.sqrt(added_variance(summary, protected_attribute))
    published = protected_attribute.table.astype(np.float64)
    draws = [
        consistent(published + error * random.standard_normal(published.shape), summary, weight)
        for _ in range(REPLICATES)
    ]
    strengths = [
        ProtectedScorer(summary, replicate=seed).masked(index, FINEST).strength
        for seed in range(REPLICATES)
    ]
    return ProtectedJoint(
        attribute=attribute,
        label=summary.label,
        cells=tuple(cell_names(protected_attribute)),
        classes=summary.classes,
        table=consistent(published, summary, weight),
        stderr=np.std(draws, axis=0, ddof=1),
        contingency=ProtectedScorer(summary).masked(index, FINEST).strength,
        contingency_stderr=float(np.std(strengths, ddof=1)),
    )


def consistent(table: Floats, summary: ProtectedSummary, weight: Floats) -> Floats:
    """Return the table nearest to `table` by least squares, without negative counts and with the
    summary's class totals. `weight` is proportional to the variance of each cell's counts.
    """
    columns = [
        nearest_with_sum(table[:, label], weight, float(rows))
        for label, rows in enumerate(summary.class_counts)
    ]
    return np.stack(columns, axis=1) if len(table) else table


def nearest_with_sum(counts: Floats, weight: Floats, total: float) -> Floats:
    """Return x >= 0 with the sum `total` (at least 0) that minimises the sum of (x - counts)^2 / weight.

    It is x = max(counts + s * weight, 0) for a number s. Weights, shape (K,), are above 0.
    """
    order = np.argsort(-counts / weight, kind="stable")
    # With the first i cells in that order above 0: sum = counts + s weights over them.
    shifts = (total - np.cumsum(counts[order])) / np.cumsum(weight[order])
    last = np.append((-counts / weight)[order][1:], np.inf)
    index = int(np.argmax(shifts <= last))
    nearest: Floats = np.maximum(counts + shifts[index] * weight, 0.0)
    return nearest


def cell_names(attribute: ProtectedAttribute) -> list[str]:
    """Return a unique name for each cell: its masked value under one or several masks."""
    finest_first = sorted(attribute.candidates, key=lambda c: -c.size)
    finest = finest_first[0].groups
    names = []
    for cell in range(len(attribute.table)):
        labels = [c.labels[int(c.groups[cell])] for c in finest_first]
        names.append(labels[0] if (finest == finest[cell]).sum() == 1 else " · ".join(labels))
    return names
