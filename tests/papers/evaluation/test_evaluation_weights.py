"""Weighted rows in training and testing: as scikit-learn weights them, and as repeated rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aegis
from aegis.errors import PolicyError
from aegis.papers.evaluation.coding import Design
from aegis.papers.evaluation.metrics import (
    METRICS,
    NumberPrediction,
    Prediction,
    accuracy,
    f1,
    log_loss,
    mae,
    r2,
    rmse,
    roc_auc,
)
from aegis.papers.evaluation.training import MODELS, Task, train

ROWS = 200


@given(seed=st.integers(0, 10**6), classes=st.integers(2, 4))
def test_metrics_are_those_of_scikit_learn(seed: int, classes: int) -> None:
    judge = pytest.importorskip("sklearn.metrics")
    draw = np.random.default_rng(seed)
    truth = np.append(np.arange(classes), draw.integers(0, classes, 30))
    weights = draw.integers(1, 9, len(truth)) / 4
    scores = draw.integers(1, 5, (len(truth), classes)).astype(float)
    shares = scores / scores.sum(axis=1, keepdims=True)
    own = Prediction(truth, shares, True, 1, weights)
    assert accuracy(own) == pytest.approx(
        judge.accuracy_score(truth, own.predicted, sample_weight=weights)
    )
    assert log_loss(own) == pytest.approx(judge.log_loss(truth, shares, sample_weight=weights))
    average = "binary" if classes == 2 else "weighted"
    assert f1(own) == pytest.approx(
        judge.f1_score(truth, own.predicted, average=average, sample_weight=weights)
    )
    areas = [
        judge.roc_auc_score(truth == c, shares[:, c], sample_weight=weights) for c in range(classes)
    ]
    assert roc_auc(own) == pytest.approx(areas[1] if classes == 2 else np.mean(areas))


@given(seed=st.integers(0, 10**6))
def test_metrics_of_numbers_are_those_of_scikit_learn(seed: int) -> None:
    judge = pytest.importorskip("sklearn.metrics")
    draw = np.random.default_rng(seed)
    truth, said, weights = draw.normal(size=20), draw.normal(size=20), draw.random(20) + 0.1
    own = NumberPrediction(truth, said, weights)
    assert r2(own) == pytest.approx(judge.r2_score(truth, said, sample_weight=weights))
    assert rmse(own) == pytest.approx(
        judge.root_mean_squared_error(truth, said, sample_weight=weights)
    )
    assert mae(own) == pytest.approx(judge.mean_absolute_error(truth, said, sample_weight=weights))


@given(seed=st.integers(0, 10**6))
def test_a_weight_is_worth_so_many_equal_rows(seed: int) -> None:
    draw = np.random.default_rng(seed)
    truth, weights = np.append([0, 1], draw.integers(0, 2, 30)), draw.integers(1, 5, 32)
    scores = draw.dirichlet([1, 1], 32)
    one = Prediction(truth, scores, True, 1, weights.astype(float))
    two = Prediction(np.repeat(truth, weights), np.repeat(scores, weights, axis=0), True, 1)
    for metric in (accuracy, f1, log_loss, roc_auc):
        assert metric(one) == pytest.approx(metric(two), abs=1e-12)


@pytest.mark.parametrize("name", ["lr", "nb"])
def test_models_learn_from_weights_as_from_repeated_rows(name: str) -> None:
    draw = np.random.default_rng(0)
    codes = draw.integers(0, 3, (60, 2)).astype(np.int32)
    label = (codes.sum(axis=1) + draw.integers(0, 3, 60) > 3).astype(np.int64)
    weights = draw.integers(1, 5, 60)
    rows = np.arange(60)
    weighted = Task(
        configuration="a",
        design=Design(codes, (3, 3)),
        label=label,
        classes=2,
        model=MODELS.get(name),
        split=0,
        train=rows[:40],
        test=rows[40:],
        seed=0,
        weights=weights.astype(float),
    )
    again = np.repeat(rows, weights)
    repeated = replace(
        weighted,
        weights=None,
        train=again[again < 40],
        test=again[again >= 40],
        _key={},
    )
    assert weighted.key != repeated.key
    one, two = train(weighted).metrics, train(repeated).metrics
    for metric in ("accuracy", "roc_auc", "log_loss", "f1"):
        assert one[metric] == pytest.approx(two[metric], abs=1e-4)


def study(**label: Any) -> aegis.Study:
    draw = np.random.default_rng(1)
    age, town = draw.integers(20, 60, ROWS), draw.choice(list("abc"), ROWS)
    price = age + 9.0 * (town == "b") + draw.normal(0, 5, ROWS)
    policy = {
        "version": 1,
        "label": label or "y",
        "weight": "w",
        "attributes": {
            "age": {
                "role": "quasi-identifier",
                "masks": ["identity", {"bucketize": {"width": 20}}],
            },
            "town": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
        },
    }
    columns = {"age": age, "town": town, "price": price, "y": (price > 43).astype(int)}
    return aegis.Study(pa.table({**columns, "w": draw.integers(1, 30, ROWS)}), policy)


@pytest.mark.parametrize("label", [{}, {"column": "price", "kind": "number"}])
def test_an_evaluation_weights_training_and_testing(label: dict[str, Any]) -> None:
    result = study(**label).evaluate(models=("lr",), generate_count=3)
    assert any("trained and tested with the weights of the rows" in note for note in result.notes)
    assert all(training.metrics for training in result.trainings)


def test_what_takes_no_weights_is_refused() -> None:
    neighbours = replace(
        MODELS.get("nb"), name="knn", home="sklearn.neighbors:KNeighborsClassifier"
    )
    assert not neighbours.takes_weights
    with pytest.raises(PolicyError, match="with comparators, counts each row once"):
        study().evaluate(models=("lr",), generate_count=3, comparators=["trace"])
    assert {metric.name for metric in METRICS} >= {"roc_auc", "r2"}
