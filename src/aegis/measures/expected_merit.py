"""Predict which metrics trained models will reach, in the units of these metrics.

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
from typing import TYPE_CHECKING

import numpy as np

from aegis.array_cache import remembered
from aegis.arrays import Floats
from aegis.errors import PolicyError
from aegis.measures import merits
from aegis.measures.cooccurrence import Coding
from aegis.measures.discriminant import Scores, naive_bayes, out_of_fold
from aegis.measures.normal import cumulative, quantile
from aegis.measures.pair_gains import strongest

if TYPE_CHECKING:
    from aegis.measures.cooccurrence import Cooccurrence

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


_ANY = (Coding.NUMBERS, Coding.THRESHOLDS)
"""The codings of which the better one counts if no learner is named."""
STANDS_FOR = {
    Learner.LR: Coding.NUMBERS,
    Learner.GBDT: Coding.THRESHOLDS,
    Learner.PAIRS: Coding.THRESHOLDS,  # and what a pair adds
}
"""The coding that fits a kind of model, for each kind that has such a coding."""


class Merit(StrEnum):
    """A metric of trained classifiers, such as the AUC, that a measure can predict."""

    AUC = "auc"
    ACCURACY = "accuracy"
    LOG_LOSS = "log-loss"

    @property
    def measure(self) -> str:
        """The name of the measure that predicts this metric."""
        return f"held-out-{self.value}"


_OF: dict[Merit, Callable[[Scores], Floats]] = {
    Merit.AUC: lambda scores: scores.areas,
    Merit.ACCURACY: merits.accuracies,
    Merit.LOG_LOSS: merits.log_losses,
}
_CONSTANT: dict[Merit, Callable[[Floats], float]] = {
    Merit.AUC: lambda _: FLOOR,
    Merit.ACCURACY: merits.constant_accuracy,
    Merit.LOG_LOSS: merits.constant_log_loss,
}


def _best(merit: Merit, figures: Floats, axis: int) -> Floats:
    """Return the best figures along an axis, such as the axis of the penalties: the smallest log
    loss, the largest of other metrics.
    """
    best = np.min if merit is Merit.LOG_LOSS else np.max
    reached: Floats = best(figures, axis=axis)
    return reached


def held_out(
    counts: Cooccurrence,
    coding: Coding,
    merit: Merit,
    model: Callable[..., Scores] = out_of_fold,
) -> Floats:
    """Return a predicted metric under the best ridge penalty, first over all K folds, then without
    each fold, shape (1 + K,). `coding` says how numbers and dates are encoded, and `model` computes
    the out-of-fold scores.

    The result is cached in `counts`.
    """
    return _held_out(counts, counts.same_as(coding), merit, model)


@remembered
def _held_out(
    counts: Cooccurrence, coding: Coding, merit: Merit, model: Callable[..., Scores]
) -> Floats:
    scores = model(counts.by_part(coding), jointly=merit is not Merit.AUC)
    figures = _best(merit, _OF[merit](scores), 1)
    if merit is not Merit.AUC or scores.shape is None:
        return figures
    shaped: Floats = cumulative(scores.shape * quantile(np.clip(figures, FLOOR, 1 - 1e-16)))
    return np.where((figures > FLOOR) & (scores.shape < 1), shaped, figures)


class OfModels(ABC):
    """A metric that a measure predicts: the mean over named models, or the better of two kinds of
    models (linear or trees).
    """

    merit: str
    """The metric."""
    learners: tuple[Learner, ...]
    """The models over which the mean is taken. If no models are named, the prediction is the metric
    of linear models or of trees, whichever is better.
    """

    @abstractmethod
    def held_out(self, counts: Cooccurrence, coding: Coding) -> Floats:
        """Return the metric if numbers and dates are encoded as `coding` says, first over all K
        folds, then without each fold, shape (1 + K,).
        """

    @abstractmethod
    def with_pair(self, figures: Floats, gain: Floats | np.float64) -> Floats:
        """Return the metric's values for models that also use the interaction of two attributes.
        `figures` are the values without the interaction. `gain` is what the interaction adds: to
        the metric itself for R2, to a squared distance between the classes for the AUC.
        """

    def better(self, figures: Floats) -> Floats:
        """Return the better figures of several codings; the first axis of `figures` is the coding."""
        best: Floats = np.max(figures, axis=0)
        return best

    @property
    def interacting(self) -> bool:
        """Whether one of the models has interactions of two attributes."""
        return Learner.PAIRS in self.learners

    @property
    def name(self) -> str:
        """The name of the measure, such as `held-out-auc` or `held-out-auc(lr+nb)`."""
        return f"held-out-{self.merit}" + (f"({'+'.join(self.learners)})" if self.learners else "")

    def values(self, counts: Cooccurrence) -> Floats:
        """Return the metric over all folds, then without each of the K folds, shape (1 + K,)."""
        if self.learners:
            mean: Floats = np.mean([self.of_learner(counts, own) for own in self.learners], axis=0)
            return mean
        return self.better(np.stack([self.held_out(counts, coding) for coding in _ANY]))

    def of_learner(self, counts: Cooccurrence, learner: Learner) -> Floats:
        """Return the metric of one kind of models, first over all K folds, then without each fold,
        shape (1 + K,).
        """
        alone = self.held_out(counts, STANDS_FOR[learner])
        if learner is Learner.PAIRS:
            return self.with_pair(alone, strongest(counts.pair_gains))
        return alone

    def compute(self, counts: Cooccurrence) -> float:
        """Return the metric that models are predicted to reach on held-out rows.

        The metric is never worse than the metric of a constant prediction. Both are equal if there
        is only one class, if all attributes are constant, or if there are no rows.
        """
        return float(self.values(counts)[0])

    def without_parts(self, counts: Cooccurrence) -> Floats:
        """Return the metric without each fold in turn, shape (K,), to compute its standard error."""
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

    merit: Merit
    learners: tuple[Learner, ...] = ()

    def __post_init__(self) -> None:
        if self.interacting and self.merit is not Merit.AUC:
            raise PolicyError(
                f"Aegis predicts only the AUC of models with interactions (pairs), not the {self.merit.value}.",
                hint="Ask for `--metric auc`, or for boosted trees without interactions: `--models gbdt`.",
            )

    def values(self, counts: Cooccurrence) -> Floats:
        """Return the metric over all folds, then without each of the K folds, shape (1 + K,)."""
        total = super().values(counts)
        return np.maximum(total, FLOOR) if self.merit is Merit.AUC else total

    def of_learner(self, counts: Cooccurrence, learner: Learner) -> Floats:
        """Return the metric of one kind of models, first over all K folds, then without each fold,
        shape (1 + K,).
        """
        if learner is Learner.NB:
            return held_out(counts, Coding.NAMES, self.merit, naive_bayes)
        return super().of_learner(counts, learner)

    def held_out(self, counts: Cooccurrence, coding: Coding) -> Floats:
        """Return the metric if numbers and dates are encoded as `coding` says, first over all K
        folds, then without each fold, shape (1 + K,).
        """
        return held_out(counts, coding, self.merit)

    def better(self, figures: Floats) -> Floats:
        """Return the better figures of several codings; the first axis of `figures` is the coding."""
        return _best(self.merit, figures, 0)

    def with_pair(self, figures: Floats, gain: Floats | np.float64) -> Floats:
        """Return the AUCs of models that also use the interaction of two attributes; `figures` are
        the AUCs without it. A score with the AUC F(d), F being the normal distribution function,
        separates two normal classes by the distance d; `gain` is added to d^2.
        """
        apart = quantile(np.clip(figures, FLOOR, 1 - 1e-16))
        farther: Floats = cumulative(np.sqrt(apart**2 + gain))
        return np.where(gain > 0, farther, figures)

    def constant(self, classes: Sequence[float] | Floats) -> float:
        """Return the metric of a constant prediction, given the number of rows of each class."""
        return _CONSTANT[self.merit](np.asarray(classes, dtype=np.float64))


def learners_of(text: str) -> tuple[Learner, ...]:
    """Parse the names of models, which are separated by commas or plus signs. Duplicates count
    once.

    Raises
    ------
    PolicyError
        A name is unknown, or no name is given.
    """
    names = [name.strip() for name in text.replace("+", ",").split(",")]
    for name in names:
        if name not in list(Learner):
            raise PolicyError.unknown("model of an expected merit", name, list(Learner))
    return tuple(learner for learner in Learner if learner in names)


def merit_name(merit: str | None, models: str | None) -> str | None:
    """Return the name of the measure for a metric and models; None if neither is named.

    Raises
    ------
    PolicyError
        The metric or a model is unknown.
    """
    if merit is None and models is None:
        return None
    wanted = merit or Merit.AUC.value
    if wanted == R2:
        return f"held-out-{R2}" + (f"({'+'.join(learners_of(models))})" if models else "")
    if wanted not in list(Merit):
        raise PolicyError.unknown("metric", wanted, [*Merit, R2])
    return Expected(Merit(wanted), () if models is None else learners_of(models)).name
