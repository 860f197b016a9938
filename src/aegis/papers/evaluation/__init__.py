"""Train models on every masked table, and compare the results with the advice."""

from aegis.papers.evaluation.comparators import COMPARATORS, Reconstructed, compare, mascara
from aegis.papers.evaluation.evaluate import DEFAULT_MODELS, check_request, evaluate_models
from aegis.papers.evaluation.metrics import METRICS
from aegis.papers.evaluation.models import MODELS, Model
from aegis.papers.evaluation.result import Evaluation

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
