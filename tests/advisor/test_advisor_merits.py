"""Figures of merit that are asked for: where they disagree, and how far a search may be from the best."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import aegis
from aegis.advisor import Scorer, generate
from aegis.advisor.merits import disagreement
from aegis.advisor.search import Searcher
from aegis.advisor.search import searcher as module
from aegis.errors import PolicyError
from aegis.measures import get
from aegis.policy import load_policy
from aegis.progress import SILENT
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
    with pytest.raises(PolicyError, match="Both measure and merit"):
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
    assert "figures of merit disagree" in warning
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
    monkeypatch.setattr(module, "RERANKED", 3)
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
    assert any("within reach" in note for note in figures.notes)


def test_headlines_and_utility_count_from_what_a_constant_reaches() -> None:
    study = Study(table(rare=0.3), policy(merit="log-loss"))
    advice = study.rank(generate_count=24)
    best = advice.best
    assert best is not None
    entropy = get("held-out-log-loss").worst(advice.class_rows)
    wanted = 100 * (entropy - best.score) / (entropy - advice.reference)
    assert best.utility_kept == pytest.approx(min(wanted, 100))
    assert "a log loss of" in str(advice.headline)
    hidden = next(r for r in advice.ranking if set(map(str, r.masks.values())) == {"suppress"})
    assert hidden.score == pytest.approx(entropy)
    assert hidden.utility_kept == pytest.approx(0, abs=1e-9)
