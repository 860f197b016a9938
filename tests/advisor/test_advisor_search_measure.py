"""What a search goes by, and what it shows beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from advisor_support import policy_of, random_rows, table_of
from aegis import search
from aegis.advisor import Scorer
from aegis.errors import PolicyError
from aegis.measures import DEFAULT_MEASURE, MEASURES
from aegis.summary import Summary, summarize


@pytest.fixture(scope="module")
def summary() -> Summary:
    return summarize(table_of(random_rows(8)), policy_of())


@pytest.mark.parametrize(
    ("policy_s", "asked", "objective", "measure"),
    [
        (None, {}, DEFAULT_MEASURE, DEFAULT_MEASURE),
        ("mi", {}, "mi", "mi"),
        ("mi", {"measure": "g3"}, "g3", "g3"),
        (
            "mi",
            {"objective": "held-out-pillai-values"},
            "held-out-pillai-values",
            "held-out-pillai-values",
        ),
        (
            None,
            {"objective": "held-out-pillai-values"},
            "held-out-pillai-values",
            "held-out-pillai-values",
        ),
        ("mi", {"objective": "loss"}, "loss", "mi"),
        (None, {"objective": "loss"}, "loss", DEFAULT_MEASURE),
        ("mi", {"objective": "loss", "measure": "g3"}, "loss", "g3"),
        ("mi", {"objective": "adjusted-pillai", "measure": "g3"}, "adjusted-pillai", "g3"),
    ],
)
def test_the_measure_shown(
    summary: Summary, policy_s: str | None, asked: dict[str, Any], objective: str, measure: str
) -> None:
    policy = replace(policy_of({"k": 3}), measure=policy_s)
    advice = search(summary, policy, top=3, explain_best=False, front="k=2,3", **asked)
    assert (advice.search.objective, advice.measure) == (objective, measure)
    scorer = Scorer(summary)
    shown, best = MEASURES.get(measure), advice.best
    choice = scorer.choose(best.configuration)
    assert best.score == pytest.approx(scorer.value(choice, shown))
    assert advice.unmasked == pytest.approx(scorer.value(scorer.unmasked, shown))
    points = advice.front.points
    if objective == measure:
        assert {one.objective for one in (*advice.ranking, *points)} == {None}
        return
    assert best.objective == pytest.approx(advice.search.best)
    assert points[-1].objective == pytest.approx(advice.search.best)
    assert points[-1].score == pytest.approx(best.score)
    assert points[-1].to_dict()["objective"] == points[-1].objective


def test_an_unknown_measure_of_a_search(summary: Summary) -> None:
    with pytest.raises(PolicyError, match="Unknown measure 'nu-entropy'"):
        search(summary, policy_of({"k": 3}), objective="loss", measure="nu-entropy")
