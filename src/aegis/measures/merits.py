"""Predict which AUC, accuracy and log loss trained models will reach, from moments of out-of-fold
scores.

The moments come from `Scores`. If there are two classes, there is one score. The accuracy is then
computed for the best threshold on the score, and the log loss for the best logistic curve; both are
exact if the score is normal within each class. If there are more classes, each class has a score
against the rest, and a row is classified by all scores together, as in linear discriminant analysis
(theory.md, section 3).

Aegis evaluates two codings of masked numbers and dates out of fold: the number itself, as linear
models use it, and thresholds, as trees use them. In both codings, each value without an order gets
an indicator. Aegis scores each coding with penalties from weak to strong, and the best penalty
counts, because users tune their models. If no model is named, the prediction is the metric of the
better coding. If models are named, each uses the coding that fits it, and the prediction is the
mean over the models.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from aegis.arrays import Flags, Floats, cached_method
from aegis.errors import PolicyError, require_known
from aegis.measures.cooccurrence import Encoding
from aegis.measures.discriminant import Scores, naive_bayes, out_of_fold
from aegis.measures.numerics import cumulative, quantile
from aegis.measures.pair_gains import strongest

if TYPE_CHECKING:
    from aegis.measures.cooccurrence import Cooccurrence

_HALF_WIDTH, _NODES = 8.5, 137
"""Half the width, and the number of points, of the trapezoid grid on a standard normal score."""
_POINTS = 1024
"""Number of points in the space of several scores."""
_STEPS = 30
_ZERO = 1e-12
_ROUNDING = 1e-14


def constant_accuracy(classes: Floats) -> float:
    """Return the accuracy of a constant prediction: the share of the most frequent class."""
    total = float(np.sum(classes))
    return float(np.max(classes)) / total if total > 0 else 1.0


def area_error(area: float, classes: Floats) -> float:
    """Return the standard error of an AUC that is due to sampling, given how many rows each class
    has.

    Let A be the AUC, n_1 the number of rows of the class, n_0 the number of all other rows, Q_1 = A
    / (2 - A) and Q_2 = 2 A^2 / (1 + A). The squared error is

        (A (1 - A) + (n_1 - 1) (Q_1 - A^2) + (n_0 - 1) (Q_2 - A^2)) / (n_1 n_0)

    (Hanley and McNeil, The meaning and use of the area under a ROC curve, Radiology 143, 1982). If
    there are more than two classes, the AUC is the mean over classes of the AUC of a class against
    the rest. The result is the error of this mean, as if the AUCs were independent.

    Parameters
    ----------
    area
        The AUC, at least 1/2.
    classes
        Number of rows of each of C classes, shape (C,). If there are two classes, only one is
        compared with the rest.
    """
    rows = np.asarray(classes, dtype=np.float64)
    rows = rows[rows > 0]
    if len(rows) < 2:
        return 0.0
    n = rows if len(rows) > 2 else rows.min(keepdims=True)
    rest = rows.sum() - n
    first, second = area / (2 - area) - area**2, 2 * area**2 / (1 + area) - area**2
    square = (area * (1 - area) + (n - 1) * first + (rest - 1) * second) / (n * rest)
    return float(np.sqrt(np.maximum(square, 0.0).sum()) / len(n))


def constant_log_loss(classes: Floats) -> float:
    """Return the log loss of predicting the share of each class: the entropy in nats."""
    total = float(np.sum(classes))
    share = np.asarray(classes, dtype=np.float64)[np.asarray(classes) > 0] / max(total, 1.0)
    return float(-(share * np.log(share)).sum()) + 0.0


def accuracies(scores: Scores) -> Floats:
    """Return the accuracy of classifying by each of P scores, by `Scores.variants`, shape (1 + K,
    P). It is that of a constant prediction if the score does not separate the classes, and never
    below.
    """
    rows, base = _rows(scores, constant_accuracy)
    if len(scores.compared) == 1:
        scorable, share, mean, deviation = _two(scores)
        if scores.log_odds:
            right = _right(share, mean, deviation, np.zeros(mean.shape[:-1]))
        else:
            right = _best_threshold(share, mean, deviation)
        return np.where(scorable[:, None], np.maximum(right, base[:, None]), base[:, None])
    return _several(scores, rows)[0]


def log_losses(scores: Scores) -> Floats:
    """Return the log loss of predicting by each of P scores, in nats, by `Scores.variants`, shape
    (1 + K, P).

    It is at most the entropy of the classes, except for naive Bayes. The log-odds of naive Bayes
    are not calibrated: if attributes repeat each other, they are overconfident, and their log loss
    may be larger than the entropy.
    """
    rows, base = _rows(scores, constant_log_loss)
    if len(scores.compared) == 1:
        scorable, share, mean, deviation = _two(scores)
        if scores.log_odds:
            losses = _loss_of(share, mean, deviation, np.zeros_like(mean[..., 0]), 1.0)[0]
        else:
            losses = np.minimum(_least_loss(share, mean, deviation), base[:, None])
        return np.where(scorable[:, None], losses, base[:, None])
    return _several(scores, rows)[1]


def _rows(scores: Scores, of: Callable[[Floats], float]) -> tuple[Floats, Floats]:
    """Return the number of rows by class, shape (V, C), and the metric of a constant prediction,
    (V,), in V samples (`Scores.variants`). `of` computes the metric from the rows by class.
    """
    rows = scores.summed(scores.rows)
    return rows, np.array([of(class_rows) for class_rows in rows])


def _two(scores: Scores) -> tuple[Flags, Floats, Floats, Floats]:
    """Return figures for two classes in V samples: whether both have scored rows, (V,); the share
    of rows of each, (V, 1, 2); and the means and standard deviations of P scores, (V, P, 2) each.
    """
    rows, mean, spread = scores.sides
    share = scores.summed(scores.rows)
    class_rows = share[:, scores.compared]
    share = np.concatenate([share.sum(axis=1, keepdims=True) - class_rows, class_rows], axis=1)
    total = share.sum(axis=1, keepdims=True)
    share = np.where(total > 0, share / np.maximum(total, 1.0), 0.5)
    mean, spread = (values[:, 0].swapaxes(1, 2) for values in (mean, spread))
    deviation = np.sqrt(spread)
    # Where one class has one score only, it is given a spread that changes nothing that shows.
    scale = np.abs(np.diff(mean)) + deviation.sum(axis=2, keepdims=True)
    wide: Floats = np.maximum(deviation, 1e-7 * np.where(scale > 0, scale, 1.0))
    return np.asarray(rows[:, 0].min(axis=1) > 0), share[:, None], mean, wide


def _right(share: Floats, mean: Floats, deviation: Floats, threshold: Floats) -> Floats:
    """Return the share of rows that are classified correctly by whether a score exceeds a
    threshold, shape (V, P). Scores are normally distributed in each class; the arguments are as
    `_two` returns them.
    """
    away = (threshold[..., None] - mean) / deviation * np.array([1.0, -1.0])
    share_right: Floats = (share * cumulative(away)).sum(axis=-1)
    return share_right


def _best_threshold(share: Floats, mean: Floats, deviation: Floats) -> Floats:
    """Return the share of rows that the best threshold on the score classifies correctly, shape (V,
    P); the arguments are as `_two` returns them.

    At the best threshold, both densities times shares are equal, which is a quadratic equation. It
    is solved relative to the midpoint of the means and in units of their deviation, so that no
    digits are lost.
    """
    unit = np.sqrt((deviation**2).mean(axis=-1, keepdims=True))
    middle = mean.mean(axis=-1, keepdims=True)
    m, s = (mean - middle) / unit, deviation / unit
    with np.errstate(divide="ignore", invalid="ignore"):
        a = 0.5 / s[..., 0] ** 2 - 0.5 / s[..., 1] ** 2
        b = m[..., 1] / s[..., 1] ** 2 - m[..., 0] / s[..., 0] ** 2
        c = 0.5 * (m[..., 0] / s[..., 0]) ** 2 - 0.5 * (m[..., 1] / s[..., 1]) ** 2
        c = c + np.log(share[..., 1] / s[..., 1]) - np.log(share[..., 0] / s[..., 0])
        # The root of larger size first, then the other one from their product.
        far = -0.5 * (b + np.copysign(np.sqrt(np.maximum(b * b - 4 * a * c, 0.0)), b))
        roots = np.stack([far / a, c / far])
    roots = np.where(np.isfinite(roots), roots, 0.0)
    largest: Floats = _right(share, m, s, roots).max(axis=0)
    return largest


@cache
def _grid() -> tuple[Floats, Floats]:
    """Return points, and weights that sum to 1, for the mean of a function of a standard normal
    variable.
    """
    points = np.linspace(-_HALF_WIDTH, _HALF_WIDTH, _NODES)
    weights = np.exp(-0.5 * points**2)
    return points, weights / weights.sum()


def _loss_of(
    share: Floats, mean: Floats, deviation: Floats, intercept: Floats, slope: Floats | float
) -> tuple[Floats, Floats, Floats]:
    """Return the expected log loss if the log-odds are `intercept` + `slope` * score, shape (V, P),
    and its gradient and curvature in intercept and slope; other arguments are as `_two` returns
    them.
    """
    points, weights = _grid()
    s = mean[..., None] + deviation[..., None] * points  # (V, P, 2, S)
    wrong = np.array([1.0, -1.0])[:, None]  # log-odds that speak against each class
    slopes = np.asarray(slope)[..., None, None]
    odds = wrong * (intercept[..., None, None] + slopes * s)
    weight = share[..., None] * weights
    probabilities = np.exp(-np.logaddexp(0.0, -odds))
    loss = (weight * np.logaddexp(0.0, odds)).sum(axis=(-1, -2))
    push, bend = weight * wrong * probabilities, weight * probabilities * (1 - probabilities)
    gradient = np.stack([(push * f).sum(axis=(-1, -2)) for f in (1.0, s)], axis=-1)
    curve = [(bend * f).sum(axis=(-1, -2)) for f in (np.ones_like(s), s, s * s)]
    return loss, gradient, np.stack(curve, axis=-1)


def _least_loss(share: Floats, mean: Floats, deviation: Floats) -> Floats:
    """Return the smallest expected log loss of any logistic curve of the score, shape (V, P); the
    arguments are as `_two` returns them.

    Newton's method starts from the curve for equal deviations; the loss is convex in intercept and
    slope. The slope is at least 0, because no model reverses its scores.
    """
    unit = np.sqrt((share * deviation**2).sum(axis=-1, keepdims=True))
    mean = (mean - mean.mean(axis=-1, keepdims=True)) / unit
    deviation = deviation / unit
    slope = np.clip(mean[..., 1] - mean[..., 0], 0.0, 1e3)
    with np.errstate(divide="ignore"):
        intercept = np.clip(np.log(share[..., 1]) - np.log(share[..., 0]), -700, 700)
    intercept = np.broadcast_to(intercept, slope.shape).copy()
    loss, gradient, curve = _loss_of(share, mean, deviation, intercept, slope)
    # Without a gap in the right direction the best slope is 0, where the search begins.
    size, settled = np.ones_like(loss), slope <= 0
    for _ in range(_STEPS):
        aa, ab, bb = curve[..., 0] + _ZERO, curve[..., 1], curve[..., 2] + _ZERO
        root = np.maximum(aa * bb - ab * ab, _ZERO * aa * bb)
        step_a = (bb * gradient[..., 0] - ab * gradient[..., 1]) / root
        step_b = (aa * gradient[..., 1] - ab * gradient[..., 0]) / root
        trial_a, trial_b = intercept - size * step_a, np.maximum(slope - size * step_b, 0.0)
        other = _loss_of(share, mean, deviation, trial_a, trial_b)
        better = (other[0] <= loss + _ROUNDING) & ~settled
        gain = np.where(better, loss - other[0], 0.0).max()
        intercept, slope = np.where(better, trial_a, intercept), np.where(better, trial_b, slope)
        gradient = np.where(better[..., None], other[1], gradient)
        curve = np.where(better[..., None], other[2], curve)
        loss, size = np.where(better, other[0], loss), np.where(better, 1.0, 0.5 * size)
        if (better | settled).all() and gain < _ROUNDING:
            break
    return loss


@cache
def _normal_points(dimensions: int) -> Floats:
    """Return S evenly spread points of a standard normal distribution in T dimensions, shape (S,
    T), with the negative of each.
    """
    from scipy.special import ndtri

    ratio = 2.0
    for _ in range(64):  # the root of x^(T+1) = x + 1: the most irrational steps
        ratio = (1 + ratio) ** (1 / (dimensions + 1))
    steps = ratio ** -np.arange(1.0, dimensions + 1)
    half = ndtri((0.5 + np.outer(np.arange(1, _POINTS // 2 + 1), steps)) % 1.0)
    return np.concatenate([half, -half])


def _several(scores: Scores, rows: Floats) -> tuple[Floats, Floats]:
    """Return accuracy and log loss, shape (V, P) each, if a row is classified by the scores of all
    classes. `rows` has the number of rows by sample and class, shape (V, C).

    With mean m_c of the scores in class c and covariance S within classes, the log-odds of class c
    for the scores s are, up to a constant,

        log share_c - (s - m_c)' S^-1 (s - m_c) / 2.

    The scores of the class's rows are normal with the class's own covariance; the expectation is
    taken over evenly spread points.
    """
    variants, directions = len(rows), scores.first.shape[-1]
    nothing, entropy = (
        np.repeat(np.array([of(class_rows) for class_rows in rows])[:, None], directions, axis=1)
        for of in (constant_accuracy, constant_log_loss)
    )
    if scores.together is None:
        return nothing, entropy
    folds: Floats = np.array(scores.scored, dtype=np.float64).min(axis=1)
    compared = scores.compared
    used = scores.summed(scores.rows * folds[:, None])[:, compared]
    first, second = (scores.summed((values.T * folds).T)[:, compared] for values in scores.together)
    scorable = np.asarray(used.min(axis=1) > 0)[:, None]
    count = np.maximum(used, 1.0)[..., None, None]
    mean = np.moveaxis(first / count, -1, 1)  # (V, P, C, T)
    square = np.moveaxis(second / count[..., None], -1, 1)
    spread = square - mean[..., :, None] * mean[..., None, :]
    rows = rows[:, compared]
    share = (rows / np.maximum(rows.sum(axis=1, keepdims=True), 1.0))[:, None]
    accuracy, loss = np.empty((2, variants, directions))
    for v in range(variants):
        for p in range(directions):
            accuracy[v, p], loss[v, p] = _together(share[v, 0], mean[v, p], spread[v, p])
    accuracy = np.where(scorable, np.maximum(accuracy, nothing), nothing)
    return accuracy, np.where(scorable, np.minimum(loss, entropy), entropy)


def _together(share: Floats, mean: Floats, spread: Floats) -> tuple[float, float]:
    """Return accuracy and log loss of linear discriminants on T scores for C classes, from the
    share, (C,), the mean, (C, T), and the covariance, (C, T, T), of each class.
    """
    within = np.einsum("c,ctu->tu", share, spread)
    centred = mean - share @ mean
    size = float(np.trace(within) + (share[:, None] * centred**2).sum())
    if size <= 0:
        return 0.0, np.inf
    values, axes = np.linalg.eigh(within)
    whitened = axes / np.sqrt(np.maximum(values, 1e-10 * size))  # (T, T)
    roots, basis = np.linalg.eigh(spread)  # (C, T), (C, T, T)
    # The symmetric root, which does not depend on signs of eigenvectors that rounding decides.
    factor = (basis * np.sqrt(np.maximum(roots, 0.0))[:, None, :]) @ basis.swapaxes(1, 2)
    points = _normal_points(mean.shape[1])
    whitened_scores = (centred[:, None] + points @ factor) @ whitened  # (C, S, T)
    places = centred @ whitened
    log_shares = np.log(np.maximum(share, _ZERO))
    odds = whitened_scores @ places.T - 0.5 * (places**2).sum(axis=1) + log_shares
    top = odds.max(axis=2, keepdims=True)
    own_odds = odds[np.arange(len(share)), :, np.arange(len(share))]
    likeliest = odds >= top - _ROUNDING * np.maximum(np.abs(top), 1.0)
    right = (
        likeliest[np.arange(len(share)), :, np.arange(len(share))] / likeliest.sum(axis=2)
    ).mean(axis=1)
    logs = top[..., 0] + np.log(np.exp(odds - top).sum(axis=2)) - own_odds
    return float(share @ right), float(share @ logs.mean(axis=1))


FLOOR = 0.5
"""The AUC of a constant prediction."""
R2 = "r2"
"""The metric for a numeric label, which has a separate measure: `aegis.measures.number`."""


class Learner(StrEnum):
    """A kind of model, such as logistic regression, whose metric can be predicted."""

    LR = "lr"
    """Logistic regression and other linear models."""
    NB = "nb"
    """Naive Bayes."""
    GBDT = "gbdt"
    """Boosted trees, without interactions."""
    PAIRS = "pairs"
    """Boosted trees with the strongest interaction of two attributes; predicts only AUC and R2."""


_ANY = (Encoding.NUMBERS, Encoding.THRESHOLDS)
"""The codings of which the better one counts if no learner is named."""
STANDS_FOR = {
    Learner.LR: Encoding.NUMBERS,
    Learner.GBDT: Encoding.THRESHOLDS,
    Learner.PAIRS: Encoding.THRESHOLDS,  # and what a pair adds
}
"""The coding that fits a kind of model, for each kind that has such a coding."""


class ModelMetric(StrEnum):
    """A metric of trained classifiers, such as the AUC, that a measure can predict."""

    AUC = "auc"
    ACCURACY = "accuracy"
    LOG_LOSS = "log-loss"

    @property
    def measure(self) -> str:
        """The name of the measure that predicts this metric."""
        return f"held-out-{self.value}"


_OF: dict[ModelMetric, Callable[[Scores], Floats]] = {
    ModelMetric.AUC: lambda scores: scores.aucs,
    ModelMetric.ACCURACY: accuracies,
    ModelMetric.LOG_LOSS: log_losses,
}
_CONSTANT: dict[ModelMetric, Callable[[Floats], float]] = {
    ModelMetric.AUC: lambda _: FLOOR,
    ModelMetric.ACCURACY: constant_accuracy,
    ModelMetric.LOG_LOSS: constant_log_loss,
}


def _best(merit: ModelMetric, figures: Floats, axis: int) -> Floats:
    """Return the best figures along an axis: the smallest log loss, the largest of other metrics."""
    best = np.min if merit is ModelMetric.LOG_LOSS else np.max
    reached: Floats = best(figures, axis=axis)
    return reached


def held_out(
    counts: Cooccurrence,
    encoding: Encoding,
    merit: ModelMetric,
    model: Callable[..., Scores] = out_of_fold,
) -> Floats:
    """Return a predicted metric under the best ridge penalty, by `Scores.variants`, shape (1 + K,).
    `model` computes the out-of-fold scores. The result is cached in `counts`.
    """
    return _held_out(counts, counts.same_as(encoding), merit, model)


@cached_method
def _held_out(
    counts: Cooccurrence, encoding: Encoding, merit: ModelMetric, model: Callable[..., Scores]
) -> Floats:
    scores = model(counts.by_fold(encoding), jointly=merit is not ModelMetric.AUC)
    figures = _best(merit, _OF[merit](scores), 1)
    if merit is not ModelMetric.AUC or scores.shape is None:
        return figures
    shaped: Floats = cumulative(scores.shape * quantile(np.clip(figures, FLOOR, 1 - 1e-16)))
    return np.where((figures > FLOOR) & (scores.shape < 1), shaped, figures)


class OfModels(ABC):
    """A metric that a measure predicts: the mean over named models, or the better of two kinds of
    models (linear or trees). Values are by `Scores.variants`, shape (1 + K,).
    """

    merit: str
    """The metric."""
    learners: tuple[Learner, ...]
    """The models over which the mean is taken. If no models are named, the prediction is the metric
    of linear models or of trees, whichever is better.
    """

    @abstractmethod
    def held_out(self, counts: Cooccurrence, encoding: Encoding) -> Floats:
        """Return the metric if numbers and dates are encoded in this way."""

    @abstractmethod
    def with_pair(self, figures: Floats, gain: Floats | np.float64) -> Floats:
        """Return the values for models that also use the interaction of two attributes. `gain` is
        what it adds: to the metric itself for R2, to a squared distance between the classes for the
        AUC.
        """

    def better(self, figures: Floats) -> Floats:
        """Return the better figures of several encodings, along the first axis."""
        best: Floats = np.max(figures, axis=0)
        return best

    @property
    def interacting(self) -> bool:
        """Whether one of the models uses interactions of two attributes."""
        return Learner.PAIRS in self.learners

    @property
    def name(self) -> str:
        """The name of the measure, such as `held-out-auc` or `held-out-auc(lr+nb)`."""
        return f"held-out-{self.merit}" + (f"({'+'.join(self.learners)})" if self.learners else "")

    def values(self, counts: Cooccurrence) -> Floats:
        """Return the metric."""
        if self.learners:
            figures = [self.of_learner(counts, learner) for learner in self.learners]
            return np.asarray(np.mean(figures, axis=0))
        return self.better(np.stack([self.held_out(counts, encoding) for encoding in _ANY]))

    def of_learner(self, counts: Cooccurrence, learner: Learner) -> Floats:
        """Return the metric of one kind of models."""
        alone = self.held_out(counts, STANDS_FOR[learner])
        if learner is Learner.PAIRS:
            return self.with_pair(alone, strongest(counts.pair_gains))
        return alone

    def compute(self, counts: Cooccurrence) -> float:
        """Return the metric that models are predicted to reach on held-out rows, never worse than
        that of a constant prediction. Both are equal if there is only one class, if all attributes
        are constant, or if there are no rows.
        """
        return float(self.values(counts)[0])

    def without_folds(self, counts: Cooccurrence) -> Floats:
        """Return the metric without each fold, shape (K,), to compute its standard error."""
        return self.values(counts)[1:]


@dataclass(frozen=True)
class Expected(OfModels):
    """A metric that classifiers reach on held-out rows, and that a measure predicts.

    Attributes
    ----------
    merit
        The metric.
    learners
        The models to predict; empty for the better of linear models and trees.

    Raises
    ------
    PolicyError
        Interactions of pairs were requested for a metric other than AUC.
    """

    merit: ModelMetric
    learners: tuple[Learner, ...] = ()

    def __post_init__(self) -> None:
        if self.interacting and self.merit is not ModelMetric.AUC:
            raise PolicyError(
                f"Aegis predicts only the AUC of models with interactions (pairs), not the {self.merit.value}.",
                hint="Ask for `--metric auc`, or for boosted trees without interactions: `--models gbdt`.",
            )

    def values(self, counts: Cooccurrence) -> Floats:
        """Return the metric."""
        total = super().values(counts)
        return np.maximum(total, FLOOR) if self.merit is ModelMetric.AUC else total

    def of_learner(self, counts: Cooccurrence, learner: Learner) -> Floats:
        """Return the metric of one kind of models."""
        if learner is Learner.NB:
            return held_out(counts, Encoding.NAMES, self.merit, naive_bayes)
        return super().of_learner(counts, learner)

    def held_out(self, counts: Cooccurrence, encoding: Encoding) -> Floats:
        """Return the metric if numbers and dates are encoded in this way."""
        return held_out(counts, encoding, self.merit)

    def better(self, figures: Floats) -> Floats:
        """Return the better figures of several encodings, along the first axis."""
        return _best(self.merit, figures, 0)

    def with_pair(self, figures: Floats, gain: Floats | np.float64) -> Floats:
        """Return the AUCs of models that also use the interaction of two attributes. If an AUC is
        F(d), with the normal distribution function F, `gain` is added to d^2. Two normal classes at
        the distance d have this AUC.
        """
        distance = quantile(np.clip(figures, FLOOR, 1 - 1e-16))
        farther: Floats = cumulative(np.sqrt(distance**2 + gain))
        return np.where(gain > 0, farther, figures)

    def constant(self, classes: Sequence[float] | Floats) -> float:
        """Return the metric of a constant prediction, given the number of rows of each class."""
        return _CONSTANT[self.merit](np.asarray(classes, dtype=np.float64))


def learners_of(text: str) -> tuple[Learner, ...]:
    """Parse the names of models, separated by commas or plus signs. Duplicates count once.

    Raises
    ------
    PolicyError
        A name is unknown, or no name is given.
    """
    names = [name.strip() for name in text.replace("+", ",").split(",")]
    for name in names:
        require_known("model of an expected merit", name, list(Learner))
    return tuple(learner for learner in Learner if learner in names)


def metric_name(merit: str | None, models: str | None) -> str | None:
    """Return the name of the measure for a metric and models; None if neither is named.

    Raises
    ------
    PolicyError
        The metric or a model is unknown.
    """
    if merit is None and models is None:
        return None
    metric = merit or ModelMetric.AUC.value
    if metric == R2:
        return f"held-out-{R2}" + (f"({'+'.join(learners_of(models))})" if models else "")
    if metric not in list(ModelMetric):
        raise PolicyError.unknown("metric", metric, [*ModelMetric, R2])
    return Expected(ModelMetric(metric), () if models is None else learners_of(models)).name
