"""Describe the metric that models are expected to reach, as a key figure of a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aegis.advisor import Advice

TITLES = {
    "AUC": "Expected AUC",
    "accuracy": "Expected accuracy",
    "nats": "Expected log loss",
    "R2": "Expected R2",
}
"""The title of the figure, by the unit of its measure."""


@dataclass(frozen=True)
class ExpectedFigure:
    """The expected metric of models with the best release.

    Attributes
    ----------
    title, value
        The name and the value of the metric.
    note
        The range of trained models, the same metric for the unmasked table, and for a numeric label
        the prediction errors.
    """

    title: str
    value: str
    note: str

    @classmethod
    def of(cls, advice: Advice) -> ExpectedFigure | None:
        """Return the figure of an advice; None if no metric is expected."""
        from aegis.measures import MEASURES  # loads NumPy, which no help needs

        figure = advice.expectation
        title = None if figure is None else TITLES.get(MEASURES.get(figure.measure).unit)
        if figure is None or title is None:
            return None
        reference = f"{figure.reference:.{figure.digits}f} {figure.reference_name.short}"
        return cls(
            title=title,
            value=f"{figure.value:.{figure.digits}f}",
            note=f"of models{figure.plus_minus}; {reference}{figure.errors}{figure.why_better}",
        )
