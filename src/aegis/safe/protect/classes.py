"""Choose the label classes that a protected summary names; rows of other classes count as unlabelled.

The name of a class with one row would reveal this row. So a class is named only if the policy
declares it, if its noisy count is large enough (level `noise`), or if it has at least `threshold`
rows (level `counts`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import ibis.expr.types as ir
import numpy as np
import pyarrow as pa

from aegis.arrays import Flags, Ints
from aegis.errors import PolicyError
from aegis.masks import Quantiles, evaluate
from aegis.policy import Label
from aegis.safe.protect.cells import Cells
from aegis.safe.protect.columns import plain_text
from aegis.sources import Source
from aegis.summary import LabelSummary
from aegis.summary.codes import natural_order, show


@dataclass(frozen=True, eq=False)
class NamedClasses:
    """The label classes whose names a protected summary publishes.

    Attributes
    ----------
    names
        The text of each class.
    place
        For each of the C classes of the exact label, the index in `names`, shape (C,); -1 if the
        class is not published.
    """

    names: tuple[str, ...]
    place: Ints

    def of(self, joint: Ints) -> Ints:
        """Convert counts by class of the exact label to counts by published class; classes are the
        last axis of `joint`.
        """
        chosen = self.place[:, None] == np.arange(len(self.names))
        columns: Ints = joint @ chosen.astype(np.int64)
        return columns

    def within(self, cells: Cells) -> Cells:
        """Return the cells (rows by set of values and class) of an attribute with the counts of
        only the published classes.
        """
        return replace(cells, joint=self.of(cells.joint))


def declared_classes(label: Label) -> tuple[str, ...]:
    """Return the classes that a policy declares, by name or by cuts; empty if it declares none."""
    if not label.cuts:
        return tuple(plain_text(show(value)) for value in label.classes)
    edges = [float(cut) for cut in label.cuts]
    inside = pa.array([np.nextafter(edges[0], -np.inf), *edges], pa.float64())
    [intervals] = evaluate([_cuts_of(label)], inside)
    return intervals.labels


def _cuts_of(label: Label) -> Quantiles:
    return Quantiles(label.bins or len(label.cuts) + 1, label.cuts)


def by_declaration(label: LabelSummary, declared: Label, *, others_refused: bool) -> NamedClasses:
    """Return the classes that the policy declares.

    Raises
    ------
    PolicyError
        The label was not cut at the points of the policy, or rows have an undeclared class and
        `others_refused` is set.
    """
    if declared.cuts and (label.mask is None or label.mask != _cuts_of(declared)):
        raise PolicyError(
            f"The label {label.column!r} of the summary was not cut at the cuts that the policy declares.",
            hint="Give the table, or summarise it with this policy.",
        )
    names = declared_classes(declared)
    known = {name: place for place, name in enumerate(names)}
    place = np.array([known.get(plain_text(text), -1) for text in label.classes], dtype=np.int64)
    if others_refused and (label.counts[place < 0] > 0).any():
        raise PolicyError(
            f"The policy declares too few classes of the label {label.column!r}: rows of the table "
            f"have others than {', '.join(names[:10])}.",
            hint="Declare all classes that the label can have, or write `unseen: suppress`: rows of "
            "other classes then count as rows without a label.",
        )
    return NamedClasses(names, place)


def tallied(label: LabelSummary) -> tuple[tuple[str, ...], Ints]:
    """Return the classes that occur in the label column, and the number of rows in each class. The
    order of the classes depends only on the names of the classes.
    """
    place, texts = _places(label)
    return texts, np.bincount(place, weights=label.counts, minlength=len(texts)).astype(np.int64)


def named(label: LabelSummary, chosen: Flags) -> NamedClasses:
    """Return the classes that occur in the label column, in the order of `tallied`, for which
    `chosen` is True.

    Raises
    ------
    PolicyError
        Fewer than two classes are chosen.
    """
    place, texts = _places(label)
    if chosen.sum() < 2:
        raise PolicyError(
            f"Fewer than two classes of the label {label.column!r} have enough rows to be named.",
            hint=f"Declare them, if they are public knowledge: `label: {{column: {label.column}, "
            "classes: [...]}`.",
        )
    column = np.where(chosen, np.cumsum(chosen) - 1, -1)
    names = tuple(text for text, own in zip(texts, chosen.tolist(), strict=True) if own)
    return NamedClasses(names, column[place])


def _places(label: LabelSummary) -> tuple[Ints, tuple[str, ...]]:
    shown = [plain_text(text) for text in label.classes]
    texts = list(dict.fromkeys(shown))
    ordered = tuple(texts[i] for i in natural_order(texts).tolist())
    known = {text: place for place, text in enumerate(ordered)}
    return np.array([known[text] for text in shown], dtype=np.int64), ordered


def rows_of(source: Source, label: LabelSummary, classes: NamedClasses) -> ir.Table:
    """Return the rows of a table whose label has one of the published classes."""
    column = source.table[label.column]
    if (classes.place >= 0).all():
        return source.table.filter(column.notnull())
    own = column if label.mask is None else label.mask.expression(column)
    distinct = source.collect(source.table.select(c=own).distinct())["c"].to_pylist()
    shown = {
        t for t, place in zip(label.classes, classes.place.tolist(), strict=True) if place >= 0
    }
    return source.table.filter(
        own.isin([v for v in distinct if v is not None and show(v) in shown])
    )


def refuse_cut_at_values(declared: Label) -> None:
    """Raise `PolicyError` if the policy cuts a numeric label at quantiles, because quantiles are
    values of single persons.
    """
    if declared.bins is not None and not declared.cuts:
        raise PolicyError(
            f"The policy declares too few cuts: the label {declared.column!r} would be cut into "
            f"{declared.bins} bins at values of the table, which level noise must not publish.",
            hint=f"Declare {declared.bins - 1} cuts that are public knowledge: `label: {{column: "
            f"{declared.column}, cuts: [...]}}`.",
        )
