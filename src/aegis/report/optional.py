"""What a report can show beyond a ranking, when somebody has computed it.

These are the shapes that `render` reads, not classes to inherit from: any object with such
attributes will do, so the rooms that compute them need not know the report.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class FrontPoint(Protocol):
    """The best configuration under one level of the demand."""

    @property
    def value(self) -> float:
        """The level of the demand, for example k."""

    @property
    def name(self) -> str:
        """The configuration's name."""

    @property
    def kept(self) -> float | None:
        """Percent of the unmasked utility that is kept; None where there was none."""

    @property
    def suppressed_rows(self) -> int:
        """Rows that the release leaves out."""

    @property
    def optimal(self) -> bool:
        """Whether it is proven best among all combinations."""


class Front(Protocol):
    """The Pareto front of privacy against utility."""

    @property
    def parameter(self) -> str:
        """The demand that varies, as a reader knows it: "k", "largest risk"."""

    @property
    def points(self) -> Sequence[FrontPoint]:
        """The points, in ascending order of `value`."""

    @property
    def knee(self) -> int | None:
        """Position of the recommended point; None where no point stands out."""


class FinerMask(Protocol):
    """The next finer mask of one attribute, and what it would break."""

    @property
    def attribute(self) -> str:
        """The attribute."""

    @property
    def mask(self) -> str:
        """The mask that is recommended."""

    @property
    def finer(self) -> str:
        """The next finer candidate."""

    @property
    def smallest_class(self) -> int:
        """Rows of the smallest class with the finer mask, before suppression."""

    @property
    def rows_at_risk(self) -> int:
        """Rows in classes that would fail the rule."""

    @property
    def kept(self) -> float | None:
        """Percent of the unmasked utility that the finer mask would keep."""

    @property
    def violations(self) -> Sequence[str]:
        """What would fall short, in sentences; empty when nothing would."""


class Relaxation(Protocol):
    """What one step of relaxing the rule would gain."""

    @property
    def change(self) -> str:
        """The change of the rule, for example "k from 5 to 4"."""

    @property
    def name(self) -> str:
        """The configuration that would then be best."""

    @property
    def kept(self) -> float | None:
        """Percent of the unmasked utility that it would keep."""


class Binding(Protocol):
    """Why the recommended configuration masks no less."""

    @property
    def finer(self) -> Sequence[FinerMask]:
        """Per attribute the next finer mask; attributes that have none are left out."""

    @property
    def relaxations(self) -> Sequence[Relaxation]:
        """What weaker rules would gain."""


class TrainedScore(Protocol):
    """How well one model predicts when trained on one release."""

    @property
    def model(self) -> str:
        """The model's name."""

    @property
    def metric(self) -> str:
        """The figure of merit, for example "accuracy"."""

    @property
    def configuration(self) -> str:
        """The configuration's name."""

    @property
    def value(self) -> float:
        """Mean over the test splits of the masked table."""

    @property
    def unmasked(self) -> float | None:
        """The same of the table as it is; None where it was not trained."""

    @property
    def deviation(self) -> float | None:
        """Standard deviation over the splits; None for a single one."""


class Agreement(Protocol):
    """How well a measure ranks configurations, judged by a trained model."""

    @property
    def measure(self) -> str:
        """The measure or comparator."""

    @property
    def model(self) -> str:
        """The model that judges."""

    @property
    def spearman(self) -> float | None:
        """Spearman's rank correlation; None where either side is constant."""

    @property
    def kendall(self) -> float | None:
        """Kendall's rank correlation; None where either side is constant."""

    @property
    def loss(self) -> float:
        """Figure of merit lost against the best configuration by choosing the measure's best."""


class EvaluationResult(Protocol):
    """The gold standard: models trained on the releases."""

    @property
    def scores(self) -> Sequence[TrainedScore]:
        """One entry per model, metric and configuration."""

    @property
    def agreement(self) -> Sequence[Agreement]:
        """One entry per measure and model."""
