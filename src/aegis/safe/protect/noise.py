"""Level `noise`: label tables and moments of codes with discrete Gaussian noise, and the codes of
cells on which the moments depend.

The rounds of noise, all on the same table and paid from one budget:

1. if classes of the label are not declared: the number of rows of each class; classes with enough
   rows are named;
2. if kinds of columns are not declared: the number of rows with a value of each type;
3. if masks learn from the data and their attribute is not public: the number of rows of each value;
   the masks are fitted to these numbers;
4. the number of rows of each cell and class, for every attribute;
5. the mean products of codes between attributes, with codes computed from round 4;
6. if verdicts are requested: the number of rows in equivalence classes with fewer than k rows.

A row has one label class, so round 1 has the L2 sensitivity 1. A row has one value and one cell of
each attribute, so rounds 2, 3 and 4 have the sensitivity sqrt(attributes). For round 5 see
`aegis.safe.protect.moments`. In round 6, an added row may enlarge a class from k - 1 to k rows;
then k - 1 rows are no longer in a class that is too small. Otherwise the row adds at most one row
to the figure. So the sensitivity of a figure is k - 1. If a person has up to b rows, all
sensitivities are multiplied by b. Figures that are computed from published figures cost nothing.
Names of undeclared classes, values and cells are published if a noisy total exceeds a threshold;
the thresholds use half of delta.

The codes of a cell are a few numbers that describe its association with the label. They are
computed from protected label tables (rows by cell and class), so they cost no budget and reveal
nothing more. The codes of an attribute span the associations of all its candidate masks with the
label. So one small matrix of moments determines the covariance between any two masked attributes,
even for masks that were never counted together (section on `noise` in docs/protection.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from aegis.advisor import Scorer
from aegis.arrays import Floats, Ints
from aegis.errors import PolicyError
from aegis.files import SILENT, Progress
from aegis.measures import UNPOOLED as PENALTIES
from aegis.measures.target_coded import believed, fitted_freedom
from aegis.policy import Configuration, Policy
from aegis.privacy import PrivacyRule
from aegis.safe.protect.added_variance import added_variance
from aegis.safe.protect.budget import Budget, Unit, check_delta, check_epsilon, is_number, sigma_of
from aegis.safe.protect.cells import Cells, NamedClasses, rows_of, with_unnamed
from aegis.safe.protect.model import (
    GRID,
    Moments,
    ProtectedAttribute,
    ProtectedSummary,
    Protection,
    ProtectionLevel,
    StatedVerdict,
)
from aegis.safe.protect.moments import (
    BLOCK_LENGTH,
    MomentSums,
    moments_of_pairs,
    moments_of_rows,
    sensitivity_of_rows,
)
from aegis.safe.protect.plan import Plan
from aegis.sources import Source
from aegis.summary import Summary
from aegis.words import brief

CLEAR = 1.3
"""A group counts as informative if its rows are more than this multiple of their standard error."""
LEAST_SCALE = 0.1
"""A dimension is left out if its scale is below this share of the scale of the first dimension."""


@dataclass(frozen=True, eq=False)
class Explained:
    """How strongly a grouping of an attribute's cells is associated with the label classes.

    Attributes
    ----------
    codes
        For each of the G groups and C classes, shape (G, C): the share of the class in the group
        minus its share in the table, divided by the square root of its share in the table, and
        shrunk towards 0.
    covariance
        Covariance of the codes over groups before shrinkage, less the part that errors in the
        counts are expected to add, shape (C, C). Its trace is the mean square contingency.
    believed
        For each of the P ridge penalties in `PENALTIES`, the share of the association that models
        with this penalty explain, shape (P,).
    freedom
        Degrees of freedom of these models, shape (P,).
    skewness
        Third moment of the codes for the last class, divided by their standard deviation.
    """

    codes: Floats
    covariance: Floats
    believed: Floats
    freedom: Floats
    skewness: float


def explained(table: Floats, groups: Ints, shares: Floats, noise: Floats, rows: float) -> Explained:
    """Compute how strongly the groups of an attribute's cells are associated with the label classes.

    `table` has the protected rows by cell and class, and `noise` the variance that protection adds to
    each, shape (K, C); `groups` has the group of each cell, shape (K,), `shares` the share of each
    class, shape (C,), and `rows` is the number of labelled rows.
    """
    size = int(groups.max(initial=-1)) + 1
    width = len(shares)
    grouped = np.zeros((size, width))
    np.add.at(grouped, groups, table)
    blur = np.zeros((size, width))
    np.add.at(blur, groups, noise)
    count = grouped.sum(axis=1)
    clear = count > CLEAR * np.sqrt(blur.sum(axis=1)) + 0.5
    count = np.maximum(count, 1.0)
    root = np.sqrt(shares)
    deviation = (grouped - count[:, None] * shares) / root * clear[:, None]
    # The error of a deviation: that of its own count, less its share of the group's.
    centre = (np.eye(width) - np.outer(shares, np.ones(width))) / root[:, None]
    raw = (deviation.T / count) @ deviation / rows
    noise_variance = (blur * (clear / count)[:, None]).sum(axis=0)
    covariance = _positive(raw - (centre * noise_variance) @ centre.T / rows)
    strength = float(np.trace(covariance)) * rows / max(float((count * clear).sum()), 1.0)
    of_group = blur @ (centre**2).sum(axis=0)
    trust = strength / np.maximum(strength + of_group / count**2, 1e-300)
    codes = deviation / count[:, None] * trust[:, None]
    speaking = np.where(clear, count, 0.0)
    alone = ((deviation**2).sum(axis=1) - of_group) / count * clear
    if alone.sum() <= 0:
        alone = speaking
    # Shrunken by the root, codes have the variance that is left once noise is taken off.
    spread = deviation[:, -1] / count * np.sqrt(trust)
    variance = float(covariance[-1, -1])
    third = float((speaking * spread**3).sum()) / rows
    return Explained(
        codes,
        covariance,
        believed=_shares_believed(count, alone),
        freedom=np.array([fitted_freedom(speaking, penalty) for penalty in PENALTIES]),
        skewness=third / variance**1.5 if variance > 0 else 0.0,
    )


def _shares_believed(count: Floats, strength: Floats) -> Floats:
    """Return the share of an association that models with each ridge penalty explain, shape (P,).

    `count` has the rows of G groups of values, `strength` their parts of the association, shape (G,).
    """
    total = float(strength.sum())
    if total <= 0:
        return np.ones(len(PENALTIES))
    shares = np.array([believed(count, strength, penalty) / total for penalty in PENALTIES])
    clipped: Floats = np.clip(shares, 0.0, 1.0)
    return clipped


def _positive(matrix: Floats) -> Floats:
    """Return the nearest positive semidefinite matrix: negative eigenvalues become 0."""
    values, vectors = np.linalg.eigh(matrix)
    nearest: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return nearest


def weights_of(table: Floats, rows: float) -> Floats:
    """Return each cell's share of all rows, shape (K,), at least 0, from a table of shape (K, C)."""
    shares: Floats = np.maximum(table.sum(axis=1), 0.0) / rows
    return shares


def code_cells(
    table: Floats, groupings: Sequence[Ints], shares: Floats, noise: Floats, rows: float
) -> Ints:
    """Compute the q codes of each cell, as integers in units of 1 / `GRID`, shape (K, q).

    `groupings` has the group of each cell for every candidate mask, shape (K,) each; the other
    arguments are those of `explained`.
    """
    stacked = np.hstack(
        [explained(table, groups, shares, noise, rows).codes[groups] for groups in groupings]
    )
    weight = np.sqrt(weights_of(table, rows))[:, None]
    _, scales, directions = np.linalg.svd(weight * stacked, full_matrices=False)
    if not len(scales) or scales[0] <= 1e-12:
        return np.zeros((len(table), 0), dtype=np.int64)
    # With two classes, at most 3 codes describe a cell; with three classes 4, and else 5.
    most = 3 + min(max(len(shares) - 2, 0), 2)
    number = min(most, int((scales > LEAST_SCALE * scales[0]).sum()))
    components = stacked @ directions[:number].T / scales[:number]
    damped = components * np.sqrt(scales[:number] / scales[0])
    # The sign of a component is arbitrary: its largest entry is made positive.
    largest = np.abs(damped).argmax(axis=0)
    damped *= np.where(damped[largest, np.arange(number)] < 0, -1.0, 1.0)
    codes: Ints = np.trunc(damped * GRID).astype(np.int64)
    return codes


def coefficients(codes: Floats, target: Floats, weight: Floats) -> Floats:
    """Return the coefficients, shape (q, C), of a weighted regression of `target` on `codes`.

    `codes` has shape (K, q); `target`, the association of each cell with each class under one mask,
    shape (K, C); and `weight`, the share of the rows of each cell, shape (K,).
    """
    root = np.sqrt(weight)[:, None]
    return np.linalg.lstsq(root * codes, root * target, rcond=1e-6)[0].astype(np.float64)


def norms_of(codes: Sequence[Ints], table: Sequence[Ints]) -> float:
    """Return the mean over rows of the squared length of a row's codes.

    `codes` has the codes of each attribute's cells, and `table` its rows by cell and class.
    """
    total = 0.0
    for attribute_codes, counts in zip(codes, table, strict=True):
        weight = np.maximum(counts.sum(axis=1), 0).astype(np.float64)
        squares = (attribute_codes.astype(np.float64) ** 2).sum(axis=1)
        total += float(weight @ squares) / max(float(weight.sum()), 1.0)
    return total


TABLES = 0.9
"""Share of the remaining budget that label tables get."""
DECIDING = 0.1
"""Share of the budget for verdicts, if any are requested."""
MOST_ERROR = 0.02
"""Largest standard error of a correlation of codes at which moments are worth their cost."""
SURE = 3.0
"""A verdict is stated if the figure is at least this many standard errors away from the limit."""


@dataclass(frozen=True)
class Noise:
    """The options of protection level `noise`, which adds random noise to all published counts.

    Attributes
    ----------
    epsilon, delta
        The guarantee of differential privacy.
    unit, rows_per_person
        The unit that noise protects, rows or persons; and for persons the largest number of rows of
        one person.
    public
        Attributes whose values and cuts are public knowledge, or `*` for all.
    verdicts
        Configurations for which the file states whether they meet the rule.
    most_error
        Largest acceptable standard error of a correlation between two attributes. If a larger error
        is expected, correlations are not published, and their budget pays for a second measurement
        of the rows by value and class.
    """

    epsilon: float
    delta: float
    unit: Unit = Unit.ROWS
    rows_per_person: int = 1
    public: frozenset[str] = frozenset()
    verdicts: tuple[Configuration, ...] = field(default=())
    most_error: float = MOST_ERROR

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        is_count = is_number(self.rows_per_person, integer=True)
        one_each = self.unit is Unit.ROWS and self.rows_per_person != 1
        if not is_count or self.rows_per_person < 1 or one_each:
            raise PolicyError(
                f"{brief(self.rows_per_person)} rows per person were given for the unit {self.unit}.",
                hint="Give the most rows of one person, at least 1, with the unit persons.",
            )


def protect_with_noise(
    summary: Summary,
    options: Noise,
    policy: Policy,
    *,
    source: Source | None = None,
    progress: Progress = SILENT,
) -> ProtectedSummary:
    """Return the summary protected by discrete Gaussian noise.

    The policy declares classes, cuts, types and values, and the rule of the verdicts. With the
    table, statistics of two attributes together need less noise than from the summary.

    Raises
    ------
    PolicyError
        The summary cannot be protected this way, for example because it was made from a sample.
    """
    plan = Plan(summary, policy, options.public)
    budget = Budget(options.epsilon, options.delta, options.rows_per_person, plan.namings)
    with budget.marking():
        protected, verdicts = _add_noise(summary, options, policy, plan, budget, source, progress)
    return replace(
        protected,
        protection=Protection(
            level=ProtectionLevel.NOISE,
            unit=options.unit,
            rows_per_person=options.rows_per_person,
            epsilon=options.epsilon,
            delta=options.delta,
            rho=math.fsum(r.rho for r in budget.rounds),
            rounds=tuple(budget.rounds),
            public=tuple(n for n in summary.attributes if n in options.public),
            thresholds=tuple(budget.thresholds),
            domains=tuple(plan.domains()),
        ),
        verdicts=verdicts,
    )


def _add_noise(
    summary: Summary,
    options: Noise,
    policy: Policy,
    plan: Plan,
    budget: Budget,
    source: Source | None,
    progress: Progress,
) -> tuple[ProtectedSummary, tuple[StatedVerdict, ...]]:
    """Draw all noise, paid from `budget`; return the protected summary and the verdicts."""
    classes = plan.classes(budget)
    every = plan.cells(plan.columns(budget), classes, budget)
    exact = _rows_in_small_classes(summary, options, policy.privacy, plan)
    for_rule = DECIDING * budget.total if exact else 0.0
    for_both = budget.remaining - for_rule
    table = ExactTable(summary, source, classes, progress)
    bare, cells = _label_tables(table, every, plan, budget, TABLES * for_both)
    protected = _with_moments(table, options, bare, cells, budget, (1 - TABLES) * for_both)
    if not exact:
        return protected, ()
    return protected, _verdicts(exact, policy.privacy, budget, for_rule, protected.rows)


@dataclass(frozen=True, eq=False)
class ExactTable:
    """The summary and, if available, the table, for exact moments of the rows of `classes`."""

    summary: Summary
    source: Source | None
    classes: NamedClasses
    progress: Progress

    def sums(
        self, cells: Sequence[Cells], codes: Sequence[Ints], each: Sequence[int], row_length: int
    ) -> MomentSums:
        """Return the moments: sums over rows of the products of two codes of different attributes.

        `codes` has, for the K_i `cells` of each attribute i, q_i whole numbers, shape (K_i, q_i). The
        codes of a row are scaled down to the squared length `row_length` or, without the table,
        those of each attribute to its length in `each`.
        """
        if self.source is None:
            chosen = self.classes.name_index >= 0
            return moments_of_pairs(self.summary, cells, codes, each, chosen)
        listed = [(self.summary.attributes[c.name].values, c) for c in cells]
        labelled = rows_of(self.source, self.summary.label, self.classes)
        return moments_of_rows(self.source, labelled, listed, codes, row_length, self.progress)


def _label_tables(
    table: ExactTable, cells: Sequence[Cells], plan: Plan, budget: Budget, rho: float
) -> tuple[ProtectedSummary, Sequence[Cells]]:
    """Return the summary with label tables, for noise of cost `rho`, and the cells that are named."""
    name = "label tables"
    tables, sigma = _noisy_tables(name, cells, budget, rho)
    if plan.named:
        least = budget.threshold(name, sigma, len(table.classes.names), len(plan.named))
        clear = [
            (t.sum(axis=1) >= least) | (not c.bought) for c, t in zip(cells, tables, strict=True)
        ]
        cells = [c.keep(chosen) for c, chosen in zip(cells, clear, strict=True)]
        tables = [t[chosen] for t, chosen in zip(tables, clear, strict=True)]
    return _with_rest(table, cells, tables, sigma), cells


def _noisy_tables(
    name: str, cells: Sequence[Cells], budget: Budget, rho: float
) -> tuple[list[Ints], float]:
    """Return noisy label tables and the scale of their noise, which costs `rho` of the budget."""
    tables, keys = [c.joint for c in cells], [c.keys for c in cells]
    return budget.spend(name, tables, math.sqrt(len(cells)), rho, keys)


def _with_moments(
    table: ExactTable,
    options: Noise,
    bare: ProtectedSummary,
    cells: Sequence[Cells],
    budget: Budget,
    rho: float,
) -> ProtectedSummary:
    """Add noisy moments to `bare` or, if they would be too noisy, measure its label tables again.
    Either costs `rho`.
    """
    codes = codes_of(bare)
    tables = [a.table for a in bare.attributes.values()]
    coded_count = sum(c.shape[1] > 0 for c in codes)
    error = _expected_error(
        norms_of(codes, tables), coded_count, bare.rows, rho, options.rows_per_person
    )
    if error > options.most_error or not math.isfinite(error):
        return _measured_again(table, options, bare, cells, budget, rho, error)
    each = [int(BLOCK_LENGTH**2 * norms_of([c], [t])) for c, t in zip(codes, tables, strict=True)]
    sums = table.sums(cells, codes, each, int(norms_of(codes, tables)))
    upper = np.triu(sums.sums)
    above = upper[np.triu_indices(len(upper), 1)]
    [noisy], scale = budget.spend("moments of codes", [above], sums.sensitivity, rho)
    unit = bare.rows * GRID**2
    return with_codes(bare, codes, Moments.of_upper(noisy / unit, len(upper), scale / unit))


def _measured_again(
    table: ExactTable,
    options: Noise,
    bare: ProtectedSummary,
    cells: Sequence[Cells],
    budget: Budget,
    rho: float,
    error: float,
) -> ProtectedSummary:
    """Return `bare` with the mean of its label tables and of a second measurement of cost `rho`.

    A note says that moments were left out because of their standard error, `error`.
    """
    first = [a.table[: c.count] for a, c in zip(bare.attributes.values(), cells, strict=True)]
    again, second = _noisy_tables("label tables again", cells, budget, rho)
    tables, sigma = _pooled(first, bare.cell_error, again, second)
    note = (
        f"correlations of codes would err by {error:.3f}, above {options.most_error:g}"
        if math.isfinite(error)
        else "the noise leaves fewer than two attributes that say anything of the label"
    ) + ": label tables alone are published, and attributes count as if they did not overlap"
    return replace(_with_rest(table, cells, tables, sigma), notes=(note,))


def assembled(
    summary: Summary,
    classes: NamedClasses,
    cells: Sequence[Cells],
    tables: Sequence[Ints],
    error: float,
    protection: Protection,
) -> ProtectedSummary:
    """Return a protected summary without moments and verdicts, from protected label tables, whose
    counts have the standard deviation `error`.
    """
    return ProtectedSummary(
        protection=protection,
        label=summary.label.column,
        classes=classes.names,
        class_counts=class_counts(tables, len(classes.names)),
        attributes={
            c.name: ProtectedAttribute(
                c.name,
                c.role,
                c.kind,
                c.weight,
                table,
                c.candidates,
                units=np.ones(len(table), dtype=np.int64),
            )
            for c, table in zip(cells, tables, strict=True)
        },
        moments=None,
        cell_error=error,
        policy=summary.digests.get("policy", ""),
    )


def _with_rest(
    table: ExactTable, cells: Sequence[Cells], tables: Sequence[Ints], sigma: float
) -> ProtectedSummary:
    """Return the protected summary with the noisy label `tables`; the noise has the scale `sigma`.

    Each attribute gets one more cell for all values whose names are not published, if they have
    enough rows to matter: the class totals minus the counts of the other cells. So its counts have
    the errors of all other cells together.
    """
    protection = Protection(ProtectionLevel.NOISE)
    protected = assembled(table.summary, table.classes, cells, tables, sigma, protection)
    attributes = {}
    for attribute_cells in cells:
        attribute = protected.attributes[attribute_cells.name]
        units = len(attribute.table) + 1
        rest = np.rint(protected.class_counts - attribute.table.sum(axis=0)).astype(np.int64)
        clear = rest.sum() > 3 * protected.cell_error * math.sqrt(units * len(rest))
        if attribute_cells.has_unnamed and clear:
            attribute = replace(
                attribute,
                table=np.vstack([attribute.table, np.maximum(rest, 0)]),
                units=np.append(attribute.units, units),
                candidates=tuple(with_unnamed(c, attribute.table) for c in attribute.candidates),
            )
        attributes[attribute_cells.name] = attribute
    return replace(protected, attributes=attributes)


def class_counts(tables: Sequence[Ints], classes: int) -> Floats:
    """Estimate the rows of each label class, shape (C,), from noisy label tables of the same rows.

    A total over few cells has less noise, so the weight of a table is 1 / (number of cells). A table
    that lacks cells underestimates the total, so only totals near the largest one are used.
    """
    sums = np.array([t.sum(axis=0) for t in tables], dtype=np.float64).reshape(-1, classes)
    if not len(sums):
        return np.zeros(classes)
    totals = sums.sum(axis=1)
    weight = np.array([1.0 / max(len(t), 1) for t in tables])
    weight[totals < 0.98 * totals.max()] = 0.0
    counts: Floats = np.maximum((weight @ sums) / weight.sum(), 0.0)
    return counts


def codes_of(protected: ProtectedSummary) -> list[Ints]:
    """Return the codes of each attribute's cells, shape (K, q) each, as of `code_cells`."""
    return [
        code_cells(
            a.table.astype(np.float64),
            [c.groups for c in a.candidates],
            protected.shares,
            added_variance(protected, a),
            protected.rows,
        )
        for a in protected.attributes.values()
    ]


def with_codes(
    protected: ProtectedSummary, codes: Sequence[Ints], moments: Moments | None
) -> ProtectedSummary:
    """Return the summary with the codes of each attribute's cells, and their moments."""
    pairs = zip(protected.attributes.values(), codes, strict=True)
    attributes = {a.name: replace(a, codes=attribute_codes) for a, attribute_codes in pairs}
    return replace(protected, attributes=attributes, moments=moments)


def _expected_error(longest: float, width: int, rows: float, rho: float, unit_rows: int) -> float:
    """Return the standard error that noise of cost `rho` adds to a correlation between two attributes;
    infinite for fewer than two.

    `longest` is the largest squared length of a row's codes, `width` the number of attributes with
    codes, and `unit_rows` the largest number of rows of one unit.
    """
    if width < 2 or longest <= 0:
        return math.inf
    sensitivity = sensitivity_of_rows(longest, width) / GRID**2 * unit_rows
    return sigma_of(sensitivity, rho) / rows


def _pooled(
    first: Sequence[Ints], sigma: float, again: Sequence[Ints], second: float
) -> tuple[list[Ints], float]:
    """Return the mean of two noisy measurements, weighted by precision, and its standard deviation."""
    weight = (1 / sigma**2) / (1 / sigma**2 + 1 / second**2)
    pooled = [
        np.rint(weight * a + (1 - weight) * b).astype(np.int64)
        for a, b in zip(first, again, strict=True)
    ]
    return pooled, 1 / math.sqrt(1 / sigma**2 + 1 / second**2)


def _verdicts(
    exact: Sequence[tuple[tuple[int, ...], int]],
    rule: PrivacyRule,
    budget: Budget,
    rho: float,
    rows: float,
) -> tuple[StatedVerdict, ...]:
    """Return with noise of cost `rho` whether configurations meet the rule; see
    `_rows_in_small_classes`.
    """
    below = np.array([count for _, count in exact], dtype=np.int64)
    sensitivity = max(rule.minimum_size - 1, 1) * math.sqrt(len(exact))
    [noisy], sigma = budget.spend("rows in small classes", [below], sensitivity, rho)
    away = ((rule.suppression * rows - noisy) / sigma).tolist()
    return tuple(
        StatedVerdict(choice, None if abs(distance) < SURE else distance > 0)
        for (choice, _), distance in zip(exact, away, strict=True)
    )


def _rows_in_small_classes(
    summary: Summary, options: Noise, rule: PrivacyRule, plan: Plan
) -> list[tuple[tuple[int, ...], int]]:
    """Return the choice of each requested configuration, and its exact rows in small classes."""
    if not options.verdicts:
        return []
    if not (rule.sizes_only and rule.criteria) or summary.frequency is None:
        raise PolicyError(
            "With noise, Aegis can state verdicts only under a rule on class sizes, and only from a "
            "summary with the frequency table.",
            hint="Leave out --verdicts, or protect by counts.",
        )
    scorer, exact = Scorer(summary), []
    for configuration in options.verdicts:
        chosen = scorer.choose(configuration)
        for name, candidate in chosen.items():
            if plan.fitted_to_noise(name) and not candidate.declared.fitted:
                raise PolicyError(
                    f"Mask {candidate.declared} of {name!r} was fitted to noisy counts, so the "
                    "summary does not have its classes.",
                    hint=f"Declare {name!r} public, or leave out verdicts.",
                )
        sizes = summary.frequency.roll_up(
            {q: chosen[q].groups for q in summary.frequency.quasi}
        ).sizes
        choice = tuple(a.candidates.index(chosen[name]) for name, a in summary.attributes.items())
        exact.append((choice, int(sizes[sizes < rule.minimum_size].sum())))
    return exact
