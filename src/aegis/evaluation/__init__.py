"""The gold standard: models trained on every masked table, and how the advice compares."""

from aegis.evaluation.agreement import Agreement, Judged
from aegis.evaluation.evaluate import DEFAULT_MODELS, evaluate
from aegis.evaluation.metrics import METRICS, Metric
from aegis.evaluation.models import MODELS, Model
from aegis.evaluation.result import Evaluation, Score
from aegis.evaluation.training import Training

__all__ = [
    "DEFAULT_MODELS",
    "METRICS",
    "MODELS",
    "Agreement",
    "Evaluation",
    "Judged",
    "Metric",
    "Model",
    "Score",
    "Training",
    "evaluate",
]
