"""Standard errors, ties, the account of noise and trained models, as the report says them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aegis.privacy import PrivacyAccount, PrivacyLoss
from aegis.report import render_report
from aegis.report.context import build_context
from report_factory import advice, ranked


def context(given: Any) -> dict[str, Any]:
    return build_context(given, title="Title")


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
        "cannot be distinguished",
        "behind",
        "cannot be distinguished",
        "–",
    ]
    scores = [row["score"] for row in told["ranking"]["rows"]]
    assert scores[0] == "0.3600 ± 0.0040"
    assert "±" not in scores[-1]
    page = render_report(given)
    assert "Not significantly different: <bdi>c0</bdi>, <bdi>c2</bdi>" in page
    # The figure of the release is of the released rows: no other figure stands next to it unexplained.
    assert "In the ranking, which counts all rows, it scores" in page
    assert "Its score is" not in page
    assert "Against the best" in page


def test_a_clear_lead_is_said_and_many_ties_are_cut() -> None:
    assert "clearly ahead of the 2\u00a0runners-up" in render_report(
        compared(False, False)
    ).replace("2 runners-up", "2\u00a0runners-up")
    told = context(compared(*[True] * 9))["confidence"]
    assert (len(told["ties"]), told["more"]) == (6, 3)
    page = render_report(compared(*[True] * 9))
    assert "and 3 more" in page


def test_nothing_is_said_without_standard_errors() -> None:
    told = context(advice([ranked("c1"), ranked("c2", utility_kept=50)]))
    assert told["confidence"] is None
    assert not told["ranking"]["compared"]
    assert "Against the best" not in render_report(
        advice([ranked("c1"), ranked("c2", utility_kept=50)])
    )


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
    assert context(given)["noise"] is account
    page = render_report(given)
    assert "ε = <strong>6</strong> and δ = 1e-06" in page
    assert '<td class="number">0</td><td class="number">73</td>' in page
    assert '<td class="number">1e-06</td><td class="number">–</td>' in page
    assert 'id="noise"' in page
    assert "<summary>Noise</summary>" in page
    assert "does not cover which values occur" in page
    assert "without looking at the data: {x: []}" in page
    assert "&lt;b&gt;sex" in page
    assert "Not covered" in page
    whole = replace(ranked(), differential_privacy=PrivacyAccount(account.losses))
    assert "for all that the release shows" in render_report(advice([whole]))
    assert 'id="noise"' not in render_report(advice([ranked()]))
