"""Protect a summary at level `counts`: perturb counts by value and class (label tables), and
round statistics of two attributes together (moments).

These are methods of official statistics; they give no formal guarantee. Cells with fewer rows than
the threshold lose their names. Every count is rounded at random or changed by its cell key. Linear
programming then checks whether a small cell can still be derived from the output. If so, nothing is
written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from aegis.arrays import Floats, Ints
from aegis.errors import PolicyError
from aegis.files import SILENT, SILENT_STEP, Progress, Step
from aegis.policy import Label, Policy, Unseen
from aegis.safe.protect.budget import is_number
from aegis.safe.protect.cells import (
    Cells,
    NamedClasses,
    by_declaration,
    cells_of,
    join_similar,
    learned,
    named,
    tallied,
    without_small,
)
from aegis.safe.protect.derive.cells import derivable_cells
from aegis.safe.protect.derive.pairs import count_pairs, first_pinned
from aegis.safe.protect.mechanisms import (
    apply_key,
    check_key,
    key_table,
    round_randomly,
    spread_of_key,
    uniform,
)
from aegis.safe.protect.model import (
    GRID,
    CellMethod,
    DomainSource,
    Moments,
    ProtectedSummary,
    Protection,
    ProtectionLevel,
    PublishedDomain,
    StatedVerdict,
)
from aegis.safe.protect.noise import ExactTable, assembled, codes_of, with_codes
from aegis.sources import Source
from aegis.summary import Summary
from aegis.words import brief

THRESHOLD = 10
"""Number of rows from which a cell counts as large."""
MOST_STEP = 10**6
"""Largest step of a perturbation, because larger steps would leave no information in a table."""
STEP_OF_MOMENTS = 0.5
"""Step of rounded moments, relative to the sampling error of a correlation."""
COARSEST = 0.1
"""Largest step of moments with which they are still published."""
_NO_LIMIT = int(np.iinfo(np.int64).max)
"""A squared length that no row's codes reach."""


@dataclass(frozen=True)
class Perturbation:
    """The options of protection level `counts`, which changes every published count a little.

    Attributes
    ----------
    key
        The secret key. Anyone who has the key can remove the perturbation.
    method
        Random rounding, or cell keys: small changes that look random, but depend only on the cell
        and the key.
    threshold
        Number of rows from which a cell counts as large; at least 2.
    step
        The base of rounding, or the largest change by a cell key; by default the threshold.
    variance
        Variance of the changes that cell keys make. The default, half of the threshold, preserves
        the ranking of configurations (docs/experiments.md).
    """

    key: bytes = field(repr=False)
    method: CellMethod = CellMethod.CELL_KEYS
    threshold: int = THRESHOLD
    step: int | None = None
    variance: float | None = None

    def __post_init__(self) -> None:
        check_key(self.key)
        if not isinstance(self.method, CellMethod):
            raise PolicyError.unknown(
                "method of perturbation", self.method, list(map(str, CellMethod))
            )
        if not is_number(self.threshold, integer=True) or self.threshold < 2:
            raise PolicyError(
                f"The threshold is {brief(self.threshold)}.",
                hint="Give the number of rows from which a cell is large, 2 or more.",
            )
        if not is_number(self.width, integer=True) or not 2 <= self.width <= MOST_STEP:
            raise PolicyError(
                f"The step of the perturbation is {brief(self.width)}.",
                hint=f"Give a whole number from 2 to {MOST_STEP:,}.",
            )
        if self.variance is not None and not (
            is_number(self.variance) and 0 < self.variance <= MOST_STEP**2
        ):
            raise PolicyError(
                f"The variance of cell keys is {brief(self.variance)}.",
                hint=f"Give more than 0, at most {MOST_STEP**2:,}.",
            )

    @property
    def width(self) -> int:
        """For rounding, the base of the multiples; for cell keys, the largest change of a count."""
        return self.threshold if self.step is None else self.step

    @property
    def spread(self) -> float:
        """The variance of the change that the method of cell keys makes to a count."""
        return self.threshold / 2 if self.variance is None else self.variance

    @property
    def least(self) -> int:
        """The smallest positive count that a summary can publish by the method of cell keys."""
        return max(2, self.threshold // 2)

    @property
    def error(self) -> float:
        """The standard deviation of the change that perturbation makes to the count of one cell."""
        if self.method is CellMethod.ROUNDING:
            return math.sqrt((self.width**2 - 1) / 6)
        return spread_of_key(self.width, self.spread)

    def change(self, count: int, parts: Sequence[str]) -> int:
        """Return the perturbed value of a count of the cell that the texts `parts` identify."""
        chance = uniform(self.key, parts)
        if self.method is CellMethod.ROUNDING:
            return round_randomly(count, self.width, chance)
        return apply_key(count, self.width, self.spread, self.least, chance)


def _check(perturbation: Perturbation, rows: int) -> None:
    """Refuse a threshold above the table's rows, and options that allow no cell keys."""
    if perturbation.threshold > rows:
        raise PolicyError(
            f"The threshold is {brief(perturbation.threshold)}, and the table has {rows:,} rows.",
            hint="Give a smaller threshold.",
        )
    if perturbation.method is CellMethod.CELL_KEYS:
        key_table(1, perturbation.width, perturbation.spread, perturbation.least)


def protect_counts(
    summary: Summary,
    perturbation: Perturbation,
    policy: Policy,
    *,
    verdicts: Sequence[StatedVerdict] = (),
    source: Source | None = None,
    progress: Progress = SILENT,
) -> ProtectedSummary:
    """Return the protected summary of level `counts`, from which no small cell can be derived.

    The policy declares the label and, if it has them, its classes. `verdicts` tell, for some
    configurations, whether they meet the privacy rule. Moments come from the table if it is
    available, else from the exact summary, which is not published.

    Raises
    ------
    PolicyError
        The threshold is above the number of rows, or linear programming derives a small cell from
        the planned output.
    """
    _check(perturbation, summary.rows)
    classes = _classes(summary, perturbation, policy)
    cells = [
        without_small(classes.within(cells_of(a)), perturbation.threshold)
        for a in summary.attributes.values()
    ]
    with progress.step("Auditing what could be derived"):
        bare, cells = _audited(summary, classes, cells, perturbation)
    bare = replace(
        bare, protection=replace(bare.protection, domains=tuple(_domains(policy.label, bare)))
    )
    codes = codes_of(bare)
    table = ExactTable(summary, source, classes, progress)
    sums = table.sums(cells, codes, [_NO_LIMIT] * len(cells), _NO_LIMIT).sums
    moments = _rounded(sums / (bare.rows * GRID**2), STEP_OF_MOMENTS / math.sqrt(bare.rows))
    protected = replace(with_codes(bare, codes, moments), verdicts=tuple(verdicts))
    with progress.step("Auditing what moments say of pairs", count_pairs(protected)) as step:
        return _without_pairs(protected, step)


def _classes(summary: Summary, perturbation: Perturbation, policy: Policy) -> NamedClasses:
    """Return the classes that the policy declares, else those with `threshold` rows or more."""
    if policy.label.declared:
        strict = policy.unseen is Unseen.ERROR
        return by_declaration(summary.label, policy.label, others_refused=strict)
    return named(summary.label, tallied(summary.label)[1] >= perturbation.threshold)


def _domains(label: Label, bare: ProtectedSummary) -> Iterator[PublishedDomain]:
    """Yield where the label's classes or cut points, and the parameters that masks learnt, come
    from.
    """
    source = DomainSource.POLICY if label.declared else DomainSource.THRESHOLD
    yield PublishedDomain("classes", label.column, source)
    if label.cut:
        source = DomainSource.POLICY if label.cuts else DomainSource.TABLE
        yield PublishedDomain("cuts", label.column, source)
    for attribute in bare.attributes.values():
        if learned(attribute):
            yield PublishedDomain("bounds", attribute.name, DomainSource.TABLE)


def _audited(
    summary: Summary, classes: NamedClasses, cells: list[Cells], perturbation: Perturbation
) -> tuple[ProtectedSummary, list[Cells]]:
    """Perturb label tables until no small count can be derived; return them and their cells.

    A cell whose count can be derived is merged into the most similar one.
    """
    while True:
        bare = _bare(summary, classes, cells, perturbation)
        exact = {c.name: c.joint for c in cells}
        small = [
            d
            for d in derivable_cells(bare)
            if 0 < int(exact[d.attribute][d.cell, d.label]) < perturbation.threshold
        ]
        if not small:
            return bare, cells
        worst = {d.attribute: d for d in reversed(small)}
        for index, attribute_cells in enumerate(cells):
            if attribute_cells.name not in worst:
                continue
            if attribute_cells.count == 1:
                raise PolicyError(
                    f"Readers could derive a small cell of {attribute_cells.name!r} from the published figures, even after "
                    "Aegis merged all its cells. Aegis wrote nothing.",
                    hint="Take a larger threshold or step, or another key.",
                )
            cells[index] = join_similar(attribute_cells, worst[attribute_cells.name].cell)


def _bare(
    summary: Summary, classes: NamedClasses, cells: Sequence[Cells], perturbation: Perturbation
) -> ProtectedSummary:
    """Return the summary with perturbed label tables, without moments and verdicts."""
    tables = [_perturbed(attribute_cells, classes.names, perturbation) for attribute_cells in cells]
    protection = Protection(
        ProtectionLevel.COUNTS,
        method=perturbation.method,
        threshold=perturbation.threshold,
        step=perturbation.width,
        variance=perturbation.spread if perturbation.method is CellMethod.CELL_KEYS else None,
    )
    return assembled(summary, classes, cells, tables, perturbation.error, protection)


def _perturbed(cells: Cells, classes: Sequence[str], perturbation: Perturbation) -> Ints:
    names = cells.keys
    return np.array(
        [
            [
                perturbation.change(int(count), (cells.name, names[i], classes[y]))
                for y, count in enumerate(row)
            ]
            for i, row in enumerate(cells.joint)
        ],
        dtype=np.int64,
    ).reshape(cells.joint.shape)


def _rounded(moments: Floats, step: float) -> Moments:
    """Round moments (mean products of two codes) to multiples of `step`."""
    return Moments(np.rint(moments / step) * step, step / math.sqrt(12))


def _without_pairs(protected: ProtectedSummary, progress: Step = SILENT_STEP) -> ProtectedSummary:
    """Round moments until no small combination of two cells can be derived from them.

    Each time the step is trebled. Coarser figures never reveal more, so a pair that passed is not
    checked again. If the step becomes too coarse to be useful, moments are left out.
    """
    pair = 0
    while protected.moments is not None:
        pinned = first_pinned(protected, pair, progress)
        if pinned is None:
            return protected
        pair = pinned
        step = 3 * protected.moments.error * math.sqrt(12)
        progress.note("again, with coarser moments")
        coarser = None if step > COARSEST else _rounded(protected.moments.matrix, step)
        protected = replace(protected, moments=coarser)
    note = (
        "moments of codes would pin down small combinations of cells: label tables alone are "
        "published, and attributes count as if they did not overlap"
    )
    attributes = {n: replace(a, codes=None) for n, a in protected.attributes.items()}
    return replace(protected, attributes=attributes, notes=(*protected.notes, note))
