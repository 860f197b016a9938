"""What models are expected to reach with the best release, whichever measure ranked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from advisor_merits import shape
from advisor_scores import configuration_value
from advisor_support import all_choices, masked_columns

import aegis
from aegis.advisor import Scorer
from aegis.advisor.default import measure_for
from aegis.advisor.expectation import Expectation
from aegis.advisor.parts import PARTS
from aegis.measures import get
from aegis.policy import Configuration, load_policy
from aegis.study import Study
from aegis.summary.build import FOLDS
from aegis.summary.cooccurrence import fold_of

MASKS = {
    "sign": ["identity", "suppress"],
    "age": ["identity", {"bucketize": {"width": 5}}, {"bucketize": {"width": 20}}, "suppress"],
}


def table(rows: int = 2000, classes: int = 2) -> pa.Table:
    random = np.random.default_rng(3)
    label = random.integers(0, classes, rows)
    return pa.table(
        {
            "sign": np.where(random.random(rows) < 0.6, label, random.integers(0, classes, rows)),
            "age": random.integers(20, 60, rows) + 6 * label,
            "y": [f"class {one}" for one in label],
        }
    )


def policy(label: str | None = "y", **more: object) -> aegis.Policy:
    attributes = {name: {"role": "quasi-identifier", "masks": own} for name, own in MASKS.items()}
    named = {} if label is None else {"label": label}
    return load_policy(
        {"version": 1, **named, "privacy": {"k": 2}, "attributes": attributes, **more}
    )


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("searched", [True, False])
def test_it_is_what_the_ranking_by_auc_says_of_the_same_configuration(classes, searched):
    study = Study(table(classes=classes), policy())
    advice = study.search(top=3) if searched else study.rank(generate_count=8)
    told = advice.expectation
    assert told is not None
    assert told.configuration == advice.best.name
    best = Configuration("best", advice.best.configuration.masks)
    by_area = study.rank({"best": best}, measure="held-out-auc")
    assert told.score == pytest.approx(by_area.best.score)
    assert told.unmasked == pytest.approx(by_area.reference)
    assert told.stderr == pytest.approx(by_area.best.stderr)
    assert advice.headline == by_area.headline
    assert advice.to_dict()["expected"] == told.to_dict() | {"measure": "held-out-auc"}
    assert by_area.to_dict()["expected"]["score"] == pytest.approx(told.score)


def test_nothing_is_told_where_there_is_nothing_to_predict_or_nothing_is_admissible():
    unlabelled = table().drop_columns(["y"])
    assert Study(unlabelled, policy(label=None)).rank(generate_count=4).expectation is None
    strict = policy(privacy={"k": 1999})
    shown = Configuration("all", {name: aegis.masks.Identity() for name in MASKS})
    assert Study(table(), strict).rank([shown]).expectation is None


def test_a_release_that_came_to_stand_first_later_is_not_given_the_figure_of_another():
    advice = Study(table(), policy()).rank(generate_count=4, measure="cmim")
    assert advice.expectation is not None
    best = replace(advice.best, configuration=replace(advice.best.configuration, name="other"))
    assert replace(advice, ranking=(best, *advice.ranking)).headline is None


def test_the_table_with_many_values_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("aegis.advisor.default.MOST_LEVELS", 40)
    for measure in (None, "cmim"):
        advice = Study(table(), policy()).rank(generate_count=4, measure=measure)
        assert advice.measure == (measure or "held-out-pillai")
        assert advice.best is not None
        assert advice.expectation is None
        said = "the measure is held-out-pillai in place of held-out-auc: with "
        assert any(text.startswith(said) for text in advice.warnings) == (measure is None)


def test_the_measure_gives_way_where_no_merit_can_be_expected(tmp_path):
    study = Study(table(), policy())
    summary = study.summary
    assert measure_for(summary)[0].name == "held-out-auc"
    without = replace(summary, pairs=replace(summary.pairs, folds=None))
    given, [said] = measure_for(without)
    assert given.name == "held-out-pillai"
    assert "holds no folds" in said
    assert measure_for(without, None, "held-out-auc")[0].name == "held-out-auc"
    many = Study(table(classes=120), policy(privacy={}))
    advice = many.rank(generate_count=3)
    release = many.apply(
        advice, output=tmp_path / "made.parquet", certificate=tmp_path / "paper.json"
    )
    assert advice.measure == release.utility.measure == "held-out-pillai"
    assert any("of 120 classes no AUC is expected" in text for text in advice.warnings)
    assert many.search(top=1, objective="precision").measure == "held-out-pillai"


def test_words_show_one_digit_of_the_error_and_say_where_the_table_is_too_small():
    assert Expectation("a", "held-out-auc", 0.9182, 0.9213, 0.0018).words([70, 30]) == (
        "Models are expected to reach AUC 0.918 of 0.921 unmasked (+-0.002)"
    )
    assert (
        Expectation("a", "held-out-auc", 0.53, 0.55, 0.05)
        .words([7, 3])
        .endswith("(+-0.05): the table is too small to tell masks apart")
    )
    assert Expectation("a", "held-out-auc", 0.93, 0.92, None).words([7, 3]) == (
        "Models are expected to reach AUC 0.93 of 0.93 unmasked"
    )


def test_it_is_what_rows_say_with_the_shape_of_their_scores() -> None:
    # Few rows of one class, and values that half tell it apart: here normal scores promise too much.
    random = np.random.default_rng(7)
    label = random.random(900) < 0.1
    rare = pa.table(
        {
            "sign": np.where(random.random(900) < 0.3, 2, np.where(label, 1, 0)),
            "age": random.integers(20, 24, 900) + label,
            "y": np.where(label, "yes", "no"),
        }
    )
    summary = aegis.summarize(rare, policy())
    scorer, measure = Scorer(summary), get("held-out-auc")
    raw = [rare[name].to_pylist() for name in MASKS]
    shapes = []
    for choice in all_choices(summary):
        shown = masked_columns(rare, choice)
        columns = [shown[name] for name in MASKS]
        found = configuration_value("held-out-auc", columns, shown["y"], raw)
        assert scorer.value(choice, measure) == pytest.approx(found, abs=1e-8)
        part = fold_of(np.arange(900), FOLDS, 0) % PARTS
        shapes.append(shape(columns, shown["y"], part))
    assert min(shapes) < 0.9
