"""Define the record of a measure in the registry: how to compute the measure and how to interpret
it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from typing import Any, cast

import numpy as np

from aegis.arrays import Array, Floats
from aegis.errors import InternalError, PolicyError
from aegis.measures.contingency import Contingency
from aegis.measures.cooccurrence import Cooccurrence, Need
from aegis.registry import Registry

DEFAULT_MEASURE = "held-out-auc"
"""The measure that ranks configurations, guides searches and evaluates releases by default.

A release is evaluated only from the released and the unmasked table, in which [30, 40[ is a text
without an order.
"""
NUMBER_MEASURE = "held-out-r2"
"""The default measure for a table with a numeric label."""
UNLABELLED_MEASURE = "held-out-any"
"""The default measure for a table without a label."""
ASSOCIATION_MEASURE = "adjusted-contingency"
"""The measure for a table without a label if `UNLABELLED_MEASURE` cannot be computed; it compares
two columns at a time and needs no folds.
"""

SHARE_KEPT = "share-kept"
"""The default measure for a table with several labels; the name is followed by how the labels are
combined.
"""


class LabelKind(StrEnum):
    """The kind of label that a table has."""

    CLASSES = "classes"
    """Each row has a class."""
    NUMBER = "number"
    """Each row has a number."""
    NONE = "none"
    """There is no label: each column is predicted from the others."""
    SEVERAL = "several"
    """There are several labels, each with classes or numbers."""

    @property
    def default_measure(self) -> str:
        """The name of the measure that rankings use for this kind of label if no measure is
        named.
        """
        return {
            LabelKind.CLASSES: DEFAULT_MEASURE,
            LabelKind.NUMBER: NUMBER_MEASURE,
            LabelKind.NONE: UNLABELLED_MEASURE,
            LabelKind.SEVERAL: f"{SHARE_KEPT}(mean)",
        }[self]


class Scope(StrEnum):
    """Whether a measure is computed on single attributes or on whole configurations."""

    ATTRIBUTE = "attribute"
    """One attribute against the label, from a `Contingency`."""
    CONFIGURATION = "configuration"
    """All attributes of a configuration together, from a `Cooccurrence`."""

    @property
    def counts(self) -> type[Contingency] | type[Cooccurrence]:
        """The type of the counts from which measures of this scope are computed."""
        return Contingency if self is Scope.ATTRIBUTE else Cooccurrence


class Direction(StrEnum):
    """Whether higher or lower values of a measure mean that the label is predicted better."""

    HIGHER = "higher"
    LOWER = "lower"

    @property
    def sign(self) -> int:
        """1 if higher is better and -1 if lower is better, so that `sign * value` is maximised."""
        return 1 if self is Direction.HIGHER else -1


class Trace(StrEnum):
    """How a measure is related to Pillai's trace. A search uses this relation to compute bounds."""

    PLUG_IN = "plug-in"
    """The measure is the trace."""
    ADJUSTED = "adjusted"
    """The measure is the trace minus the part that is due to chance (`adjusted_trace`)."""
    BELOW = "below"
    """The measure is at most the trace, for every configuration."""


@dataclass(frozen=True, eq=False)
class Margins:
    """What is known about an attribute and the label if their joint counts are unknown: their
    separate counts.

    Attributes
    ----------
    classes
        Number of rows of each label class, shape (C,).
    distinct
        Number of values of the attribute.
    values
        Number of rows of each value, shape (V,); None if it is unknown.
    """

    classes: Floats
    distinct: int
    values: Floats | None

    @property
    def rows(self) -> float:
        """Number of rows of the table."""
        return float(self.classes.sum())

    @property
    def most(self) -> int:
        """The smaller of the number of values and the number of classes, minus 1."""
        return min(int(np.count_nonzero(self.classes)), self.distinct) - 1


@dataclass(frozen=True)
class Measure:
    """A measure of association between masked attributes and the label.

    Attributes
    ----------
    name
        The name in policies and on the command line.
    title
        The usual name of the measure in the literature.
    description
        One or two sentences: what it measures, and when to use it.
    formula
        The definition in plain text, with counts n_xy, shares p_xy, and the numbers K of non-empty
        rows, columns and cells.
    reference
        Where the measure is defined.
    range
        The values that it can take.
    cost
        How its running time grows.
    compute
        The measure itself: a pure function of the counts of its scope.
    unit
        "bits", "share of rows", or "1" for a pure number.
    direction
        Which values are better.
    monotone
        Whether coarser deterministic masks can only leave the measure unchanged or make it worse.
        Estimates of hidden information rely on this. A search does not: see `trace` and `of_pair`.
    scope
        Whether the measure is computed on single attributes or on whole configurations.
    needs
        Data that a measure of a configuration needs in addition to the co-occurrence of all rows.
    without_parts
        Function that returns the measure without each fold in turn, shape (K,), to compute its
        standard error. Only measures from out-of-fold scores have it. None: the measure is
        recomputed without each fold.
    floor
        The value of a constant prediction; utility is measured from this value.
    constant
        Function that returns the value of a constant prediction from the number of rows of each
        class. None: the value is `floor` for all tables.
    fractional
        Whether a measure of one attribute is defined on fractional (expected) counts.
    processed
        Whether masks with noise (channels), too, can only leave the measure unchanged or make it
        worse (data processing inequality).
    limit
        Function that returns the best value among all joint distributions with given `Margins`.
        None: it is unknown.
    trace
        Relation of the measure to Pillai's trace, from which a search computes bounds. None: there
        is no such relation.
    of_pair
        Function that returns the value of one pair of attributes, if the measure is the mean of
        such values. Its arguments are the number of rows by the values of both attributes, and the
        noise terms of `pair_contingency`. Such a measure reads no label, and a search computes
        bounds pair by pair. None: the measure reads the label.
    doubted_by
        Name of another measure. If a record-level release scores best by this measure, the other
        measure checks whether the score is due to overfitting. None: there is no such check.
    label
        The kind of label that the measure reads; `NONE` if it reads only the attributes.

    Raises
    ------
    InternalError
        A property is empty or has the wrong type. Incomplete measures are not registered.
    """

    name: str
    title: str
    description: str
    formula: str
    reference: str
    range: str
    cost: str
    compute: Callable[[Contingency], float] | Callable[[Cooccurrence], float]
    unit: str = "1"
    direction: Direction = Direction.HIGHER
    monotone: bool = False
    scope: Scope = Scope.ATTRIBUTE
    needs: Collection[Need] = ()
    without_parts: Callable[[Cooccurrence], Floats] | None = None
    floor: float = 0.0
    constant: Callable[[Sequence[float]], float] | None = None
    fractional: bool = False
    processed: bool = False
    limit: Callable[[Margins], float] | None = None
    trace: Trace | None = None
    of_pair: Callable[[Array, tuple[float, float] | None], float] | None = None
    doubted_by: str | None = None
    label: LabelKind = LabelKind.CLASSES

    @property
    def reads_label(self) -> bool:
        """Whether the measure uses the label, or only the attributes."""
        return self.label is not LabelKind.NONE

    def __post_init__(self) -> None:
        kinds = {"direction": Direction, "monotone": bool, "scope": Scope}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "compute":
                sound = callable(value)
            elif field.default is MISSING:
                sound = isinstance(value, str) and bool(value.strip())
            else:
                sound = isinstance(value, kinds.get(field.name, object))
            if not sound:
                raise InternalError(f"Measure {self.name!r} lacks its {field.name}: {value!r}.")

    def worst(self, classes: Sequence[float] | None = None) -> float:
        """Return the value of the measure for a constant prediction, given the number of rows of
        each class.
        """
        if self.constant is not None and classes is not None:
            return self.constant(classes)
        return self.floor if self.direction is Direction.HIGHER else 1.0

    def __call__(self, counts: Contingency | Cooccurrence) -> float:
        """Compute the measure from counts of the type that its scope requires.

        Raises
        ------
        InternalError
            The counts have the type of the other scope, or the value is NaN.
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
"""All measures by name; other packages add measures through the entry points `aegis.measures`."""


def chosen_measure(*names: str | None, label: LabelKind) -> Measure:
    """Return the measure with the first given name that is not None. If all names are None, return
    the default measure for this kind of label.

    Raises
    ------
    PolicyError
        The measure is unknown, or does not work with this kind of label.
    """
    named = next((name for name in names if name is not None), label.default_measure)
    measure = MEASURES.get(named)
    if not measure.reads_label or measure.label is label:
        return measure
    if measure.label is LabelKind.SEVERAL:
        raise PolicyError(
            f"Measure {measure.name!r} combines several labels, but the policy does not name several.",
            hint="Name them in the policy: `labels: [COLUMN, COLUMN]`, or leave the measure out.",
        )
    if label is LabelKind.NONE:
        raise PolicyError(
            f"Measure {measure.name!r} needs a label, but the policy names none.",
            hint=f"Name the label in the policy (`label: COLUMN`), or leave the measure out: "
            f"{UNLABELLED_MEASURE} then predicts each column from the others.",
        )
    if label is LabelKind.NUMBER:
        raise PolicyError(
            f"Measure {measure.name!r} needs classes, but the label is a number to predict.",
            hint=f"Leave the measure out: {NUMBER_MEASURE} then says how well the number is predicted "
            "(by models that you name: `--metric r2 --models lr`). Or cut the number into classes: `label: {column: NAME, bins: 5}`.",
        )
    raise PolicyError(
        f"Measure {measure.name!r} needs a number to predict, but the label has classes.",
        hint="Write `label: {column: NAME, kind: number}`, or leave the measure out: "
        f"Aegis then predicts the AUC ({DEFAULT_MEASURE}).",
    )


def measures_of(label: LabelKind) -> list[Measure]:
    """Return the measures that work with this kind of label, including those that use no label."""
    return [measure for measure in MEASURES if not measure.reads_label or measure.label is label]


def get(name: str) -> Measure:
    """Return the measure called `name`. If no measure has this name, raise a `PolicyError` whose
    message lists the names of all measures.
    """
    return MEASURES.get(name)
