"""Interactions of pairs, from tables to rankings: what is seen, what it costs, what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import cross_val_score

import aegis
from aegis.advisor import Scorer, fold_counts, generate
from aegis.errors import PolicyError
from aegis.measures import get
from aegis.policy import load_policy
from aegis.study import Study
from aegis.summary import load_bundle, save_bundle

MASKS = {
    "sign": ["identity", "suppress"],
    "age": ["identity", {"bucketize": {"width": 10}}, {"bucketize": {"width": 40}}, "suppress"],
    "zip": ["identity", "suppress"],
}


def table(rows: int = 2000, share: float = 0.8) -> pa.Table:
    """A label that `sign` and `age` tell together and neither tells alone."""
    random = np.random.default_rng(1)
    sign, age = random.integers(0, 2, rows), random.integers(20, 60, rows)
    told = random.random(rows) < share
    label = np.where(told, sign ^ (age >= 40), random.integers(0, 2, rows))
    return pa.table(
        {
            "sign": sign.astype(str),
            "age": age,
            "zip": random.integers(0, 30, rows).astype(str),
            "y": np.where(label == 1, "yes", "no"),
        }
    )


def policy(masks: object = None, **more: object) -> aegis.Policy:
    attributes = {n: {"role": "feature", "masks": m} for n, m in dict(masks or MASKS).items()}
    wanted = {"version": 1, "label": "y", "privacy": {}, "attributes": attributes}
    return load_policy({**wanted, **more})


def test_what_only_a_pair_tells_is_seen_where_it_is_asked_for() -> None:
    study = Study(table(), policy(models=["pairs"]))
    advice = study.rank(generate_count=16)
    assert advice.measure == "held-out-auc(pairs)"
    best = advice.best
    assert best is not None
    assert best.score == pytest.approx(0.9, abs=0.02)  # right in nine rows of ten
    assert best.stderr is not None
    assert best.stderr < 0.02
    shown = {
        (str(r.masks["sign"]), str(r.masks["age"])): r.score
        for r in advice.ranking
        if str(r.masks["zip"]) == "suppress"
    }
    halves = shown["identity", "{'bucketize': {'width': 40}}"]
    assert halves == pytest.approx(0.9, abs=0.02)
    assert max(v for (sign, _), v in shown.items() if sign == "suppress") < 0.53
    assert study.rank(generate_count=16, measure="held-out-auc(gbdt)").ranking[0].score < 0.55


def test_a_search_by_interactions_claims_no_gap_of_linear_scores() -> None:
    found = Study(table(600), policy()).search(measure="held-out-auc(pairs)", time_limit=20)
    assert found.best is not None
    assert str(found.best.masks["sign"]) == "identity"
    assert found.search is not None
    assert not any("within reach" in note for note in found.search.notes)


def test_without_interactions_boosting_is_what_it_was() -> None:
    random = np.random.default_rng(3)
    label = random.integers(0, 2, 2000)
    drawn = {n: np.where(random.random(2000) < 0.6, label, 1 - label) for n in ("p", "q")}
    study = Study(
        pa.table({**drawn, "y": label.astype(str)}),
        policy({"p": ["identity", "suppress"], "q": ["identity", "suppress"]}),
    )
    scorer = Scorer(study.summary)
    for configuration in generate(study.summary, 4, seed=0):
        choice = scorer.choose(configuration)
        plain, paired = (
            scorer.value(choice, get(f"held-out-auc({model})")) for model in ("gbdt", "pairs")
        )
        assert plain <= paired <= plain + 0.01


def test_pairs_under_noise_have_a_figure() -> None:
    noise = {"randomised_response": {"epsilon": 1.0}}
    study = Study(table(600), policy({**MASKS, "sign": ["identity", noise]}))
    scorer, measure = Scorer(study.summary), get("held-out-auc(pairs)")
    scores = {
        str(c.masks["sign"]): scorer.value(scorer.choose(c), measure)
        for c in generate(study.summary, 16, seed=0)
        if str(c.masks["age"]) == "identity" and str(c.masks["zip"]) == "suppress"
    }
    assert scores.pop("identity") > 0.82
    (noisy,) = scores.values()  # the true sign in 73 of 100 rows: right in 0.68 of them
    assert 0.6 < noisy < 0.75


def test_too_many_cells_are_refused_and_their_number_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold_counts, "MOST_CELLS", 1000)
    with pytest.raises(
        PolicyError, match=r"3 pairs of attributes need 1,920 cells .2 classes, 5 folds"
    ):
        Study(table(100), policy()).rank(generate_count=2, measure="held-out-auc(pairs)")


def test_work_in_portions_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def score() -> float:
        study = Study(table(300), policy())
        scorer = Scorer(study.summary)
        return scorer.value(scorer.unmasked, get("held-out-auc(pairs)"))

    whole = score()
    monkeypatch.setattr(fold_counts, "_AT_ONCE", 1)
    assert score() == pytest.approx(whole, abs=1e-12)


def test_bins_hold_neighbours_or_what_is_frequent() -> None:
    rows = np.array([1.0, 50, 1, 1, 1, 1, 1, 1, 1, 40, 0])
    unordered = fold_counts.binned_levels(np.arange(11), rows, False)
    assert unordered.max() == 7
    assert unordered[1] == 0
    assert unordered[9] == 1
    ordered = fold_counts.binned_levels(np.arange(100), np.ones(100), True)
    assert (np.diff(ordered) >= 0).all()
    assert np.bincount(ordered).tolist() == pytest.approx([12.5] * 8, abs=1)
    channel = fold_counts.binned_levels(np.full((3, 20), 0.05), np.ones(3), False)
    assert channel.shape == (3, 8)
    np.testing.assert_allclose(channel.sum(axis=1), 1)


def numbers(rows: int = 2000) -> pa.Table:
    """A number that `sign` and `age` predict together, and neither alone, and a weight of each row."""
    random = np.random.default_rng(5)
    sign, age = random.integers(0, 2, rows), random.integers(20, 60, rows)
    paid = 1000 * (sign ^ (age >= 40)) + random.normal(0, 250, rows)
    return pa.table(
        {
            "sign": sign.astype(str),
            "age": age,
            "zip": random.integers(0, 30, rows).astype(str),
            "y": paid.round(2),
            "w": random.integers(1, 4, rows),
        }
    )


NUMBER = {"label": {"column": "y", "kind": "number"}}


def test_a_number_that_only_a_pair_predicts_has_its_r2() -> None:
    drawn = numbers()
    study = Study(drawn, policy(**NUMBER))
    advice = study.rank(generate_count=16, measure="held-out-r2(pairs)")
    best = advice.best
    assert best is not None
    # 500 ** 2 of 500 ** 2 + 250 ** 2 is 0.8; cells of 400 rows keep four fifths of their effect.
    assert best.score == pytest.approx(0.8 * (1 - 0.2**2), abs=0.03)
    assert best.stderr is not None
    assert study.rank(generate_count=16, measure="held-out-r2(gbdt)").ranking[0].score < 0.05
    x = np.column_stack([drawn["sign"].to_numpy().astype(int), drawn["age"].to_numpy()])
    boosting = GradientBoostingRegressor(n_estimators=60, random_state=0)
    reached = cross_val_score(boosting, x, drawn["y"].to_numpy(), cv=5, scoring="r2").mean()
    assert best.score == pytest.approx(reached, abs=0.05)


def test_pairs_of_a_number_are_at_least_what_boosting_is_without_them() -> None:
    study = Study(numbers(600), policy(**NUMBER))
    scorer = Scorer(study.summary)
    for configuration in generate(study.summary, 8, seed=0):
        choice = scorer.choose(configuration)
        plain, paired = (
            scorer.value(choice, get(f"held-out-r2({model})")) for model in ("gbdt", "pairs")
        )
        assert plain <= paired <= 1


def test_equal_weights_change_no_gain_of_a_number() -> None:
    drawn = numbers()
    same = drawn.set_column(drawn.column_names.index("w"), "w", pa.array([3] * 2000))
    scores = []
    for data, more in ((drawn, {}), (same, {"weight": "w"})):
        scorer = Scorer(Study(data, policy(**NUMBER, **more)).summary)
        scores.append(scorer.value(scorer.unmasked, get("held-out-r2(pairs)")))
    assert scores[0] == pytest.approx(scores[1], abs=0.03)  # rows are dealt to folds by weight, too
    assert scores[0] > 0.4


def test_a_summary_has_no_pairs_of_a_number(tmp_path: Path) -> None:
    study = Study(numbers(200), policy(**NUMBER))
    save_bundle(study.summary, tmp_path / "t.aegis")
    with pytest.raises(PolicyError, match=r"needs the rows\. A summary has no rows"):
        Study(load_bundle(tmp_path / "t.aegis")).rank(
            generate_count=2, measure="held-out-r2(pairs)"
        )
