"""Models of a number to predict: R2, RMSE and MAE are scikit-learn's, and what is of classes is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import aegis
from aegis.errors import PolicyError
from aegis.papers.evaluation import METRICS, MODELS
from aegis.papers.evaluation.metrics import NumberPrediction
from aegis.papers.evaluation.training import measure

pytest.importorskip("sklearn")


def study(**label: Any) -> aegis.Study:
    draw = np.random.default_rng(2)
    age, town = draw.integers(20, 60, 300), draw.choice(list("abc"), 300)
    wage = 10.0 * age + 150 * (town == "b") + draw.normal(0, 40, 300)
    wage[:3] = np.nan
    table = pa.table({"age": age, "town": town, "wage": pa.array(wage, from_pandas=True)})
    policy = {
        "version": 1,
        "label": {"column": "wage", "kind": "number", **label},
        "attributes": {
            "age": {
                "role": "quasi-identifier",
                "masks": ["identity", {"bucketize": {"width": 20}}, "suppress"],
            },
            "town": {"role": "feature"},
        },
    }
    return aegis.Study(table, policy)


def test_models_of_a_number_reach_what_is_expected() -> None:
    evaluation = study().evaluate(generate_count=3)
    assert (evaluation.metric, evaluation.models) == ("r2", ("lr", "rf", "gbdt"))
    assert {training.model for training in evaluation.trainings} == {
        "lr",
        "rf",
        "gbdt",
    }
    for training in evaluation.trainings:
        assert set(training.metrics) == {"r2", "rmse", "mae"}
    unmasked = {s.model: s.unmasked for s in evaluation.scores if s.metric == "r2"}
    assert min(value for value in unmasked.values() if value is not None) > 0.8
    assert {a.measure for a in evaluation.agreement} >= {"held-out-r2"}
    means = evaluation.means("lr")
    assert max(means.values()) - min(means.values()) > 0.3


def test_ridge_regression_reads_a_range_as_the_score_for_linear_models_does() -> None:
    draw = np.random.default_rng(3)
    age = draw.integers(20, 60, 400)
    wage = (age - 40.0) ** 2 + draw.normal(0, 20, 400)
    masks = [{"bucketize": {"width": 5}}, {"bucketize": {"width": 10}}]
    policy = {
        "version": 1,
        "label": {"column": "wage", "kind": "number"},
        "attributes": {"age": {"role": "quasi-identifier", "masks": masks}},
    }
    of_ages = aegis.Study(pa.table({"age": age, "wage": wage}), policy)
    trained = of_ages.evaluate(generate_count=2, models=("lr",)).means("lr")
    assert max(trained.values()) < 0.1  # no line fits a curve, also not through ranges
    stated = of_ages.rank(generate_count=2, measure="held-out-r2(lr)").ranking
    assert max(ranked.score for ranked in stated) < 0.1
    curve = of_ages.rank(generate_count=2, measure="held-out-r2(gbdt)").ranking
    assert min(ranked.score for ranked in curve) > 0.6


def test_metrics_of_a_number_are_those_of_scikit_learn() -> None:
    from sklearn import metrics

    draw = np.random.default_rng(0)
    truth = draw.normal(0, 5, 50)
    predicted = truth + draw.normal(0, 1, 50)
    found = measure(NumberPrediction(truth, predicted))
    assert found["r2"] == pytest.approx(metrics.r2_score(truth, predicted), abs=1e-12)
    assert found["rmse"] == pytest.approx(metrics.root_mean_squared_error(truth, predicted))
    assert found["mae"] == pytest.approx(metrics.mean_absolute_error(truth, predicted))
    constant = measure(NumberPrediction(np.ones(3), np.ones(3)))
    assert (constant["r2"], constant["rmse"]) == (None, 0.0)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"models": ["svm"]}, "'svm' predicts classes, but the label is a number"),
        ({"metric": "roc_auc"}, "Metric 'roc_auc' does not suit the label"),
        ({"methods": ["mondrian"]}, "needs classes, but the label 'wage' is a number"),
    ],
)
def test_what_is_of_classes_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        study().evaluate(generate_count=2, **given)


def test_a_metric_of_a_number_is_refused_for_classes() -> None:
    with pytest.raises(PolicyError, match="Metric 'rmse' does not suit the label"):
        aegis.Study(
            pa.table({"a": ["x", "y"] * 20, "y": [0, 1] * 20}),
            {"version": 1, "label": "y", "attributes": {"a": {"role": "feature"}}},
        ).evaluate(metric="rmse", models=["nb"])
    assert METRICS.get("rmse").sign == -1
    assert MODELS.get("rf").of_number().settings["min_samples_leaf"] == 5
