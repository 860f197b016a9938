"""Define the exact cells from which a protected summary is made; they never leave this process."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegis.arrays import Flags, Ints
from aegis.errors import PolicyError
from aegis.masks import Kind, Mask, ValueCounts, common_refinement, evaluate
from aegis.policy import Policy, Role
from aegis.safe.protect.columns import TypedColumn, as_stored
from aegis.safe.protect.model import ProtectedCandidate
from aegis.summary import AttributeSummary, Summary
from aegis.summary.codes import natural_order

Codes = npt.NDArray[np.integer[Any]]
UNNAMED = -1
"""Cell number of a value that has no cell."""
UNNAMED_SHOWN = "(values not named)"
"""Name of the group of values that a protected summary must not name."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of one attribute: sets of values that no candidate mask distinguishes.

    Attributes
    ----------
    name, role, kind, weight
        Name, role, kind of values, and weight in a mean over attributes.
    of_value
        Number of the cell to which each of the V distinct values belongs, shape (V,); `UNNAMED` if
        the value has no cell.
    joint
        Number of rows in each of the K cells and C label classes, shape (K, C); rows without a
        label do not count.
    candidates
        The candidate masks and their groups of cells.
    bought
        Whether the names of cells come from the table, so that publishing them costs budget.
    complete
        Whether every value of the table has a cell.
    """

    name: str
    role: Role
    kind: Kind
    weight: float
    of_value: Ints
    joint: Ints
    candidates: tuple[ProtectedCandidate, ...]
    bought: bool = False
    complete: bool = True

    @property
    def count(self) -> int:
        """Number of cells."""
        return len(self.joint)

    @property
    def has_unnamed(self) -> bool:
        """Whether there may be values without a cell."""
        return self.bought or not self.complete

    @property
    def keys(self) -> list[str]:
        """For each cell, a text that identifies it: the cell's masked values under all candidates."""
        return [
            "\x1e".join(c.shown[int(c.groups[i])] for c in self.candidates)
            for i in range(self.count)
        ]

    def in_order(self) -> Cells:
        """Sort the cells and their groups by their masked values alone.

        The order in which values occur in the table would reveal something about unnamed values.
        """
        ranked = []
        for candidate in self.candidates:
            order = natural_order(candidate.shown)
            rank = np.empty(len(order), dtype=np.int64)
            rank[order] = np.arange(len(order))
            shown = tuple(candidate.shown[i] for i in order.tolist())
            ranked.append(replace(candidate, groups=rank[candidate.groups], shown=shown))
        order = np.lexsort([c.groups for c in reversed(ranked)])
        place = np.empty(self.count, dtype=np.int64)
        place[order] = np.arange(self.count)
        return replace(
            self,
            of_value=_moved(self.of_value, place),
            joint=self.joint[order],
            candidates=tuple(replace(c, groups=c.groups[order]) for c in ranked),
        )

    def keep(self, chosen: Flags) -> Cells:
        """Return only some of the K cells: those with True in `chosen`, shape (K,). The values of
        the other cells then belong to no cell.
        """
        place = np.where(chosen, np.cumsum(chosen) - 1, UNNAMED)
        return replace(
            self,
            of_value=_moved(self.of_value, place),
            joint=self.joint[chosen],
            candidates=tuple(_shrunk(c, c.groups[chosen]) for c in self.candidates),
        )

    def join(self, target: Ints) -> Cells:
        """Merge cells: each of the K cells goes into the cell whose index is in `target`, shape
        (K,).
        """
        stays = target == np.arange(self.count)
        place = (np.cumsum(stays) - 1)[target]
        joint = np.zeros((int(stays.sum()), self.joint.shape[1]), dtype=np.int64)
        np.add.at(joint, place, self.joint)
        return replace(
            self,
            of_value=_moved(self.of_value, place),
            joint=joint,
            candidates=tuple(_shrunk(c, c.groups[stays]) for c in self.candidates),
        )


def _moved(of_value: Ints, place: Ints) -> Ints:
    """Return the cell of each value after each of the K cells got the number in `place`, shape
    (K,). `of_value` has the old cell of each value.
    """
    moved = np.full(len(of_value), UNNAMED, dtype=np.int64)
    named = of_value >= 0
    moved[named] = place[of_value[named]]
    return moved


def _shrunk(candidate: ProtectedCandidate, groups: Ints) -> ProtectedCandidate:
    """Return a candidate mask with only the groups that still have cells. `groups` has the old
    group of each remaining cell; groups are renumbered.
    """
    left, renumbered = np.unique(groups, return_inverse=True)
    return replace(
        candidate,
        groups=renumbered.astype(np.int64),
        shown=tuple(candidate.shown[i] for i in left.tolist()),
    )


def with_unnamed(candidate: ProtectedCandidate, table: Ints) -> ProtectedCandidate:
    """Add to a candidate one cell for all unnamed values.

    If the mask distinguishes all named cells, the new cell is a separate group. A coarser mask can
    put unnamed values into any group, and it is not known which. So the new cell joins the largest
    group; then the score is not overestimated.

    Parameters
    ----------
    candidate
        A mask of the attribute.
    table
        Number of rows in each of the K named cells and C label classes, shape (K, C).
    """
    if candidate.size in (0, len(table)) and len(table) != 1:
        group, shown = candidate.size, (*candidate.shown, UNNAMED_SHOWN)
    else:
        rows = np.bincount(candidate.groups, weights=table.sum(axis=1))
        group, shown = int(rows.argmax()), candidate.shown
    return replace(candidate, groups=np.append(candidate.groups, group), shown=shown)


def check_summary(summary: Summary, policy: Policy) -> None:
    """Raise `PolicyError` if a summary has content that a protected summary cannot have."""
    if summary.label_attribute is not None or policy.label_mask is not None:
        raise PolicyError(
            f"The label {summary.label.column!r} has candidate masks, which a protected "
            "summary cannot hold.",
            hint="Give the label no role in the policy.",
        )
    for attribute in summary.attributes.values():
        for candidate in attribute.candidates:
            if candidate.noise is not None:
                raise PolicyError(
                    f"To predict the result of mask {str(candidate.declared)!r} of {attribute.name!r}, Aegis "
                    "needs exact counts, which a protected summary does not hold.",
                    hint="Leave noise masks out of the policy.",
                )


def learned(attribute: AttributeSummary) -> bool:
    """Return whether a candidate mask of the attribute learns parameters from the data."""
    return not all(c.declared.fitted for c in attribute.candidates)


def cells_of(attribute: AttributeSummary) -> Cells:
    """Return the cells of an attribute: the sets of values that no candidate mask distinguishes."""
    masks = [(c.mask, c.groups, c.labels) for c in attribute.candidates]
    return _cells(as_stored(attribute), masks)


def cells_in(column: TypedColumn, masks: Sequence[Mask] | None = None) -> Cells:
    """Return the cells of a parsed column (sets of values that no candidate mask distinguishes),
    sorted by their masked values alone.

    Parameters
    ----------
    column
        The column.
    masks
        The same masks fitted to other counts, instead of the candidates' masks.
    """
    chosen = [c.mask for c in column.attribute.candidates] if masks is None else list(masks)
    evaluated = evaluate(chosen, column.values)
    listed = [(m, g.codes, g.labels) for m, g in zip(chosen, evaluated, strict=True)]
    return _cells(column, listed).in_order()


def _cells(column: TypedColumn, masks: Sequence[tuple[Mask, Codes, tuple[str, ...]]]) -> Cells:
    """Form cells, the sets of values that no mask distinguishes. Each mask is given with the group
    of each value and the masked values of the groups.
    """
    attribute = column.attribute
    own = common_refinement([groups for _, groups, _ in masks]).astype(np.int64)
    first = np.unique(own, return_index=True)[1]
    joint = np.zeros((len(first), attribute.joint.shape[1]), dtype=np.int64)
    np.add.at(joint, own, column.joint)
    candidates = tuple(
        ProtectedCandidate(mask, candidate.declared, groups[first].astype(np.int64), labels)
        for candidate, (mask, groups, labels) in zip(attribute.candidates, masks, strict=True)
    )
    known = column.place >= 0
    of_value = np.full(len(column.place), UNNAMED, dtype=np.int64)
    of_value[known] = own[column.place[known]]
    return Cells(
        attribute.name,
        attribute.role,
        column.kind,
        attribute.weight,
        of_value=of_value,
        joint=joint,
        candidates=tuple(_shrunk(c, c.groups) for c in candidates),
    )


def fit_to(column: TypedColumn, counts: Ints, named: Flags) -> list[Mask]:
    """Fit the candidates' masks to protected counts of the named values.

    `counts` has the number of rows for each of the U distinct values, and `named` whether the value
    is named; both have shape (U,).
    """
    values = column.values.filter(pa.array(named.tolist(), pa.bool_()))
    data = ValueCounts(column.kind, values, np.maximum(counts[named], 0))
    return [candidate.declared.fit(data) for candidate in column.attribute.candidates]


def public_names(given: Collection[str], summary: Summary) -> frozenset[str]:
    """Return the names of the attributes that the owner declares public in `given`; `*` stands for
    all attributes.

    Raises
    ------
    PolicyError
        A name is not a scored attribute.
    """
    if "*" in given:
        return frozenset(summary.attributes)
    for name in given:
        if name not in summary.attributes:
            raise PolicyError.unknown("attribute", name, summary.attributes)
    return frozenset(given)


def without_small(cells: Cells, threshold: int) -> Cells:
    """Merge cells (sets of values) of fewer than `threshold` rows into the most similar cells.

    The name of a smaller cell would reveal that somebody has its values. So it is merged into the
    cell that is in the same group under most candidates, or into the largest of several such cells.
    Under all other candidates its rows then count in the group of that cell. The attribute has no
    cells if the table has fewer rows than the threshold.
    """
    totals = cells.joint.sum(axis=1)
    groups = np.array([c.groups for c in cells.candidates], dtype=np.int64)
    into = np.arange(cells.count)
    stays = np.ones(cells.count, dtype=bool)
    while True:
        small = np.flatnonzero(stays & (totals < threshold))
        if not small.size:
            break
        if stays.sum() == 1:
            return cells.keep(totals >= threshold)
        cell = int(small[np.argmin(totals[small])])
        goal = _most_alike(groups, totals, cell, stays)
        totals[goal] += totals[cell]
        into[into == cell] = goal
        stays[cell] = False
    return cells if stays.all() else cells.join(into)


def _most_alike(groups: Ints, totals: Ints, cell: int, stays: Flags) -> int:
    """Return the index of the cell that most candidates group with `cell`; among equals, the
    largest.

    Parameters
    ----------
    groups
        Group of each of K cells under each of G candidates, shape (G, K).
    totals, stays
        Rows of each cell, and whether the cell may be returned, shape (K,) each.
    """
    alike = (groups == groups[:, [cell]]).sum(axis=0)
    alike[~stays] = -1
    alike[cell] = -1
    return int(np.lexsort((totals, alike))[-1])


def join_similar(cells: Cells, cell: int) -> Cells:
    """Merge the cell with index `cell` into the most similar cell, the one that most candidate
    masks group with it.
    """
    groups = np.array([c.groups for c in cells.candidates], dtype=np.int64)
    totals = cells.joint.sum(axis=1)
    target = np.arange(cells.count)
    target[cell] = _most_alike(groups, totals, cell, np.ones(cells.count, dtype=bool))
    return cells.join(target)
