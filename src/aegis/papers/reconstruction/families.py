"""Define the constraint families of iterative proportional fitting (IPF), eliminate cells, and run
sweeps, which fit every family once. For one mask, the result has a closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from aegis.arrays import Floats, Ints, group_sums
from aegis.errors import DataError, PolicyError
from aegis.measures.checks import counts, group_codes
from aegis.papers.reconstruction.evidence import Evidence, MaskedJoint, Reconstruction, check_sizes


@dataclass(frozen=True, eq=False)
class Groups:
    """A family of constraints on a table of counts. It divides the cells into disjoint groups, and
    requires a total for each group.

    Attributes
    ----------
    name
        Name of the family, for messages.
    codes
        For each of the n cells of the table, flattened in C order, the number of its group among G
        groups, shape (n,), from 0 to G - 1.
    targets
        Required total of each of the G groups, shape (G,), at least 0.
    """

    name: str
    codes: Ints
    targets: Floats

    def __post_init__(self) -> None:
        targets = counts(self.targets, f"The targets of family {self.name!r}").ravel()
        codes = group_codes(self.codes, len(targets), f"Family {self.name!r}")
        object.__setattr__(self, "targets", targets)
        object.__setattr__(self, "codes", codes)


@dataclass(frozen=True, eq=False)
class Determined:
    """A table of counts in which each cell that can have only one value has this value, and the
    totals that the other cells must still reach.

    Attributes
    ----------
    cells
        Flattened table, shape (n,). Cells with only one possible value have it; all other cells
        have the value of the start table (the seed).
    open
        For each cell, whether it still must be fitted, shape (n,).
    remaining
        For each family of constraints, the required total of each group minus the sum of its cells
        with final values.
    """

    cells: Floats
    open: np.ndarray[tuple[int], np.dtype[np.bool_]]
    remaining: list[Floats]


def determine(seed: Floats, families: Sequence[Groups], slack: float) -> Determined:
    """Set the cells of a table whose values follow from the totals that `families` of constraints
    require.

    If the remaining total of a group is 0, its open cells are 0. If a group has only one open cell,
    this cell has the remaining total. The result of iterative proportional fitting does not change,
    but it converges faster. In `seed`, the flattened start table, shape (n,), a zero cell stays
    zero; differences up to `slack` rows count as rounding.

    Raises
    ------
    DataError
        The cells of a group cannot add up to its target; the message names family and group.
    """
    cells = seed.copy()
    is_open = seed > 0
    remaining = [family.targets.copy() for family in families]
    changed = True
    while changed:
        changed = False
        for number, family in enumerate(families):
            where = np.flatnonzero(is_open)
            codes = family.codes[where]
            open_cells = np.bincount(codes, minlength=len(family.targets))
            _check_possible(family, remaining[number], open_cells, slack)
            settled = where[(open_cells[codes] == 1) | (remaining[number][codes] <= slack * 1e-4)]
            if not settled.size:
                continue
            changed = True
            # Clipping keeps rounding from leaving a count of minus nothing.
            cells[settled] = np.where(
                open_cells[family.codes[settled]] == 1,
                np.maximum(remaining[number][family.codes[settled]], 0.0),
                0.0,
            )
            is_open[settled] = False
            for other, targets in zip(families, remaining, strict=True):
                np.subtract.at(targets, other.codes[settled], cells[settled])
    return Determined(cells, is_open, remaining)


def _check_possible(family: Groups, remaining: Floats, open_cells: Ints, slack: float) -> None:
    wrong = (remaining < -slack) | ((open_cells == 0) & (remaining > slack))
    if not wrong.any():
        return
    group = int(np.flatnonzero(wrong)[0])
    target = family.targets[group]
    if remaining[group] > 0:
        message = (
            f"Inconsistent constraints: family {family.name!r} requires {target:g} rows in group "
            f"{group}, but its cells can hold only {target - remaining[group]:g} (the others are "
            "zero in the seed or emptied by other families)."
        )
    else:
        message = (
            f"Inconsistent constraints: family {family.name!r} requires {target:g} rows in group "
            f"{group}, but the other families put {target - remaining[group]:g} there."
        )
    raise DataError(message, hint="All targets must come from the same rows.")


TINY = 1e-290
"""Divisor in place of a sum that is 0: all cells of such a sum are 0, and stay 0."""


class FamilySweep(NamedTuple):
    """A family of constraints on a table: its name, the number of the group of each cell, and the
    required total of each group.
    """

    name: str
    codes: Ints
    targets: Floats

    def totals(self, cells: Floats) -> Floats:
        """Return the sum of the cells in each group."""
        return group_sums(self.codes, cells, len(self.targets))


class CellFit:
    """Iterative proportional fitting (IPF) of the open cells of a table to families of constraints,
    each of which divides the cells into groups with required totals.

    `cells` are these cells; each sweep changes them in place.
    """

    def __init__(self, determined: Determined, families: Sequence[Groups]) -> None:
        self.cells = determined.cells[determined.open]
        self._steps = []
        for family, totals in zip(families, determined.remaining, strict=True):
            # Groups without open cells are done, and numbering the rest afresh keeps sums short.
            present, codes = np.unique(family.codes[determined.open], return_inverse=True)
            self._steps.append(FamilySweep(family.name, codes.astype(np.int64), totals[present]))

    def sweep(self) -> float:
        """Scale the cells to the required totals of each family of groups in turn. Return the
        largest deviation from the totals of the first family before it was scaled, in rows.
        """
        cells, correction = self.cells, 0.0
        for number, step in enumerate(self._steps):
            current = step.totals(cells)
            if number == 0:
                correction = _largest(current - step.targets)
            cells *= (step.targets / np.maximum(current, TINY))[step.codes]
        return correction

    def residual(self) -> tuple[float, str]:
        """Return the largest deviation of a group of cells from its required total, in rows, and
        the name of the family of constraints to which the group belongs.
        """
        return max(
            (_largest(step.totals(self.cells) - step.targets), step.name) for step in self._steps
        )


def _largest(deviations: Floats) -> float:
    return float(np.maximum.reduce(np.abs(deviations), axis=None))


THEOREM_1 = (
    "With one deterministic mask, the estimate spreads the rows of a masked value in the same way "
    "over all label classes. So every measure of association equals that of the masked table, and "
    "the estimate cannot rank masks (Theorem 1)."
)


def closed_form(evidence: Evidence) -> Reconstruction:
    """Return the table of rows by unmasked value and class that agrees with the rows by masked
    value and class of one mask, and is as uniform as possible.

    Let F(a,y) be the number of rows with the unmasked value a and the class y, f(a) the number of
    rows with a, and M(a) the masked value of a. Then

        F(a,y) = f(a) F(M(a),y) / f(M(a))

    if the histogram f is known (AEGIS+1D). If it is not known (AEGIS-1D), F(a,y) is F(M(a),y)
    divided by the number of unmasked values behind M(a).

    Parameters
    ----------
    evidence
        The counts of exactly one deterministic mask, and perhaps the histogram. Noise masks are
        ignored.

    Returns
    -------
    Reconstruction
        Number of rows for each of the V unmasked values and C classes, shape (V, C).

    Raises
    ------
    PolicyError
        There are counts of no deterministic mask, or of several.
    DataError
        The histogram contradicts the counts; the message names the group.

    References
    ----------
    AEGIS (Laskar et al., SIGMOD 2025), settings AEGIS+1D and AEGIS-1D.
    """
    mask = the_only_mask(evidence, "closed-form")
    table = spread(mask, evidence.histogram)
    return Reconstruction(
        table, "closed-form", residual=evidence.residual(table), notes=(THEOREM_1,)
    )


def the_only_mask(evidence: Evidence, method: str) -> MaskedJoint:
    """Return the rows by masked value and class of the only deterministic mask. Raise `PolicyError`
    if there are none or several masks; the message says that `method` needs exactly one.
    """
    if len(evidence.masked) != 1:
        names = ", ".join(mask.name for mask in evidence.masked) or "none"
        raise PolicyError(
            f"Method {method!r} works from exactly one masked joint; given: {names}.",
            hint="Choose one (--mask NAME on the command line, Evidence.only(name) in Python), or "
            "use method 'all-evidence'.",
        )
    return evidence.masked[0]


def spread(mask: MaskedJoint, histogram: Floats | None) -> Floats:
    """Divide the counts of each masked value among its unmasked values. Return the table of V
    unmasked values by C classes, shape (V, C).

    Counts are divided in proportion to the histogram, or equally if there is no histogram. Raise
    `DataError` if a masked value has another number of rows in the histogram than in the counts.
    """
    if histogram is None:
        weights = np.ones(len(mask.codes))
        sizes = group_sums(mask.codes, weights, mask.groups)
    else:
        weights, sizes = histogram, check_sizes(mask, histogram)
    shares = np.divide(weights, sizes[mask.codes], out=np.zeros(len(weights)), where=weights > 0)
    return shares[:, None] * mask.joint[mask.codes]
