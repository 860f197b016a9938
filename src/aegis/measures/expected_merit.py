"""The figures of merit that models are expected to reach, in their own units.

Two codings of what masks show are held out, as in `held_out_codings`: values, one by one, as linear
models on one-hot columns see them, and thresholds, as trees see numbers and dates. Each is scored
under penalties from weak to strong, since which model will be trained is not known. Where models
are named, each has the scores that stand for it, and all of them count alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from aegis.errors import PolicyError
from aegis.measures import merits
from aegis.measures.discriminant import PENALTIES, Scores, naive_bayes, out_of_fold
from aegis.measures.normal import cumulative, quantile
from aegis.measures.ordered import STRONGER, THRESHOLDS, VALUES
from aegis.measures.pair_gains import strongest

if TYPE_CHECKING:
    from aegis.measures.cooccurrence import Cooccurrence

Floats = npt.NDArray[np.float64]
FLOOR = 0.5
"""AUC of a constant prediction."""


class Learner(StrEnum):
    """A kind of model that scores stand for."""

    LR = "lr"
    """Logistic regression and other linear models."""
    NB = "nb"
    """Naive Bayes."""
    GBDT = "gbdt"
    """Boosted trees, interactions left out."""
    PAIRS = "pairs"
    """Boosted trees, with the strongest interaction of two attributes; of them an AUC alone."""


class Coding(StrEnum):
    """What scores are made of."""

    VALUES = "values"
    """Penalised discriminants of values, one by one."""
    THRESHOLDS = "thresholds"
    """Penalised discriminants of thresholds of what has an order."""
    LOG_ODDS = "log-odds"
    """The log-odds of naive Bayes."""


_STRONG = tuple(STRONGER * penalty for penalty in PENALTIES)
"""Penalties of thresholds."""
_ANY = {Coding.VALUES: VALUES, Coding.THRESHOLDS: THRESHOLDS}
_STANDS_FOR = {
    Learner.LR: {Coding.VALUES: 1.0},
    Learner.NB: {Coding.LOG_ODDS: 1.0},
    Learner.GBDT: {Coding.VALUES: 0.5, Coding.THRESHOLDS: 0.5},
    Learner.PAIRS: {Coding.VALUES: 0.5, Coding.THRESHOLDS: 0.5},  # and what a pair adds
}


class Merit(StrEnum):
    """A figure of merit."""

    AUC = "auc"
    ACCURACY = "accuracy"
    LOG_LOSS = "log-loss"

    @property
    def measure(self) -> str:
        """The name of the measure that expects it."""
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


class HeldOut(NamedTuple):
    """A figure of merit of out-of-fold scores under one coding.

    Attributes
    ----------
    figures
        Of each penalty, shape (1 + K, P): of all parts, and without each one.
    shape
        As of `Scores`.
    """

    figures: Floats
    shape: Floats | None


def held_out(counts: Cooccurrence, coding: Coding, merit: Merit) -> HeldOut:
    """Return a figure of merit of out-of-fold scores, for all measures that read it."""
    made: HeldOut = counts.remember((coding, merit), lambda: _held_out(counts, coding, merit))
    return made


def _held_out(counts: Cooccurrence, coding: Coding, merit: Merit) -> HeldOut:
    jointly = merit is not Merit.AUC
    if coding is Coding.LOG_ODDS:
        scores = naive_bayes(counts.by_part(), jointly=jointly)
    elif counts.one_coding:
        return _without_order(counts, merit)[coding]
    elif coding is Coding.VALUES:
        scores = out_of_fold(counts.by_part(), jointly=jointly)
    else:
        # Their shape is taken for that of values.
        ordered = replace(counts.by_part(in_order=True), bounds=None)
        scores = out_of_fold(ordered, _STRONG, jointly=jointly)
    return HeldOut(_OF[merit](scores), scores.shape)


def _without_order(counts: Cooccurrence, merit: Merit) -> Mapping[Coding, HeldOut]:
    """Return both codings of levels without an order: the same counts under other penalties."""

    def make() -> Mapping[Coding, HeldOut]:
        every = sorted({*PENALTIES, *_STRONG})
        scores = out_of_fold(counts.by_part(), every, jointly=merit is not Merit.AUC)
        figures = _OF[merit](scores)
        places = {
            Coding.VALUES: [every.index(penalty) for penalty in PENALTIES],
            Coding.THRESHOLDS: [every.index(penalty) for penalty in _STRONG],
        }
        return {c: HeldOut(figures[:, own], scores.shape) for c, own in places.items()}

    made: Mapping[Coding, HeldOut] = counts.remember(("without order", merit), make)
    return made


@dataclass(frozen=True)
class Expected:
    """A figure of merit of some learners, or of whatever is trained, as measures compute it.

    Attributes
    ----------
    merit
        Which figure.
    learners
        The learners whose mean it is; none: two thirds of linear models, one third of trees.

    Raises
    ------
    PolicyError
        Interactions of pairs are asked for, of which nothing but an AUC is expected.
    """

    merit: Merit
    learners: tuple[Learner, ...] = ()

    def __post_init__(self) -> None:
        if self.interacting and self.merit is not Merit.AUC:
            raise PolicyError(
                f"No {self.merit.value} is expected of interactions of pairs (models: pairs).",
                hint="Ask for `--merit auc`, or for boosted trees without them: `--models gbdt`.",
            )

    @property
    def interacting(self) -> bool:
        """Whether interactions of pairs count."""
        return Learner.PAIRS in self.learners

    @property
    def weights(self) -> dict[Coding, float]:
        """What each coding counts; they add up to 1."""
        if not self.learners:
            return _ANY
        weights: dict[Coding, float] = {}
        for learner in self.learners:
            for coding, share in _STANDS_FOR[learner].items():
                weights[coding] = weights.get(coding, 0.0) + share / len(self.learners)
        return weights

    @property
    def name(self) -> str:
        """The name of the measure: `held-out-auc`, `held-out-auc(lr+nb)`."""
        return self.merit.measure + (f"({'+'.join(self.learners)})" if self.learners else "")

    def values(self, counts: Cooccurrence) -> Floats:
        """Return the figure of all parts and without each one, shape (1 + K,)."""
        alone = {
            c: self._shaped(counts, c, held_out(counts, c, self.merit).figures.mean(axis=1))
            for c in self.weights
        }
        total: Floats = np.sum([w * alone[c] for c, w in self.weights.items()], axis=0)
        if self.interacting:
            trees = np.sum([w * alone[c] for c, w in _STANDS_FOR[Learner.PAIRS].items()], axis=0)
            total = total + (_farther(trees, strongest(counts.pair_gains)) - trees) / len(
                self.learners
            )
        return np.maximum(total, FLOOR) if self.merit is Merit.AUC else total

    def _shaped(self, counts: Cooccurrence, coding: Coding, figures: Floats) -> Floats:
        """Return figures of all parts and without each, (.., 1 + K), with the shape of scores in them.

        Only an AUC depends on it. Thresholds say of a row what its values say, so that their shape
        is taken for that of thresholds.
        """
        own = Coding.VALUES if coding is Coding.THRESHOLDS else coding
        if self.merit is not Merit.AUC:
            return figures
        shape = held_out(counts, own, self.merit).shape
        if shape is None:
            return figures
        shaped: Floats = cumulative(shape * quantile(np.clip(figures, FLOOR, 1 - 1e-16)))
        return np.where((figures > FLOOR) & (shape < 1), shaped, figures)

    def compute(self, counts: Cooccurrence) -> float:
        """Return what models are expected to reach on rows that they were not fitted to.

        The mean over penalties and learners, from what a constant prediction reaches: that is its
        value for one class, for constant attributes and without rows.
        """
        return float(self.values(counts)[0])

    def without_parts(self, counts: Cooccurrence) -> Floats:
        """Return the same without the scores of each part in turn, shape (K,): for its error."""
        return self.values(counts)[1:]

    def constant(self, classes: Sequence[float] | Floats) -> float:
        """Return what a constant prediction reaches, from the rows of each class."""
        return _CONSTANT[self.merit](np.asarray(classes, dtype=np.float64))


def _farther(areas: Floats | np.float64, added: Floats | np.float64) -> Floats:
    """Return AUCs whose squared distances between classes are longer by what a pair adds."""
    apart = quantile(np.clip(areas, FLOOR, 1 - 1e-16))
    farther: Floats = cumulative(np.sqrt(apart**2 + added))
    return np.where(added > 0, farther, areas)


def learners_of(text: str) -> tuple[Learner, ...]:
    """Read names of learners, divided by commas or plus signs; repeated ones count once.

    Raises
    ------
    PolicyError
        A name is unknown, or there is none.
    """
    names = [name.strip() for name in text.replace("+", ",").split(",")]
    for name in names:
        if name not in list(Learner):
            raise PolicyError.unknown("model of an expected merit", name, list(Learner))
    return tuple(learner for learner in Learner if learner in names)


def merit_name(merit: str | None, models: str | None) -> str | None:
    """Return the name of the measure that a merit and models ask for; None where neither is given.

    Raises
    ------
    PolicyError
        The merit or a model is unknown.
    """
    if merit is None and models is None:
        return None
    wanted = merit or Merit.AUC.value
    if wanted not in list(Merit):
        raise PolicyError.unknown("merit", wanted, list(Merit))
    return Expected(Merit(wanted), () if models is None else learners_of(models)).name
