"""Define the constraint families of iterative proportional fitting (IPF), and eliminate cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from aegis.arrays import Floats, Ints
from aegis.errors import DataError
from aegis.measures.checks import counts, group_codes


@dataclass(frozen=True, eq=False)
class Groups:
    """A family of constraints on a table of counts: it divides the cells into disjoint groups, and
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
        place = np.arange(self.targets.size).reshape(
            [size if axis in self.axes else 1 for axis, size in enumerate(self.shape)]
        )
        # An addition in place is a fraction of what broadcast_to costs on a small table.
        codes: Ints = np.zeros(self.shape, dtype=np.int64)
        codes += place
        return codes.ravel()


Family = Groups | Margin


@dataclass(frozen=True, eq=False)
class Determined:
    """A table of counts in which all cells that can have only one value have this value, and what
    remains to be fitted.

    Attributes
    ----------
    cells
        Flattened table, shape (n,). Cells with only one possible value have it; all other cells
        have the value of the start table (the seed).
    open
        For each cell, whether it still must be fitted, shape (n,).
    remaining
        For each family of constraints, the required totals minus the sums of cells with final
        values.
    """

    cells: Floats
    open: np.ndarray[tuple[int], np.dtype[np.bool_]]
    remaining: list[Floats]


def determine(seed: Floats, families: Sequence[Family], slack: float) -> Determined:
    """Set every cell of a table whose value follows from the required totals by elimination.

    If the remaining total of a group is 0, its open cells are 0. If a group has only one open cell,
    this cell has the remaining total. Both hold in every table that meets the constraints, so the
    fixed point of IPF does not change. Elimination removes the cases in which IPF is slow:
    solutions with zeros, and long chains of overlapping groups.

    Parameters
    ----------
    seed
        Flattened start table, shape (n,), at least 0; a zero cell stays zero.
    families
        Families of constraints: each divides the cells into groups with required totals.
    slack
        Largest difference that counts as rounding, in rows.

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
            left = np.bincount(codes, minlength=len(family.targets))
            _check_possible(family, remaining[number], left, slack)
            settled = where[(left[codes] == 1) | (remaining[number][codes] <= slack * 1e-4)]
            if not settled.size:
                continue
            changed = True
            # Clipping keeps rounding from leaving a count of minus nothing.
            cells[settled] = np.where(
                left[family.codes[settled]] == 1,
                np.maximum(remaining[number][family.codes[settled]], 0.0),
                0.0,
            )
            is_open[settled] = False
            for other, targets in zip(families, remaining, strict=True):
                np.subtract.at(targets, other.codes[settled], cells[settled])
    return Determined(cells, is_open, remaining)


def _check_possible(family: Family, remaining: Floats, left: Ints, slack: float) -> None:
    wrong = (remaining < -slack) | ((left == 0) & (remaining > slack))
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
