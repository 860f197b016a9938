"""Level `noise`: label tables and moments of codes with discrete Gaussian noise.

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
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from aegis.advisor import Scorer
from aegis.arrays import Floats, Ints
from aegis.errors import PolicyError
from aegis.policy import Configuration, Policy
from aegis.privacy import PrivacyRule
from aegis.progress import SILENT, Progress
from aegis.safe.protect.accounting import (
    Unit,
    check_delta,
    check_epsilon,
    is_number,
    sigma_of,
)
from aegis.safe.protect.added_variance import added_variance
from aegis.safe.protect.budget import Budget
from aegis.safe.protect.cells import Cells, with_unnamed
from aegis.safe.protect.classes import NamedClasses, rows_of
from aegis.safe.protect.codes import code_cells, norms_of
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
        The guarantee.
    unit, rows_per_person
        The unit that noise protects, rows or persons; and for persons the largest number of rows of
        one person.
    public
        Attributes whose values and cuts are public knowledge, or `*` for all.
    verdicts
        Configurations for which the file states whether they meet the rule.
    most_error
        Largest acceptable standard error of a correlation between codes of two attributes (see
        `aegis.safe.protect.codes`). If the expected error is larger, no moments (mean products of
        codes) are published, and their budget pays for a second measurement of the label tables.
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
        whole = is_number(self.rows_per_person, whole=True)
        one_each = self.unit is Unit.ROWS and self.rows_per_person != 1
        if not whole or self.rows_per_person < 1 or one_each:
            raise PolicyError(
                f"{brief(self.rows_per_person)} rows per person were given for the unit {self.unit}.",
                hint="Give the most rows of one person, at least 1, with the unit persons.",
            )


def protect_with_noise(
    summary: Summary,
    asked: Noise,
    policy: Policy,
    *,
    source: Source | None = None,
    progress: Progress = SILENT,
) -> ProtectedSummary:
    """Return the summary protected by discrete Gaussian noise.

    Parameters
    ----------
    summary
        The exact summary, which is not published.
    asked
        The guarantee, and the attributes whose values in the table are public.
    policy
        The declared classes, cuts, types and values, and the rule of the verdicts.
    source
        The table, if available. Its rows are clipped as a whole, which needs less noise. If it is
        not given, the moments (mean products of codes) come from the summary's co-occurrence
        counts.

    Raises
    ------
    PolicyError
        The summary cannot be protected this way; see `aegis.safe.protect.protect`.
    """
    plan = Plan(summary, policy, asked.public)
    budget = Budget(asked.epsilon, asked.delta, asked.rows_per_person, plan.namings)
    with budget.marking():
        protected, verdicts = _drawn(summary, asked, policy, plan, budget, source, progress)
    return replace(
        protected,
        protection=Protection(
            level=ProtectionLevel.NOISE,
            unit=asked.unit,
            rows_per_person=asked.rows_per_person,
            epsilon=asked.epsilon,
            delta=asked.delta,
            rho=math.fsum(r.rho for r in budget.rounds),
            rounds=tuple(budget.rounds),
            public=tuple(n for n in summary.attributes if n in asked.public),
            thresholds=tuple(budget.thresholds),
            domains=tuple(plan.domains()),
        ),
        verdicts=verdicts,
    )


def _drawn(
    summary: Summary,
    asked: Noise,
    policy: Policy,
    plan: Plan,
    budget: Budget,
    source: Source | None,
    progress: Progress,
) -> tuple[ProtectedSummary, tuple[StatedVerdict, ...]]:
    """Draw all noise; return the protected summary, and the verdicts whether configurations meet
    the rule.
    """
    classes = plan.classes(budget)
    every = plan.cells(plan.columns(budget), classes, budget)
    decisions = _decisions(summary, asked, policy.privacy, plan)
    for_rule = DECIDING * budget.total if decisions is not None else 0.0
    for_both = budget.left - for_rule
    table = ExactTable(summary, source, classes, progress)
    bare, cells = _label_tables(table, every, plan, budget, TABLES * for_both)
    protected = _with_moments(table, asked, bare, cells, budget, (1 - TABLES) * for_both)
    verdicts: tuple[StatedVerdict, ...] = ()
    if decisions is not None:
        verdicts = decisions.state(budget, for_rule, protected.rows)
    return protected, verdicts


@dataclass(frozen=True, eq=False)
class ExactTable:
    """The exact data from which moments (mean products of codes) are computed: the summary and, if
    available, the table.
    """

    summary: Summary
    source: Source | None
    classes: NamedClasses
    progress: Progress

    def sums(
        self, cells: Sequence[Cells], codes: Sequence[Ints], each: Sequence[int], whole: int
    ) -> MomentSums:
        """Return the moments (sums over rows of products of codes), after the codes of each row are
        clipped.

        If the table is available, all codes of a row together are clipped to the squared length
        `whole`. Otherwise the codes of each attribute are clipped separately, to the squared length
        in `each`.
        """
        if self.source is None:
            chosen = self.classes.place >= 0
            return moments_of_pairs(self.summary, cells, codes, each, chosen)
        listed = [(self.summary.attributes[c.name].values, c) for c in cells]
        labelled = rows_of(self.source, self.summary.label, self.classes)
        return moments_of_rows(self.source, labelled, listed, codes, whole, self.progress)


def _label_tables(
    table: ExactTable, cells: Sequence[Cells], plan: Plan, budget: Budget, rho: float
) -> tuple[ProtectedSummary, Sequence[Cells]]:
    """Return the noisy label tables (rows by cell and class) of the cells that may be named, and
    these cells. The noise costs `rho`.
    """
    name = "label tables"
    tables, sigma = _noisy_tables(name, cells, budget, rho)
    if plan.named:
        least = budget.threshold(name, sigma, len(table.classes.names), len(plan.named))
        clear = [
            (t.sum(axis=1) >= least) | (not c.bought) for c, t in zip(cells, tables, strict=True)
        ]
        cells = [c.keep(own) for c, own in zip(cells, clear, strict=True)]
        tables = [t[own] for t, own in zip(tables, clear, strict=True)]
    return _with_rest(table, cells, tables, sigma), cells


def _noisy_tables(
    name: str, cells: Sequence[Cells], budget: Budget, rho: float
) -> tuple[list[Ints], float]:
    """Return noisy label tables of the cells, and the scale of their noise, which costs `rho`."""
    tables, keys = [c.joint for c in cells], [c.keys for c in cells]
    return budget.spend(name, tables, math.sqrt(len(cells)), rho, keys)


def _with_moments(
    table: ExactTable,
    asked: Noise,
    bare: ProtectedSummary,
    cells: Sequence[Cells],
    budget: Budget,
    rho: float,
) -> ProtectedSummary:
    """Add noisy moments (mean products of codes) to the label tables (rows by cell and class) or,
    if the moments would be too noisy, measure the tables again. Either costs `rho`.
    """
    codes = codes_of(bare)
    shown = [a.table for a in bare.attributes.values()]
    coded = sum(c.shape[1] > 0 for c in codes)
    error = _expected_error(norms_of(codes, shown), coded, bare.rows, rho, asked.rows_per_person)
    if error > asked.most_error or not math.isfinite(error):
        return _measured_again(table, asked, bare, cells, budget, rho, error)
    each = [int(BLOCK_LENGTH**2 * norms_of([c], [t])) for c, t in zip(codes, shown, strict=True)]
    sums = table.sums(cells, codes, each, int(norms_of(codes, shown)))
    upper = np.triu(sums.sums)
    above = upper[np.triu_indices(len(upper), 1)]
    [noisy], scale = budget.spend("moments of codes", [above], sums.sensitivity, rho)
    unit = bare.rows * GRID**2
    return with_codes(bare, codes, Moments.of_upper(noisy / unit, len(upper), scale / unit))


def _measured_again(
    table: ExactTable,
    asked: Noise,
    bare: ProtectedSummary,
    cells: Sequence[Cells],
    budget: Budget,
    rho: float,
    error: float,
) -> ProtectedSummary:
    """Return the summary with label tables (rows by cell and class) that are the mean of two noisy
    measurements, and without moments (mean products of codes). `error` is the standard error that
    correlations between codes of two attributes would have had.
    """
    first = [a.table[: c.count] for a, c in zip(bare.attributes.values(), cells, strict=True)]
    again, second = _noisy_tables("label tables again", cells, budget, rho)
    tables, sigma = _pooled(first, bare.cell_error, again, second)
    note = (
        f"correlations of codes would err by {error:.3f}, above {asked.most_error:g}"
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
    """Return the protected summary with protected counts by cell and class (`tables`), but without
    moments and verdicts. `error` is the standard deviation that protection adds to a count.
    """
    return ProtectedSummary(
        protection=protection,
        label=summary.label.column,
        classes=classes.names,
        class_counts=class_counts(tables, len(classes.names)),
        attributes={c.name: _published(c, t) for c, t in zip(cells, tables, strict=True)},
        moments=None,
        cell_error=error,
        policy=summary.digests.get("policy", ""),
    )


def _published(cells: Cells, table: Ints) -> ProtectedAttribute:
    """Return the attribute of a protected summary from its exact cells and their protected counts
    by class.
    """
    return ProtectedAttribute(
        cells.name,
        cells.role,
        cells.kind,
        cells.weight,
        table,
        cells.candidates,
        units=np.ones(len(table), dtype=np.int64),
    )


def _with_rest(
    table: ExactTable, cells: Sequence[Cells], tables: Sequence[Ints], sigma: float
) -> ProtectedSummary:
    """Return the protected summary with noisy label tables. Each attribute has one more cell for
    all its unnamed values, if there are enough rows of them to matter.

    The counts of this cell are the class totals minus the counts of the named cells. They are not
    measured, so they cost nothing, and the errors of all other cells add up in them.
    """
    protection = Protection(ProtectionLevel.NOISE)
    protected = assembled(table.summary, table.classes, cells, tables, sigma, protection)
    attributes = {}
    for own in cells:
        attribute = protected.attributes[own.name]
        units = len(attribute.table) + 1
        rest = np.rint(protected.class_counts - attribute.table.sum(axis=0)).astype(np.int64)
        clear = rest.sum() > 3 * protected.cell_error * math.sqrt(units * len(rest))
        if own.has_unnamed and clear:
            attribute = replace(
                attribute,
                table=np.vstack([attribute.table, np.maximum(rest, 0)]),
                units=np.append(attribute.units, units),
                candidates=tuple(with_unnamed(c, attribute.table) for c in attribute.candidates),
            )
        attributes[own.name] = attribute
    return replace(protected, attributes=attributes)


def class_counts(tables: Sequence[Ints], classes: int) -> Floats:
    """Estimate the number of rows in each of the C classes from several tables of the same rows,
    shape (C,).

    A total over few cells has less noise, so the weight of each table is 1 / (number of cells). A
    table from which unnamed cells are missing underestimates the total. So only tables whose total
    is near the largest total are used.
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
    """Return, for each attribute, q codes of each of its K cells, shape (K, q). Codes are numbers
    that describe how a cell is associated with the label under all candidate masks.
    """
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
    """Return the summary with the codes of each attribute's cells and with moments, the mean
    products of codes.
    """
    pairs = zip(protected.attributes.values(), codes, strict=True)
    attributes = {a.name: replace(a, codes=own) for a, own in pairs}
    return replace(protected, attributes=attributes, moments=moments)


def _expected_error(longest: float, width: int, rows: float, rho: float, unit_rows: int) -> float:
    """Return the standard error that noise of cost `rho` would add to a correlation between the
    first codes of two attributes.

    `longest` is the squared length to which a row's codes are clipped, `width` the number of
    attributes with codes, `unit_rows` the largest number of rows of one unit. The error is infinite
    if fewer than two attributes have codes.
    """
    if width < 2 or longest <= 0:
        return math.inf
    sensitivity = sensitivity_of_rows(longest, width) / GRID**2 * unit_rows
    return sigma_of(sensitivity, rho) / rows


def _pooled(
    first: Sequence[Ints], sigma: float, again: Sequence[Ints], second: float
) -> tuple[list[Ints], float]:
    """Return the mean of two noisy measurements of the same tables, weighted by their precision,
    and its standard deviation. `sigma` and `second` are the standard deviations of both.
    """
    weight = (1 / sigma**2) / (1 / sigma**2 + 1 / second**2)
    pooled = [
        np.rint(weight * a + (1 - weight) * b).astype(np.int64)
        for a, b in zip(first, again, strict=True)
    ]
    return pooled, 1 / math.sqrt(1 / sigma**2 + 1 / second**2)


@dataclass(frozen=True, eq=False)
class _Decisions:
    """For each configuration in `choices` (the index of each attribute's candidate), whose verdict
    was requested: `below`, the exact number of rows in equivalence classes with fewer than k rows.
    `suppression` is the largest share of such rows that the rule allows.
    """

    choices: tuple[tuple[int, ...], ...]
    below: Ints
    k: int
    suppression: float

    def state(self, budget: Budget, rho: float, rows: float) -> tuple[StatedVerdict, ...]:
        sensitivity = max(self.k - 1, 1) * math.sqrt(len(self.choices))
        noisy, sigma = budget.spend("rows in small classes", [self.below], sensitivity, rho)
        limit = self.suppression * rows
        stated = []
        for choice, below in zip(self.choices, noisy[0].tolist(), strict=True):
            away = (limit - below) / sigma
            sure = None if abs(away) < SURE else away > 0
            stated.append(StatedVerdict(choice, sure))
        return tuple(stated)


def _decisions(summary: Summary, asked: Noise, rule: PrivacyRule, plan: Plan) -> _Decisions | None:
    if not asked.verdicts:
        return None
    if not (rule.sizes_only and rule.criteria) or summary.frequency is None:
        raise PolicyError(
            "With noise, Aegis can state verdicts only under a rule on class sizes, and only from a "
            "summary with the frequency table.",
            hint="Leave out --verdicts, or protect by counts.",
        )
    scorer, choices, below = Scorer(summary), [], []
    for configuration in asked.verdicts:
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
        attributes = summary.attributes.items()
        choices.append(tuple(a.candidates.index(chosen[name]) for name, a in attributes))
        below.append(int(sizes[sizes < rule.minimum_size].sum()))
    return _Decisions(
        tuple(choices), np.array(below, dtype=np.int64), rule.minimum_size, rule.suppression
    )
