"""Standard errors, ties, the account of noise and trained models, as the report says them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from report_factory import Gold, Judged, Trained, advice, ranked

from aegis.privacy import PrivacyAccount, PrivacyLoss
from aegis.report import render
from aegis.report.context import build_context
from aegis.report.palette import HEAT_STEPS


def context(given: Any, **parts: Any) -> dict[str, Any]:
    defaults = dict.fromkeys(("before", "after", "evaluation"))
    return build_context(given, **{**defaults, "title": "Title", **parts})


def compared(*ties: bool | None) -> Any:
    best = replace(ranked("best"), stderr=0.004)
    others = [
        replace(ranked(f"c{i}", utility_kept=80 - i), stderr=0.004, tied_with_best=tie)
        for i, tie in enumerate(ties)
    ]
    return advice([best, *others, ranked("rest", utility_kept=20)])


def test_ties_are_named_and_marked() -> None:
    given = compared(True, False, True)
    told = context(given)
    assert told["confidence"]["ties"] == ["c0", "c2"]
    assert [row["against"] for row in told["ranking"]["rows"]] == [
        "best",
        "cannot be told apart",
        "behind",
        "cannot be told apart",
        "–",
    ]
    scores = [row["score"] for row in told["ranking"]["rows"]]
    assert scores[0] == "0.3600 ± 0.0040"
    assert "±" not in scores[-1]
    page = render(given)
    assert "Cannot be told from it: <bdi>c0</bdi>, <bdi>c2</bdi>" in page
    assert "Against the best" in page


def test_a_clear_lead_is_said_and_many_ties_are_cut() -> None:
    assert "clearly ahead of the 2\u00a0runners-up" in render(compared(False, False)).replace(
        "2 runners-up", "2\u00a0runners-up"
    )
    told = context(compared(*[True] * 9))["confidence"]
    assert (len(told["ties"]), told["more"]) == (6, 3)
    page = render(compared(*[True] * 9))
    assert "and 3 more" in page


def test_nothing_is_said_without_standard_errors() -> None:
    told = context(advice([ranked("c1"), ranked("c2", utility_kept=50)]))
    assert told["confidence"] is None
    assert not told["ranking"]["compared"]
    assert "Against the best" not in render(advice([ranked("c1"), ranked("c2", utility_kept=50)]))


def test_the_account_of_noise_stands_in_a_section_of_its_own() -> None:
    account = PrivacyAccount(
        (
            PrivacyLoss("age", 4.0, 0.0, "geometric", 73.0),
            PrivacyLoss(
                "<b>sex", 2.0, 1e-6, "randomised_response", learnt="values", instead="{x: []}"
            ),
        ),
        exact=("income",),
    )
    given = advice([replace(ranked(), differential_privacy=account)])
    told = context(given)["noise"]
    assert (told["epsilon"], told["delta"], told["covers"]) == ("6", "1e-06", False)
    assert [one["sensitivity"] for one in told["lines"]] == ["73", "–"]
    page = render(given)
    assert 'id="noise"' in page
    assert 'href="#noise"' in page
    assert "does not cover which values occur" in page
    assert "without looking at the data: {x: []}" in page
    assert "&lt;b&gt;sex" in page
    assert "Not covered" in page
    whole = replace(ranked(), differential_privacy=PrivacyAccount(account.losses))
    assert "for all that the release shows" in render(advice([whole]))
    assert 'id="noise"' not in render(advice([ranked()]))


def test_models_are_drawn_against_the_score() -> None:
    gold = Gold(
        tuple(
            Trained(model, metric, name, value, 0.9, None)
            for model in ("lr", "rf")
            for metric in ("accuracy", "f1")
            for name, value in (("c1", 0.8), ("c2", 0.7), ("unknown", 0.1), ("gone", 0.2))
        ),
        (
            Judged("adjusted-pillai", "lr", 0.95, None, 0.1),
            Judged("mi", "lr", -0.4, 0.1, 0.2),
            Judged("mi", "rf", None, None, 0.2),
        ),
    )
    given = advice([ranked("c1"), ranked("c2", utility_kept=50, admissible=False)])
    told = context(given, evaluation=gold)["evaluation"]
    assert [panel["title"] for panel in told["panels"]] == ["lr", "rf"]
    assert [
        (p["utility"], p["reached"], p["admissible"], p["recommended"])
        for p in told["panels"][0]["points"]
    ] == [(90.0, 0.8, True, True), (50, 0.7, False, False)]
    assert told["ranks"]["measures"] == ["adjusted-pillai", "mi"]
    assert [(c["row"], c["column"], c["text"], c["step"]) for c in told["ranks"]["cells"]] == [
        (0, 0, "0.95", HEAT_STEPS - 1),
        (1, 0, "-0.40", 0),
        (1, 1, "–", HEAT_STEPS),
    ]
    page = render(given, evaluation=gold)
    assert "takes at least" not in page
    for name in ("trained-wide-title", "trained-narrow-title", "agreement-wide-title"):
        assert f'id="{name}"' in page


def test_few_configurations_have_no_rank_correlation() -> None:
    gold = Gold(
        tuple(Trained("lr", "accuracy", f"c{i}", 0.8, 0.9, None) for i in range(3)),
        (Judged("adjusted-pillai", "lr", 1.0, 1.0, 0.0),),
    )
    given = advice([ranked("c0"), ranked("c1"), ranked("c2")])
    told = context(given, evaluation=gold)["evaluation"]
    assert told["ranks"]["cells"] == []
    assert (told["agreement"][0]["spearman"], told["agreement"][0]["loss"]) == ("–", "0.0000")
    page = render(given, evaluation=gold)
    assert "A rank correlation takes at least 4 configurations" in page
    assert "agreement-wide-title" not in page


def test_every_axis_of_utility_is_the_same() -> None:
    # One release without a figure of utility kept does not turn the panels into scores.
    given = advice([ranked("c1"), ranked("c2", utility_kept=None), ranked("c3", utility_kept=80.0)])
    names = ("c1", "c2", "c3")
    gold = Gold(tuple(Trained("lr", "accuracy", n, 0.8, 0.9, None) for n in names), ())
    full = context(given, evaluation=gold)
    assert full["ranking"]["relative"]
    assert [p["utility"] for p in full["evaluation"]["panels"][0]["points"]] == [90.0, 80.0]
    # Releases of one utility stand above each other, which is no picture of anything.
    same = context(advice([ranked("c1"), ranked("c2")]), evaluation=gold)
    assert not same["evaluation"]["panels"]
    none = advice([replace(ranked(n, utility_kept=None), score=0.1 * int(n[1])) for n in names])
    full = context(none, evaluation=gold)
    assert not full["ranking"]["relative"]
    scores = [one.score for one in none.ranking]
    assert [p["utility"] for p in full["evaluation"]["panels"][0]["points"]] == scores
