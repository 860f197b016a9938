"""Figures of trained models: metrics, and how well a measure agrees with them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Score:
    """A metric of one model on one configuration.

    Attributes
    ----------
    model, metric, configuration
        The model, the metric and the configuration.
    value
        Mean of the metric over n splits into training and test rows.
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


@dataclass(frozen=True)
class Agreement:
    """How well the ranking by a measure agrees with a metric of a trained model.

    Attributes
    ----------
    measure, model, metric
        Names of the measure, the model and the metric.
    spearman, kendall
        Rank correlations of the scores with the mean metrics, from -1 to 1; positive if both orders
        agree. None if all scores or all metrics are equal. Kendall's coefficient is tau-b.
    loss
        How much worse the metric of the configuration with the best score is than the best metric;
        at least 0. If several configurations have the best score, their mean metric counts.
    points
        If the metric is a share, such as accuracy: the loss in hundredths. Otherwise, the loss.
    chosen
        The configurations with the best score.
    """

    measure: str
    model: str
    metric: str
    spearman: float | None
    kendall: float | None
    loss: float
    points: float
    chosen: tuple[str, ...]
