"""Figures of merit of a classifier on test rows: pure functions of labels and scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aegis.measures import LabelKind
from aegis.registry import Registry

Labels = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Prediction:
    """The predictions of a classifier for the test rows.

    Attributes
    ----------
    truth
        Class of each row, shape (n,), in 0..C-1.
    scores
        Score of each class, shape (n, C): probabilities, or margins of a model without them.
    probabilistic
        Whether the scores are probabilities.
    positive
        The class whose F1 is reported when there are two.
    """

    truth: Labels
    scores: Floats
    probabilistic: bool
    positive: int = 1

    @property
    def predicted(self) -> Labels:
        """The class with the largest score, shape (n,); the first of equal ones."""
        largest: Labels = self.scores.argmax(axis=1).astype(np.int64)
        return largest


@dataclass(frozen=True, eq=False)
class NumberPrediction:
    """The predictions of a number for the test rows.

    Attributes
    ----------
    truth, predicted
        The number of each row, and the one that is predicted, shape (n,).
    """

    truth: Floats
    predicted: Floats

    @property
    def errors(self) -> Floats:
        """The number less the one that is predicted, shape (n,)."""
        return self.truth - self.predicted


@dataclass(frozen=True)
class Metric:
    """A figure of merit.

    Attributes
    ----------
    name
        As the command line writes it.
    title
        The field's term.
    sign
        1 where higher is better, -1 where lower is.
    share
        Whether it is a share, whose differences are told in points (hundredths).
    compute
        The value; NaN where it is not defined for the model or the test rows.
    label
        Whether it is of classes or of a number.
    """

    name: str
    title: str
    sign: int
    share: bool
    compute: Callable[[Prediction], float] | Callable[[NumberPrediction], float]
    label: LabelKind = LabelKind.CLASSES


def accuracy(prediction: Prediction) -> float:
    """Return the share of rows whose class is predicted; NaN without rows."""
    if not len(prediction.truth):
        return math.nan
    return float((prediction.predicted == prediction.truth).mean())


def roc_auc(prediction: Prediction) -> float:
    """Return the area under the ROC curve, 0..1; 0.5 is chance.

    The probability that a row of the class scores higher than another row, ties counted half
    (Hanley and McNeil 1982). For several classes the mean of one against the rest, each class
    in the same way, as the expected AUC counts them; classes without rows, or without others, are left out;
    NaN when none is left.
    """
    truth, scores = prediction.truth, prediction.scores
    if scores.shape[1] == 2:
        return _area(truth == 1, scores[:, 1] - scores[:, 0])
    areas = np.array([_area(truth == c, scores[:, c]) for c in range(scores.shape[1])])
    known = np.isfinite(areas)
    return float(areas[known].mean()) if known.any() else math.nan


def _area(positive: npt.NDArray[np.bool_], scores: Floats) -> float:
    hits, others = int(positive.sum()), int((~positive).sum())
    if not hits or not others:
        return math.nan
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2
    ranks = middle[place]
    return float((ranks[positive].sum() - hits * (hits + 1) / 2) / (hits * others))


def log_loss(prediction: Prediction) -> float:
    """Return the mean of -ln(probability of the true class), in nats; NaN without probabilities.

    Probabilities are held to at least 1e-15, so that one sure mistake does not make it infinite.
    """
    if not prediction.probabilistic or not len(prediction.truth):
        return math.nan
    rows = np.arange(len(prediction.truth))
    shares = prediction.scores / prediction.scores.sum(axis=1, keepdims=True)
    return float(-np.log(np.clip(shares[rows, prediction.truth], 1e-15, 1.0)).mean())


def f1(prediction: Prediction) -> float:
    """Return F1 = 2 TP / (2 TP + FP + FN), 0..1.

    For two classes that of the rarer one; for several the mean over classes, weighted by their
    rows. A class that is neither there nor predicted counts 0.
    """
    truth, predicted = prediction.truth, prediction.predicted
    classes = prediction.scores.shape[1]
    if not len(truth):
        return math.nan
    hits = np.bincount(truth[truth == predicted], minlength=classes)
    actual, claimed = (
        np.bincount(truth, minlength=classes),
        np.bincount(predicted, minlength=classes),
    )
    values = 2.0 * hits / np.maximum(actual + claimed, 1)
    if classes == 2:
        return float(values[prediction.positive])
    return float(np.average(values, weights=actual))


def r2(prediction: NumberPrediction) -> float:
    """Return the share of the variance that is predicted, at most 1; NaN if the number is
    constant.
    """
    spread = (
        float(((prediction.truth - prediction.truth.mean()) ** 2).sum())
        if len(prediction.truth)
        else 0.0
    )
    return 1 - float((prediction.errors**2).sum()) / spread if spread > 0 else math.nan


def rmse(prediction: NumberPrediction) -> float:
    """Return the root of the mean squared error; NaN without rows."""
    return float(np.sqrt((prediction.errors**2).mean())) if len(prediction.truth) else math.nan


def mae(prediction: NumberPrediction) -> float:
    """Return the mean absolute error; NaN without rows."""
    return float(np.abs(prediction.errors).mean()) if len(prediction.truth) else math.nan


METRICS: Registry[Metric] = Registry("metric")
"""All figures of merit by name."""

for _metric in (
    Metric("accuracy", "Accuracy", 1, True, accuracy),
    Metric("roc_auc", "Area under the ROC curve", 1, True, roc_auc),
    Metric("log_loss", "Logarithmic loss (nats)", -1, False, log_loss),
    Metric("f1", "F1", 1, True, f1),
    Metric("r2", "R2 of a number", 1, True, r2, LabelKind.NUMBER),
    Metric("rmse", "Root mean squared error of a number", -1, False, rmse, LabelKind.NUMBER),
    Metric("mae", "Mean absolute error of a number", -1, False, mae, LabelKind.NUMBER),
):
    METRICS.register(_metric)
