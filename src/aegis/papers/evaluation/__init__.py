"""Train models on every masked table, and compare the results with the advice."""

from aegis.papers.evaluation.comparators import COMPARATORS, Reconstructed, compare, mascara
from aegis.papers.evaluation.evaluate import check_request, evaluate_models
from aegis.papers.evaluation.metrics import METRICS
from aegis.papers.evaluation.result import Evaluation
from aegis.papers.evaluation.training import MODELS, Model
from aegis.papers.requests import CLASS_MODELS

__all__ = [
    "CLASS_MODELS",
    "COMPARATORS",
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
