"""The utility of a release: one figure, against one reference, on every screen.

A ranking compares masks on all rows. A release leaves rows out, and is read without the order of its
ranges. So the figure that is stated of a release is measured on the released rows, as they are:
the same in an advice, on a front, in a report and in the certificate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from aegis.advisor.scores import utility_kept
from aegis.measures import MEASURES, Measure
from aegis.words import counted, short

IN_WORDS = {"AUC": "AUC", "accuracy": "an accuracy of", "nats": "a log loss of", "R2": "R2"}
"""What a sentence calls a metric of models, by the unit of its measure."""
MODELS_DIFFER = 0.02
"""Standard deviation between the AUC that is stated and the one that a trained model reaches, beyond chance.

Chosen on one half of 14 public tables, and large enough on the other (`docs/experiments.md`).
"""
_NAMED = 5
"""Label classes that a sentence names, at most."""


class Reference(StrEnum):
    """The table that a utility is compared with, by the same measure."""

    UNMASKED = "the unmasked table"
    FINEST = "the table under its finest masks"
    BEST_TABLE = "the best masked table"

    @property
    def short(self) -> str:
        """The same as the end of a phrase."""
        return {
            Reference.UNMASKED: "unmasked",
            Reference.FINEST: "with the finest masks",
            Reference.BEST_TABLE: "in the best masked table",
        }[self]


class Rows(StrEnum):
    """The rows on which a utility is measured."""

    RELEASED = "released"
    ALL = "all"


@dataclass(frozen=True)
class UtilityFigure:
    """The utility of one release.

    Attributes
    ----------
    measure
        Name of the measure.
    value
        The measure of the release.
    reference
        The same measure of what the release is compared with.
    reference_name
        What that is: the unmasked table, unless only masked tables are known.
    utility_kept
        Percent of the reference's utility that the release keeps, from 0 to 100; None if the
        reference has none.
    stderr
        Standard error of the value; None if it was not computed.
    rows
        `released`: the rows of the release, as they are. `all`: the masks on all rows, where the
        released rows are not at hand.
    lost_classes
        Label classes that the release leaves out whole, with their rows in the unmasked table.
    rmse, reference_rmse
        Of a number to predict, the error of a prediction (root of the mean squared error) of the
        release and of the reference; None of other labels, and where it is not known.

    Examples
    --------
    >>> from aegis.advisor.utility import UtilityFigure
    >>> UtilityFigure("held-out-auc", 0.9081, 0.9169).detail
    'held-out-auc 0.9081 of 0.9169 unmasked'
    """

    measure: str
    value: float
    reference: float
    reference_name: Reference = Reference.UNMASKED
    utility_kept: float | None = None
    stderr: float | None = None
    rows: Rows = Rows.RELEASED
    lost_classes: Mapping[str, int] = field(default_factory=dict)
    rmse: float | None = None
    reference_rmse: float | None = None

    @classmethod
    def of(
        cls,
        measure: Measure,
        value: float,
        reference: float,
        label_rows: Sequence[float] | None,
        **more: Any,
    ) -> UtilityFigure:
        """Return the figure of a value, with the percent of the reference that it keeps."""
        percent = utility_kept(value, reference, measure, label_rows)
        return cls(measure.name, value, reference, utility_kept=percent, **more)

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> UtilityFigure:
        """Return the figure that `to_dict` made."""
        return cls(
            measure=str(entries["measure"]),
            value=float(entries["value"]),
            reference=float(entries["reference"]),
            reference_name=Reference(entries["reference_name"]),
            utility_kept=entries["kept"],
            stderr=entries["stderr"],
            rows=Rows(entries["rows"]),
            lost_classes=dict(entries["lost_classes"]),
            rmse=entries.get("rmse"),
            reference_rmse=entries.get("reference_rmse"),
        )

    def with_errors(
        self, number: Mapping[str, float] | None, reference: Mapping[str, float] | None
    ) -> UtilityFigure:
        """Return the figure with the errors of predictions that its R2 comes to.

        Parameters
        ----------
        number, reference
            `Summary.number` of the release and of what it is compared with; None of other labels.
        """
        if number is None or reference is None or MEASURES.get(self.measure).unit != "R2":
            return self
        return replace(
            self,
            rmse=number["deviation"] * math.sqrt(max(1 - self.value, 0.0)),
            reference_rmse=reference["deviation"] * math.sqrt(max(1 - self.reference, 0.0)),
        )

    @property
    def exceeds(self) -> bool:
        """Whether the release scores better than its reference: fewer values are learnt more surely."""
        sign = MEASURES.get(self.measure).direction.sign
        return sign * self.value > sign * self.reference

    @property
    def detail(self) -> str:
        """The value and its reference, such as "held-out-auc 0.9081 of 0.9169 unmasked"."""
        return f"{self.measure} {self._compared(4)}{self._error}{self.why_better(4)}"

    @property
    def _error(self) -> str:
        """The errors of predictions of a number, as a part of a sentence; empty without one."""
        if self.rmse is None or self.reference_rmse is None:
            return ""
        return f", error of a prediction {short(self.rmse)} of {short(self.reference_rmse)}"

    @property
    def on(self) -> str:
        """The rows that it is measured on, in words."""
        return "the released rows" if self.rows is Rows.RELEASED else "all rows"

    @property
    def digits(self) -> int:
        """Decimals that are worth showing: one digit of the standard error, two without one."""
        return min(max(2, math.ceil(-math.log10(self.stderr))), 4) if self.stderr else 2

    def _compared(self, digits: int) -> str:
        return f"{self.value:.{digits}f} of {self.reference:.{digits}f} {self.reference_name.short}"

    def why_better(self, digits: int) -> str:
        """Return why the release scores better than its reference, as the end of a sentence.

        Empty where it does not, or where so many decimals do not show it.

        Examples
        --------
        >>> from aegis.advisor.utility import UtilityFigure
        >>> UtilityFigure("held-out-auc", 0.618, 0.616, stderr=0.01).why_better(3)
        ': better by less than the sampling error, so count both as equal'
        """
        if not self.exceeds or f"{self.value:.{digits}f}" == f"{self.reference:.{digits}f}":
            return ""
        if self.stderr is not None and abs(self.value - self.reference) <= 2 * self.stderr:
            return ": better by less than the sampling error, so count both as equal"
        if self.lost_classes:
            return ": better, because the classes that vanish no longer count"
        return ": better, because models learn fewer values more surely"

    def expected(self, label_rows: Sequence[float] | None) -> str:
        """Return the performance that models are expected to reach, as a sentence without its full
        stop.

        Parameters
        ----------
        label_rows
            Labelled rows of each class: what a constant prediction reaches depends on them.

        Examples
        --------
        >>> from aegis.advisor.utility import UtilityFigure
        >>> figure = UtilityFigure("held-out-auc", 0.9182, 0.9213, stderr=0.0018)
        >>> figure.expected([700, 300])
        'Models are expected to reach AUC 0.918 of 0.921 unmasked (+-0.02 when trained)'
        """
        measure, error = MEASURES.get(self.measure), self.stderr
        digits, why = self.digits, self.why_better(self.digits)
        said = f"Models are expected to reach {IN_WORDS[measure.unit]} {self._compared(digits)}"
        if error is None:
            return f"{said}{self._error}{why}"
        sign = measure.direction.sign
        whole = max(sign * self.reference, sign * self.value)
        gain = whole - sign * measure.worst(label_rows)
        small = ": the table is too small to distinguish masks" if gain < 2 * error else why
        if measure.unit == "AUC":
            apart = math.hypot(error, MODELS_DIFFER)
            return f"{said} (+-{apart:.2f} when trained){small}"
        return f"{said} (+-{error:.{digits}f}){self._error}{small}"

    def caveats(self, suppressed_rows: int | None) -> tuple[str, ...]:
        """Return warnings for the reader of a release that leaves out so many rows.

        Label classes that vanish come first.
        """
        said = []
        if self.lost_classes:
            named = [f"{name} ({counted(n, 'row')})" for name, n in self.lost_classes.items()]
            more = f" and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
            classes = counted(len(named), "class vanishes", "classes vanish")
            said.append(
                f"{classes} from the label: {', '.join(named[:_NAMED])}{more}. The release leaves out all "
                "their rows, so no model can learn them. Join them with other classes, or allow "
                "coarser masks"
            )
        if self.rows is Rows.ALL and suppressed_rows:
            said.append(
                "utility kept is measured on all rows, before "
                f"{counted(suppressed_rows, 'row is', 'rows are')} left out: the released rows are not "
                "at hand. The certificate states it for the released rows"
            )
        return tuple(said)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "measure": self.measure,
            "value": self.value,
            "reference": self.reference,
            "reference_name": str(self.reference_name),
            "kept": self.utility_kept,
            "stderr": self.stderr,
            "rows": str(self.rows),
            "lost_classes": dict(self.lost_classes),
            **({} if self.rmse is None else {"rmse": self.rmse}),
            **({} if self.rmse is None else {"reference_rmse": self.reference_rmse}),
        }
