from __future__ import annotations

import json
import sys
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
import threadpoolctl
from evaluation_support import make_policy, make_table
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

from aegis import evaluate
from aegis import evaluate as _evaluate
from aegis.errors import DataError, PolicyError
from aegis.masking import masked_table
from aegis.papers.evaluation import CLASS_MODELS, MODELS
from aegis.papers.evaluation import training as trainer
from aegis.papers.evaluation.coding import Design
from aegis.papers.evaluation.result import UNMASKED
from aegis.papers.evaluation.training import Model, Task, fit, make_splits, train
from aegis.sources import open_table
from aegis.summary import summarize

module = sys.modules["aegis.papers.evaluation.evaluate"]


@pytest.fixture(scope="module")
def small():
    return evaluate(
        make_table(), make_policy(), generate_count=6, models=("lr", "nb"), splits=3, seed=1
    )


def test_every_model_is_trained_on_every_configuration_and_split(small):
    assert len(small.configurations) == 6
    assert len(small.trainings) == (6 + 1) * 2 * 3
    names = [(t.configuration, t.model, t.split) for t in small.trainings]
    assert len(set(names)) == len(names)
    assert {t.configuration for t in small.trainings} == {*small.configurations, UNMASKED}
    assert small.train_rows + small.test_rows == 234  # six rows have no label


def test_a_figure_is_that_of_plain_scikit_learn_on_the_masked_table(small):
    source = open_table(make_table())
    label = np.array(
        [-1 if y is None else int(y == "yes") for y in make_table()["sick"].to_pylist()]
    )
    splits = make_splits(label, count=3, test_share=0.3, seed=1)
    for name, configuration in small.configurations.items():
        masked = source.collect(masked_table(source, dict(configuration.masks)))
        cells = np.array([[repr(v) for v in row.values()] for row in masked.to_pylist()])
        for split in splits:
            encoder = OneHotEncoder(handle_unknown="ignore", dtype=np.float32)
            model = LogisticRegression(max_iter=200)
            model.fit(encoder.fit_transform(cells[split.train]), label[split.train])
            expected = model.score(encoder.transform(cells[split.test]), label[split.test])
            found = next(
                t
                for t in small.trainings
                if (t.configuration, t.model, t.split) == (name, "lr", split.number)
            )
            # Solvers stop at slightly different weights: one row may fall on the other side.
            assert found.metrics["accuracy"] == pytest.approx(expected, abs=1.01 / len(split.test))


def test_scores_are_means_over_splits_beside_the_unmasked_table(small):
    for score in small.scores:
        own = [
            t.metrics[score.metric]
            for t in small.trainings
            if (t.configuration, t.model) == (score.configuration, score.model)
        ]
        assert score.value == pytest.approx(np.mean(own))
        assert score.deviation == pytest.approx(np.std(own, ddof=1))
        assert score.unmasked is not None
    assert {s.metric for s in small.scores} == {"accuracy", "roc_auc", "log_loss", "f1"}


def test_the_result_renders_itself(small):
    data = json.loads(json.dumps(small.to_dict()))
    assert set(data["measures"]["adjusted-pillai"]["scores"]) == set(small.configurations)
    assert len(data["agreement"]) == len(small.judged) * 2
    assert set(data["reliability"]) == {"lr", "nb"}
    frame = small.to_polars()
    assert frame.height == len(small.trainings)
    assert {"accuracy", "seconds", "converged"} <= set(frame.columns)
    assert "6 configurations" in repr(small)
    assert small._repr_html_().count("<tr>") == len(small.agreement) + 1


def test_agreement_is_told_by_any_metric(small):
    by_area = small.agreement_by("roc_auc")
    assert {a.metric for a in by_area} == {"roc_auc"}
    with pytest.raises(PolicyError, match="Unknown metric"):
        small.agreement_by("area")
    with pytest.raises(PolicyError, match="Unknown model"):
        small.means("rf")


def test_the_same_seed_gives_the_same_figures_in_parallel(small):
    again = evaluate(
        make_table(), make_policy(), generate_count=6, models=("lr", "nb"), splits=1, seed=1, jobs=2
    )
    first = [t.metrics for t in small.trainings if t.split == 0]
    assert [t.metrics for t in again.trainings] == first


def test_a_killed_evaluation_goes_on_where_it_was(tmp_path, monkeypatch, small):
    store = tmp_path / "store.jsonl"
    arguments = {"generate_count": 6, "models": ("lr", "nb"), "splits": 3, "seed": 1}
    real, count = module.run_task, 0

    def dies(task):
        nonlocal count
        count += 1
        if count > 10:
            raise KeyboardInterrupt
        return real(task)

    monkeypatch.setattr(module, "run_task", dies)
    with pytest.raises(KeyboardInterrupt):
        evaluate(make_table(), make_policy(), store=store, **arguments)
    count = -1000
    found = evaluate(make_table(), make_policy(), store=store, **arguments)
    assert count + 1000 == len(small.trainings) - found.reused
    assert found.reused >= 10
    assert [t.metrics for t in found.trainings] == [t.metrics for t in small.trainings]
    count = 10  # another training would now fail
    done = evaluate(make_table(), make_policy(), store=store, **arguments)
    assert done.reused == len(done.trainings)


def test_every_model_learns_the_easy_part():
    table = make_table(400, nulls=False)
    old = pa.array(["yes" if age >= 50 else "no" for age in table["age"].to_pylist()])
    masks = {"age": {"bucketize": {"width": 10}}, "town": {"keep_frequent": {"count": 2}}}
    policy = make_policy(configurations={"coarse": {**masks, "size": "suppress"}})
    found = evaluate(
        table.set_column(3, "sick", old), policy, models=CLASS_MODELS, unmasked=False, seed=0
    )
    assert set(found.models) == set(CLASS_MODELS)  # experiments of other tests register more
    for training in found.trainings:
        assert training.metrics["roc_auc"] > 0.95, training.model
    # Support vector machines and SGD have no probabilities, hence no log loss.
    without = {s.model for s in found.scores} - {
        s.model for s in found.scores if s.metric == "log_loss"
    }
    assert without == {"svm", "sgd"}
    assert {a.model for a in found.agreement_by("log_loss")} == set(CLASS_MODELS) - without


def test_what_does_not_converge_is_kept_counted_and_said(monkeypatch):
    impatient = Model(
        "lr",
        "impatient",
        "sklearn.linear_model:LogisticRegression",
        settings={"max_iter": 1},
    )
    monkeypatch.setattr(module, "choose_models", lambda names: (impatient,))
    found = evaluate(make_table(), make_policy(), generate_count=2, models=("lr",), seed=0)
    assert found.unconverged == {"lr": len(found.trainings)}
    assert any("did not converge; they are kept" in note for note in found.notes)
    assert all(t.messages for t in found.trainings)
    assert len(found.scores) == 2 * 4


def test_a_class_with_one_row_is_said_and_does_no_harm():
    table = make_table(nulls=False)
    label = table["sick"].to_pylist()
    label[5] = "never seen again"
    table = table.set_column(3, "sick", pa.array(label))
    found = evaluate(table, make_policy(), generate_count=2, models=("lr", "gbdt", "nb"), seed=0)
    assert any("'never seen again' has one row only" in note for note in found.notes)
    assert all(t.metrics["roc_auc"] is not None for t in found.trainings)


def test_training_rows_of_one_class_predict_it_always():
    design = Design(np.arange(6, dtype=np.int32)[:, None] % 2, (2,))
    label = np.array([0, 0, 0, 1, 0, 1])
    task = Task("c", design, label, 2, MODELS.get("lr"), 0, np.arange(3), np.arange(3, 6), 0)
    found = train(task)
    assert found.metrics["accuracy"] == pytest.approx(1 / 3)
    assert found.messages
    assert fit(task).classifier is None


def test_a_class_that_training_lacks_is_never_predicted():
    design = Design(np.arange(9, dtype=np.int32)[:, None] % 3, (3,))
    label = np.array([0, 1, 0, 1, 0, 1, 2, 2, 0])
    for name in ("lr", "svm"):
        task = Task("c", design, label, 3, MODELS.get(name), 0, np.arange(6), np.arange(6, 9), 0)
        prediction = fit(task).predict(task.test)
        assert prediction.scores.shape == (3, 3)
        assert 2 not in prediction.predicted


def test_dense_and_sparse_features_are_the_same_to_a_forest(monkeypatch):
    design = Design(np.random.default_rng(0).integers(0, 4, (60, 3)).astype(np.int32), (4, 4, 4))
    label = (design.codes[:, 0] > 1).astype(np.int64)
    task = Task("c", design, label, 2, MODELS.get("rf"), 0, np.arange(40), np.arange(40, 60), 0)
    dense = train(task)
    monkeypatch.setattr("aegis.papers.evaluation.training.DENSE_CELLS", 0)
    assert train(task).metrics["accuracy"] == pytest.approx(dense.metrics["accuracy"], abs=0.1)


def test_everything_suppressed_is_the_majority():
    policy = make_policy(attributes={"age": {"role": "quasi-identifier", "masks": ["suppress"]}})
    found = evaluate(make_table(), policy, models=("lr", "gbdt"), unmasked=False, seed=0)
    for training in found.trainings:
        assert training.metrics["roc_auc"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"models": ("xgboost",)}, "Unknown model 'xgboost'.*lr, svm, rf"),
        ({"models": ()}, "No model"),
        ({"metric": "auc"}, "Unknown metric"),
        ({"splits": 0}, "splits"),
        ({"test_share": 1.5}, "share of test rows"),
        ({"jobs": 0}, "jobs"),
    ],
)
def test_wrong_parameters_are_refused(changes, message):
    with pytest.raises(PolicyError, match=message):
        evaluate(
            make_table(), make_policy(), **({"generate_count": 2, "models": ("nb",)} | changes)
        )


def test_a_summary_has_no_rows_to_train_on():
    policy = make_policy()
    with pytest.raises(DataError, match="Give the table"):
        evaluate(summarize(make_table(), policy), policy)


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(PolicyError, match=r"aegis-advisor\[ml\]"):
        _evaluate(make_table(), make_policy(), models=("lr",))


def test_libraries_of_threads_are_looked_for_again_only_if_modules_were_loaded(monkeypatch):
    """To look for them took as long as to train a small model, and was done for each."""
    made, plain = [], threadpoolctl.ThreadpoolController

    class Counted(plain):
        def __init__(self):
            made.append(self)
            super().__init__()

    monkeypatch.setattr(threadpoolctl, "ThreadpoolController", Counted)
    trainer._threaded.cache_clear()
    for _ in range(3):
        with trainer.one_thread():
            assert {library["num_threads"] for library in plain().info()} == {1}
    assert len(made) == 1
    monkeypatch.setitem(sys.modules, "loaded_later", ModuleType("loaded_later"))
    with trainer.one_thread():
        assert len(made) == 2
