"""Define the label: one column to predict, several, or none."""

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

MUCH_IN_ONE_ROW = 0.2
"""If one row accounts for at least this share of a numeric label's variance, R2 describes mainly
this row.
"""


@dataclass(frozen=True)
class Label:
    """The column that models predict, as classes or as a number.

    A table without a label has `NO_LABEL`, which has no column, and one class for all rows.

    Attributes
    ----------
    column
        Name of the column.
    bins
        Number of quantile bins of a numeric label; None if it is not cut into bins.
    classes
        All classes that the label can have; empty if they come from the table.
    cuts
        Cut points of a numeric label in ascending order; empty if it is cut at quantiles of the
        table.
    kind
        Whether the label is a class or a number.
    several
        All labels if there are several, in which case `column` is empty; None if there is one label
        or none.
    bounds
        Smallest and largest value of a numeric label that a protected summary counts; None if the
        policy does not declare them.
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
            key = "classes" if self.classes else "bins" if self.bins else "cuts"
            raise PolicyError(
                f"The label {self.column!r} is a number to predict, but `{key}` would cut it into classes.",
                hint="Leave `kind: number` out to predict classes, or leave "
                f"`{key}` out to predict the number.",
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
        """Raise `PolicyError` for bounds that do not ascend, or if a label with classes has bounds."""
        if self.bounds is None:
            return
        if not self.is_number:
            raise PolicyError(
                f"The label {self.column!r} has `bounds`, but it is not a number to predict.",
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
        """Whether the policy lists the classes that the label can have."""
        return bool(self.classes or self.cuts)

    @property
    def is_number(self) -> bool:
        """Whether models predict a number instead of a class."""
        return self.kind is LabelKind.NUMBER

    @property
    def cut(self) -> bool:
        """Whether a numeric label is cut into ranges, which are its classes."""
        return self.bins is not None or bool(self.cuts)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that models predict."""
        if self.several is not None:
            return self.several.columns
        return (self.column,) if self.column else ()

    def __bool__(self) -> bool:
        """Whether there is a single label, by which each row has a class or a number."""
        return bool(self.column)

    def __str__(self) -> str:
        any_column = self.several is not None and self.several.any_column
        return "any" if any_column else ", ".join(self.columns)


class Serve(StrEnum):
    """How Aegis combines the shares of utility that a release keeps for several labels into one
    figure.
    """

    MEAN = "mean"
    """The weighted mean of the shares."""
    WORST = "worst"
    """The smallest of the shares."""


@dataclass(frozen=True)
class LabelTask:
    """One of several labels, with its weight and its measure.

    Attributes
    ----------
    label
        The column to predict.
    weight
        Weight of this label when the shares of utility kept are averaged over all labels; above
        zero.
    measure
        Name of the label's measure; None for the measure of the policy, or else the default measure
        for the label's kind.
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
        """Return the label's own measure, else `general` if it fits the label's kind."""
        if self.measure is not None or general is None:
            return self.measure
        chosen = MEASURES.get(general)
        return chosen.name if chosen.reads_label and chosen.label is self.label.kind else None

    def measure_by(self, general: str | None) -> Measure:
        """Return the label's own measure, else `general` if it fits, else the kind's default."""
        return chosen_measure(self.named_measure(general), label=self.label.kind)


@dataclass(frozen=True)
class SeveralLabels:
    """Several labels of one table, all of which a single release should serve.

    Attributes
    ----------
    tasks
        The labels, at least two; empty for `labels: any`, which means that each column is predicted
        in turn.
    serve
        How the shares of utility kept for the labels are combined.
    labels_known
        Whether the other labels are inputs when one label is predicted.
    """

    tasks: tuple[LabelTask, ...]
    serve: Serve = Serve.MEAN
    labels_known: bool = False

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
        """The names of the columns that are labels."""
        return tuple(task.label.column for task in self.tasks)

    @property
    def measure(self) -> str:
        """The name of the measure that combines the shares of utility kept for all labels."""
        return f"{SHARE_KEPT}({self.serve})"

    @property
    def any_column(self) -> bool:
        """Whether each column is predicted from the others, as `labels: any` in a policy says."""
        return not self.tasks


def several_labels(
    tasks: Iterable[LabelTask], serve: Serve = Serve.MEAN, *, labels_known: bool = False
) -> Label:
    """Combine several labels into one `Label` of a policy. If there is only one, return this label.
    `serve` says how their results are combined, and `labels_known` whether the other labels are inputs
    when one label is predicted.

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
    return Label("", kind=LabelKind.NONE, several=SeveralLabels(listed, serve, labels_known))


NO_LABEL = Label("", kind=LabelKind.NONE)
"""The label of a table that has none: each column is then predicted from the others."""
ANY_LABEL = several_labels(())
"""The label if the policy has `labels: any`: each column is then predicted from the others."""
