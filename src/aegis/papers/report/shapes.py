"""Input types of the report on trained models, so that evaluation code need not import the
report.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


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
        """The same metric on the unmasked table; None if no model was trained on it."""

    @property
    def deviation(self) -> float | None:
        """Standard deviation over the splits; None for a single one."""


class AgreementRow(Protocol):
    """How well a measure ranks configurations, compared with one trained model."""

    @property
    def measure(self) -> str:
        """The measure or comparator."""

    @property
    def model(self) -> str:
        """The model that judges."""

    @property
    def spearman(self) -> float | None:
        """Spearman's rank correlation; None if one side is constant."""

    @property
    def kendall(self) -> float | None:
        """Kendall's rank correlation; None if one side is constant."""

    @property
    def loss(self) -> float:
        """Figure of merit lost against the best configuration by choosing the measure's best."""


class EvaluationResult(Protocol):
    """The gold standard: models trained on the releases."""

    @property
    def metric(self) -> str:
        """The figure of merit that `agreement` is about."""

    @property
    def scores(self) -> Sequence[TrainedScore]:
        """One entry per model, metric and configuration."""

    @property
    def agreement(self) -> Sequence[AgreementRow]:
        """One entry per measure and model."""
