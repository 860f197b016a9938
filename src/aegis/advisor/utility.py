"""Compute the utility of a release: one figure, with the same reference in all outputs, and a
figure for each column; choose the measure if the user names none.

A ranking compares masks on all rows. But a release suppresses rows, and readers of the release do
not know the order of its ranges. So Aegis measures the utility of a release on the released rows,
and states the same figure in an advice, a front, a report and the certificate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from aegis.advisor.fold_counts import MOST_CLASSES
from aegis.advisor.label_leaks import label_leaks
from aegis.advisor.scores import (
    ColumnRole,
    coarse,
    coarse_decimals,
    coarse_digits,
    coarse_error,
    rows_each,
    too_coarse,
    utility_kept,
)
from aegis.errors import PolicyError
from aegis.measures import (
    ASSOCIATION_MEASURE,
    FALLBACK_MEASURE,
    MEASURES,
    SHARE_KEPT,
    Direction,
    LabelKind,
    Measure,
    Need,
    chosen_measure,
)
from aegis.measures.cooccurrence import UNLABELLED_MEASURE
from aegis.policy.labels import MUCH_IN_ONE_ROW
from aegis.summary import Summary
from aegis.words import (
    Quoting,
    alike,
    counted,
    json_fields,
    jsonable,
    percent,
    short,
    unquoted,
    with_rounded,
)

if TYPE_CHECKING:
    from aegis.advisor.scoring import Choice, Scorer


_COLUMNS_PREDICTED = "predictability of each column from the others:"
"""What people read instead of the name of the measure `held-out-any`."""


@dataclass(frozen=True)
class ColumnFigure:
    """How well the other columns predict one column, in a release and in the unmasked table.

    Attributes
    ----------
    weight
        Weight of the column in the mean: 0 if the column is left out. A column with twins has a
        share of its weight in the policy.
    score, unmasked
        Score of the prediction by the measure, from 0 to 1, in the release and in the unmasked
        table. The latter is rounded (`coarse`), and None if the table has too few rows for this.
    explained, unmasked_explained
        Share of the variance of the shown values that the other columns explain on held-out rows,
        in the release and in the unmasked table. The latter is rounded or None, as `unmasked` is.
    left_out
        Why the column does not count; empty if it counts.
    twins
        Other columns that almost determine this column and are almost determined by it. They and
        this column together count as one column.
    """

    weight: float
    score: float
    unmasked: float | None
    explained: float
    unmasked_explained: float | None
    left_out: str = ""
    twins: tuple[str, ...] = ()

    @property
    def kept(self) -> float | None:
        """How many percent of the column's unmasked score the release keeps, at most 100; None if
        the unmasked score is 0 or not stated.
        """
        if self.unmasked is None or self.unmasked <= 0:
            return None
        return min(100 * self.score / self.unmasked, 100.0)

    @property
    def role(self) -> ColumnRole:
        """The weight of the column in the measure, and the reason for this weight."""
        return ColumnRole(self.weight, self.left_out, self.twins)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {**json_fields(self), "kept": self.kept}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> ColumnFigure:
        """Rebuild a figure from the JSON values of `to_dict`."""
        values = {key: value for key, value in entries.items() if key != "kept"}
        return cls(**values | {"twins": tuple(entries["twins"])})

    def rounded(self, rows: float) -> ColumnFigure:
        """Return the figure with its scores of the unmasked table rounded by `coarse`."""
        hidden = too_coarse(rows)
        before, explained = self.unmasked, self.unmasked_explained
        return replace(
            self,
            unmasked=None if hidden or before is None else coarse(before, rows, self.score),
            unmasked_explained=None
            if hidden or explained is None
            else coarse(explained, rows, self.explained),
        )


def columns_of(
    scorer: Scorer, choice: Choice, measure: Measure, original: Scorer, *, earlier: bool = False
) -> dict[str, ColumnFigure]:
    """Return, for each column of a release, how well the other columns predict it; empty if the
    measure does not predict columns. `original` scores the unmasked table, with which the release
    is compared, and `earlier` is as in `rows_each`.
    """
    if Need.COLUMNS not in measure.needs:
        return {}
    released, unmasked = scorer.columns(choice), original.columns(original.unmasked)
    figures: dict[str, ColumnFigure] = {}
    rows = rows_each(original.summary.rows, 2 * len(original.column_roles), earlier=earlier)
    for name, role in original.column_roles.items():
        score, explained = released.get(name, (0.0, 0.0))
        before, before_explained = unmasked.get(name, (0.0, 0.0))
        exact = ColumnFigure(
            role.weight, score, before, explained, before_explained, role.left_out, role.twins
        )
        figures[name] = exact.rounded(rows)
    return figures


def stated_roles(columns: object) -> dict[str, ColumnRole]:
    """Return the weight and the twins of each column, as `columns` states them in a certificate;
    empty if it does not have the form of such figures.
    """
    numbers = ("weight", "score", "unmasked", "explained", "unmasked_explained")
    if not isinstance(columns, Mapping):
        return {}
    for entry in columns.values():
        if not isinstance(entry, Mapping) or set(entry) != {*numbers, "left_out", "twins", "kept"}:
            return {}
        if not isinstance(entry["twins"], list) or not all(
            (entry[key] is None and key.startswith("unmasked"))
            or (isinstance(entry[key], (int, float)) and math.isfinite(entry[key]))
            for key in numbers
        ):
            return {}
    return {name: ColumnFigure.from_dict(entry).role for name, entry in columns.items()}


def columns_differ(
    utility: Mapping[str, Any], scorer: Scorer, measure: Measure
) -> Iterator[tuple[str, object, object]]:
    """Yield each figure in which the utility section of a certificate and the released rows differ:
    its name, the stated value and the recomputed value. Column figures are compared only if the
    measure predicts every column.
    """
    if "value" in utility:  # a certificate without this name is older than the figure, too
        leaks = label_leaks(scorer.summary, scorer.unmasked)
        yield "utility.leaks", utility.get("leaks", {}), leaks
    columns: Any = utility.get("columns")
    if Need.COLUMNS not in measure.needs:
        return
    if not stated_roles(columns):
        yield "utility.columns", columns, "figures of each column"
        return
    for name, scores in scorer.columns(scorer.unmasked).items():
        figures = columns.get(name, {})
        for key, figure in zip(("score", "explained"), scores, strict=True):
            yield f"utility.columns.{name}.{key}", figures.get(key), figure


IN_WORDS = {"AUC": "AUC", "accuracy": "an accuracy of", "nats": "a log loss of", "R2": "R2"}
"""The words for a metric of models in a sentence, by the unit of its measure."""
MODELS_DIFFER = 0.03
"""Standard deviation, beyond chance, of the difference between a stated AUC or R2 and that of a
trained model.

Chosen on 84 public tables for AUC, and large enough on 80 others. On 80 tables with a number to
predict, 70 % of the models are within the range, 4 % below and 26 % above (`docs/experiments.md`).
"""
VARIES = ("AUC", "R2")
"""Units of the metrics whose range covers trained models."""
RANGE = 2.0
"""Half the width of a stated range, in standard deviations. About nine of ten trained models are in
the range.
"""
_NAMED = 5
"""Largest number of label classes that a sentence names."""


class Reference(StrEnum):
    """The kind of table with which the score of a release is compared."""

    UNMASKED = "the unmasked table"
    FINEST = "the table under its finest masks"
    BEST_TABLE = "the best masked table"

    @property
    def short(self) -> str:
        """The short name of this kind of table at the end of a phrase, such as "unmasked"."""
        return {
            Reference.UNMASKED: "unmasked",
            Reference.FINEST: "with the finest masks",
            Reference.BEST_TABLE: "in the best masked table",
        }[self]


class Rows(StrEnum):
    """The rows on which the utility of a release is measured."""

    RELEASED = "released"
    ALL = "all"


@dataclass(frozen=True)
class NumberErrors:
    """How far predictions of a numeric label are from the true numbers.

    Attributes
    ----------
    rmse, reference_rmse
        Root mean squared error of predictions from the release, and from the reference.
    one_row
        The largest share of the label's variance that a single released row accounts for; None if
        it is not known.
    table_rows
        The number of rows of the unmasked table for each label, by which `reference_rmse` is
        rounded (`coarse`); None if it is not rounded, or if the number of rows is not known.
    """

    rmse: float
    reference_rmse: float
    one_row: float | None = None
    table_rows: float | None = field(default=None, compare=False)

    @classmethod
    def from_dict(
        cls, entries: Mapping[str, Any], table_rows: float | None = None
    ) -> NumberErrors | None:
        """Rebuild the errors from the JSON values of a figure; None if the figure has no errors."""
        rmse, reference = entries.get("rmse"), entries.get("reference_rmse")
        if rmse is None or reference is None:
            return None
        return cls(float(rmse), float(reference), entries.get("one_row"), table_rows)

    @property
    def texts(self) -> tuple[str, ...]:
        """Both errors for people, without digits that rounding removed."""
        if self.table_rows is None:
            return alike(self.rmse, self.reference_rmse)
        return with_rounded(self.rmse, self.reference_rmse, coarse_digits(self.table_rows))

    def caveats(self) -> tuple[str, ...]:
        """Return a warning if a single row accounts for much of the label's variance."""
        if self.one_row is None or self.one_row < MUCH_IN_ONE_ROW:
            return ()
        return (
            f"one row holds {percent(100 * self.one_row, 0)} of the variance of the number to predict, so R2 "
            "describes little but that row. Cap the number by a mask, or leave the row out: under "
            "`attributes`, give the label `{role: feature, masks: [{top_code: {at: BOUND}}]}`",
        )

    def to_dict(self) -> dict[str, float]:
        """Return those fields that are known as JSON values."""
        more = {} if self.one_row is None else {"one_row": self.one_row}
        return {"rmse": self.rmse, "reference_rmse": self.reference_rmse, **more}


@dataclass(frozen=True)
class UtilityFigure:
    """The utility of one release by one measure, and the utility of the table with which it is
    compared.

    Attributes
    ----------
    measure
        Name of the measure.
    value
        The score of the release.
    reference
        The score of the reference, with which the release is compared.
    reference_name
        The kind of reference: the unmasked table, unless only masked tables are known.
    utility_kept
        Percent of the utility of the reference that the release keeps, from 0 to 100; None if the
        reference has no utility.
    stderr
        Standard error of the value; None if it was not computed.
    rows
        `released`: measured on the rows of the release. `all`: measured for the masks on all rows,
        because the advice did not mask the rows.
    lost_classes
        Label classes that have no row in the release, and their numbers of rows in the unmasked
        table. A certificate states only how many such classes there are.
    number
        For a numeric label, the prediction errors; None for other labels, or if the errors are not
        known.
    labels
        For several labels, the figure of each label, by its column; `value` combines them.
    columns
        For a measure that predicts every column, the figure of each column; else empty.
    leaks
        Released columns that alone explain most of the label, with the share that they explain.

    Examples
    --------
    >>> from aegis.advisor.utility import UtilityFigure
    >>> UtilityFigure("held-out-auc", 0.9081, 0.9169).detail
    'held-out-auc 0.91 of 0.92 unmasked'
    """

    measure: str
    value: float
    reference: float
    reference_name: Reference = Reference.UNMASKED
    utility_kept: float | None = None
    stderr: float | None = None
    rows: Rows = Rows.RELEASED
    lost_classes: Mapping[str, int] | int = field(default_factory=dict)
    number: NumberErrors | None = None
    labels: Mapping[str, UtilityFigure] = field(default_factory=dict)
    columns: Mapping[str, ColumnFigure] = field(default_factory=dict)
    leaks: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        measure: Measure,
        value: float,
        reference: float,
        label_rows: Sequence[float] | None,
        table_rows: float | None = None,
        **more: Any,
    ) -> UtilityFigure:
        """Return the figure of a release from its score (`value`) and from that of the table with
        which it is compared.

        `label_rows` are the rows of each label class, on which the score of a constant prediction
        depends. `more` are other fields. For the figure of a release, `table_rows` is the number of
        rows of the unmasked table, divided by the number of labels: the reference is then rounded,
        so that it says little about the values that masks and suppression hide (`coarse`).
        """
        reference = reference if table_rows is None else coarse(reference, table_rows, value)
        percent = utility_kept(value, reference, measure, label_rows, table_rows)
        return cls(measure.name, value, reference, utility_kept=percent, **more)

    @classmethod
    def from_dict(
        cls, entries: Mapping[str, Any], table_rows: float | None = None
    ) -> UtilityFigure:
        """Rebuild a figure from `to_dict`. `table_rows` is the number of rows of the unmasked
        table, if known.
        """
        labels = entries.get("labels", {})
        each = None if table_rows is None else rows_each(table_rows, len(labels))
        return cls(
            measure=str(entries["measure"]),
            value=float(entries["value"]),
            reference=float(entries["reference"]),
            reference_name=Reference(entries["reference_name"]),
            utility_kept=None if entries["kept"] is None else float(entries["kept"]),
            stderr=None if entries["stderr"] is None else float(entries["stderr"]),
            rows=Rows(entries["rows"]),
            lost_classes=_lost(entries["lost_classes"]),
            number=NumberErrors.from_dict(entries, table_rows),
            labels={name: cls.from_dict(entry, each) for name, entry in labels.items()},
            columns={
                name: ColumnFigure.from_dict(entry)
                for name, entry in entries.get("columns", {}).items()
            },
            leaks={name: float(share) for name, share in entries.get("leaks", {}).items()},
        )

    def with_errors(
        self,
        number: Mapping[str, float] | None,
        reference: Mapping[str, float] | None,
        table_rows: float | None = None,
    ) -> UtilityFigure:
        """Return a copy that also has the prediction errors (RMSE) of a numeric label, which follow
        from its R2. `number` and `reference` are the mean and standard deviation of the label in
        the release and in the reference; `table_rows` is as in `of`.
        """
        if number is None or reference is None or MEASURES.get(self.measure).unit != "R2":
            return self
        unmasked = reference["deviation"] * math.sqrt(max(1 - self.reference, 0.0))
        rmse = number["deviation"] * math.sqrt(max(1 - self.value, 0.0))
        reference_rmse = unmasked
        if table_rows is not None:
            reference_rmse = coarse(unmasked, table_rows, rmse, in_units=True)
        errors = NumberErrors(
            rmse=rmse,
            reference_rmse=reference_rmse,
            one_row=number.get("one_row"),
            table_rows=table_rows,
        )
        return replace(self, number=errors)

    @property
    def rmse(self) -> float | None:
        """For a numeric label, the root mean squared error of predictions from the release."""
        return None if self.number is None else self.number.rmse

    @property
    def reference_rmse(self) -> float | None:
        """For a numeric label, the root mean squared error of predictions from the reference."""
        return None if self.number is None else self.number.reference_rmse

    @property
    def lost_class_count(self) -> int:
        """The number of label classes that have no row in the release."""
        lost = self.lost_classes
        return lost if isinstance(lost, int) else len(lost)

    @property
    def exceeds(self) -> bool:
        """Whether the release has a better score than the table with which it is compared: models
        may learn better from fewer values.
        """
        sign = MEASURES.get(self.measure).direction.sign
        return sign * self.value > sign * self.reference

    @property
    def detail(self) -> str:
        """The scores of the release and of the reference in words, such as "held-out-auc 0.91 of
        0.92 unmasked". For a share, only what it is, because the unmasked table keeps all.
        """
        measure = MEASURES.get(self.measure)
        if measure.unit == "share":
            return measure.title.lower()
        name = _COLUMNS_PREDICTED if self.measure == UNLABELLED_MEASURE else self.measure
        doubt = self._doubt() if measure.unit in VARIES else self.why_better
        return f"{name} {self._compared}{self.errors}{doubt}"

    @property
    def errors(self) -> str:
        """How far predictions of a numeric label are off, as the end of a sentence; empty if
        unknown.
        """
        number = self.number
        if number is None:
            return ""
        near = 2 * (self.stderr or 0.0) + self._rounding
        if self._rounding and abs(self.value - self.reference) <= near:
            return f", error of a prediction {short(number.rmse)}"
        released, reference = number.texts
        if released == reference:
            return f", error of a prediction {released}"
        return f", error of a prediction {released} instead of {reference}"

    @property
    def on(self) -> str:
        """The rows on which the figure was measured, in words."""
        return "the released rows" if self.rows is Rows.RELEASED else "all rows"

    @property
    def digits(self) -> int:
        """The number of decimals to show, so that one digit of the standard error is visible.
        Without one, it is 2 for a metric of models and 4 for other measures, and never more than
        the rounded reference has (see `coarse`).
        """
        most = 4 if self._decimals is None else min(max(2, self._decimals), 4)
        if not self.stderr:
            return 2 if MEASURES.get(self.measure).unit in IN_WORDS else most
        return min(max(2, math.ceil(-math.log10(self.stderr))), most)

    @property
    def _rounding(self) -> float:
        """The largest difference of the rounded reference from the exact score (see `coarse`); 0 if
        exact.
        """
        rows = self._rounded_by
        return 0.0 if rows is None else coarse_error(self.reference, rows)

    @property
    def _decimals(self) -> int | None:
        """The number of decimals of a rounded R2 of the reference; None if it is not rounded."""
        rows = self._rounded_by
        if rows is None:
            return None
        return coarse_decimals(self.reference, rows)

    @property
    def _rounded_by(self) -> float | None:
        """The rows by which an R2 of the reference is rounded (`coarse`); None if it is not
        rounded.
        """
        rows = None if self.number is None else self.number.table_rows
        return None if self.reference == self.value else rows

    @property
    def _compared(self) -> str:
        value, reference = (f"{v:.{self.digits}f}" for v in (self.value, self.reference))
        return f"{value} of {reference} {self.reference_name.short}"

    @property
    def why_better(self) -> str:
        """Return a text on why the release scores better than its reference (the unmasked table, as
        a rule), to end a sentence.

        If the score is higher only by sampling error, the text says "as much as" instead of a
        reason. It is empty if the release does not score better, or if the shown decimals hide the
        difference.

        Examples
        --------
        >>> from aegis.advisor.utility import UtilityFigure
        >>> UtilityFigure("held-out-auc", 0.618, 0.616, stderr=0.002).why_better
        ': as much as unmasked, within the sampling error'
        """
        if (
            not self.exceeds
            or f"{self.value:.{self.digits}f}" == f"{self.reference:.{self.digits}f}"
        ):
            return ""
        more, error = abs(self.value - self.reference), 2 * (self.stderr or 0.0)
        if more <= error:
            return f": as much as {self.reference_name.short}, within the sampling error"
        if more <= error + self._rounding:
            return f": as much as {self.reference_name.short}, within rounding"
        if self.lost_classes:
            return ": better, because the classes that vanish no longer count"
        return ": better, because models learn better from fewer values"

    def expected(self, label_rows: Sequence[float] | None) -> str:
        """Return the metric that models are expected to reach, as a sentence without its full stop.

        Parameters
        ----------
        label_rows
            Number of labelled rows of each class; the metric of a constant prediction depends on
            them.

        Examples
        --------
        >>> from aegis.advisor.utility import UtilityFigure
        >>> figure = UtilityFigure("held-out-auc", 0.9182, 0.9213, stderr=0.0018)
        >>> figure.expected([700, 300])
        'Models are expected to reach AUC 0.918 of 0.921 unmasked, give or take 0.06'
        """
        measure, error = MEASURES.get(self.measure), self.stderr
        sentence = f"Models are expected to reach {IN_WORDS[measure.unit]} {self._compared}"
        if error is None:
            return f"{sentence}{self.errors}{self.why_better}"
        return f"{sentence}{self.plus_minus}{self.errors}{self._doubt(label_rows)}"

    def _doubt(self, label_rows: Sequence[float] | None = None) -> str:
        """Return the end of a sentence: that the table is too small, or why the release scores
        better.
        """
        measure = MEASURES.get(self.measure)
        sign = measure.direction.sign
        best = max(sign * self.reference, sign * self.value)
        gain = best - sign * measure.worst(label_rows)
        if self.stderr is not None and gain < 2 * self.stderr:
            return ": the table is too small to distinguish masks"
        return self.why_better

    @property
    def plus_minus(self) -> str:
        """The range of the score as text, such as ", give or take 0.06"; empty if the score has no
        standard error.

        If the score is an AUC, about nine of ten trained models are within the range. If it is an
        R2, about seven of ten are, and most others are better, because they use interactions of
        columns, or numbers whose tail Aegis replaces by one mean. For any other metric, the range covers only the sampling error.
        """
        if self.stderr is None:
            return ""
        unit = MEASURES.get(self.measure).unit
        if unit not in VARIES:
            return f", give or take {RANGE * self.stderr:.{self.digits}f}"
        return f", give or take {RANGE * math.hypot(self.stderr, MODELS_DIFFER):.2f}"

    @property
    def may_be_more(self) -> str:
        """A sentence on when trained models exceed the range in `plus_minus`; empty if they seldom
        do.
        """
        if self.stderr is None or MEASURES.get(self.measure).unit != "R2":
            return ""
        return "Models may do better if columns interact or numbers have a long tail."

    @property
    def range_words(self) -> str:
        """A sentence that says what the range in `plus_minus` covers; empty if there is no range.

        Examples
        --------
        >>> from aegis.advisor.utility import UtilityFigure
        >>> UtilityFigure("held-out-auc", 0.9182, 0.9213, stderr=0.0018).range_words
        'About nine of ten trained models are within this range; 0.5 is chance.'
        """
        if not self.plus_minus:
            return ""
        unit = MEASURES.get(self.measure).unit
        if unit not in VARIES:
            return "The range covers the sampling error."
        if unit == "AUC":
            return "About nine of ten trained models are within this range; 0.5 is chance."
        return "About seven of ten trained models are within this range; most others do better."

    def may_be_chance(self, value: float, label_rows: Sequence[float] | None = None) -> bool:
        """Return whether the score `value` is better than the score of a constant prediction by
        less than two standard errors.

        Parameters
        ----------
        value
            The score of the masked or of the unmasked table.
        label_rows
            Rows of each label class, on which the score of a constant prediction can depend.
        """
        measure = MEASURES.get(self.measure)
        unbiased = measure.direction is Direction.HIGHER or measure.constant is not None
        if self.stderr is None or not unbiased:
            return False
        gain = measure.direction.sign * (value - measure.worst(label_rows))
        return gain < 2 * self.stderr

    @property
    def by_chance(self) -> bool:
        """Whether the figure is an AUC or R2 of one label that may be chance."""
        if self.labels or self.measure not in MEASURES or not self.may_be_chance(self.value):
            return False
        return MEASURES.get(self.measure).unit in VARIES

    @property
    def basis(self) -> str:
        """What to read beside the share kept: that it may be chance, if so, and the scores."""
        return f"may be chance; {self.detail}" if self.by_chance else self.detail

    @property
    def by_label(self) -> dict[str, UtilityFigure]:
        """This figure under "", and, of several labels, that of each label by its name."""
        return {"": self, **self.labels}

    def chance(self, label: str) -> tuple[str, ...]:
        """Return a tuple with a warning that the AUC or R2 with which models predict `label` may be
        chance; empty if it is not.
        """
        if not self.by_chance:
            return ()
        unit = MEASURES.get(self.measure).unit
        return (
            f"{unit} {self.value:.{self.digits}f} is within two standard errors of no utility: that the "
            f"released columns predict {label} may be chance",
        )

    def caveats(self, suppressed_rows: int | None) -> tuple[str, ...]:
        """Return warnings about suppressed rows, and about limits of the figure. Those on label
        classes that lose all rows come first.
        """
        warnings: list[str] = []
        for label, figure in self.labels.items():
            warnings += [
                Quoting(f"{label}: {text}", f"{label}: {unquoted(text)}")
                for text in figure.caveats(None)
            ]
        if self.lost_classes:
            warnings.append(_vanished(self.lost_classes))
        if self.rows is Rows.ALL and suppressed_rows:
            warnings.append(
                "utility kept is measured on all rows, including "
                f"{counted(suppressed_rows, 'row')} that the release suppresses. The certificate states it "
                "for the released rows"
            )
        if self.rows is Rows.ALL and suppressed_rows == 0:
            warnings.append(
                "utility kept is computed from counts before masking. The certificate states it for "
                "the released rows, and can state less"
            )
        if self.number is not None:
            warnings += self.number.caveats()
        warnings += [
            f"{name} does not count in the mean over columns: {column.left_out}"
            for name, column in self.columns.items()
            if column.left_out
        ]
        twins = {tuple(sorted((name, *c.twins))) for name, c in self.columns.items() if c.twins}
        warnings += [
            f"{', '.join(names)} count as one column, because each almost determines the others"
            for names in sorted(twins)
        ]
        return tuple(warnings)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            **json_fields(self, "measure", "value", "reference", "reference_name"),
            **json_fields(self, "kept=utility_kept", "stderr", "rows", "lost_classes"),
            **({} if self.number is None else self.number.to_dict()),
            **({"labels": jsonable(self.labels)} if self.labels else {}),
            **({"columns": jsonable(self.columns)} if self.columns else {}),
            **({"leaks": dict(self.leaks)} if self.leaks else {}),
        }


def _lost(lost: Mapping[str, int] | int) -> Mapping[str, int] | int:
    return lost if isinstance(lost, int) else {name: int(rows) for name, rows in lost.items()}


def _vanished(lost: Mapping[str, int] | int) -> str:
    """Return a warning about the label classes of which every row is suppressed."""
    rows = {} if isinstance(lost, int) else lost
    named = [f"{name} ({counted(n, 'row')})" for name, n in rows.items()]
    more = f" and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
    number = lost if isinstance(lost, int) else len(named)
    classes = counted(number, "class vanishes", "classes vanish")
    then = (
        "The release suppresses all their rows, so no model can learn them. Join them with other "
        "classes, or allow coarser masks"
    )
    without = f"{classes} from the label. {then}"
    if not named:
        return without
    return Quoting(f"{classes} from the label: {', '.join(named[:_NAMED])}{more}. {then}", without)


MOST_LEVELS = 2_000
"""Largest number of encoded columns for which Aegis predicts an AUC of two classes, or an R2."""
MOST_COLUMNS = 800
"""Largest number of encoded columns for which Aegis predicts each attribute from the others."""


def measure_for(summary: Summary, *names: str | None) -> tuple[Measure, tuple[str, ...]]:
    """Return the measure by which to rank: the first of `names` that is not None, or else the
    default, and a sentence if another measure must replace the default.

    Raises
    ------
    PolicyError
        The measure is unknown, or it needs a label and the table has none. Or the label is a number
        whose R2 would take too long to predict.
    """
    if summary.several is not None:
        return MEASURES.get(f"{SHARE_KEPT}({summary.several.serve})"), ()
    chosen = chosen_measure(*names, label=summary.label.kind)
    if (
        any(names)
        or not {Need.CV_FOLDS, Need.COLUMNS} & set(chosen.needs)
        or (why := out_of_reach(summary)) is None
    ):
        return chosen, ()
    if chosen.label is LabelKind.NUMBER:
        raise PolicyError(
            f"Aegis cannot predict an R2: {why}.",
            hint="Give coarser masks or fewer attributes, or cut the number into classes: "
            "`label: {column: NAME, bins: 5}`.",
        )
    none = chosen.label is LabelKind.NONE
    other = MEASURES.get(ASSOCIATION_MEASURE if none else FALLBACK_MEASURE)
    return other, (f"the measure is {other.name} instead of {chosen.name}: {why}",)


def out_of_reach(summary: Summary) -> str | None:
    """Return why the expected metric of models would take too long to compute; None if it would
    not.
    """
    if summary.pairs.folds is None:
        return "the summary has no folds of the rows, so no rows can be held out"
    classes = int(np.count_nonzero(summary.label.counts))
    if classes > MOST_CLASSES:
        return f"the label has {classes:,} classes, and the limit is {MOST_CLASSES}"
    scored = [a.unmasked.scored for a in summary.attributes.values() if not a.excluded]
    levels = sum(int(level.max(initial=-1)) + 1 for level in scored)
    if summary.label.kind is LabelKind.NONE:
        many = f"the table has {levels:,} values, and the limit is {MOST_COLUMNS:,}"
        return many if levels > MOST_COLUMNS else None
    if levels**2 * max(classes, 2) > 2 * MOST_LEVELS**2:
        return f"with {levels:,} values and {classes:,} classes it would take too long"
    return None
