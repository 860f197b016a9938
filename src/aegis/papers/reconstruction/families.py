"""Define the constraint families of iterative proportional fitting (IPF), eliminate cells, and run
sweeps, which fit every family once: by cells, or by the common sums of two families. For one mask,
the result has a closed form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
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
class Margin:
    """A family of constraints that fixes a margin (sums over some axes) of a table of counts. Each
    cell of the margin is the required total of one group of cells.

    Attributes
    ----------
    name
        Name of the family, for messages.
    shape
        Shape of the table.
    axes
        The axes that the margin keeps, ascending.
    targets
        Required margin, of shape `tuple(shape[axis] for axis in axes)`; stored flat.
    """

    name: str
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    targets: Floats

    def __post_init__(self) -> None:
        targets = counts(self.targets, f"The targets of family {self.name!r}")
        # A bound before the first and after the last: strictly rising means distinct and within.
        bounded = (-1, *self.axes, len(self.shape))
        if any(family >= other for family, other in pairwise(bounded)):
            raise DataError(
                f"Family {self.name!r} keeps axes {self.axes} of a table of shape {self.shape}.",
                hint="Axes must be distinct, ascending and within the table.",
            )
        if targets.shape != self.margin_shape:
            raise DataError(
                f"Family {self.name!r}: the margin over axes {self.axes} of a table of shape "
                f"{self.shape} has shape {self.margin_shape}, given {targets.shape}."
            )
        object.__setattr__(self, "targets", targets.ravel())

    @property
    def margin_shape(self) -> tuple[int, ...]:
        """Shape of the margin."""
        return tuple([self.shape[axis] for axis in self.axes])

    @cached_property
    def codes(self) -> Ints:
        """The group of each of the n cells of the flattened table, shape (n,)."""
        group_ids = np.arange(self.targets.size).reshape(
            [size if axis in self.axes else 1 for axis, size in enumerate(self.shape)]
        )
        # An addition in place is a fraction of what broadcast_to costs on a small table.
        codes: Ints = np.zeros(self.shape, dtype=np.int64)
        codes += group_ids
        return codes.ravel()


Family = Groups | Margin


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


def determine(seed: Floats, families: Sequence[Family], slack: float) -> Determined:
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


def _check_possible(family: Family, remaining: Floats, open_cells: Ints, slack: float) -> None:
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

SMALL = 4096
"""Most entries of a table of two families that is always cheap."""


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
    """Iterative proportional fitting (IPF) that updates every cell of a table. It takes any number
    of families of constraints, each of which divides the cells into groups with required totals.

    `values` are the cells, flattened; they are changed in place.
    """

    def __init__(self, values: Floats, steps: Sequence[FamilySweep]) -> None:
        self._values = values
        self._steps = tuple(steps)

    @property
    def settled(self) -> bool:
        """Whether no cell is left to fit."""
        return not self._steps

    def sweep(self) -> float:
        """Scale the cells to the required totals of each family of groups in turn. Return the
        largest deviation from the totals of the first family before it was scaled, in rows.
        """
        values, correction = self._values, 0.0
        for number, step in enumerate(self._steps):
            current = step.totals(values)
            if number == 0:
                correction = _largest(current - step.targets)
            values *= (step.targets / np.maximum(current, TINY))[step.codes]
        return correction

    def residual(self) -> tuple[float, str]:
        """Return the largest deviation of a group of cells from its required total, in rows, and
        the name of the family of constraints to which the group belongs.
        """
        return max(
            (_largest(step.totals(self._values) - step.targets), step.name) for step in self._steps
        )

    def cells(self) -> Floats:
        """Return the cells of the table as they are after the sweeps so far."""
        return self._values


class PairFit:
    """Iterative proportional fitting for two families of constraints, each of which divides the
    cells of a table into groups with required totals.

    The fitted table is

        seed * u[first group] * v[second group],

    where the seed is the start table, and u and v have a factor for each group. Let K be the sums
    of the seed by both groups. The current totals of the families are u (K v) and v (K' u), so no
    sweep needs the cells. Seed and required totals must be above 0.

    References
    ----------
    Sinkhorn (1967), Diagonal equivalence to matrices with prescribed row and column sums.
    """

    def __init__(self, seed: Floats, families: Sequence[Family]) -> None:
        first, two = families
        self._names = first.name, two.name
        self._seed = seed
        self._targets = first.targets, two.targets
        self._codes = first.codes, two.codes
        shape = len(first.targets), len(two.targets)
        pair = first.codes * shape[1] + two.codes
        self._sums = group_sums(pair, seed.ravel(), shape[0] * shape[1]).reshape(shape)
        self._first, self._second = np.ones(len(first.targets)), np.ones(len(two.targets))
        self._bare = self._sums.dot(self._second)

    @classmethod
    def suits(cls, seed: Floats, families: Sequence[Family]) -> bool:
        """Return whether there are two families of groups of cells, and the number of pairs of
        their groups is not much larger than the number of cells.
        """
        if len(families) != 2:
            return False
        return len(families[0].targets) * len(families[1].targets) <= max(2 * seed.size, SMALL)

    @property
    def settled(self) -> bool:
        """Whether no cell is left to fit: always False, because all cells are fitted."""
        return False

    def sweep(self) -> float:
        """Scale the table to the required totals of both families of groups. Return the root mean
        square deviation of the first family's groups from their totals afterwards, in rows.
        """
        targets, sums = self._targets[0], self._sums
        self._first = first = targets / self._bare
        self._second = second = self._targets[1] / first.dot(sums)
        self._bare = bare = sums.dot(second)
        off = first * bare - targets
        return math.sqrt(off.dot(off) / len(off))

    def residual(self) -> tuple[float, str]:
        """Return the largest deviation of a group of cells from its required total, in rows, and
        the name of the family of constraints to which the group belongs.
        """
        off_first = _largest(self._first * self._bare - self._targets[0])
        two = _largest(self._second * self._first.dot(self._sums) - self._targets[1])
        return max((off_first, self._names[0]), (two, self._names[1]))

    def cells(self) -> Floats:
        """Return the cells of the table as they are after the sweeps so far."""
        first, two = self._codes
        factors = self._first[first] * self._second[two]
        return self._seed * factors.reshape(self._seed.shape)


Fit = CellFit | PairFit
"""A table under iterative proportional fitting (IPF)."""


def grouped_steps(
    families: Sequence[Family], remaining: Sequence[Floats], where: Ints
) -> list[FamilySweep]:
    """Return each family of constraints, restricted to the cells `where` of the flattened table.
    `remaining` has the totals that the groups of these cells must have, by family.
    """
    steps = []
    for family, totals in zip(families, remaining, strict=True):
        # Groups without open cells are done, and numbering the rest afresh keeps sums short.
        present, codes = np.unique(family.codes[where], return_inverse=True)
        steps.append(FamilySweep(family.name, codes.astype(np.int64), totals[present]))
    return steps


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
