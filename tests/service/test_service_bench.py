"""The workbench without its pages: what is remembered is what would be counted, and searches give way."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from service_support import write_table

from aegis.catalog.errors import WrongState
from aegis.privacy import PrivacyRule
from aegis.service.workbench import Bench, edited


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
    scorer_choices = dict(bench._known.choices)
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
    from aegis.catalog.flow import policy_of
    from aegis.policy import dump_policy

    policy = bench.policy
    attributes = policy.attributes
    made = edited(
        policy,
        {name: str(a.role) for name, a in attributes.items()},
        {name: [_line(m) for m in a.masks] for name, a in attributes.items()},
        {"age": "bucketize: {width: 15}"},
        {"k": 6, "suppression": 0.05},
    )
    assert policy_of(dump_policy(made)) == made
    assert any("15" in str(mask) for mask in made.attributes["age"].masks)


def _line(mask) -> str:
    from aegis.service.pages.controls import one_line

    return one_line(mask.spec())
