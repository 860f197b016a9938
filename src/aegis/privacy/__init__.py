"""Privacy models and disclosure risk: pure functions of a class-frequency table."""

from __future__ import annotations

from aegis.privacy.classes import ClassTable, SensitiveCounts
from aegis.privacy.dp import PrivacyAccount, PrivacyLoss
from aegis.privacy.model import (
    Comparison,
    Criterion,
    ModelNeed,
    ModelParameter,
    PrivacyModel,
    Window,
)
from aegis.privacy.payoff_models import MODELS
from aegis.privacy.persons import KnownPersons, Persons
from aegis.privacy.report import PrivacyReport, Risk, SizeBin, report
from aegis.privacy.rule import PrivacyRule, Shortage, Verdict, suppressed_rows_k
from aegis.privacy.strength import Strength, missing, strength

__all__ = [
    "MODELS",
    "ClassTable",
    "Comparison",
    "Criterion",
    "KnownPersons",
    "ModelNeed",
    "ModelParameter",
    "Persons",
    "PrivacyAccount",
    "PrivacyLoss",
    "PrivacyModel",
    "PrivacyReport",
    "PrivacyRule",
    "Risk",
    "SensitiveCounts",
    "Shortage",
    "SizeBin",
    "Strength",
    "Verdict",
    "Window",
    "missing",
    "report",
    "strength",
    "suppressed_rows_k",
]
