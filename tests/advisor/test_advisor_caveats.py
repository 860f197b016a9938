"""A recommendation that is worth nothing says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import aegis
from advisor_support import policy_of, random_rows, table_of
from aegis import search
from aegis.advisor import Advice
from aegis.advisor.advice import caveats_of
from aegis.policy import load_policy
from aegis.present.finding import Finding

HIDDEN = dict.fromkeys(("age", "zip", "pay", "ill"), "suppress")


def told(advice: Advice, text: str) -> bool:
    return any(text in warning for warning in advice.warnings)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return table_of(random_rows(4))


def test_every_attribute_suppressed(table: pa.Table) -> None:
    policy = policy_of({"k": 60}, configurations={"hidden": HIDDEN}, ill_masks=["suppress"])
    ranked = aegis.advise(table, policy)
    assert ranked.best.name == "hidden"
    assert told(ranked, "hidden suppresses every scored attribute")
    found = search(
        table,
        policy_of(
            {"k": 60}, ill_masks=["suppress"], attributes={"pay": {"role": "quasi-identifier"}}
        ),
    )
    assert told(found, "best-1 suppresses every scored attribute")
    assert ranked.to_dict()["warnings"] == list(ranked.warnings)


def test_something_is_left(table: pa.Table) -> None:
    assert not caveats_of(aegis.advise(table_of(random_rows(4, 600)), policy_of({"k": 3})))
    none_admissible = aegis.advise(
        table,
        policy_of({"k": 60}, configurations={"raw": {"age": "identity", "zip": {"level": 0}}}),
    )
    assert none_admissible.best is None
    assert not caveats_of(none_admissible)


def test_a_label_that_nothing_tells_of() -> None:
    # Every value of x has each class as often: the trace is zero before any mask.
    rows = [{"x": x, "y": y} for x in "abcd" for y in "pq" for _ in range(5)]
    policy: dict[str, Any] = {
        "version": 1,
        "label": "y",
        "privacy": {"k": 2},
        "attributes": {"x": {"role": "quasi-identifier", "masks": ["identity", "suppress"]}},
    }
    advice = aegis.advise(pa.Table.from_pylist(rows), load_policy(policy), measure="pillai-plain")
    assert advice.best.utility_kept is None
    assert told(advice, "do not predict y even unmasked")


def test_masks_that_keep_nothing(table: pa.Table) -> None:
    constant = {"group": {"groups": {"one": ["a1", "a2", "b1", "b2", "c2"]}}}
    hidden = HIDDEN | {"zip": constant}
    policy = policy_of(
        configurations={"flat": hidden},
        ill_masks=["suppress"],
        attributes={"zip": {"role": "quasi-identifier", "masks": [constant]}},
    )
    filled = table.set_column(1, "zip", table["zip"].fill_null("a1"))
    advice = aegis.advise(filled, policy, measure="pillai-plain")
    assert told(advice, "flat has no utility left")


def test_a_record_level_release_takes_the_doubt_away(table: pa.Table) -> None:
    policy = policy_of({"k": 20}, configurations={"hidden": HIDDEN}, ill_masks=["suppress"])
    assert told(aegis.advise(table, policy), "hidden suppresses")
    beside = aegis.advise(table, policy, methods=["mondrian"])
    assert beside.best.method is not None
    assert not told(beside, "hidden suppresses")


def test_a_score_within_its_standard_error() -> None:
    given = random_rows(4, 300)
    labels = [row[-1] for row in given]
    # The same labels in another order: what the attributes tell of them is chance.
    shuffled = [(*row[:-1], labels[(13 * i + 3) % 300]) for i, row in enumerate(given)]
    configurations = {"fine": {"age": "identity", "zip": {"level": 0}}}
    policy = policy_of({"k": 1}, configurations=configurations)
    chance = aegis.advise(table_of(shuffled), policy, measure="adjusted-pillai")
    assert 0 < chance.best.score < 2 * chance.best.stderr
    assert told(chance, "may be chance")
    real = aegis.advise(table_of(given), policy, measure="adjusted-pillai")
    assert real.best.score > 2 * real.best.stderr
    assert not caveats_of(real)
    title = Finding.of(chance, chance.best).title
    assert title == f"{chance.best.name} is of a table that may predict by chance only"
    assert (chance.predicts_unmasked, real.predicts_unmasked) == (False, True)
    nothing = replace(real.best, utility=replace(real.best.utility, value=0.0))
    hidden = replace(real, ranking=(nothing, *real.ranking[1:]))
    assert "masks so much that what is left may" in Finding.of(hidden, nothing).title


@pytest.mark.parametrize(("measure", "said"), [("adjusted-pillai", True), ("held-out-auc", False)])
def test_a_rare_class(measure: str, said: bool) -> None:
    rows = {
        "a": [i % 4 for i in range(400)],
        "y": ["yes" if i % 16 == 3 else "no" for i in range(400)],
    }
    policy = load_policy({"version": 1, "label": "y", "attributes": {"a": {"role": "feature"}}})
    advice = search(pa.table(rows), policy, measure=measure)
    assert told(advice, "only 6.2% of the labelled rows are y = yes:") == said
    blank = replace(advice, summary={**advice.summary, "classes": {"no": 375, "yes ": 25}})
    shown = " ".join(caveats_of(blank))
    assert ("labelled rows are y = 'yes ':" in shown) == said
    again = search(
        pa.table({**rows, "y": ["yes" if i % 9 == 3 else "no" for i in range(400)]}), policy
    )
    assert not told(again, "of the labelled rows are")


@pytest.mark.parametrize("classes", [100, 101])
def test_a_rare_class_among_too_many_names_no_measure_that_is_refused(classes: int) -> None:
    rows = {"a": [i % 4 for i in range(808)], "y": [f"c{i % classes}" for i in range(808)]}
    policy = load_policy({"version": 1, "label": "y", "attributes": {"a": {"role": "feature"}}})
    advice = search(pa.table(rows), policy, measure="adjusted-pillai")
    assert told(advice, "such a class hardly affects accuracy")
    assert told(advice, "--measure held-out-auc") == (classes == 100)


def test_any_weights_that_are_allowed_give_scores(table: pa.Table) -> None:
    scores = []
    for weight in (1e-9, 1.0, 1e9):
        attributes = {"pay": {"role": "quasi-identifier", "weight": weight}}
        advice = aegis.advise(table, policy_of({"k": 3}, attributes=attributes), measure="mi")
        scores.append([ranked.score for ranked in advice.ranking])
    assert all(score >= 0 and score != float("inf") for own in scores for score in own)
    assert scores[0] != scores[2]
