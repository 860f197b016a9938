"""The gold standard: models trained on every masked table, and how the advice compares."""

from aegis.evaluation.comparators import COMPARATORS, Reconstructed, compare, mascara
from aegis.evaluation.evaluate import DEFAULT_MODELS, check_request, evaluate_models
from aegis.evaluation.metrics import METRICS
from aegis.evaluation.models import MODELS, Model
from aegis.evaluation.result import Evaluation

__all__ = [
    "COMPARATORS",
    "DEFAULT_MODELS",
    "METRICS",
    "MODELS",
    "Evaluation",
    "Model",
    "Reconstructed",
    "check_request",
    "compare",
    "evaluate_models",
    "mascara",
]
