"""Compute metrics of a model on test rows: pure functions of labels and scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aegis.arrays import Array, Flags, Floats
from aegis.measures import LabelKind
from aegis.registry import Registry

Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Prediction:
    """The true classes of test rows, and a classifier's scores.

    Attributes
    ----------
    truth
        Class of each of the n test rows, as a number from 0 to C - 1 for C classes, shape (n,).
    scores
        Score of each class for each row, shape (n, C): a probability, or a margin if the model has
        no probabilities.
    probabilistic
        Whether the scores are probabilities.
    positive
        The class whose F1 is reported if there are two classes.
    weights
        The weight of each row, shape (n,); None if each row counts once.
    """

    truth: Labels
    scores: Floats
    probabilistic: bool
    positive: int = 1
    weights: Floats | None = None

    @property
    def predicted(self) -> Labels:
        """The class with the largest score in each row, the first if equal, shape (n,)."""
        largest: Labels = self.scores.argmax(axis=1).astype(np.int64)
        return largest


@dataclass(frozen=True, eq=False)
class NumberPrediction:
    """The true number and the predicted number of each test row.

    Attributes
    ----------
    truth, predicted
        The true number and the predicted number of each of the n rows, shape (n,).
    weights
        The weight of each row, shape (n,); None if each row counts once.
    """

    truth: Floats
    predicted: Floats
    weights: Floats | None = None

    @property
    def errors(self) -> Floats:
        """The true number minus the predicted number of each row, shape (n,)."""
        return self.truth - self.predicted


@dataclass(frozen=True)
class Metric:
    """A metric by which trained models are compared.

    Attributes
    ----------
    name
        The name on the command line.
    title
        The usual name of the metric.
    sign
        1 if higher is better, -1 if lower is better.
    share
        Whether the metric is a share; then differences are stated in points (hundredths).
    compute
        Function that returns the value of the metric. It returns NaN if the metric is not defined
        for the model or the test rows.
    label
        The kind of label that the metric needs: classes or a number.
    """

    name: str
    title: str
    sign: int
    share: bool
    compute: Callable[[Prediction], float] | Callable[[NumberPrediction], float]
    label: LabelKind = LabelKind.CLASSES


def _mean(values: Array, weights: Floats | None) -> float:
    """Return the (weighted) mean of the rows' values; NaN if there are no rows or no weights."""
    if not len(values) or (weights is not None and not weights.any()):
        return math.nan
    return float(values.mean() if weights is None else np.average(values, weights=weights))


def accuracy(prediction: Prediction) -> float:
    """Return the (weighted) share of rows with the correct class; NaN without rows."""
    return _mean(prediction.predicted == prediction.truth, prediction.weights)


def roc_auc(prediction: Prediction) -> float:
    """Return the area under the ROC curve, 0..1; 0.5 is chance.

    For one class, the area is the probability that a row of this class has a higher score for it
    than a row of another class; equal scores count half (Hanley and McNeil 1982). For several
    classes, the function computes the AUC of each class against the rest, and returns the
    unweighted mean. It skips classes that have no rows or all rows. If no class is left, it returns
    NaN.
    """
    truth, scores, weights = prediction.truth, prediction.scores, prediction.weights
    if scores.shape[1] == 2:
        return _area(truth == 1, scores[:, 1] - scores[:, 0], weights)
    aucs = np.array([_area(truth == c, scores[:, c], weights) for c in range(scores.shape[1])])
    defined = np.isfinite(aucs)
    return float(aucs[defined].mean()) if defined.any() else math.nan


def _area(positive: Flags, scores: Floats, weights: Floats | None) -> float:
    """Return the area under the ROC curve; equal scores count half, pairs by product of weights."""
    _, rank = np.unique(scores, return_inverse=True)
    row_weights = np.ones(len(scores)) if weights is None else weights
    hits, others = (np.bincount(rank, row_weights * of_kind) for of_kind in (positive, ~positive))
    if not hits.any() or not others.any():
        return math.nan
    below = np.cumsum(others) - others / 2
    return float((hits * below).sum() / (hits.sum() * others.sum()))


def log_loss(prediction: Prediction) -> float:
    """Return the mean of -ln(probability of the true class), in nats.

    The result is NaN if the model states no probabilities.

    Probabilities below 1e-15 count as 1e-15, so that a single confident mistake does not make the
    log loss infinite.
    """
    if not prediction.probabilistic or not len(prediction.truth):
        return math.nan
    rows = np.arange(len(prediction.truth))
    shares = prediction.scores / prediction.scores.sum(axis=1, keepdims=True)
    return _mean(-np.log(np.clip(shares[rows, prediction.truth], 1e-15, 1.0)), prediction.weights)


def f1(prediction: Prediction) -> float:
    """Return F1 = 2 TP / (2 TP + FP + FN), from 0 to 1, from the numbers of true positives, false
    positives and false negatives.

    For two classes, the function returns the F1 of the class `positive`. For more classes, it
    returns the mean of the classes' F1, weighted by their rows. If a class neither occurs nor is
    predicted, its F1 is 0.
    """
    truth, predicted = prediction.truth, prediction.predicted
    classes = prediction.scores.shape[1]
    if not len(truth):
        return math.nan
    weights, right = prediction.weights, truth == predicted
    hits = np.bincount(truth[right], None if weights is None else weights[right], classes)
    actual, claimed = (np.bincount(of, weights, classes) for of in (truth, predicted))
    both = actual + claimed
    values = 2.0 * hits / np.where(both > 0, both, 1)
    if classes == 2:
        return float(values[prediction.positive])
    return _mean(values, actual.astype(np.float64))


def r2(prediction: NumberPrediction) -> float:
    """Return R², at most 1; NaN if all true numbers are equal."""
    truth, weights = prediction.truth, prediction.weights
    away, errors = (truth - _mean(truth, weights)) ** 2, prediction.errors**2
    if weights is not None:
        away, errors = weights * away, weights * errors
    spread = float(away.sum())
    return 1 - float(errors.sum()) / spread if spread > 0 else math.nan


def rmse(prediction: NumberPrediction) -> float:
    """Return the root of the mean squared error of the predictions; NaN if there are no rows."""
    return math.sqrt(_mean(prediction.errors**2, prediction.weights))


def mae(prediction: NumberPrediction) -> float:
    """Return the mean absolute error of the predictions; NaN if there are no rows."""
    return _mean(np.abs(prediction.errors), prediction.weights)


METRICS: Registry[Metric] = Registry("metric")
"""All metrics by name."""

METRICS.register_all(
    Metric("accuracy", "Accuracy", 1, True, accuracy),
    Metric("roc_auc", "Area under the ROC curve", 1, True, roc_auc),
    Metric("log_loss", "Logarithmic loss (nats)", -1, False, log_loss),
    Metric("f1", "F1", 1, True, f1),
    Metric("r2", "R2 of a number", 1, True, r2, LabelKind.NUMBER),
    Metric("rmse", "Root mean squared error of a number", -1, False, rmse, LabelKind.NUMBER),
    Metric("mae", "Mean absolute error of a number", -1, False, mae, LabelKind.NUMBER),
)
