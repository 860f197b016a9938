"""Define the record of a measure in the registry, and the counts of pairs of levels of one
configuration from which measures are computed. A level is a masked value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from enum import StrEnum
from functools import cached_property
from itertools import combinations
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from aegis.arrays import Array, Floats, Ints
from aegis.errors import InternalError, PolicyError
from aegis.measures.association import Contingency, pair_information
from aegis.measures.by_fold import CountsByFold
from aegis.registry import Registry

Counted = Array | Callable[[], Array]
"""A matrix of counts, or a function that counts it."""
PENALTIES = (3.0, 10.0, 30.0, 100.0, 300.0)
"""Ridge penalties, in rows. With a penalty of n rows, a masked value with n rows keeps half of its
effect.
"""
UNPOOLED = (1.0, *PENALTIES)
"""The same penalties, and a smaller one for a learner that gives a value half of its effect after
one row.
"""


@dataclass(frozen=True, eq=False)
class Centred:
    """Counts to compute covariances of levels (masked values), for the levels that some but not all
    rows have.

    Attributes
    ----------
    total
        How many rows have both levels of each pair of all D levels, shape (D, D).
    varying
        Indices of the d levels that vary, shape (d,).
    count
        Number of rows of each level that varies, shape (d,).
    rows
        Number of rows of each of the C classes that occur, shape (C,).
    label
        Covariance of the varying levels with the classes, times n, shape (d, C).
    n
        Number of rows that are counted.
    """

    total: Array
    varying: npt.NDArray[np.intp]
    count: Floats
    rows: Floats
    label: Floats
    n: float

    @classmethod
    def of(cls, total: Array, joint: Array, class_counts: Array, n: float) -> Centred | None:
        """Return the centred counts; None if no level varies, or if there is only one class.
        `total` has the rows per pair of levels, (D, D), `joint` per level and class, (D, C), and
        `class_counts` per class, (C,), of `n` rows in all.
        """
        count = total.diagonal().astype(np.float64)
        varying = np.flatnonzero((count > 0) & (count < n))
        classes = np.flatnonzero(class_counts)
        if not varying.size or classes.size < 2:
            return None
        count, rows = count[varying], class_counts[classes].astype(np.float64)
        label: Floats = joint[np.ix_(varying, classes)] - np.outer(count, rows / n)
        return cls(total, varying, count, rows, label, n)

    def covariance(self) -> Floats:
        """Return n times the covariance of the varying levels, shape (d, d)."""
        both: Floats = self.total[np.ix_(self.varying, self.varying)].astype(np.float64)
        both -= np.outer(self.count / self.n, self.count)
        return both


Divided = CountsByFold | Callable[[], CountsByFold]
"""Counts by fold, or a function that counts them."""


class Encoding(StrEnum):
    """The way in which a score encodes masked numbers and dates. Other values are always encoded as
    indicators.
    """

    NAMES = "names"
    """One indicator for each masked value."""
    THRESHOLDS = "thresholds"
    """One indicator for each "at least this value"; tree models split in this way."""
    NUMBERS = "numbers"
    """The number itself, as linear models use it."""


class Need(StrEnum):
    """What a measure needs to know in addition to how many rows have both levels (masked values) of
    each pair.
    """

    PAIRS = "pairs"
    """The information of every pair of attributes: `Cooccurrence.pairs`."""
    ORDER = "order"
    """Levels in the order of their values: `Cooccurrence.order`."""
    POOLED = "pooled"
    """The loss because several values share a level: `Cooccurrence.pooled`."""
    CV_FOLDS = "folds"
    """Counts by fold and class: `Cooccurrence.folds`."""
    COLUMNS = "columns"
    """Counts of all columns by fold, and the weight of each column: `Cooccurrence.columns`."""


@dataclass(frozen=True, eq=False)
class ColumnCounts:
    """A function that counts the rows of all columns by fold, and the weight of each column in the
    mean of their scores.

    Attributes
    ----------
    count
        Function that counts the columns; columns with an order are encoded as thresholds.
    weights
        Weight of each of m columns in the mean, shape (m,). Columns that almost determine each
        other share the weight of a single column. Columns that cannot be predicted have weight 0.
    """

    count: Callable[[], CountsByFold]
    weights: Floats


@dataclass(frozen=True, eq=False)
class PairSide:
    """Attributes that are compared with other attributes, pair by pair.

    Attributes
    ----------
    rows
        Number of rows with each of the d levels (masked values) of all m attributes, shape (d,);
        the expected number if a mask adds noise.
    bounds
        Index of the first level of each attribute, and then d, shape (m + 1,).
    told_apart
        Number of levels of each attribute that have rows, shape (m,). If a mask adds noise, it is
        an effective number: the sum of p_a P(r | a)^2 / p_r over the true values a and the reported
        values r.
    """

    rows: Floats
    bounds: Ints
    told_apart: Floats

    @classmethod
    def of(cls, rows: Array, bounds: Ints) -> PairSide:
        """Return attributes without noise, from the rows of each level and the bounds of
        attributes.
        """
        levels_with_rows = np.add.reduceat((rows > 0).astype(np.float64), bounds[:-1])
        return cls(np.asarray(rows, dtype=np.float64), bounds, levels_with_rows)


@dataclass(frozen=True, eq=False)
class OrderedCounts:
    """How many rows have both levels of each pair, with levels (masked values) in the order of
    their values.

    Attributes
    ----------
    total, joint, offsets
        The rows that have both levels of each pair, (d, d), the rows per level and class, (d, C),
        and the start of each attribute's levels, (m + 1,), for d levels, C classes and m
        attributes.
    ordered
        For each of the m attributes, whether its levels are ordered.
    chance
        If the counts are means over the noise of masks: a matrix B, shape (d, k) for any k, such
        that drawing the noise adds B B' to their covariance. None without noise.
    """

    total: Array
    joint: Array
    offsets: Ints
    ordered: Sequence[bool]
    chance: Floats | None = None

    def __post_init__(self) -> None:
        if len(self.ordered) != len(self.offsets) - 1:
            raise InternalError(
                f"`ordered` has {len(self.ordered)} entries for {len(self.offsets) - 1} attributes."
            )


@dataclass(frozen=True, eq=False)
class Cooccurrence:
    """How many rows have both levels of each pair, for the masked attributes of one configuration.

    A level is a masked value. The levels of all m attributes form one sequence of d levels, in
    which attribute i has the levels `offsets[i]:offsets[i + 1]`. Levels without rows are allowed;
    every measure skips them. C is the number of label classes.

    Attributes
    ----------
    n
        Number of rows that are counted.
    joint
        Number of rows by level and class, shape (d, C).
    counted
        The matrix `total`, or a function that counts it, because some measures, such as the
        expected AUC, do not need it.
    offsets
        Start of the levels of each attribute, shape (m + 1,), from 0 to d.
    chance
        If the counts are means over the noise of masks: a matrix B, shape (d, k), for any k; else
        None. If the label is independent of the attributes, drawing the noise adds B B' times the
        variance of the 0/1 indicator of a class to the covariance of the counts. So a fit to drawn
        values is slightly better by chance; corrected and held-out measures subtract this.
    pairs
        Corrected mutual information I(A_i, A_j; Y) in bits of each pair of attributes with the
        label Y, as `pair_information` computes it, shape (m, m), symmetric.
    order
        The counts of the same rows with levels in the order of their values. None: no attribute
        counts as ordered.
    pooled
        If some levels combine rare values: the change (at most 0) of Pillai's trace on held-out
        rows if models have a coefficient for each rare value instead of one for the level. One
        figure for each ridge penalty of `UNPOOLED`, summed over attributes. Else None.
    folds
        The counts by fold (part of the rows) and class in each encoding of numbers and dates, or a
        function that counts them. Encodings with equal counts share one object.
    tables_of_pairs
        Function that counts every pair of attributes by fold and class, and returns the gain of
        each pair (`pair_gains`). Only measures of interactions call it.
    columns
        The counts by fold (part of the rows) with which each column is predicted from all others,
        and the weight of each column; None if no measure needs them.
    """

    n: float
    joint: Array
    counted: Counted
    offsets: Ints
    chance: Floats | None = None
    pairs: Floats | None = None
    order: OrderedCounts | None = None
    pooled: Floats | None = None
    folds: Mapping[Encoding, Divided] | None = None
    tables_of_pairs: Callable[[], Floats] | None = None
    columns: ColumnCounts | None = None

    def __post_init__(self) -> None:
        levels = len(self.joint)
        offsets = np.asarray(self.offsets)
        shape = (levels, levels) if callable(self.counted) else self.counted.shape
        if self.joint.ndim != 2 or shape != (levels, levels):
            raise InternalError(
                f"Co-occurrence of shape {shape} does not fit a joint of shape {self.joint.shape}."
            )
        if offsets[0] != 0 or offsets[-1] != levels or (np.diff(offsets) < 1).any():
            raise InternalError(f"Offsets {offsets.tolist()} do not divide {levels} levels.")

    @classmethod
    def of(cls, by_class: Array, offsets: npt.ArrayLike) -> Cooccurrence:
        """Build the counts from the rows that have both levels of each pair, by class, shape (C, d,
        d). `offsets` has the start of each attribute's levels.
        """
        bounds = np.asarray(offsets, dtype=np.int64)
        joint = np.ascontiguousarray(np.diagonal(by_class, axis1=1, axis2=2).T)
        n = float(joint[: bounds[1]].sum()) if len(bounds) > 1 else 0.0
        count = len(bounds) - 1
        pairs = np.zeros((count, count))
        for i, j in combinations(range(count), 2):
            rows, columns = slice(*bounds[i : i + 2]), slice(*bounds[j : j + 2])
            pairs[i, j] = pairs[j, i] = pair_information(by_class[:, rows, columns])
        return cls(n, joint, by_class.sum(axis=0), bounds, pairs=pairs)

    @property
    def attributes(self) -> int:
        """The number m of attributes."""
        return len(self.offsets) - 1

    @cached_property
    def total(self) -> Array:
        """How many rows have both levels of each pair, in all classes together, shape (d, d),
        symmetric.

        The diagonal has the rows of each level. Two levels of the same attribute never occur
        together.
        """
        return self.counted() if callable(self.counted) else self.counted

    def by_fold(self, encoding: Encoding = Encoding.NAMES) -> CountsByFold:
        """Return the counts by fold, with numbers and dates encoded as `encoding` says.

        Raises
        ------
        InternalError
            The counts by fold are missing.
        """
        if self.folds is None:
            raise InternalError("The counts by fold were not filled in.")
        divided = self.folds[encoding]
        return divided() if callable(divided) else divided

    def same_as(self, encoding: Encoding) -> Encoding:
        """Return the first encoding whose counts by fold equal those of `encoding`: all do if no
        attribute is ordered. Without counts by fold, return `encoding`.
        """
        folds = self.folds or {}
        return next((c for c in folds if folds[c] is folds[encoding]), encoding)

    @cached_property
    def pair_gains(self) -> Floats:
        """How much better each pair of attributes predicts the label together than by the sum of
        their effects, shape (M, T, 1 + K), for M pairs and T classes, each compared with all
        others. The last axis is for all K folds (entry 0) and without each single fold.

        Raises
        ------
        InternalError
            The tables of pairs are missing.
        """
        if self.tables_of_pairs is None:
            raise InternalError("The tables of pairs by fold were not filled in.")
        return self.tables_of_pairs()

    @property
    def in_order(self) -> OrderedCounts:
        """The counts with levels in the order of their values."""
        if self.order is not None:
            return self.order
        unordered = [False] * self.attributes
        return OrderedCounts(self.total, self.joint, self.offsets, unordered)

    @property
    def losses(self) -> Floats:
        """`pooled`; zeros if no levels combine rare values."""
        return np.zeros(len(UNPOOLED)) if self.pooled is None else self.pooled

    def extended(self, **more: Any) -> Cooccurrence:
        """Return a copy in which the fields `more` are set; it keeps the cached results."""
        other = replace(self, **more)
        other.__dict__.update(self.__dict__ | other.__dict__)
        return other

    def lacks(self, needs: Collection[Need]) -> list[Need]:
        """Return those entries of `needs` that these counts do not contain."""
        always = Need.ORDER, Need.POOLED
        return [need for need in needs if need not in always and getattr(self, need) is None]

    @cached_property
    def class_totals(self) -> Array:
        """The number of rows of each class, shape (C,)."""
        first = int(self.offsets[1]) if self.attributes else 0
        totals: Array = self.joint[:first].sum(axis=0)
        return totals


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
        """The name of the measure that ranks configurations for this kind of label by default."""
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
        Number of rows of each of C label classes, shape (C,).
    distinct
        Number of values of the attribute.
    values
        Number of rows of each of V values, shape (V,); None if it is unknown.
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
        Estimates of hidden information rely on this. A search does not: see `trace` and `of_pairs`.
    scope
        Whether the measure is computed on single attributes or on whole configurations.
    needs
        Data that a measure of a configuration needs in addition to the number of rows that have
        both levels of each pair.
    without_folds
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
    of_pairs
        Function that returns the value of each pair of attributes, shape (m, k), if the measure is
        the mean of such values. Its arguments are those of `contingencies`: the number of rows by
        the values of m and of k attributes, and these attributes. Such a measure reads no label,
        and a search computes bounds from the values of pairs. None: the measure reads the label.
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
    without_folds: Callable[[Cooccurrence], Floats] | None = None
    floor: float = 0.0
    constant: Callable[[Sequence[float]], float] | None = None
    fractional: bool = False
    processed: bool = False
    limit: Callable[[Margins], float] | None = None
    trace: Trace | None = None
    of_pairs: Callable[[Floats, PairSide, PairSide], Floats] | None = None
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
    """Return the measure with the first name that is not None, else the default for this kind of
    label.

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
    """Return the measure called `name`; a `PolicyError` for an unknown name lists all names."""
    return MEASURES.get(name)
