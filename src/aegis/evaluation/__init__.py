"""The gold standard: models trained on every masked table, and how the advice compares."""

from aegis.evaluation.agreement import Agreement, Judged
from aegis.evaluation.comparators import COMPARATORS, Comparator, Reconstructed, compare, mascara
from aegis.evaluation.evaluate import DEFAULT_MODELS, check_request, evaluate_models
from aegis.evaluation.metrics import METRICS, Metric
from aegis.evaluation.models import MODELS, Model
from aegis.evaluation.result import Evaluation, Score
from aegis.evaluation.training import Training

__all__ = [
    "COMPARATORS",
    "DEFAULT_MODELS",
    "METRICS",
    "MODELS",
    "Agreement",
    "Comparator",
    "Evaluation",
    "Judged",
    "Metric",
    "Model",
    "Reconstructed",
    "Score",
    "Training",
    "check_request",
    "compare",
    "evaluate_models",
    "mascara",
]
