"""The registry's record of a measure: how to compute it, and how to read it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from aegis.errors import InternalError, PolicyError
from aegis.measures.contingency import Contingency
from aegis.measures.cooccurrence import Cooccurrence, Need
from aegis.registry import Registry

DEFAULT_MEASURE = "held-out-auc"
"""What ranks configurations, is searched and measures releases where nobody names a measure.

A release is measured by the two tables alone: [30, 40[ is text in one of them, without an order.
"""
NUMBER_MEASURE = "held-out-r2"
"""What ranks, searches and measures releases of a table with a number to predict."""
UNLABELLED_MEASURE = "adjusted-contingency"
"""What ranks, searches and measures releases of a table without a label."""


class LabelKind(StrEnum):
    """The kind of label: classes, a number, or none."""

    CLASSES = "classes"
    """A class of each row."""
    NUMBER = "number"
    """A number of each row."""
    NONE = "none"
    """Nothing: association among all columns is kept."""

    @property
    def default_measure(self) -> str:
        """Name of the measure that ranks by default."""
        return {
            LabelKind.CLASSES: DEFAULT_MEASURE,
            LabelKind.NUMBER: NUMBER_MEASURE,
            LabelKind.NONE: UNLABELLED_MEASURE,
        }[self]


class Scope(StrEnum):
    """The input of a measure: one attribute, or a whole configuration."""

    ATTRIBUTE = "attribute"
    """One attribute against the label, from a `Contingency`."""
    CONFIGURATION = "configuration"
    """All attributes of a configuration together, from a `Cooccurrence`."""

    @property
    def counts(self) -> type[Contingency] | type[Cooccurrence]:
        """The type of counts that measures of this scope accept."""
        return Contingency if self is Scope.ATTRIBUTE else Cooccurrence


class Direction(StrEnum):
    """Which values of a measure mean more predictive value."""

    HIGHER = "higher"
    LOWER = "lower"

    @property
    def sign(self) -> int:
        """1 if higher values are better, -1 if lower ones are: `sign * value` is to be
        maximised.
        """
        return 1 if self is Direction.HIGHER else -1


class Trace(StrEnum):
    """Relation of a measure to Pillai's trace, used to bound the search."""

    PLUG_IN = "plug-in"
    """It is the trace."""
    ADJUSTED = "adjusted"
    """It is the trace less what chance adds, `adjusted_for`."""
    BELOW = "below"
    """It is at most the trace, whatever the configuration."""


@dataclass(frozen=True, eq=False)
class Margins:
    """The known margins of an attribute and the label if their joint is unknown.

    Attributes
    ----------
    classes
        Rows of each label class, shape (C,).
    distinct
        How many values the attribute has.
    values
        Rows of each value, shape (V,); None if they are not known.
    """

    classes: npt.NDArray[np.float64]
    distinct: int
    values: npt.NDArray[np.float64] | None

    @property
    def rows(self) -> float:
        """Rows of the table."""
        return float(self.classes.sum())

    @property
    def most(self) -> int:
        """One less than the number of values, or of classes if there are fewer."""
        return min(int(np.count_nonzero(self.classes)), self.distinct) - 1


@dataclass(frozen=True)
class Measure:
    """A measure of association between masked attributes and the label.

    Attributes
    ----------
    name
        As policies and the command line write it.
    title
        The field's term for it.
    description
        One or two sentences: what it says, and when to use it.
    formula
        The definition in plain text; counts n_xy, shares p_xy, K non-empty rows, columns, cells.
    reference
        Where it is defined.
    range
        The values that it can take.
    unit
        "bits", "share of rows", or "1" for a pure number.
    direction
        Which values are better.
    monotone
        Whether no coarser deterministic mask can improve it; estimates of what masks hide go by it.
        A search does not: see `trace` and `of_pair`.
    scope
        What it is computed on.
    cost
        Order of its running time.
    compute
        The measure itself: a pure function of the counts of its scope.
    needs
        What a measure of a configuration reads beside the co-occurrence of all rows.
    without_parts
        The measure without each part of the rows in turn, shape (K,), where it is made of scores by
        part: its standard error comes from them. None: it is computed anew without each fold.
    floor
        What a constant prediction reaches: utility is counted from there.
    constant
        The same from the rows of each class, where it depends on them.
    fractional
        Whether a measure of one attribute is defined on expected counts as they are.
    processed
        Whether no channel can improve it, so that noise cannot either (data processing).
    limit
        The best value that any joint with the same margins has; None if it is not known.
    trace
        How it stands to Pillai's trace, by which a search bounds it; None: it does not.
    of_pair
        What a pair of attributes adds, from the rows by value of the one and of the other and what
        noise leaves of the values (see `pair_contingency`), where the measure is the mean of it over
        all pairs. Then no label is read, and a search bounds it pair by pair. None: it reads the label.
    doubted_by
        Name of the measure that says whether a lead of a record-level release under this one is
        overfitting; None: nothing is asked.
    label
        What the label is, where the measure reads it.

    Raises
    ------
    InternalError
        A property is empty or of the wrong type: an incomplete measure is not registered.
    """

    name: str
    title: str
    description: str
    formula: str
    reference: str
    range: str
    unit: str
    direction: Direction
    monotone: bool
    scope: Scope
    cost: str
    compute: Callable[[Contingency], float] | Callable[[Cooccurrence], float]
    needs: Collection[Need] = ()
    without_parts: Callable[[Cooccurrence], npt.NDArray[np.float64]] | None = None
    floor: float = 0.0
    constant: Callable[[Sequence[float]], float] | None = None
    fractional: bool = False
    processed: bool = False
    limit: Callable[[Margins], float] | None = None
    trace: Trace | None = None
    of_pair: Callable[[npt.NDArray[Any], tuple[float, float] | None], float] | None = None
    doubted_by: str | None = None
    label: LabelKind = LabelKind.CLASSES

    @property
    def reads_label(self) -> bool:
        """Whether the measure depends on the label; otherwise it depends on the attributes
        alone.
        """
        return self.of_pair is None

    def __post_init__(self) -> None:
        kinds = {"direction": Direction, "monotone": bool, "scope": Scope}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.default is not MISSING:
                continue
            if field.name == "compute":
                sound = callable(value)
            elif field.name in kinds:
                sound = isinstance(value, kinds[field.name])
            else:
                sound = isinstance(value, str) and bool(value.strip())
            if not sound:
                raise InternalError(f"Measure {self.name!r} lacks its {field.name}: {value!r}.")

    def worst(self, classes: Sequence[float] | None = None) -> float:
        """Return what a constant prediction reaches, from the rows of each class."""
        if self.constant is not None and classes is not None:
            return self.constant(classes)
        return self.floor if self.direction is Direction.HIGHER else 1.0

    def __call__(self, counts: Contingency | Cooccurrence) -> float:
        """Return the value for `counts`, of the type that the scope names.

        Raises
        ------
        InternalError
            The counts are those of the other scope, or the value is not a number, which would
            neither rank nor bound anything.
        """
        if not isinstance(counts, self.scope.counts):
            raise InternalError(
                f"Measure {self.name!r} takes a {self.scope.counts.__name__},"
                f" not a {type(counts).__name__}."
            )
        if isinstance(counts, Cooccurrence) and (lacking := counts.lacks(self.needs)):
            raise InternalError(f"Measure {self.name!r} needs {', '.join(lacking)}.")
        value = cast(Callable[[Any], float], self.compute)(counts)
        if math.isnan(value):
            raise InternalError(f"Measure {self.name!r} returned a value that is not a number.")
        return value


MEASURES: Registry[Measure] = Registry("measure")
"""All measures by name; third parties add theirs through the entry points `aegis.measures`."""


def chosen_measure(*names: str | None, label: LabelKind) -> Measure:
    """Return the first measure that is named, otherwise the default for this kind of label.

    Raises
    ------
    PolicyError
        The measure is unknown, or is of a label of another kind than the policy has.
    """
    named = next((name for name in names if name is not None), label.default_measure)
    measure = MEASURES.get(named)
    if not measure.reads_label or measure.label is label:
        return measure
    if label is LabelKind.NONE:
        raise PolicyError(
            f"Measure {measure.name!r} is of a label, and the policy has none.",
            hint=f"Name the label in the policy (`label: COLUMN`), or leave the measure out: "
            f"{UNLABELLED_MEASURE} then looks at all columns alike.",
        )
    if label is LabelKind.NUMBER:
        raise PolicyError(
            f"Measure {measure.name!r} is of classes, and the label is a number.",
            hint=f"Leave the measure out: {NUMBER_MEASURE} then says how well the number is predicted. "
            "Or cut the number into classes: `label: {column: NAME, bins: 5}`.",
        )
    raise PolicyError(
        f"Measure {measure.name!r} is of a number to predict, and the label has classes.",
        hint="Write `label: {column: NAME, kind: number}`, or leave the measure out: "
        f"{DEFAULT_MEASURE} is then expected.",
    )


def measures_of(label: LabelKind) -> list[Measure]:
    """Return the measures for a label of this kind, and those that need no label."""
    return [measure for measure in MEASURES if not measure.reads_label or measure.label is label]


def get(name: str) -> Measure:
    """Return the measure called `name`; raise a `PolicyError` that lists all names if there is
    none.
    """
    return MEASURES.get(name)
