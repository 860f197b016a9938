"""One offline HTML file that explains an advice to whoever decides about the release."""

from __future__ import annotations

from aegis.report.optional import (
    Agreement,
    Binding,
    EvaluationResult,
    FinerMask,
    Front,
    FrontPoint,
    Relaxation,
    TrainedScore,
)
from aegis.report.render import DEFAULT_TITLE, render

__all__ = [
    "DEFAULT_TITLE",
    "Agreement",
    "Binding",
    "EvaluationResult",
    "FinerMask",
    "Front",
    "FrontPoint",
    "Relaxation",
    "TrainedScore",
    "render",
]
