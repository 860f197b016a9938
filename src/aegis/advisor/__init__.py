"""Score, rank and exactly search masking configurations."""

from aegis.advisor.advice import Advice
from aegis.advisor.advise import (
    combinations,
    generate,
    rank_configurations,
    with_privacy,
    with_residual_risks,
)
from aegis.advisor.plan import PrivacyPlan, as_it_is, as_released, plan_of, tells_classes_apart
from aegis.advisor.ranked import Ranked
from aegis.advisor.scoring import Choice, Scorer, utility_kept
from aegis.advisor.utility import measure_for

__all__ = [
    "Advice",
    "Choice",
    "PrivacyPlan",
    "Ranked",
    "Scorer",
    "as_it_is",
    "as_released",
    "combinations",
    "generate",
    "measure_for",
    "plan_of",
    "rank_configurations",
    "tells_classes_apart",
    "utility_kept",
    "with_privacy",
    "with_residual_risks",
]
