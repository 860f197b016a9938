"""Record-level releases in a ranking: scored, verified and counted like a brute-force version."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aegis
from aegis import Study
from aegis.advisor import Scorer, as_it_is
from aegis.advisor.methods import choose_recipes, with_methods
from aegis.advisor.scores import coarse
from aegis.anonymizers import Recipe
from aegis.errors import DataError, PolicyError
from aegis.files import SILENT
from aegis.measures import MEASURES
from aegis.policy import dump_policy, load_policy
from aegis.summary import summarize

QUASI = ("age", "sex")
POLICY = {
    "version": 1,
    "label": "income",
    "privacy": {"k": 4, "suppression": 0.1},
    "attributes": {
        "age": {"role": "quasi-identifier", "masks": ["identity", {"bucketize": {"width": 10}}]},
        "sex": {"role": "quasi-identifier"},
        "job": {"role": "sensitive"},
    },
}


def table(rows: int = 80) -> pa.Table:
    return pa.table(
        {
            "age": [20 + (i * 7) % 40 for i in range(rows)],
            "sex": ["fm"[(i // 3) % 2] for i in range(rows)],
            "job": ["abc"[(i * 5 + i // 7) % 3] for i in range(rows)],
            "income": ["high" if (i * 7) % 40 + i % 5 > 20 else "low" for i in range(rows)],
        }
    )


def policy(**changed: object) -> aegis.Policy:
    return load_policy(POLICY | changed)


@settings(max_examples=5)
@given(
    method=st.sampled_from(["mondrian", "mdav", "k-member"]),
    k=st.integers(2, 9),
    measure=st.sampled_from(["adjusted-pillai", "mi", "g3"]),
)
def test_score_is_the_measure_of_the_released_table(method, k, measure):
    rules = policy(privacy={"k": k, "suppression": 0.1})
    advice = aegis.advise(table(), rules, methods=[method], measure=measure)
    entry = next(r for r in advice.ranking if r.method is not None)
    released = aegis.anonymize(table(), rules, entry.method.recipe)
    scorer = Scorer(summarize(released.data, as_it_is(rules)))
    assert entry.score == pytest.approx(scorer.value(scorer.unmasked, MEASURES.get(measure)))
    assert entry.utility.value == pytest.approx(entry.score)
    sizes = Counter(zip(*(released.data[name].to_pylist() for name in QUASI), strict=True))
    assert entry.admissible
    assert entry.smallest_class == min(sizes.values()) >= k
    assert entry.method.report.k == entry.smallest_class
    unmasked = coarse(scorer_of_original(rules, measure), table().num_rows, entry.score)
    changes = [abs(one.change) for one in entry.attributes.values()]
    assert entry.pud == pytest.approx(sum(changes) / len(changes))
    if measure != "g3":
        assert entry.utility_kept == pytest.approx(100 * entry.score / unmasked)


def scorer_of_original(rules: aegis.Policy, measure: str) -> float:
    scorer = Scorer(summarize(table(), as_it_is(rules)))
    return scorer.value(scorer.unmasked, MEASURES.get(measure))


def test_ranking_is_one_order():
    advice = aegis.advise(table(), policy(), methods=["mondrian", "mdav", "hybrid"])
    keys = [(not r.admissible, -r.score, r.name) for r in advice.ranking]
    assert keys == sorted(keys)
    names = {r.name: r for r in advice.ranking}
    assert {"mondrian", "mdav", "hybrid"} <= set(names)
    assert not names["hybrid"].admissible
    assert names["hybrid"].violations
    shown = {"age": "mdav(k=4)", "sex": "mdav(k=4)", "job": "identity"}
    assert names["mdav"].mask_texts == shown  # job is a feature
    assert names["mdav"].to_dict()["method"]["information_loss"]["scaled"] >= 0
    assert advice.rows()[0].keys() == advice.rows()[-1].keys()


def test_suppressed_rows_are_counted_and_scored_apart():
    rule = {"k": 4, "suppression": 0.6, "l_diversity": {"attribute": "job", "l": 3}}
    advice = aegis.advise(table(), policy(privacy=rule), methods=["mdav"])
    entry = next(r for r in advice.ranking if r.method is not None)
    assert entry.suppressed_rows > 0
    assert entry.utility.value != entry.score
    assert entry.method.report.rows == 80 - entry.suppressed_rows


def test_all_rows_left_out_is_no_release():
    options = {"strict": True, "pattern_friendly": ["sex"], "limits": [["age", 20, 20]], "k": 2}
    free = policy(privacy={})
    advice = aegis.advise(table(), free, methods=[Recipe("hybrid", options)])
    entry = next(r for r in advice.ranking if r.method is not None)
    assert entry.suppressed_rows >= 78


def test_policy_names_methods():
    rules = policy(anonymizers=["mdav", {"mdav": {"k": 6}}, {"mondrian": {"relaxed": True}}])
    assert load_policy_of(dump_policy(rules)).anonymizers == rules.anonymizers
    advice = aegis.advise(table(), rules)
    found = {r.name: r.method.recipe.options for r in advice.ranking if r.method is not None}
    assert set(found) == {"mdav", "mdav 2", "mondrian"}
    assert found["mdav"]["k"] == 4
    assert found["mdav 2"]["k"] == 6
    assert found["mondrian"]["relaxed"] is True
    assert all(r.method is None for r in aegis.advise(table(), rules, methods=[]).ranking)


def load_policy_of(text: str) -> aegis.Policy:
    import yaml

    return load_policy(yaml.safe_load(text))


def test_a_summary_has_no_records():
    rules = policy(anonymizers=["mdav"])
    summary = summarize(table(), rules)
    advice = aegis.advise(summary, rules)
    assert all(r.method is None for r in advice.ranking)
    assert any("a summary has no rows" in warning for warning in advice.warnings)
    with pytest.raises(DataError, match="a summary has none"):
        aegis.advise(summary, rules, methods=["mdav"])


def test_names_stay_apart():
    recipes = choose_recipes(policy(), ["mdav", "mdav", Recipe("mondrian", name="mdav")], seed=3)
    assert [one.name for one in recipes] == ["mdav", "mdav 2", "mdav 3"]
    assert [one.seed for one in recipes] == [3, 3, None]
    rules = policy(configurations={"mdav": {"age": "identity", "sex": "identity"}})
    names = [r.name for r in aegis.advise(table(), rules, methods=["mdav"]).ranking]
    assert sorted(names) == ["mdav", "mdav (records)"]


def test_beside_a_search():
    rules = policy()
    study = Study(table(), rules)
    found = study.search()
    parts = (study.summary, study.source, rules, ["mondrian"])
    both = with_methods(found, *parts, seed=0, progress=SILENT)
    assert len(both.ranking) == len(found.ranking) + 1
    assert both.search is found.search
    assert both.optimal == (both.ranking[0].method is None and found.optimal)
    by_loss = study.search(objective="nu-entropy")
    with pytest.raises(PolicyError, match="objective"):
        with_methods(by_loss, *parts, seed=0, progress=SILENT)


@pytest.mark.parametrize(
    ("methods", "words"),
    [(["mdva"], "Did you mean 'mdav'"), ([Recipe("mdav", {"k": 500})], "above the number")],
)
def test_bad_methods(methods, words):
    with pytest.raises(PolicyError, match=words):
        aegis.advise(table(), policy(), methods=methods)


@pytest.mark.parametrize("entry", [{"mdav": {}, "mondrian": {}}, {}, {"mdav": 5}, 5])
def test_bad_entries_of_the_policy(entry):
    with pytest.raises(PolicyError, match="anonymizers"):
        policy(anonymizers=[entry])


def noisy(seed: int) -> pa.Table:
    """Numbers whose tens digit alone says something of the label."""
    random = np.random.default_rng(seed)
    number = random.integers(0, 100, 400)
    income = (number // 10) % 2 ^ (random.random(400) < 0.3)
    return pa.table({"age": number, "income": income.astype(int)})


def test_a_lead_that_held_out_rows_do_not_show_is_doubted():
    """Masks hold what there is to say; groups of four follow noise, which the trace forgives."""
    masks = [{"bucketize": {"width": 10}}]
    attributes = {"age": {"role": "quasi-identifier", "masks": masks}}
    rules = policy(attributes=attributes, privacy={"k": 4})
    held_out = MEASURES.get("held-out-pillai-values")
    seen = set()
    for seed in range(8):
        rows = noisy(seed)
        advice = aegis.advise(rows, rules, measure="adjusted-pillai", methods=["mdav"])
        release = next(one for one in advice.ranking if one.method is not None)
        scorer = Scorer(summarize(rows, rules))
        mine = (
            scorer.value(scorer.choose(advice.ranking[-1].configuration), held_out)
            if (release is advice.best)
            else None
        )
        made = aegis.anonymize(rows, rules, "mdav").data
        theirs = Scorer(summarize(made, as_it_is(rules)))
        assert release.method.held_out == pytest.approx(theirs.value(theirs.unmasked, held_out))
        expected = mine is not None and mine > release.method.held_out
        doubts = [text for text in advice.warnings if "on held-out rows the masks" in text]
        assert len(doubts) == expected
        seen.add(expected)
        by_held_out = aegis.advise(rows, rules, measure="held-out-pillai-values", methods=["mdav"])
        assert not any("on held-out rows" in text for text in by_held_out.warnings)
        assert by_held_out.best.method is None
    assert seen == {True, False}
