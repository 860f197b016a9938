"""Rankings: order, generated configurations, figures after suppression, and their JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from advisor_scores import attribute_value, pillai

from advisor_support import (
    LABEL_MASKS,
    RULES,
    class_table,
    labelled,
    masked_columns,
    policy_of,
    random_rows,
    table_of,
)
from aegis import advise, search
from aegis.advisor import Advice, PrivacyPlan, combinations, generate
from aegis.advisor.released import ReleasedRows
from aegis.advisor.scoring import Scorer
from aegis.errors import NoAdmissibleConfiguration, PolicyError
from aegis.masks import parse_mask
from aegis.measures import MEASURES, LabelKind, measures_of
from aegis.policy import Configuration, load_policy
from aegis.sources import open_table
from aegis.summary import Summary, summarize


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return table_of(random_rows(11))


@pytest.fixture(scope="module")
def summary(table: pa.Table) -> Summary:
    return summarize(table, policy_of())


@pytest.mark.parametrize("measure", ["adjusted-pillai", "g3", "cmim", "adjusted-mi"])
def test_order(summary: Summary, measure: str) -> None:
    policy = policy_of({"k": 4, "suppression": 0.1})
    advice = advise(summary, policy, generate_count=30, measure=measure)
    sign = MEASURES.get(measure).direction.sign
    keys = [(not r.admissible, -sign * r.score, r.name) for r in advice.ranking]
    assert keys == sorted(keys)
    assert len(keys) == 30
    assert {r.admissible for r in advice.ranking} == {True, False}
    assert advice.best is advice.ranking[0]
    assert not advice.optimal
    for ranked in advice.ranking:
        assert bool(ranked.violations) != ranked.admissible
        assert ranked.suppressed_rows <= 6 or not ranked.admissible


def test_all_combinations_are_proof(summary: Summary) -> None:
    policy = policy_of({"k": 4, "suppression": 0.1})
    ranked = advise(summary, policy, measure="adjusted-pillai", generate_count=10_000)
    searched = search(summary, policy, measure="adjusted-pillai", top=1)
    assert ranked.measure == searched.measure
    held_out = advise(summary, policy, generate_count=10_000)
    found = search(summary, policy, objective="held-out-auc", top=1)
    assert held_out.measure == "held-out-auc"
    assert held_out.best.masks == found.best.masks
    assert len(ranked.ranking) == combinations(summary) == 50
    assert ranked.optimal
    assert ranked.best.score == pytest.approx(searched.best.score, rel=1e-12)
    hopeless = advise(
        summary,
        policy_of({"k": 60, "l_diversity": {"attribute": "ill", "kind": "entropy", "l": 3}}),
        generate_count=50,
    )
    assert (hopeless.best, hopeless.optimal) == (None, False)


def test_generated_configurations(summary: Summary) -> None:
    first = generate(summary, 20, seed=3)
    assert first == generate(summary, 20, seed=3)
    assert first != generate(summary, 20, seed=4)
    assert len({tuple(c.masks.items()) for c in first}) == 20
    assert [c.name for c in first][:2] == ["c01", "c02"]
    assert len(generate(summary, 5)) == 5
    with pytest.raises(PolicyError, match="at least 1"):
        generate(summary, 0)


def test_which_configurations_are_ranked(summary: Summary) -> None:
    own = generate(summary, 3)
    policy = policy_of({"k": 4})
    assert {r.name for r in advise(summary, policy, configurations=own).ranking} == {
        "c1",
        "c2",
        "c3",
    }
    named = replace(policy, configurations={c.name: c for c in own[:2]})
    assert {r.name for r in advise(summary, named).ranking} == {"c1", "c2"}
    searched = advise(summary, policy)  # without configurations, all combinations are searched
    assert searched.search is not None
    assert searched.search.work.combinations == 50
    assert len(searched.ranking) == 10
    assert len(advise(summary, policy, generate_count=50).ranking) == 50
    with pytest.raises(PolicyError, match="both configurations and a number"):
        advise(summary, policy, configurations=own, generate_count=5)
    with pytest.raises(PolicyError, match="list of configurations is empty"):
        advise(summary, policy, configurations=[])
    with pytest.raises(PolicyError, match="Did you mean 'adjusted-pillai'"):
        advise(summary, policy, measure="adjusted-pilai")


def test_closest_of_the_given_configurations(summary: Summary) -> None:
    rule = {"k": 12}
    ranking = advise(summary, policy_of(rule), generate_count=50).ranking
    failing = [r.configuration for r in ranking if 0 < r.suppressed_rows < 60]
    advice = advise(summary, policy_of(rule), configurations=failing)
    assert advice.best is None
    assert not advice.optimal
    fewest = min(r.suppressed_rows for r in advice.ranking)
    with pytest.raises(
        NoAdmissibleConfiguration, match=f"None of the {len(failing)} conf"
    ) as raised:
        advice.require_best()
    limit = float(str(raised.value).split("limit of ")[1].split(" ")[0])
    assert fewest / 60 <= limit < (fewest + 0.01) / 60
    admitted = advise(summary, policy_of({**rule, "suppression": limit}), configurations=failing)
    assert admitted.best is not None
    assert admitted.require_best() is admitted.best


@pytest.mark.parametrize("label_masks", [None, LABEL_MASKS])
def test_score_after_suppression(table: pa.Table, label_masks: Any) -> None:
    for rule in (RULES[0], RULES[5]):
        policy = policy_of({**rule, "suppression": 0.3}, label_masks=label_masks)
        everything = policy_of(
            {**rule, "suppression": 0.3},
            label_masks=label_masks,
            attributes={"pay": {"role": "quasi-identifier", "masks": ["suppress"]}},
        )
        for given in (policy, everything):
            own = summarize(table, given)
            plan = PrivacyPlan(own, given.privacy)
            trace, whole = MEASURES.get("adjusted-pillai"), Scorer(own)
            released = ReleasedRows(plan, open_table(table), given)
            from_bundle = ReleasedRows(plan)
            for configuration in generate(own, 2, seed=2):
                choice = {
                    a.name: a.candidate(configuration.masks[a.name]) for a in own.all_attributes
                }
                masked = masked_columns(table, choice)
                quasi = [a.name for a in given.quasi_identifiers]
                keys = list(zip(*(masked[q] for q in quasi), strict=True))
                classes = dict(
                    zip(sorted(set(keys), key=keys.index), range(len(keys)), strict=False)
                )
                counted = class_table(table, choice, quasi, ("ill",))
                stays = given.privacy.check(counted).kept_classes
                rows = [bool(stays[classes[key]]) for key in keys]
                kept = {
                    n: [v for v, k in zip(c, rows, strict=True) if k] for n, c in masked.items()
                }
                raw = [y for y, k in zip(table["y"].to_pylist(), rows, strict=True) if k]
                left = labelled(kept, raw)
                wanted = None
                if len(set(left["y"])) > 1:
                    columns = [left[n] for n in ("age", "zip", "pay", "ill")]
                    wanted = pytest.approx(pillai(columns, left["y"])[1], abs=1e-8)
                counted_rows = released.of(choice)
                assert counted_rows.constant == (wanted is None)
                found = counted_rows.figure(trace, 1.0, whole).value
                assert found == (0.0 if wanted is None else wanted)
                cells = from_bundle.of(choice)
                known = cells.figure(trace, 1.0, whole)
                assert (known is None) == (given is not everything and not cells.constant)
                assert known is None or known.value == pytest.approx(found, abs=1e-12)
                assert label_masks is not None or cells.lost == counted_rows.lost


def test_pud_is_the_mean_absolute_change(table: pa.Table, summary: Summary) -> None:
    advice = advise(summary, policy_of({"k": 4}), generate_count=3, measure="mi")
    raw = {name: table[name].to_pylist() for name in table.column_names}
    own = labelled(raw, raw["y"])
    for ranked in advice.ranking:
        changes = []
        for name, score in ranked.attributes.items():
            assert score.unmasked == pytest.approx(attribute_value("mi", own[name], own["y"]))
            changes.append(abs(score.change))
        assert ranked.pud == pytest.approx(np.mean(changes))


@cache
def dates() -> tuple[pa.Table, Any]:
    random = np.random.default_rng(0)
    days = [date(2020, 1, 1 + int(i)) for i in random.integers(0, 20, 60)]
    table = pa.table(
        {
            "day": pa.array(days),
            "price": pa.array(
                [Decimal(int(i)) / 4 for i in random.integers(0, 30, 60)], pa.decimal128(9, 2)
            ),
            "flag": pa.array((random.integers(0, 2, 60) > 0).tolist()),
            "share": pa.array([*random.random(57).tolist(), None, float("nan"), float("inf")]),
            "constant": pa.array([1] * 60),
            "y": pa.array(random.integers(0, 2, 60)),
        }
    )
    policy = load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 2, "suppression": 0.3},
            "attributes": {
                "day": {
                    "role": "quasi-identifier",
                    "masks": [{"truncate": {"unit": "week"}}, {"truncate": {"unit": "month"}}],
                },
                "price": {
                    "role": "quasi-identifier",
                    "masks": [{"quantiles": {"count": 3}}, {"bucketize": {"width": 2.5}}],
                },
                "flag": {"role": "feature", "masks": [{"keep_frequent": {"count": 1}}, "identity"]},
                "share": {"role": "feature", "masks": ["identity", {"equal_width": {"count": 3}}]},
                "constant": {"role": "feature", "masks": ["identity"]},
            },
        }
    )
    return table, policy


@cache
def summary_of_dates() -> Summary:
    return summarize(*dates())


def as_json(advice: Advice) -> dict[str, Any]:
    text = json.dumps(advice.to_dict(), allow_nan=False)
    return dict(json.loads(text))


@pytest.mark.parametrize("measure", [m.name for m in measures_of(LabelKind.CLASSES)])
def test_json_of_every_measure(measure: str) -> None:
    found = as_json(advise(summary_of_dates(), dates()[1], measure=measure, generate_count=20))
    assert found["measure"] == measure
    assert len(found["ranking"]) == 16
    assert found["best"] in {r["name"] for r in found["ranking"]}


def test_json_of_searches() -> None:
    table, policy = dates()
    for options in (
        {},
        {"time_limit": 0},
        {"objective": "cmim"},
        {"objective": "loss", "front": "k=2,3"},
        {"front": "suppression=0..0.3"},
    ):
        advice = search(table, policy, **options)
        found = as_json(advice)
        assert found["search"]["combinations"] == 8  # one pair of groupings is the same
        assert "<table" in advice._repr_html_()
    none = as_json(
        search(
            table, load_policy({**json.loads(json.dumps(found["policy"])), "privacy": {"k": 60}})
        )
    )
    assert (none["best"], none["search"]["best"], none["search"]["gap"]) == (None, None, None)


def test_masks_of_the_ranking_can_be_read_back(summary: Summary) -> None:
    policy = policy_of({"k": 4})
    ranked = advise(summary, policy, generate_count=5).ranking[0]
    hierarchies = {n: a.hierarchy for n, a in policy.attributes.items()}
    masks = {n: parse_mask(spec, hierarchy=hierarchies[n]) for n, spec in ranked.masks.items()}
    assert Configuration(ranked.name, masks) == ranked.configuration
    assert set(ranked.mask_texts) == set(masks)
