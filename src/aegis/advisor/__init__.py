"""Scoring, ranking and exact search of masking configurations."""

from aegis.advisor.advice import Advice, Ranked
from aegis.advisor.advise import Prepared, advise, prepare
from aegis.advisor.generate import combinations, generate
from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.rank import as_it_is, tells_classes_apart
from aegis.advisor.scoring import AttributeScore, Choice, ConfigurationScore, Scorer, utility_kept

__all__ = [
    "Advice",
    "AttributeScore",
    "Choice",
    "ConfigurationScore",
    "Prepared",
    "PrivacyPlan",
    "Ranked",
    "Scorer",
    "advise",
    "as_it_is",
    "combinations",
    "generate",
    "prepare",
    "tells_classes_apart",
    "utility_kept",
]
