"""Score, rank and exactly search masking configurations."""

from aegis.advisor.advice import Advice
from aegis.advisor.advise import rank_configurations
from aegis.advisor.default import measure_for
from aegis.advisor.generate import combinations, generate
from aegis.advisor.plan import PrivacyPlan, plan_of
from aegis.advisor.rank import as_it_is, as_released, tells_classes_apart
from aegis.advisor.ranked import Ranked
from aegis.advisor.residual_risks import with_privacy, with_residual_risks
from aegis.advisor.scoring import Choice, Scorer, utility_kept

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
