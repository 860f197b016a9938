"""What there is to predict: one label, several, or none."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

from aegis.errors import PolicyError
from aegis.measures import MEASURES, SHARE_KEPT, LabelKind, Measure, chosen_measure
from aegis.words import amount


@dataclass(frozen=True)
class Label:
    """The label: the column to predict, by its classes or as a number.

    A table without a label has `NO_LABEL`: no column, and one class that holds all rows.

    Attributes
    ----------
    column
        Name of the column.
    bins
        Number of quantile bins of a numeric label; None if it is not cut.
    classes
        All classes that the label can have; empty if the table is asked.
    cuts
        Where a numeric label is cut, ascending; empty if quantiles of the table are the cuts.
    kind
        Whether its values are classes, or a number is predicted.
    several
        Several labels in place of one, whose column is then empty; None for one label or none.
    bounds
        Least and largest number of a number to predict, as far as a protected summary counts; None
        if the policy does not declare them.
    """

    column: str
    bins: int | None = None
    classes: tuple[Any, ...] = ()
    cuts: tuple[int | float, ...] = ()
    kind: LabelKind = LabelKind.CLASSES
    several: SeveralLabels | None = None
    bounds: tuple[int | float, int | float] | None = None

    def __post_init__(self) -> None:
        self._check_bounds()
        if self.is_number and (self.classes or self.cut):
            given = "classes" if self.classes else "bins" if self.bins else "cuts"
            raise PolicyError(
                f"The label {self.column!r} is a number and has `{given}`, which make classes of it.",
                hint="Leave `kind: number` out to predict classes, or leave "
                f"`{given}` out to predict the number.",
            )
        if self.classes and (self.bins or self.cuts):
            raise PolicyError(
                f"The label {self.column!r} has classes and is cut into bins.",
                hint="Give `classes`, or `bins` with `cuts`: intervals are the classes of a label that is cut.",
            )
        texts = [str(value) for value in self.classes]
        if self.classes and len(set(texts)) < max(2, len(texts)):
            raise PolicyError(
                f"The label {self.column!r} declares the classes {', '.join(texts)}.",
                hint="Give at least two classes, each once.",
            )
        if any(b <= a for a, b in pairwise(self.cuts)):
            raise PolicyError(
                f"The cuts of the label {self.column!r} do not ascend: {list(self.cuts)}.",
                hint="List each cut once, the least first.",
            )
        if self.cuts and self.bins is not None and len(self.cuts) != self.bins - 1:
            raise PolicyError(
                f"The label {self.column!r} declares {self.bins} bins and {amount(len(self.cuts))} "
                f"{'cut' if len(self.cuts) == 1 else 'cuts'}.",
                hint=f"Give {self.bins - 1} cuts, or leave `bins` out.",
            )

    def _check_bounds(self) -> None:
        """Raise `PolicyError` for bounds that do not ascend, or that are of classes."""
        if self.bounds is None:
            return
        if not self.is_number:
            raise PolicyError(
                f"The label {self.column!r} has `bounds`, which are of a number to predict.",
                hint="Add `kind: number`, or leave `bounds` out.",
            )
        low, high = self.bounds
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise PolicyError(
                f"The bounds of the label {self.column!r} are {low} and {high}.",
                hint="Give two numbers, the least first: `bounds: [0, 100]`.",
            )

    @property
    def declared(self) -> bool:
        """Whether the policy says which classes there can be."""
        return bool(self.classes or self.cuts)

    @property
    def is_number(self) -> bool:
        """Whether a number is predicted, and no class."""
        return self.kind is LabelKind.NUMBER

    @property
    def cut(self) -> bool:
        """Whether a numeric label is cut into classes."""
        return self.bins is not None or bool(self.cuts)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to predict."""
        if self.several is not None:
            return self.several.columns
        return (self.column,) if self.column else ()

    def __bool__(self) -> bool:
        """Whether there is one label, by which rows have a class or a number."""
        return bool(self.column)

    def __str__(self) -> str:
        any_column = self.several is not None and self.several.any_column
        return "any" if any_column else ", ".join(self.columns)


class Serve(StrEnum):
    """How the shares kept of several labels are combined."""

    MEAN = "mean"
    """Their weighted mean."""
    WORST = "worst"
    """The smallest of them."""


@dataclass(frozen=True)
class LabelTask:
    """One of several labels, and by which measure it is scored.

    Attributes
    ----------
    label
        The column to predict.
    weight
        How much it counts in the mean of the shares kept, above zero.
    measure
        Name of its measure; None for the policy's, or the default of its kind.
    """

    label: Label
    weight: float = 1.0
    measure: str | None = None

    def __post_init__(self) -> None:
        if not 0 < self.weight < math.inf:
            raise PolicyError(
                f"The label {self.label.column!r} has the weight {self.weight:g}.",
                hint="Give a weight above zero, or leave the label out of `labels`.",
            )
        if self.measure is not None:
            chosen_measure(self.measure, label=self.label.kind)

    def named_measure(self, general: str | None) -> str | None:
        """Return the name of its measure, else the `general` one where that is of labels of its kind."""
        if self.measure is not None or general is None:
            return self.measure
        chosen = MEASURES.get(general)
        return chosen.name if chosen.reads_label and chosen.label is self.label.kind else None

    def measure_by(self, general: str | None) -> Measure:
        """Return the measure of that name, else the default of its kind."""
        return chosen_measure(self.named_measure(general), label=self.label.kind)


@dataclass(frozen=True)
class SeveralLabels:
    """Several labels of one table, which one release is to serve together.

    Attributes
    ----------
    tasks
        The labels, at least two; none for `labels: any`, which is every column in turn.
    serve
        How the shares kept are combined.
    known
        Whether who predicts one of the labels knows the others.
    """

    tasks: tuple[LabelTask, ...]
    serve: Serve = Serve.MEAN
    known: bool = False

    def __post_init__(self) -> None:
        columns = [task.label.column for task in self.tasks]
        for column in columns:
            if columns.count(column) > 1:
                raise PolicyError(
                    f"`labels` names {column!r} {columns.count(column)} times.",
                    hint="Name each label once; a weight says how much it counts.",
                )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the labels."""
        return tuple(task.label.column for task in self.tasks)

    @property
    def measure(self) -> str:
        """Name of the measure that combines the shares kept."""
        return f"{SHARE_KEPT}({self.serve})"

    @property
    def any_column(self) -> bool:
        """Whether every column is a label in turn: `labels: any`."""
        return not self.tasks


def several_labels(
    tasks: Iterable[LabelTask], serve: Serve = Serve.MEAN, *, known: bool = False
) -> Label:
    """Return several labels as the label of a policy; of one task its label itself.

    Examples
    --------
    >>> from aegis.policy import Label, LabelTask, several_labels
    >>> several_labels([LabelTask(Label("income")), LabelTask(Label("hours"), weight=2)]).several.columns
    ('income', 'hours')
    >>> several_labels([LabelTask(Label("income"))]) == Label("income")
    True
    """
    listed = tuple(tasks)
    if len(listed) == 1:
        return listed[0].label
    return Label("", kind=LabelKind.NONE, several=SeveralLabels(listed, serve, known))


NO_LABEL = Label("", kind=LabelKind.NONE)
"""The label of a table that has none: each column is then predicted from the others."""
ANY_LABEL = several_labels(())
"""The same where the policy says so: `labels: any`."""
