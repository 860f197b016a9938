from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as reference

from aegis.errors import PolicyError
from aegis.papers.evaluation.metrics import METRICS, Prediction, accuracy, f1, log_loss, roc_auc


@st.composite
def predictions(draw, classes=None):
    count = draw(st.integers(2, 5)) if classes is None else classes
    rows = draw(st.integers(count, 30))
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    truth = np.concatenate([np.arange(count), random.integers(0, count, rows - count)])
    # Few different scores, so that ties occur.
    scores = random.integers(1, 6, (rows, count)).astype(np.float64)
    return Prediction(truth, scores / scores.sum(axis=1, keepdims=True), True)


@given(predictions())
def test_accuracy_and_log_loss_are_those_of_scikit_learn(prediction):
    classes = np.arange(prediction.scores.shape[1])
    assert accuracy(prediction) == pytest.approx(
        reference.accuracy_score(prediction.truth, prediction.predicted)
    )
    assert log_loss(prediction) == pytest.approx(
        reference.log_loss(prediction.truth, prediction.scores, labels=classes), abs=1e-12
    )


@given(predictions(classes=2))
def test_two_classes_have_the_area_and_f1_of_scikit_learn(prediction):
    assert roc_auc(prediction) == pytest.approx(
        reference.roc_auc_score(prediction.truth, prediction.scores[:, 1]), abs=1e-12
    )
    assert f1(prediction) == pytest.approx(
        reference.f1_score(prediction.truth, prediction.predicted, zero_division=0), abs=1e-12
    )


@given(predictions(classes=3))
def test_several_classes_count_alike_in_the_area_and_by_their_rows_in_f1(prediction):
    assert roc_auc(prediction) == pytest.approx(
        reference.roc_auc_score(
            prediction.truth, prediction.scores, multi_class="ovr", average="macro"
        ),
        abs=1e-12,
    )
    assert f1(prediction) == pytest.approx(
        reference.f1_score(
            prediction.truth, prediction.predicted, average="weighted", zero_division=0
        ),
        abs=1e-12,
    )


@given(predictions(classes=2))
def test_the_area_is_the_share_of_pairs_in_the_right_order(prediction):
    score = prediction.scores[:, 1] - prediction.scores[:, 0]
    ones, zeros = score[prediction.truth == 1], score[prediction.truth == 0]
    pairs = [(a > b) + 0.5 * (a == b) for a in ones for b in zeros]
    assert roc_auc(prediction) == pytest.approx(float(np.mean(pairs)), abs=1e-12)


def test_f1_of_two_classes_can_be_that_of_the_first():
    prediction = Prediction(
        np.array([0, 0, 1, 1]), np.array([[1, 0], [0, 1], [0, 1], [1, 0.0]]), True, positive=0
    )
    assert f1(prediction) == pytest.approx(0.5)
    sure = Prediction(np.array([0, 1]), np.array([[1, 0], [1, 0.0]]), True, positive=0)
    assert f1(sure) == pytest.approx(2 / 3)


def test_margins_have_no_log_loss():
    prediction = Prediction(np.array([0, 1]), np.array([[2.0, -2.0], [-1.0, 1.0]]), False)
    assert math.isnan(log_loss(prediction))
    assert roc_auc(prediction) == 1.0


def test_a_sure_mistake_costs_a_finite_amount():
    prediction = Prediction(np.array([0]), np.array([[0.0, 1.0]]), True)
    assert log_loss(prediction) == pytest.approx(-math.log(1e-15))


@pytest.mark.parametrize("metric", ["accuracy", "log_loss", "f1", "roc_auc"])
def test_no_rows_have_no_figure(metric):
    empty = Prediction(np.zeros(0, dtype=np.int64), np.zeros((0, 3)), True)
    assert math.isnan(METRICS.get(metric).compute(empty))


def test_a_class_without_rows_is_left_out_of_the_area():
    scores = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.6, 0.3, 0.1]])
    assert roc_auc(Prediction(np.array([0, 1, 0]), scores, True)) == 1.0


def test_an_unknown_metric_is_refused_with_the_names():
    with pytest.raises(PolicyError, match="accuracy, roc_auc, log_loss, f1"):
        METRICS.get("auc")
