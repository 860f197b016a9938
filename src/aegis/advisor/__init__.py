"""Scoring, ranking and exact search of masking configurations."""

from aegis.advisor.advice import Advice, Ranked
from aegis.advisor.advise import advise, prepare
from aegis.advisor.generate import combinations, generate
from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.scoring import AttributeScore, Choice, ConfigurationScore, Scorer, kept

__all__ = [
    "Advice",
    "AttributeScore",
    "Choice",
    "ConfigurationScore",
    "PrivacyPlan",
    "Ranked",
    "Scorer",
    "advise",
    "combinations",
    "generate",
    "kept",
    "prepare",
]
