"""Form the cells (sets of values) with exact counts from which a protected summary is made, and
choose the label classes that it names. The counts never leave this process.

Rows of classes without a published name count as unlabelled. The name of a class with one row would
reveal this row. So a class is named only if the policy declares it, if its noisy count is large
enough (level `noise`), or if it has at least `threshold` rows (level `counts`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ibis.expr.types as ir
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegis.arrays import Flags, Ints, ranks
from aegis.errors import PolicyError, require_known
from aegis.masks import Kind, Mask, Quantiles, ValueCounts, common_refinement, evaluate
from aegis.policy import Label, Policy, Role
from aegis.safe.protect.columns import TypedColumn, as_stored, plain_text
from aegis.safe.protect.model import ProtectedAttribute, ProtectedCandidate
from aegis.sources import Source
from aegis.summary import AttributeSummary, LabelSummary, Summary
from aegis.summary.codes import in_natural_order, natural_order, show

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
        Name of the attribute, its role, kind of values, and weight in a mean over attributes.
    of_value
        Index of the cell to which each of the V distinct values belongs, shape (V,); `UNNAMED` if
        the value has no cell.
    joint
        Number of rows in each of the K cells and C label classes, shape (K, C); rows without a
        label do not count.
    candidates
        The candidate masks, each with the group to which it assigns each cell.
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
        """Whether some values may have no cell, because their names are not published."""
        return self.bought or not self.complete

    @property
    def keys(self) -> list[str]:
        """A text that identifies each cell: its masked values under all candidate masks."""
        return [
            "\x1e".join(c.labels[int(c.groups[i])] for c in self.candidates)
            for i in range(self.count)
        ]

    def in_order(self) -> Cells:
        """Sort cells and groups by masked values: the order in the table would reveal something."""
        ranked = []
        for candidate in self.candidates:
            rank, labels = in_natural_order(candidate.labels)
            ranked.append(replace(candidate, groups=rank[candidate.groups], labels=labels))
        order = np.lexsort([c.groups for c in reversed(ranked)])
        return replace(
            self,
            of_value=_moved(self.of_value, ranks(order)),
            joint=self.joint[order],
            candidates=tuple(replace(c, groups=c.groups[order]) for c in ranked),
        )

    def keep(self, chosen: Flags) -> Cells:
        """Keep the `chosen` cells, shape (K,); the values of others then belong to no cell."""
        new_index = np.where(chosen, np.cumsum(chosen) - 1, UNNAMED)
        return replace(
            self,
            of_value=_moved(self.of_value, new_index),
            joint=self.joint[chosen],
            candidates=tuple(_shrunk(c, c.groups[chosen]) for c in self.candidates),
        )

    def join(self, target: Ints) -> Cells:
        """Merge cells. `target` has the index of the cell into which each is merged, shape (K,)."""
        stays = target == np.arange(self.count)
        new_index = (np.cumsum(stays) - 1)[target]
        joint = np.zeros((int(stays.sum()), self.joint.shape[1]), dtype=np.int64)
        np.add.at(joint, new_index, self.joint)
        return replace(
            self,
            of_value=_moved(self.of_value, new_index),
            joint=joint,
            candidates=tuple(_shrunk(c, c.groups[stays]) for c in self.candidates),
        )


def _moved(of_value: Ints, new_index: Ints) -> Ints:
    """Return the cell of each value after cells were renumbered as `new_index` says, shape (K,)."""
    moved = np.full(len(of_value), UNNAMED, dtype=np.int64)
    named = of_value >= 0
    moved[named] = new_index[of_value[named]]
    return moved


def _shrunk(candidate: ProtectedCandidate, groups: Ints) -> ProtectedCandidate:
    """Return the candidate for cells with these old `groups`, which are renumbered without empty
    ones.
    """
    old_groups, renumbered = np.unique(groups, return_inverse=True)
    return replace(
        candidate,
        groups=renumbered.astype(np.int64),
        labels=tuple(candidate.labels[i] for i in old_groups.tolist()),
    )


def with_unnamed(candidate: ProtectedCandidate, table: Ints) -> ProtectedCandidate:
    """Add to a candidate mask one cell for all values whose names are not published.

    If the mask distinguishes all other cells (their rows by class are `table`), the new cell is a
    separate group. Otherwise it joins the largest group, so that the score is not overestimated.
    """
    if candidate.size in (0, len(table)) and len(table) != 1:
        group, labels = candidate.size, (*candidate.labels, UNNAMED_SHOWN)
    else:
        rows = np.bincount(candidate.groups, weights=table.sum(axis=1))
        group, labels = int(rows.argmax()), candidate.labels
    return replace(candidate, groups=np.append(candidate.groups, group), labels=labels)


def check_summary(summary: Summary, policy: Policy) -> None:
    """Refuse what a protected summary cannot have: a masked label, or noise masks."""
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


def learned(attribute: AttributeSummary | ProtectedAttribute) -> bool:
    """Return whether a candidate mask of the attribute learns from the data, such as cut points."""
    return not all(c.declared.fitted for c in attribute.candidates)


def cells_of(attribute: AttributeSummary) -> Cells:
    """Return the cells of an attribute: the sets of values that no candidate mask distinguishes."""
    masks = [(c.mask, c.groups, c.labels) for c in attribute.candidates]
    return _cells(as_stored(attribute), masks)


def cells_in(column: TypedColumn, masks: Sequence[Mask] | None = None) -> Cells:
    """Return the cells of a parsed column, in order; `masks` are its candidates if fitted
    elsewhere.
    """
    chosen = [c.mask for c in column.attribute.candidates] if masks is None else list(masks)
    evaluated = evaluate(chosen, column.values)
    listed = [(m, g.codes, g.labels) for m, g in zip(chosen, evaluated, strict=True)]
    return _cells(column, listed).in_order()


def _cells(column: TypedColumn, masks: Sequence[tuple[Mask, Codes, tuple[str, ...]]]) -> Cells:
    """Form the cells of a column from each mask, its group of each value, and its groups' masked
    values.
    """
    attribute = column.attribute
    cell_ids = common_refinement([groups for _, groups, _ in masks]).astype(np.int64)
    first = np.unique(cell_ids, return_index=True)[1]
    joint = np.zeros((len(first), attribute.joint.shape[1]), dtype=np.int64)
    np.add.at(joint, cell_ids, column.joint)
    candidates = tuple(
        ProtectedCandidate(mask, candidate.declared, groups[first].astype(np.int64), labels)
        for candidate, (mask, groups, labels) in zip(attribute.candidates, masks, strict=True)
    )
    parsed = column.value_index >= 0
    of_value = np.full(len(column.value_index), UNNAMED, dtype=np.int64)
    of_value[parsed] = cell_ids[column.value_index[parsed]]
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
    """Fit the masks that learn to protected rows of the U values; only `named` values count, shape
    (U,).
    """
    values = column.values.filter(pa.array(named.tolist(), pa.bool_()))
    data = ValueCounts(column.kind, values, np.maximum(counts[named], 0))
    return [candidate.declared.fit(data) for candidate in column.attribute.candidates]


def public_names(names: Collection[str], summary: Summary) -> frozenset[str]:
    """Return the attributes whose values are public (`*`: all); raise `PolicyError` for unknown
    ones.
    """
    if "*" in names:
        return frozenset(summary.attributes)
    for name in names:
        require_known("attribute", name, summary.attributes)
    return frozenset(names)


def without_small(cells: Cells, threshold: int) -> Cells:
    """Merge cells of fewer than `threshold` rows into the most similar ones, because the name of a
    small cell would reveal that somebody has its values.

    There are no cells if the table has fewer rows than the threshold.
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
    """Return the cell that shares a group with `cell` under most masks; among equals, the largest.

    `groups` has shape (G, K) for G candidates; `totals` (rows) and `stays` (allowed) have (K,).
    """
    alike = (groups == groups[:, [cell]]).sum(axis=0)
    alike[~stays] = -1
    alike[cell] = -1
    return int(np.lexsort((totals, alike))[-1])


def join_similar(cells: Cells, cell: int) -> Cells:
    """Merge the cell with index `cell` into the most similar one."""
    groups = np.array([c.groups for c in cells.candidates], dtype=np.int64)
    totals = cells.joint.sum(axis=1)
    target = np.arange(cells.count)
    target[cell] = _most_alike(groups, totals, cell, np.ones(cells.count, dtype=bool))
    return cells.join(target)


@dataclass(frozen=True, eq=False)
class NamedClasses:
    """The label classes whose names a protected summary publishes.

    Attributes
    ----------
    names
        The text of each class.
    name_index
        For each of the C label classes of the table, the index in `names`, shape (C,); -1 if the
        class is not published.
    """

    names: tuple[str, ...]
    name_index: Ints

    def of(self, joint: Ints) -> Ints:
        """Convert counts by class of the table (the last axis) to counts by published class."""
        chosen = self.name_index[:, None] == np.arange(len(self.names))
        columns: Ints = joint @ chosen.astype(np.int64)
        return columns

    def within(self, cells: Cells) -> Cells:
        """Return cells in which only rows of published classes count."""
        return replace(cells, joint=self.of(cells.joint))


def declared_classes(label: Label) -> tuple[str, ...]:
    """Return the label classes that a policy declares by name or cut points; empty if none."""
    if not label.cuts:
        return tuple(plain_text(show(value)) for value in label.classes)
    edges = [float(cut) for cut in label.cuts]
    inside = pa.array([np.nextafter(edges[0], -np.inf), *edges], pa.float64())
    [intervals] = evaluate([_cuts_of(label)], inside)
    return intervals.labels


def _cuts_of(label: Label) -> Quantiles:
    return Quantiles(label.bins or len(label.cuts) + 1, label.cuts)


def by_declaration(label: LabelSummary, declared: Label, *, others_refused: bool) -> NamedClasses:
    """Return the label classes that the policy declares.

    Raise `PolicyError` if the table's label was not cut at the points of the policy, or if
    `others_refused` is set and rows have an undeclared class.
    """
    if declared.cuts and (label.mask is None or label.mask != _cuts_of(declared)):
        raise PolicyError(
            f"The label {label.column!r} of the summary was not cut at the cuts that the policy declares.",
            hint="Give the table, or summarise it with this policy.",
        )
    names = declared_classes(declared)
    index_of = {name: index for index, name in enumerate(names)}
    texts = map(plain_text, label.classes)
    name_index = np.array([index_of.get(text, -1) for text in texts], dtype=np.int64)
    if others_refused and (label.counts[name_index < 0] > 0).any():
        raise PolicyError(
            f"The policy declares too few classes of the label {label.column!r}: rows of the table "
            f"have others than {', '.join(names[:10])}.",
            hint="Declare all classes that the label can have, or write `unseen: suppress`: rows of "
            "other classes then count as rows without a label.",
        )
    return NamedClasses(names, name_index)


def tallied(label: LabelSummary) -> tuple[tuple[str, ...], Ints]:
    """Return the classes of the label column, sorted by name, and the number of rows in each."""
    codes, texts = _places(label)
    return texts, np.bincount(codes, weights=label.counts, minlength=len(texts)).astype(np.int64)


def named(label: LabelSummary, chosen: Flags) -> NamedClasses:
    """Return the `chosen` classes, in the order of `tallied`; raise `PolicyError` for fewer than
    two.
    """
    codes, texts = _places(label)
    if chosen.sum() < 2:
        raise PolicyError(
            f"Fewer than two classes of the label {label.column!r} have enough rows to be named.",
            hint=f"Declare them, if they are public knowledge: `label: {{column: {label.column}, "
            "classes: [...]}`.",
        )
    column = np.where(chosen, np.cumsum(chosen) - 1, -1)
    names = tuple(text for text, is_chosen in zip(texts, chosen.tolist(), strict=True) if is_chosen)
    return NamedClasses(names, column[codes])


def _places(label: LabelSummary) -> tuple[Ints, tuple[str, ...]]:
    class_texts = [plain_text(text) for text in label.classes]
    texts = list(dict.fromkeys(class_texts))
    ordered = tuple(texts[i] for i in natural_order(texts).tolist())
    index_of = {text: index for index, text in enumerate(ordered)}
    return np.array([index_of[text] for text in class_texts], dtype=np.int64), ordered


def rows_of(source: Source, label: LabelSummary, classes: NamedClasses) -> ir.Table:
    """Return the rows of a table whose label has one of the published classes."""
    column = source.table[label.column]
    if (classes.name_index >= 0).all():
        return source.table.filter(column.notnull())
    masked_label = column if label.mask is None else label.mask.expression(column)
    distinct = source.collect(source.table.select(c=masked_label).distinct())["c"].to_pylist()
    named_labels = {
        t for t, index in zip(label.classes, classes.name_index.tolist(), strict=True) if index >= 0
    }
    return source.table.filter(
        masked_label.isin([v for v in distinct if v is not None and show(v) in named_labels])
    )


def refuse_cut_at_values(declared: Label) -> None:
    """Refuse to cut a numeric label at quantiles, which are values of single persons."""
    if declared.bins is not None and not declared.cuts:
        raise PolicyError(
            f"The policy declares too few cuts: the label {declared.column!r} would be cut into "
            f"{declared.bins} bins at values of the table, which level noise must not publish.",
            hint=f"Declare {declared.bins - 1} cuts that are public knowledge: `label: {{column: "
            f"{declared.column}, cuts: [...]}}`.",
        )
