"""Compute privacy models and disclosure risk, as pure functions of a class-frequency table."""

from __future__ import annotations

from aegis.privacy.classes import ClassTable, KnownPersons, Persons, SensitiveCounts
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
from aegis.privacy.report import PrivacyReport, report
from aegis.privacy.rule import PrivacyRule, Strength, Verdict, missing, strength
from aegis.privacy.traces import joined, released_cells, traces

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
    "SensitiveCounts",
    "Strength",
    "Verdict",
    "Window",
    "joined",
    "missing",
    "released_cells",
    "report",
    "strength",
    "traces",
]
