"""A search by something else than the measure: both stand in the report under their names."""

from __future__ import annotations

import re
from dataclasses import replace

from aegis.advisor.figures import SearchFigures, SearchWork
from aegis.report import render
from report_factory import FRONT, advice, ranked

SEARCH = SearchFigures(
    objective="nu-entropy",
    optimal=True,
    exact=True,
    best=1234.5,
    bound=1234.5,
    gap=0.0,
    work=SearchWork(combinations=48, nodes=3, checked=9, seconds=0.1, rule_monotone=True),
)


def test_objective_and_measure_have_columns_of_their_own() -> None:
    front = replace(FRONT, points=tuple(replace(p, objective=10.0 + p.value) for p in FRONT.points))
    given = replace(
        advice([replace(ranked("c1"), objective=1234.5)], optimal=True), search=SEARCH, front=front
    )
    page = render(given)
    headings = re.findall(r"<th [^>]*>([^<]*)</th>", page)
    assert headings.count("nu-entropy") == 2
    assert '<td class="number">1,234</td>' in page or '<td class="number">1,235</td>' in page
    assert '<td class="number">15.00</td>' in page
    assert "by nu-entropy, the objective of the search, as far as they were found in time" in page


def test_a_recommendation_that_scores_less_says_why_with_and_without_a_proof() -> None:
    why = "scores within 0.002 of the highest, 0.9, count as equal"
    for proven in (True, False):
        search = replace(SEARCH, objective="adjusted-pillai", optimal=proven, preferred=why)
        page = render(replace(advice(optimal=proven), search=search))
        assert "score higher by less than Aegis can measure; of these, it took" in page
        assert f"{why[:1].upper()}{why[1:]}." in page
        assert "does better" not in page


def test_the_measure_alone() -> None:
    given = replace(advice(), front=FRONT, search=replace(SEARCH, objective="adjusted-pillai"))
    page = render(given)
    assert "nu-entropy" not in page
    assert "no other keeps as much" not in page  # one of the points is not proven
    proven = replace(FRONT, points=tuple(replace(p, proven=True) for p in FRONT.points))
    assert "no other keeps as much" in render(replace(given, front=proven))
