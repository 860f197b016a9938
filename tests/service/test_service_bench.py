"""The workbench without its pages: what is remembered is what would be counted, and searches give way."""

from __future__ import annotations

import html
import re
import threading
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from service_support import write_table

from aegis.advisor.search import search_combinations
from aegis.errors import AegisError
from aegis.present import Finding
from aegis.privacy import PrivacyRule
from aegis.service.catalog.errors import WrongState
from aegis.service.catalog.flow import policy_of
from aegis.service.pages.render import fragment
from aegis.service.workbench import Bench, FormChanges, edited
from aegis.study import Study


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / "adult.csv"
    write_table(path, rows=300)
    return Bench.open(str(path), "income")


@pytest.mark.parametrize(
    "rule",
    [
        {"k": 2},
        {"k": 9, "suppression": 0.2},
        {"k": 4, "suppression": 0.0},
        {"l_diversity": {"attribute": "income", "l": 2}},
        {"k": 2, "t_closeness": {"attribute": "income", "t": 0.4}},
    ],
)
def test_what_a_moved_control_shows_is_what_the_rule_says(bench, rule):
    """Classes are remembered from one rule to the next; each verdict is held against a new count."""
    bench.take(replace(bench.policy, privacy=PrivacyRule.parse(rule)))
    view = bench.view()
    scorer_choices = dict(bench._scores.choices)
    for ranked in view.ranking:
        said = bench.study.plan.check(scorer_choices[ranked.name])
        assert ranked.admissible == said.admissible, ranked.name
        assert (ranked.smallest_class, ranked.suppressed_rows) == (
            said.smallest_class,
            said.suppressed_rows,
        )


def test_a_search_ends_when_the_policy_is_another_one(bench):
    """It ends at its next sign of life, not at its time limit."""
    begun, ended = threading.Event(), []

    bench.take(replace(bench.policy, privacy=PrivacyRule.parse({"k": 3})))
    with pytest.MonkeyPatch.context() as patched:
        original = bench.study.plan.__class__.check

        def slow(plan, choice):
            begun.set()
            ended.append(threading.Event().wait(0.05))
            return original(plan, choice)

        patched.setattr(bench.study.plan.__class__, "check", slow)
        result: list[object] = []

        def search() -> None:
            try:
                result.append(bench.best(60.0))
            except WrongState as error:
                result.append(error)

        thread = threading.Thread(target=search)
        thread.start()
        assert begun.wait(30)
        bench.take(replace(bench.policy, privacy=PrivacyRule.parse({"k": 5})))
        thread.join(timeout=30)
    assert not thread.is_alive()
    assert isinstance(result[0], WrongState)


def test_a_policy_that_controls_say_is_that_of_its_text(bench):
    """Controls make a mapping; read as it is, or written and read, it is the same policy."""
    from aegis.policy import dump_policy
    from aegis.service.catalog.flow import policy_of

    policy = bench.policy
    attributes = policy.attributes
    changes = FormChanges(
        {name: str(a.role) for name, a in attributes.items()},
        {name: [m.spec() for m in a.masks] for name, a in attributes.items()},
        {"age": [{"bucketize": {"width": 15}}]},
        {"k": 6, "suppression": 0.05},
    )
    made, changed = edited(policy, changes, lambda name, role: [])
    assert changed == {}
    assert policy_of(dump_policy(made)) == made
    assert any("15" in str(mask) for mask in made.attributes["age"].masks)


def test_searches_that_share_bounds_end_where_a_new_one_does(bench):
    """What is remembered of one rule is worth nothing under another one, unless it is true there, too."""
    for rule in ({"k": 3}, {"k": 12, "suppression": 0.1}, {"k": 2}, {"k": 40}):
        bench.take(replace(bench.policy, privacy=PrivacyRule.parse(rule)))
        shared = bench.best(60)
        study = bench.study
        new = search_combinations(study.summary, study.plan, study.policy, explain_best=False)
        assert shared.optimal
        assert new.optimal
        assert shared.best.score == pytest.approx(new.best.score, abs=1e-9), rule
        assert shared.best.admissible


def test_the_bench_goes_by_what_a_search_maximises():
    """Where values nearly all differ the usual measure sees nothing, and a search takes another one."""
    rows = range(80)
    table = pa.table(
        {
            "score": [n * 37 % 80 + 0.25 for n in rows],
            "place": ["near" if n % 8 < 4 else "far" for n in rows],
            "answer": ["yes" if n % 8 in (0, 1, 2, 5) else "no" for n in rows],
        }
    )
    policy = policy_of(
        """
        version: 1
        label: answer
        privacy: {k: 2, suppression: 0.1}
        attributes:
          score: {role: quasi-identifier, masks: [identity, {bucketize: {width: 20}}, suppress]}
          place: {role: quasi-identifier, masks: [identity, suppress]}
        """
    )
    small = Bench(table, Study(table, policy))
    view = small.view()
    assert view.measure == "held-out-auc"
    assert small.best(30).measure == view.measure


def test_a_role_that_does_not_exist_is_refused():
    bench = Bench.open("data/adult.parquet", "income")
    with pytest.raises(AegisError, match="role"):
        bench.take_form(FormChanges({"age": ""}, {}, {}, {"k": 5}))


def test_the_page_does_not_call_proven_what_scores_less_than_another():
    bench = Bench.open(tied(), "y")
    advice = bench.best(30)
    assert advice.optimal
    assert advice.preferred is not None
    page = best_of(bench, advice)
    assert "does better: proven" not in page
    ties = (
        "scores measurably better. Of those found that are as good, it is the one that masks least."
    )
    assert ties in html.unescape(page)
    higher = replace(advice, preferred=None)
    assert re.search("None of the .* does better.*: proven", best_of(bench, higher))


def tied() -> pa.Table:
    """Return rows where a second column says next to nothing of the label."""
    random = np.random.default_rng(8)
    age, town = random.integers(20, 65, 800), random.integers(0, 6, 800)
    label = np.where(age + random.normal(0, 12, 800) > 45, "yes", "no")
    return pa.table({"age": age, "town": [f"town {place}" for place in town], "y": label})


def best_of(bench, advice):
    """Return what the page shows of an advice."""
    said = {
        "more": None,
        "problem": None,
        "words": Finding.of(advice, advice.best),
        "shows": {shown.attribute: shown for shown in bench.preview(advice.best.configuration)},
        "base": "",
        "form_key": "",
    }
    page = fragment("bench_best.html", advice=advice, best=advice.best, configuration="", **said)
    return page.body.decode()


def test_a_changed_role_brings_its_masks_and_its_rule():
    from aegis.service.pages.controls import attributes_of, rule_of

    bench = Bench.open("data/adult.parquet", "income")
    proposed = {name: a.masks for name, a in bench.policy.attributes.items()}

    def change(name: str, role: str) -> bool:
        attributes = bench.policy.attributes
        roles = {n: str(a.role) for n, a in attributes.items()}
        masks = {n: [m.spec() for m in a.masks] for n, a in attributes.items()}
        rule = bench.policy.privacy.to_mapping()
        return bench.take_form(FormChanges({**roles, name: role}, masks, {}, rule))

    assert not change("age", "quasi-identifier")
    assert change("age", "identifier")
    assert bench.policy.attributes["age"].masks == ()
    assert change("age", "quasi-identifier")
    assert bench.policy.attributes["age"].masks == proposed["age"]

    assert change("race", "sensitive")
    assert [name for name, _, _ in rule_of(bench.policy)["sensitive"]] == ["race"]
    diverse = PrivacyRule.parse({"k": 5, "l_diversity": {"attribute": "race", "l": 2}})
    bench.take(replace(bench.policy, privacy=diverse))
    assert change("race", "quasi-identifier")
    assert bench.policy.privacy == PrivacyRule.parse({"k": 5})
    assert bench.policy.attributes["race"].masks == proposed["race"]
    lines = {a.name: a.role for a in attributes_of(bench.policy)}
    assert lines["race"] == "quasi-identifier"
