"""A search by something else than the measure: both stand in the report under their names."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from aegis.advisor.figures import FirstByMasking, SearchFigures, SearchWork
from aegis.advisor.utility import Rows, UtilityFigure
from aegis.masks import Round
from aegis.policy import Configuration
from aegis.present import Finding
from aegis.present.finding import why_above_release
from aegis.report import render_report
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
    page = render_report(given)
    headings = re.findall(r"<th [^>]*>([^<]*)</th>", page)
    assert headings.count("nu-entropy") == 2
    assert '<td class="number">1,234</td>' in page or '<td class="number">1,235</td>' in page
    assert '<td class="number">15.00</td>' in page
    assert "by nu-entropy, the objective of the search, as far as they were found in time" in page


def test_a_recommendation_that_scores_less_says_why_with_and_without_a_proof() -> None:
    why = FirstByMasking("least-masking", 0.9, 0.002, 0.1, 0.2)
    for proven in (True, False):
        search = replace(SEARCH, objective="adjusted-pillai", optimal=proven)
        page = render_report(replace(advice(optimal=proven), search=search, preferred=why))
        assert "Of those found that are as good, it is the one that masks least." in page
        assert ("scores measurably better." in page) == proven
        assert "Scores within 0.002 of the highest, 0.9000, count as equal. Of these we" in page
        assert "does better: proven" not in page


def test_a_ranking_that_recommends_a_lower_score_does_not_call_it_the_best() -> None:
    by_masking = FirstByMasking("least-masking", 0.9, 0.002, 0.1, 0.2)
    given = advice([ranked("c1"), ranked("c2")])
    plain, equal = (
        Finding.of(replace(given, preferred=why), given.ranking[0]).proof
        for why in (None, by_masking)
    )
    assert plain.startswith("It is the best of 2 that meet the rule, among 2 configurations")
    assert equal.startswith("It is about as good as the best of 2 that meet the rule, among 2")
    assert equal.endswith("Of those found that are as good, it is the one that masks least.")


@pytest.mark.parametrize(("suppressed", "rows"), [(10, "released"), (10, "all"), (0, "released")])
def test_a_proof_names_the_rows_on_which_scores_were_compared(suppressed: int, rows: str) -> None:
    utility = UtilityFigure("adjusted-pillai", 0.3, 0.4, rows=Rows(rows))
    best = replace(ranked(suppressed=suppressed), utility=utility)
    proof = Finding.of(advice([best], optimal=True), best).proof
    other = suppressed > 0 and rows == "released"
    assert ("does better on all rows, before any is suppressed: proven." in proof) is other
    assert ("does better: proven." in proof) is not other


def test_the_measure_alone() -> None:
    given = replace(advice(), front=FRONT, search=replace(SEARCH, objective="adjusted-pillai"))
    page = render_report(given)
    assert "nu-entropy" not in page
    assert "as far as they were found in time" in page  # one of the points is not proven
    proven = replace(FRONT, points=tuple(replace(p, proven=True) for p in FRONT.points))
    assert "as far as they were found in time" not in render_report(replace(given, front=proven))


def test_no_mask_costs_more_than_the_whole_release() -> None:
    """What one mask costs is measured on all rows; the release may keep more of its own rows."""
    masks = {"age": Round(digits=1), "sex": Round(digits=1)}
    alone = {"age": 0.03, "sex": 0.001}
    for kept, shown in ((100.0, [None, None]), (95.0, [None, 0.25]), (90.0, [7.5, 0.25])):
        utility = UtilityFigure("adjusted-pillai", 0.4, 0.4, utility_kept=kept)
        best = replace(ranked(), utility=utility, configuration=Configuration("c1", masks))
        given = replace(advice([best]), lost_alone=alone)
        losses = [lost for _, _, lost in Finding.of(given, best).changed]
        assert losses == [None if lost is None else pytest.approx(lost) for lost in shown]
        above = [name for name, lost in zip(masks, shown, strict=True) if lost is None]
        verb = "loses" if len(above) == 1 else "lose"
        why = f"{' and '.join(above)} alone {verb} more than the whole release: this loss counts"
        for text in (why_above_release(given, best), render_report(given)):
            assert (why in text) is bool(above)


@pytest.mark.parametrize("rows", [Rows.ALL, Rows.RELEASED])
def test_the_report_says_on_which_rows_utility_is_measured(rows: Rows) -> None:
    """Of a summary, the page said that the utility was measured on the released rows."""
    utility = UtilityFigure("adjusted-pillai", 0.3, 0.4, rows=rows)
    page = render_report(advice([replace(ranked(suppressed=10), utility=utility)]))
    assert ("Here Aegis measures it on all rows" in page) is (rows is Rows.ALL)
    assert ("Aegis measures it on the released rows" in page) is (rows is Rows.RELEASED)
