"""Describe the measures that predict a metric of trained models."""

from __future__ import annotations

from typing import Any

from aegis.measures.cooccurrence import Need
from aegis.measures.expected_merit import FLOOR, Expected, Learner, Merit, learners_of
from aegis.measures.record import Direction, Measure, Scope

_DIRECTION = (
    "b'x over rows x that took no part in b = (W + p/n I)^-1 (mean of the class less mean of the"
    " rest), W the mean of the two covariances within"
)
_SAID: dict[Merit, dict[str, Any]] = {
    Merit.AUC: {
        "title": "Expected AUC on rows held out",
        "description": (
            "An estimate of the AUC (area under the ROC curve) that models reach on rows that "
            "took no part in their fit. Aegis fits linear discriminants with several penalties "
            "and takes the best. It tries numbers and dates both as numbers and as thresholds. "
            "Texts are categories. Rare classes count as much as frequent classes."
        ),
        "formula": (
            "largest over p = 10, 100, 1,000 rows of Phi((m_1 - m_0) / sqrt(v_1 + v_0)), means and variances"
            f" by class of {_DIRECTION}; mean over classes; of two classes less what the shape of"
            " scores takes, were attributes independent"
        ),
        "range": "0.5 .. 1",
        "unit": "AUC",
    },
    Merit.ACCURACY: {
        "title": "Expected accuracy on rows held out",
        "description": (
            "An estimate of the share of correct predictions that models reach on rows that took "
            "no part in their fit. It uses the same scores as the expected AUC. The measure shows "
            "little about rare classes: a model that never predicts a rare class is still nearly "
            "always right."
        ),
        "formula": (
            "largest over p = 10, 100, 1,000 rows of the largest share of rows on their class's side of a"
            " threshold, under normal scores with means and variances by class of"
            f" {_DIRECTION}; of several classes by linear discriminants of all their scores"
        ),
        "range": "share of the most frequent class .. 1",
        "unit": "accuracy",
    },
    Merit.LOG_LOSS: {
        "title": "Expected log loss on rows held out",
        "description": (
            "An estimate of the log loss that models reach on rows that took no part in their "
            "fit. It uses the same scores as the expected AUC. The log loss is small if predicted "
            "probabilities are close to the truth."
        ),
        "formula": (
            "least over p = 10, 100, 1,000 rows of the least mean of -ln P(own class) of a logistic curve,"
            f" under normal scores with means and variances by class of {_DIRECTION}; of several"
            " classes by linear discriminants of all their scores"
        ),
        "range": "0 .. entropy of the classes",
        "unit": "nats",
        "direction": Direction.LOWER,
    },
}
LEARNERS = {
    Learner.LR: "logistic regression (numbers as they are)",
    Learner.NB: "naive Bayes (its own log-odds)",
    Learner.GBDT: "boosted trees (thresholds of numbers, without interactions)",
    Learner.PAIRS: "boosted trees with interactions (the same, and what the strongest pair of"
    " attributes tells together)",
}
"""A description in words of each learner whose metrics can be predicted."""


_COST = "O(d^3) in the number of masked levels d, for each of five parts, each penalty and class"
_PAIRS_COST = "; m (m - 1) / 2 tables of 8 x 8 cells for m attributes, by part and class"


def expected_measure(what: Expected) -> Measure:
    """Return the measure for the metric and models that `Expected` describes."""
    said = dict(_SAID[what.merit])
    if what.learners:
        learners = ", ".join(LEARNERS[learner] for learner in what.learners)
        said["title"] += f": {', '.join(what.learners)}"
        said["description"] = f"As {what.merit.measure}, the mean of what stands for {learners}."
    return Measure(
        name=what.name,
        reference=(
            "Su, Liu, Linear combinations of multiple diagnostic markers, Journal of the "
            "American Statistical Association 88, 1993; Friedman, Regularized discriminant "
            "analysis, same journal 84, 1989; the choice of the best penalty and coding is ours"
        ),
        scope=Scope.CONFIGURATION,
        cost=_COST + (_PAIRS_COST if what.interacting else ""),
        compute=what.compute,
        needs=(Need.PARTS,),
        without_parts=what.without_parts,
        floor=FLOOR if what.merit is Merit.AUC else 0.0,
        constant=what.constant,
        **said,
    )


def measure_of_learners(merit: Merit, given: str) -> Measure:
    """Return the measure that predicts a metric for the models that `given` names, such as `lr+nb`."""
    return expected_measure(Expected(merit, learners_of(given)))
