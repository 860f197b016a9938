"""Define protocols for results of trained models, so that the report need not import the training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class TrainedScore(Protocol):
    """A metric of one model that was trained on one release."""

    @property
    def model(self) -> str:
        """The model's name."""

    @property
    def metric(self) -> str:
        """The metric, for example "accuracy"."""

    @property
    def configuration(self) -> str:
        """The configuration's name."""

    @property
    def value(self) -> float:
        """Mean over the test splits of the masked table."""

    @property
    def unmasked(self) -> float | None:
        """The mean on the unmasked table; None if no model was trained on it."""

    @property
    def deviation(self) -> float | None:
        """Standard deviation over the splits; None for a single split."""


class AgreementRow(Protocol):
    """Agreement between the ranking by a measure and a metric of a trained model."""

    @property
    def measure(self) -> str:
        """The measure or comparator."""

    @property
    def model(self) -> str:
        """The trained model."""

    @property
    def spearman(self) -> float | None:
        """Spearman's rank correlation of measure and metric; None if one of them is constant."""

    @property
    def kendall(self) -> float | None:
        """Kendall's rank correlation of measure and metric; None if one of them is constant."""

    @property
    def loss(self) -> float:
        """How much worse the metric of the measure's best configuration is than the best metric."""


class EvaluationResult(Protocol):
    """The metrics of models trained on releases, and their agreement with measures."""

    @property
    def metric(self) -> str:
        """The metric with which `agreement` compares measures."""

    @property
    def scores(self) -> Sequence[TrainedScore]:
        """One entry per model, metric and configuration."""

    @property
    def agreement(self) -> Sequence[AgreementRow]:
        """One entry per measure and model."""
