"""Of configurations that score about the same the one that masks least comes first."""

from __future__ import annotations

import io
import math
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from advisor_support import RULES, all_choices, policy_of
from aegis import Study, load_policy
from aegis.advisor import PrivacyPlan, Scorer
from aegis.advisor.confidence import Prefer, configuration_masking, tie_margin
from aegis.advisor.released import error_of
from aegis.advisor.search.neighbours import masking
from aegis.advisor.search.problem import make_problem
from aegis.cli.advice import search_sections
from aegis.errors import PolicyError
from aegis.measures import get
from aegis.present import Finding
from aegis.summary import summarize
from search_support import prepared


def brute_masking(values: list[Any], shown: list[Any]) -> float:
    """Return 1 - H(shown) / H(values), from rows."""

    def entropy(column: list[Any]) -> float:
        shares = [n / len(column) for n in Counter(column).values()]
        return -sum(p * math.log2(p) for p in shares)

    return 1 - entropy(shown) / entropy(values) if entropy(values) else 0.0


def test_masking_is_the_share_of_entropy_that_is_lost() -> None:
    table, summary = prepared("plain")
    problem = make_problem(summary)
    for variable in problem.variables:
        values = table[variable.name].to_pylist()
        place = {v: i for i, v in enumerate(variable.attribute.values.to_pylist())}
        for index, candidate in enumerate(variable.candidates):
            shown = [int(candidate.groups[place[value]]) for value in values]
            assert masking(variable, index) == pytest.approx(brute_masking(values, shown))


MEASURES = ("adjusted-pillai", "held-out-auc", "cmim")
CASES = [
    (prefer, measure, (number + place) % 2)
    for number, prefer in enumerate(Prefer)
    for place, measure in enumerate(MEASURES)
]
"""Each preference by each measure, under one of two rules in turn."""


@cache
def scored(number: int, measure: str) -> tuple[Any, Scorer, list[Any], list[float]]:
    """Return the policy of a rule, and all that meets it, with its scores."""
    policy = policy_of({**RULES[number], "suppression": 0.05})
    summary = summarize(prepared("plain")[0], policy)
    plan, scorer = PrivacyPlan(summary, policy.privacy), Scorer(summary)
    admissible = [c for c in all_choices(summary) if plan.check(c).admissible]
    return policy, scorer, admissible, [scorer.value(c, get(measure)) for c in admissible]


@pytest.mark.parametrize(("prefer", "measure", "rule"), CASES)
def test_the_first_is_the_preferred_one_of_all_within_the_margin(
    prefer: Prefer, measure: str, rule: int
) -> None:
    policy, scorer, admissible, scores = scored(rule, measure)
    table, own = prepared("plain")[0], get(measure)
    best = max(scores)
    error = error_of(scorer, admissible[scores.index(best)], own)
    unmasked = scorer.value(scorer.unmasked, own)
    margin = tie_margin(own, unmasked, best, error, scorer.label_rows)
    ties = [
        configuration_masking(choice, scorer)
        for choice, score in zip(admissible, scores, strict=True)
        if score >= best - margin - 1e-9
    ]
    named = {}
    for top in (1, 3, 12):
        advice = Study(table, policy).search(top=top, prefer=prefer, measure=measure)
        first, others = advice.ranking[0], advice.ranking[1:]
        named[top] = first.masks
        assert [r.name for r in advice.ranking] == [f"best-{i + 1}" for i in range(top)]
        assert [r.score for r in others] == sorted((r.score for r in others), reverse=True)
        assert advice.search.best == pytest.approx(best)
        if prefer is Prefer.SCORE:
            assert first.score == pytest.approx(best)
            assert advice.preferred is None
        else:
            wanted = min(ties) if prefer is Prefer.LEAST_MASKING else max(ties)
            assert first.masking == pytest.approx(wanted)
            assert first.score >= best - margin - 1e-9
        assert (advice.preferred is None) == (first.score == pytest.approx(best, abs=1e-12))
    assert named[1] == named[3] == named[12]


def noise_table(rows: int, seed: int) -> pa.Table:
    """Return a table whose label has nothing to do with its attributes."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "age": random.integers(20, 24, rows),
            "zip": random.integers(0, 3, rows),
            "pay": random.integers(0, 2, rows),
            "y": random.choice(["no", "yes"], rows),
        }
    )


def noise_policy(**more: Any) -> Any:
    return load_policy(
        {
            "version": 1,
            "label": "y",
            "measure": "adjusted-pillai",
            "privacy": {"k": 2, "suppression": 0.3},
            "attributes": {
                "age": {
                    "role": "quasi-identifier",
                    "masks": ["identity", {"bucketize": {"width": 2}}, "suppress"],
                },
                "zip": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
                "pay": {"role": "feature", "masks": ["identity", "suppress"]},
            },
        }
        | more
    )


def test_where_scores_say_nothing_the_data_stays() -> None:
    advice = Study(noise_table(300, 1), noise_policy()).search()
    assert advice.best.masks == {"age": "identity", "zip": "identity", "pay": "identity"}
    assert advice.best.masking == 0
    strict = Study(noise_table(300, 1), noise_policy()).search(prefer="most-private")
    assert strict.best.masking > 0.9


def test_a_score_of_nothing_proves_nothing() -> None:
    small = noise_table(12, 3)
    advice = Study(small, noise_policy()).search()
    assert advice.unmasked <= 0
    assert not advice.search.tells_masks_apart
    assert not advice.optimal
    assert any("to compare masks" in note for note in advice.search.notes)
    console = Console(file=io.StringIO(), width=200)
    for section in search_sections(advice):
        console.print(section)
    screen = console.file.getvalue()
    proof = Finding.of(advice, advice.best).proof
    assert "Scores cannot distinguish masks on this table." in proof
    assert "may exist" not in proof
    assert "cannot distinguish masks on this table" in screen
    assert "nothing is proven" not in screen


def test_values_that_all_differ_hide_nothing() -> None:
    """Columns of measurements use up what the searched measure takes for chance."""
    random = np.random.default_rng(4)
    group = random.integers(0, 4, 200)
    label = np.where(random.random(200) < 0.1 + 0.27 * group, "yes", "no")
    measured = {f"m{i}": pa.array(random.normal(size=200)) for i in range(6)}
    table = pa.table({"group": pa.array(group), "y": pa.array(label.tolist()), **measured})
    policy = {
        "version": 1,
        "label": "y",
        "privacy": {"k": 5},
        "attributes": {
            "group": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
            **{name: {"role": "feature"} for name in measured},
        },
    }
    advice = Study(table, policy).search()
    assert advice.measure == "held-out-auc"
    assert advice.search.tells_masks_apart
    assert advice.best.masks["group"] == "identity"
    named = Study(table, policy).search(measure="adjusted-pillai")
    assert named.measure == "adjusted-pillai"
    assert not named.search.tells_masks_apart


def test_a_loss_has_no_ties() -> None:
    table, _ = prepared("plain")
    advice = Study(table, policy_of({"k": 3})).search(objective="nu-entropy")
    assert advice.preferred is None
    assert advice.best.masking is None


def test_an_unknown_preference() -> None:
    with pytest.raises(PolicyError, match="least-masking"):
        Study(prepared("plain")[0], policy_of({"k": 3})).search(prefer="least")


@pytest.mark.parametrize("prefer", list(Prefer))
def test_a_ranking_puts_the_preferred_one_of_the_ties_first(prefer: Prefer) -> None:
    study = Study(prepared("plain")[0], policy_of({"k": 3, "suppression": 0.05}))
    plain = study.rank(generate_count=30)
    advice = study.rank(generate_count=30, prefer=prefer)
    rest = [r.name for r in plain.ranking if r.name != advice.ranking[0].name]
    assert [r.name for r in advice.ranking[1:]] == rest
    if prefer is Prefer.SCORE:
        assert advice.ranking[0].name == plain.ranking[0].name
        assert all(r.masking is None for r in advice.ranking)
        return
    masked = [r.masking for r in advice.ranking if r.masking is not None]
    assert masked[0] == (min if prefer is Prefer.LEAST_MASKING else max)(masked)
    moved = advice.ranking[0].name != plain.ranking[0].name
    assert (advice.preferred is not None) == moved


def test_a_ranking_of_all_combinations_is_not_proven_best_where_a_tie_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for margin in ("AUC_MARGIN", "UTILITY_MARGIN"):
        monkeypatch.setattr(f"aegis.advisor.confidence.{margin}", 1.0)
    study = Study(prepared("plain")[0], policy_of({"k": 3, "suppression": 0.05}))
    count = study.rank(generate_count=1).combinations
    by_score = study.rank(generate_count=count, prefer="score")
    assert len(by_score.ranking) == count
    assert by_score.optimal
    advice = study.rank(generate_count=count, prefer="most-private")
    assert advice.ranking[0].name != by_score.ranking[0].name
    assert not advice.optimal


def test_a_ranking_masks_as_much_as_its_rows_say() -> None:
    table, _ = prepared("plain")
    advice = Study(table, policy_of({"k": 3, "suppression": 0.05})).rank(
        generate_count=30, prefer="least-masking"
    )
    told = [r for r in advice.ranking if r.masking is not None]
    summary = summarize(table, policy_of({"k": 3, "suppression": 0.05}))
    scorer = Scorer(summary)
    for ranked in told:
        shares = []
        for name, candidate in scorer.choose(ranked.configuration).items():
            attribute = next(a for a in summary.all_attributes if a.name == name)
            values = table[name].to_pylist()
            place = {v: i for i, v in enumerate(attribute.values.to_pylist())}
            shares.append(brute_masking(values, [int(candidate.groups[place[v]]) for v in values]))
        assert ranked.masking == pytest.approx(sum(shares) / len(shares))


@pytest.mark.wings
@pytest.mark.parametrize(
    ("k", "measure", "better"), [(3, "cmim", False), (5, "adjusted-pillai", True)]
)
def test_record_level_releases_come_first_only_if_they_beat_the_best_score(
    k: int, measure: str, better: bool
) -> None:
    """All were sorted by score, so the best score came first, and the reason spoke of another one."""
    study = Study(prepared("plain")[0], policy_of({"k": k, "suppression": 0.05}))
    advice = study.search(top=12, measure=measure)
    listed = study.search(top=12, measure=measure, methods=["mondrian"])
    (release,) = (entry for entry in listed.ranking if entry.method is not None)
    assert advice.preferred is not None
    assert (release.score > advice.preferred.best) == better  # type: ignore[union-attr]
    assert listed.ranking[0].mask_texts == (release if better else advice.ranking[0]).mask_texts
    assert listed.preferred == (None if better else advice.preferred)


def test_where_nothing_predicts_the_least_masking_needs_no_score(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(5)
    table = noise_table(120, 5).set_column(3, "y", pa.array(random.normal(size=120)))
    policy = noise_policy(label={"column": "y", "kind": "number"}, measure="held-out-r2")
    summary = summarize(table, policy)
    plan, scorer = PrivacyPlan(summary, policy.privacy), Scorer(summary)
    admissible = [c for c in all_choices(summary) if plan.check(c).admissible]
    assert max(scorer.value(c, get("held-out-r2")) for c in admissible) == pytest.approx(
        0, abs=0.005
    )

    def refused(*_: object) -> None:
        raise AssertionError("the score of no configuration matters")

    monkeypatch.setattr("aegis.advisor.search.front.AboveScore", refused)
    first = Study(table, policy).search().ranking[0]
    assert first.masking == pytest.approx(min(configuration_masking(c, scorer) for c in admissible))
