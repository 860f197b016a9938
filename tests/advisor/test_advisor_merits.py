"""Figures of merit that are asked for: where they disagree, and how far a search may be from the best."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import aegis
from aegis.advisor import Scorer, generate, utility_kept
from aegis.advisor.advice import disagreement
from aegis.advisor.search import Searcher
from aegis.advisor.search import searcher as module
from aegis.errors import PolicyError
from aegis.files import SILENT
from aegis.measures import get
from aegis.measures.merits import _together, area_error
from aegis.policy import load_policy
from aegis.study import Study


def table(rows: int = 3000, rare: float = 0.04) -> pa.Table:
    """A rare label that `sign` tells of and `noise` does not; `zip` is nearly a key."""
    random = np.random.default_rng(7)
    label = random.random(rows) < rare
    return pa.table(
        {
            "sign": np.where(random.random(rows) < 0.6, label, random.random(rows) < 0.5).astype(
                int
            ),
            "age": (random.integers(20, 60, rows) + 12 * label).astype(int),
            "zip": random.integers(1000, 1400, rows),
            "y": np.where(label, "yes", "no"),
        }
    )


def policy(**more: object) -> aegis.Policy:
    masks = {
        "sign": ["identity", "suppress"],
        "age": ["identity", {"bucketize": {"width": 5}}, {"bucketize": {"width": 20}}, "suppress"],
        "zip": ["identity", {"erase_digits": {"digits": 2}}, "suppress"],
    }
    attributes = {name: {"role": "quasi-identifier", "masks": own} for name, own in masks.items()}
    return load_policy(
        {"version": 1, "label": "y", "privacy": {"k": 2}, "attributes": attributes, **more}
    )


def test_policies_name_merits_and_models() -> None:
    assert policy(merit="accuracy").measure == "held-out-accuracy"
    assert policy(models=["gbdt", "lr"]).measure == "held-out-auc(lr+gbdt)"
    with pytest.raises(PolicyError, match="`measure` is given together"):
        policy(merit="auc", measure="mi")
    with pytest.raises(PolicyError):
        policy(merit="f1")
    again = load_policy(aegis.policy.policy_mapping(policy(merit="log-loss", models=["nb"])))
    assert again.measure == "held-out-log-loss(nb)"


def test_a_rare_label_makes_merits_disagree_and_the_advice_says_so() -> None:
    study = Study(table(), policy(merit="accuracy"))
    advice = study.rank(generate_count=24)
    scorer, measure = Scorer(study.summary), get("held-out-accuracy")
    assert advice.measure == "held-out-accuracy"
    # By accuracy nothing is ahead of what never says yes; by AUC much is.
    areas = [
        scorer.value(scorer.choose(r.configuration), get("held-out-auc"))
        for r in advice.ranking
        if r.admissible
    ][:10]
    said = disagreement(advice.ranking, scorer, measure)
    assert bool(said) == (max(areas) - areas[0] >= 0.01)
    assert set(said) <= set(advice.warnings)
    worst_first = sorted(advice.ranking, key=lambda r: (not r.admissible, r.score))
    shuffled = [r for r in worst_first if r.admissible]
    (warning,) = disagreement(shuffled, scorer, measure)
    assert "model metrics disagree" in warning
    assert shuffled[0].name in warning
    assert disagreement(shuffled, scorer, get("held-out-auc")) == ()
    common = Study(table(rare=0.4), policy(merit="accuracy"))
    ranked = common.rank(generate_count=24).ranking
    assert disagreement(ranked, Scorer(common.summary), measure) == ()


@pytest.mark.parametrize("name", ["held-out-auc", "held-out-auc(nb)"])
def test_a_search_by_an_expected_auc_states_a_gap_that_holds(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ENUMERATED", 0)
    monkeypatch.setattr(module, "LISTED", 3)
    study = Study(table(), policy())
    searcher = Searcher(study.summary, study.plan, name, name, SILENT)
    found, figures = searcher.run(study.plan.rule, top=1, time_limit=None)
    scorer, measure = Scorer(study.summary), get(name)
    scores = [
        scorer.value(scorer.choose(configuration), measure)
        for configuration in generate(study.summary, 24, seed=0)
        if study.plan.check(scorer.choose(configuration)).admissible
    ]
    assert figures.exact
    assert figures.bound is not None
    assert max(scores) <= figures.bound + 1e-9
    assert found.best[0][0] == pytest.approx(max(scores), abs=1e-9)
    assert figures.gap is not None
    assert 0 <= figures.gap < 0.2
    assert any("ignores the privacy rule" in note for note in figures.notes)
    assert figures.proven is not None
    assert figures.proven.configurations <= 3
    searcher = Searcher(study.summary, study.plan, name, name, SILENT)
    best, proof = searcher.run(study.plan.rule, top=1, time_limit=None, prove=True)
    assert best.best[0] == found.best[0]
    assert (proof.optimal, proof.complete, proof.gap) == (True, True, 0.0)
    assert proof.bound == pytest.approx(proof.best)
    assert proof.proven is None
    assert proof.notes == ()


def test_headlines_and_utility_count_from_what_a_constant_reaches() -> None:
    study = Study(table(rare=0.3), policy(merit="log-loss"))
    advice = study.rank(generate_count=24)
    best = advice.best
    assert best is not None
    entropy = get("held-out-log-loss").worst(advice.label_rows)
    assert best.utility is not None
    wanted = 100 * (entropy - best.utility.value) / (entropy - advice.unmasked)
    assert best.utility_kept == pytest.approx(min(wanted, 100))
    assert "a log loss of" in str(advice.headline)
    hidden = next(r for r in advice.ranking if set(map(str, r.masks.values())) == {"suppress"})
    assert hidden.score == pytest.approx(entropy)
    assert hidden.utility_kept == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("merit", ["auc", "accuracy", "log-loss"])
def test_utility_is_compared_with_the_unmasked_table_even_where_coarser_tells_more(merit) -> None:
    random = np.random.default_rng(5)
    label = random.random(300) < 0.5
    told = np.where(random.random(300) < 0.8, label, ~label)
    near_key = [
        f"{'b' if own else 'a'}{i:03d}" for i, own in enumerate(told)
    ]  # no text twice: coarser tells more
    masks = ["identity", {"blur": {"keep": 1}}, "suppress"]
    study = Study(
        pa.table({"near_key": near_key, "y": np.where(label, "yes", "no")}),
        load_policy(
            {
                "version": 1,
                "label": "y",
                "privacy": {},
                "attributes": {"near_key": {"role": "feature", "masks": masks}},
            }
        ),
    )
    advice = study.rank(generate_count=3, measure=f"held-out-{merit}")
    figure = advice.utility
    assert figure is not None
    # Masks cut the column, so that the certificate counts the unmasked table as it is; it states two
    # digits of the score.
    assert figure.reference == pytest.approx(advice.unmasked, rel=0.01)
    if merit == "auc":
        assert figure.exceeds
        assert figure.utility_kept == 100
        assert "as much as unmasked, within the sampling error" in str(advice.headline)


def few(rows: int) -> aegis.Study:
    """A study of 300 rows, of which so few are of a class, beside attributes that tell nothing."""
    random = np.random.default_rng(0)
    drawn = {"x": random.integers(0, 4, 300).astype(str), "z": random.integers(0, 3, 300)}
    attributes = {n: {"role": "quasi-identifier", "masks": ["identity", "suppress"]} for n in drawn}
    wanted = {"version": 1, "label": "y", "privacy": {"k": 2}, "attributes": attributes}
    table = pa.table({**drawn, "y": ["b"] * rows + ["a"] * (300 - rows)})
    return Study(table, load_policy(wanted))


def test_three_rows_of_a_class_have_an_error_that_says_so_and_a_warning() -> None:
    advice = few(3).rank(generate_count=4, measure="held-out-auc")
    best = advice.best
    assert best is not None
    assert best.stderr is not None
    assert best.stderr == pytest.approx(area_error(best.score, np.array([297, 3])))
    assert best.stderr > 0.05
    assert any("y = b has 3 rows only" in warning for warning in advice.warnings)
    told = few(3).rank(generate_count=4).expectation
    assert told is not None
    assert told.stderr is not None
    assert told.stderr == pytest.approx(area_error(told.value, np.array([297, 3])))
    assert not any("rows only" in warning for warning in few(25).rank(generate_count=4).warnings)


def test_the_error_of_an_auc_is_about_the_same_in_samples_of_one_population() -> None:
    # The jackknife over five parts moved threefold between the rows before and after suppression.
    random = np.random.default_rng(5)
    errors, scores = [], []
    for _ in range(30):
        age, town = random.integers(0, 8, 600), random.integers(0, 5, 600)
        y = (age + 2 * (town == 1) + random.normal(0, 4, 600)) > 5
        table = pa.table({"age": age, "town": town.astype(str), "y": y.astype(str)})
        roles = {n: {"role": "feature", "masks": ["identity"]} for n in ("age", "town")}
        wanted = {"version": 1, "label": "y", "privacy": {}, "attributes": roles}
        best = Study(table, load_policy(wanted)).rank(generate_count=1, measure="held-out-auc").best
        assert best is not None
        assert best.stderr is not None
        errors.append(best.stderr)
        scores.append(best.score)
    assert max(errors) < 1.2 * min(errors)
    assert 0.8 < np.mean(errors) / np.std(scores) < 1.7


def test_what_a_search_lists_by_a_merit_has_errors_when_the_time_is_over() -> None:
    advice = few(100).search(top=2, measure="held-out-auc", time_limit=1e-6)
    assert advice.best is None or advice.best.stderr is not None


def test_rounding_is_nothing_to_keep() -> None:
    entropy = float(np.log(2))
    assert utility_kept(entropy, entropy - 1e-15, get("held-out-log-loss"), [150, 150]) is None
    assert utility_kept(0.6, 0.5 + 1e-12, get("held-out-auc")) is None
    assert utility_kept(0.6, 0.7, get("held-out-auc")) == pytest.approx(50)
    assert utility_kept(2e-19, 8e-19, get("adjusted-pillai")) is None
    assert utility_kept(7e-19, 0.003, get("adjusted-pillai")) == 0


def test_the_error_of_an_area_is_about_that_of_rows_drawn_anew() -> None:
    random = np.random.default_rng(2)
    areas = []
    for _ in range(800):
        own, rest = random.normal(1.2, 1, 12), random.normal(0, 1, 60)
        areas.append((own[:, None] > rest).mean())
    stated = area_error(float(np.mean(areas)), np.array([60, 12]))
    assert 0.95 < stated / np.std(areas) < 1.3  # a little too large: its scores are exponential
    assert area_error(0.8, np.array([5, 0])) == 0.0


@pytest.mark.parametrize("merit", ["auc", "log-loss"])
def test_a_number_with_many_values_is_refused_as_a_label_of_merits(merit: str) -> None:
    values = np.random.default_rng(0).normal(size=150)
    attributes = {"x": {"role": "feature", "masks": ["identity", "suppress"]}}
    named = {"version": 1, "label": "y", "privacy": {}, "attributes": attributes}
    study = Study(pa.table({"x": ["a", "b"] * 75, "y": values}), load_policy(named))
    with pytest.raises(PolicyError, match=r"150 classes.*at most 100"):
        study.rank(generate_count=2, measure=f"held-out-{merit}")
    assert study.rank(generate_count=2).expectation is None  # the default gives way


def test_several_classes_are_told_apart_as_often_as_in_drawn_rows_whatever_rounding_does() -> None:
    random = np.random.default_rng(4)
    share = np.array([0.5, 0.3, 0.2])
    mean = np.array([[1.0, -0.3, -0.2], [-0.4, 0.9, -0.1], [-0.3, -0.2, 1.1]])
    # Alike in each direction, so that rounding alone decides which axes they are turned to.
    spread = np.array([np.eye(3) * own for own in (1.0, 1.4, 0.7)])
    accuracy, loss = _together(share, mean, spread)
    for _ in range(5):
        noise = random.normal(0, 1e-14, spread.shape)
        again = _together(
            share, mean, spread * (1 + noise) + 1e-15 * (noise + noise.swapaxes(1, 2))
        )
        assert again == pytest.approx((accuracy, loss), abs=1e-9)
    within = np.linalg.inv(np.einsum("c,ctu->tu", share, spread))
    right = logs = 0.0
    for own, (part, middle, own_spread) in enumerate(zip(share, mean, spread, strict=True)):
        drawn = random.multivariate_normal(middle, own_spread, 200_000)
        away = drawn[:, None] - mean
        odds = np.log(share) - 0.5 * np.einsum("nct,tu,ncu->nc", away, within, away)
        right += part * float((odds.argmax(axis=1) == own).mean())
        logs += part * float((np.logaddexp.reduce(odds, axis=1) - odds[:, own]).mean())
    assert accuracy == pytest.approx(right, abs=0.005)
    assert loss == pytest.approx(logs, abs=0.02)


def test_a_class_is_not_right_twice_where_two_say_the_same() -> None:
    share = np.array([0.4, 0.3, 0.3])
    mean = np.array([[2.0, -2.0], [-2.0, 2.0], [-2.0, 2.0]])
    accuracy, _ = _together(share, mean, np.array([np.eye(2)] * 3))
    assert accuracy == pytest.approx(0.4 + 0.3, abs=0.01)
