"""What models are expected to reach with the best release, whichever measure ranked."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pyarrow as pa
import pytest
from advisor_merits import shape
from advisor_scores import configuration_value, number_features, parts_of

import aegis
from advisor_support import all_choices, masked_columns
from aegis.advisor import Scorer
from aegis.advisor.scores import coarse
from aegis.advisor.utility import NumberErrors, UtilityFigure, measure_for
from aegis.measures import get
from aegis.policy import Configuration, load_policy
from aegis.report import render_certificate
from aegis.study import Study

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


def same_figure(one: UtilityFigure, other: UtilityFigure) -> bool:
    """Whether two figures are equal up to the last digits."""
    a, b = asdict(one), asdict(other)
    value, reference = a.pop("value"), a.pop("reference")
    assert value == pytest.approx(b.pop("value"), rel=1e-9)
    assert reference == pytest.approx(b.pop("reference"), rel=1e-9)
    for percent in ("utility_kept", "stderr"):
        assert a.pop(percent) == pytest.approx(b.pop(percent), rel=1e-6)
    return a == b


@pytest.mark.parametrize(
    ("measure", "searched", "classes"),
    [
        (None, True, 2),
        (None, False, 4),
        ("cmim", True, 4),
        ("cmim", False, 2),
        ("adjusted-pillai", True, 2),
    ],
)
def test_one_figure_in_advice_front_and_certificate(classes, searched, measure, tmp_path):
    study = Study(table(600, classes), policy(privacy={"k": 8, "suppression": 0.2}))
    advice = (
        study.search(top=3, measure=measure, front="k=8,50", explain_best=True)
        if searched
        else study.rank(generate_count=8, measure=measure)
    )
    figure = advice.utility
    assert figure is not None
    paper = tmp_path / "paper.json"
    release = study.apply(advice, output=tmp_path / "made.csv", certificate=paper)
    assert same_figure(release.utility, figure)
    assert json.loads(paper.read_text())["utility"] == release.utility.to_dict()
    assert advice.to_dict()["utility"] == figure.to_dict()
    assert advice.best.utility_kept == figure.utility_kept
    assert figure.reference == coarse(advice.unmasked, 600)
    assert (figure.rows, figure.reference_name) == ("released", "the unmasked table")
    if searched:
        assert advice.front is not None
        same = [p for p in advice.front.points if p.value == 8]
        assert same[0].configuration.masks != advice.best.configuration.masks or same[
            0
        ].utility_kept == pytest.approx(figure.utility_kept)
    expected = advice.expectation
    assert expected is not None
    again = study.apply(
        advice,
        output=tmp_path / "again.parquet",
        certificate=tmp_path / "again.json",
        measure="held-out-auc",
    )
    assert same_figure(again.utility, expected)


def rare() -> pa.Table:
    """A table with a class of two rows that are alone in their quasi-identifiers."""
    plain = table(600).to_pylist()
    odd = [{"sign": 7, "age": 90 + i, "y": "rare"} for i in range(2)]
    return pa.Table.from_pylist([*plain, *odd])


def test_a_label_class_that_vanishes_comes_first_among_the_warnings(tmp_path):
    declared = policy(
        privacy={"k": 5, "suppression": 0.1},
        attributes={
            "sign": {"role": "quasi-identifier", "masks": ["identity"]},
            "age": {"role": "quasi-identifier", "masks": [{"bucketize": {"width": 20}}]},
        },
    )
    study = Study(rare(), declared)
    said = "1 class vanishes from the label: rare (2 rows)."
    for advice in (study.rank(generate_count=1), study.search(top=1)):
        assert advice.utility.lost_classes == {"rare": 2}
        assert advice.warnings[0].startswith(said)
    release = study.apply(advice, output=tmp_path / "o.csv", certificate=tmp_path / "c.json")
    assert release.warnings[0].startswith(said)
    page = render_certificate(json.loads((tmp_path / "c.json").read_text()))
    notes = page[page.index("Before you rely on this") :]
    assert "rare" not in notes
    assert notes.index("1 class vanishes from the label.") < notes.index("population")
    from_summary = Study(study.summary, declared).rank(generate_count=1)
    assert from_summary.warnings[0].startswith(said)
    assert from_summary.utility.rows == "all"
    assert "utility kept is measured on all rows" in from_summary.warnings[1]
    assert "available" not in from_summary.warnings[1]


def test_a_release_that_scores_better_without_hard_classes_says_so():
    figure = UtilityFigure("held-out-auc", 0.876, 0.859, stderr=0.006, lost_classes={"rare": 2})
    assert figure.why_better == ": better, because the classes that vanish no longer count"
    assert "fewer values" in replace(figure, lost_classes={}).why_better


def test_nothing_is_told_where_there_is_nothing_to_predict_or_nothing_is_admissible():
    unlabelled = table().drop_columns(["y"])
    assert Study(unlabelled, policy(label=None)).rank(generate_count=4).expectation is None
    strict = policy(privacy={"k": 1999})
    shown = Configuration("all", {name: aegis.masks.Identity() for name in MASKS})
    assert Study(table(), strict).rank([shown]).expectation is None


def test_the_table_with_many_values_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("aegis.advisor.utility.MOST_LEVELS", 30)
    for measure in (None, "cmim"):
        advice = Study(table(), policy()).rank(generate_count=4, measure=measure)
        assert advice.measure == (measure or "held-out-pillai")
        assert advice.best is not None
        assert advice.expectation is None
        said = "the measure is held-out-pillai instead of held-out-auc: with "
        assert any(text.startswith(said) for text in advice.warnings) == (measure is None)


def test_the_measure_gives_way_where_no_merit_can_be_expected(tmp_path):
    study = Study(table(), policy())
    summary = study.summary
    assert measure_for(summary)[0].name == "held-out-auc"
    without = replace(summary, pairs=replace(summary.pairs, folds=None))
    given, [said] = measure_for(without)
    assert given.name == "held-out-pillai"
    assert "has no folds" in said
    assert measure_for(without, None, "held-out-auc")[0].name == "held-out-auc"
    many = Study(table(classes=120), policy(privacy={}))
    advice = many.rank(generate_count=3)
    release = many.apply(
        advice, output=tmp_path / "made.parquet", certificate=tmp_path / "paper.json"
    )
    assert advice.measure == release.utility.measure == "held-out-pillai"
    assert any("the label has 120 classes" in text for text in advice.warnings)
    assert many.search(top=1, objective="precision").measure == "held-out-pillai"


def test_words_show_one_digit_of_the_error_and_say_where_the_table_is_too_small():
    figure = UtilityFigure("held-out-auc", 0.9182, 0.9213, stderr=0.0018)
    assert figure.expected([70, 30]) == (
        "Models are expected to reach AUC 0.918 of 0.921 unmasked, give or take 0.06"
    )
    small = UtilityFigure("held-out-auc", 0.53, 0.55, stderr=0.05)
    assert small.expected([7, 3]).endswith(
        ", give or take 0.12: the table is too small to distinguish masks"
    )
    assert small.detail == (  # as `apply` and the certificate's page state it
        "held-out-auc 0.53 of 0.55 unmasked: the table is too small to distinguish masks"
    )
    above = UtilityFigure("held-out-auc", 0.93, 0.92)
    assert above.expected([7, 3]) == (
        "Models are expected to reach AUC 0.93 of 0.92 unmasked: better, because models learn better "
        "from fewer values"
    )
    loss = UtilityFigure("held-out-log-loss", 0.3, 0.4, stderr=0.06)
    assert loss.detail == (
        "held-out-log-loss 0.30 of 0.40 unmasked: as much as unmasked, within the sampling error"
    )
    equal = UtilityFigure("held-out-auc", 0.9304, 0.9301, stderr=0.0018)
    assert equal.expected([70, 30]) == (
        "Models are expected to reach AUC 0.930 of 0.930 unmasked, give or take 0.06"
    )


def test_a_figure_is_read_back_as_it_was_written() -> None:
    figure = UtilityFigure("held-out-auc", 0.8, 0.9, stderr=0.01, lost_classes={"a": 3})
    assert UtilityFigure.from_dict(figure.to_dict()) == figure


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
    part = parts_of(summary, rare)
    shapes = []
    for choice in all_choices(summary):
        shown = masked_columns(rare, choice)
        columns = [shown[name] for name in MASKS]
        found = configuration_value("held-out-auc", columns, shown["y"], raw, part)
        assert scorer.value(choice, measure) == pytest.approx(found, abs=1e-8)
        shapes.append(shape(columns, number_features(columns, raw), shown["y"], part))
    assert min(shapes) < 0.95


def test_a_number_without_two_equal_values_is_worth_what_its_order_tells() -> None:
    random = np.random.default_rng(2)
    label = random.random(3000) < 0.3
    value = random.normal(size=3000) + 2.2 * label
    measured = pa.table({"value": value, "y": np.where(label, "yes", "no")})
    masks = ["identity", {"quantiles": {"count": 4}}, {"quantiles": {"count": 20}}]
    declared = policy(attributes={"value": {"role": "feature", "masks": masks}}, privacy={})
    scorer = Scorer(aegis.summarize(measured, declared))
    above = (value[label][:, None] > value[~label]).mean()
    shown = [
        [
            scorer.value({"value": own}, get(name))
            for own in scorer.summary.attributes["value"].candidates
        ]
        for name in ("held-out-auc", "held-out-auc(lr)", "held-out-auc(gbdt)")
    ]
    for whole, quarters, twentieths in shown:
        assert whole == pytest.approx(above, abs=0.01)
        assert whole + 0.002 > twentieths > quarters


def test_what_is_missing_tells_apart_from_numbers() -> None:
    random = np.random.default_rng(4)
    label = random.random(4000) < 0.5
    value = random.normal(size=4000)
    lacking = random.random(4000) < 0.6 * label  # only of one class, at neither end
    gaps = pa.table({"value": pa.array(value, mask=lacking), "y": np.where(label, "yes", "no")})
    declared = policy(attributes={"value": {"role": "feature"}}, privacy={})
    scorer = Scorer(aegis.summarize(gaps, declared))
    told = 0.5 + lacking[label].mean() / 2
    for name in ("held-out-auc(lr)", "held-out-auc(gbdt)"):
        assert scorer.value(scorer.unmasked, get(name)) == pytest.approx(told, abs=0.02)


def test_the_range_is_said_in_words() -> None:
    figure = UtilityFigure("held-out-auc", 0.9182, 0.9213, stderr=0.0018)
    assert (
        figure.range_words
        == "About nine of ten trained models are within this range; 0.5 is chance."
    )
    accuracy = replace(figure, measure="held-out-accuracy")
    assert accuracy.range_words == "The range covers the sampling error."
    number = UtilityFigure("held-out-r2", 0.62, 0.65, stderr=0.0018)
    assert number.plus_minus == ", give or take 0.06"
    assert number.may_be_more.startswith("Models may do better if columns interact")
    assert (figure.may_be_more, replace(number, stderr=None).may_be_more) == ("", "")
    assert "most others do better" in number.range_words
    assert replace(figure, stderr=None).range_words == ""


def test_a_rounded_reference_is_not_beaten_by_rounding() -> None:
    """Wage (3,000 rows): the unmasked table reaches 0.99734, which a certificate rounds to 0.997."""
    errors = NumberErrors(2.0707, 2.29, table_rows=3000)
    figure = UtilityFigure("held-out-r2", 0.99753, 0.997, stderr=0.00013, number=errors)
    assert figure.detail == (
        "held-out-r2 0.998 of 0.997 unmasked, error of a prediction 2.071: as much as unmasked, "
        "within rounding"
    )
    better = replace(figure, value=0.99953)
    assert better.why_better == ": better, because models learn better from fewer values"
    coarser = UtilityFigure("held-out-r2", 0.61, 0.62, number=NumberErrors(5.1, 5.0, None, 3000))
    assert coarser.errors == ", error of a prediction 5.10 instead of about 5.00"
    exact = replace(figure, number=replace(errors, table_rows=None))
    assert "0.9975 of 0.9970" in exact.detail
    same = UtilityFigure("held-out-r2", 0.36, 0.36, number=NumberErrors(3764.2, 3764.2))
    assert same.errors == ", error of a prediction 3,764"


@pytest.mark.parametrize("unmasked", [0.0167832, 0.0032, -0.0041])
def test_a_small_reference_has_the_decimals_to_which_it_is_rounded(unmasked: float) -> None:
    """Scores below 0.1 are rounded to as many decimals as larger ones: 0.0168 of 200 rows to 0.02."""
    rounded = coarse(unmasked, 200)
    assert str(rounded) != "-0.0"
    errors = NumberErrors(2.07, 2.29, table_rows=200)
    figure = UtilityFigure("held-out-r2", rounded + 0.0049, rounded, stderr=0.00001, number=errors)
    assert figure.digits == 2
    assert "instead of" not in figure.errors
    assert "better" not in figure.detail
