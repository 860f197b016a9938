"""Figures of trained models: metrics, and how well a measure agrees with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aegis.words import json_fields


@dataclass(frozen=True)
class Score:
    """A metric of one model on one configuration.

    Attributes
    ----------
    model, metric, configuration
        The model, the metric and the configuration.
    value
        Mean over the splits.
    deviation
        Standard deviation over the n splits (with divisor n - 1); None for a single split.
    unmasked
        The mean on the unmasked table; None if no model was trained on it.
    """

    model: str
    metric: str
    configuration: str
    value: float
    deviation: float | None
    unmasked: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return json_fields(self)


@dataclass(frozen=True)
class Agreement:
    """Agreement between the ranking by a measure and a metric of a trained model.

    Attributes
    ----------
    measure, model, metric
        Names of the measure, the model and the metric.
    spearman, kendall
        Spearman's and Kendall's (tau-b) rank correlation between the scores and the mean metrics,
        -1..1, positive if they agree; None if the scores or the metrics are all equal.
    loss
        How much worse the metric of the measure's best configuration is than the best metric; at
        least 0. If the measure has several best configurations, the loss is the mean of their
        losses.
    points
        The loss in hundredths if the metric is a share such as accuracy, else the loss.
    chosen
        The measure's best configurations.
    """

    measure: str
    model: str
    metric: str
    spearman: float | None
    kendall: float | None
    loss: float
    points: float
    chosen: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return json_fields(self)
