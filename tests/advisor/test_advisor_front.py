"""Why not less, and the front: each figure against an independent search."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from advisor_support import policy_of, random_rows, table_of
from aegis import Study, search
from aegis.advisor import PrivacyPlan
from aegis.advisor.confidence import hidden_share
from aegis.advisor.figures import FrontPoint
from aegis.advisor.search import Searcher
from aegis.advisor.search.front import (
    FrontRange,
    _knee,
    check_span,
    front_of,
    relaxations,
    trace_front,
)
from aegis.advisor.search.neighbours import NEXT
from aegis.advisor.search.problem import Clock, make_problem
from aegis.errors import DataError, PolicyError
from aegis.masks import refines
from aegis.policy import Policy
from aegis.privacy import PrivacyRule
from aegis.privacy.rule import rule_at
from aegis.summary import Summary, summarize

DIVERSE = {"attribute": "ill", "kind": "distinct", "l": 2}
CLOSE = {"attribute": "ill", "distance": "equal", "t": 0.5}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return table_of(random_rows(21))


@pytest.fixture(scope="module")
def summary(table: pa.Table) -> Summary:
    return summarize(table, policy_of())


def best(summary: Summary, policy: Policy, rule: PrivacyRule, objective: str | None) -> Any:
    asked = replace(policy, privacy=rule)
    return search(summary, asked, objective=objective, top=1, explain_best=False)


@pytest.mark.parametrize(
    ("objective", "rule", "span"),
    [
        ("adjusted-pillai", {"k": 3}, "k=2..8"),
        ("nu-entropy", {"k": 3}, "k=2..8"),
        ("adjusted-pillai", {"k": 3, "suppression": 0.1}, "k=2,3,9,30"),
        ("discernibility", {"k": 3, "suppression": 0.1}, "k=2,3,9,30"),
        ("g3", {"k": 3, "t_closeness": CLOSE, "suppression": 0.1}, "k=2,4,6"),
        ("mi", {"k": 4}, "suppression=0..0.3"),
        ("nu-entropy", {"k": 4}, "suppression=0..0.3"),
        ("adjusted-pillai", {"k": 3, "t_closeness": CLOSE}, "suppression=0,0.1,0.2"),
        ("discernibility", {"k": 3, "t_closeness": CLOSE}, "suppression=0,0.1,0.2"),
        ("g3", {"k": 2, "suppression": 0.1}, "risk=0.1,0.2,0.5"),
        ("adjusted-pillai", {"l_diversity": DIVERSE, "suppression": 0.05}, "l=1,2,3"),
        ("nu-entropy", {"l_diversity": DIVERSE, "suppression": 0.05}, "l=1,2,3"),
        ("mi", {"k": 2, "t_closeness": CLOSE, "suppression": 0.05}, "t=0.2..0.6"),
        ("discernibility", {"k": 2, "t_closeness": CLOSE, "suppression": 0.05}, "t=0.2..0.6"),
    ],
)
def test_every_point_is_an_independent_search(
    summary: Summary, objective: str, rule: dict[str, Any], span: str
) -> None:
    policy = policy_of(rule)
    front = search(summary, policy, objective=objective, front=span, explain_best=False).front
    parameter = span.partition("=")[0]
    assert front.parameter == parameter
    scores = []
    for point in front.points:
        alone = best(summary, policy, rule_at(policy.privacy, parameter, point.value), objective)
        assert point.proven
        scores.append(alone.search.best)
        if alone.search.best is None:
            assert (point.score, point.reached, point.configuration) == (None, None, None)
            continue
        assert point.reached == pytest.approx(alone.search.best, rel=1e-9)
        assert (point.objective is None) == (alone.best.objective is None)
        assert (point.utility_kept is None) == (alone.best.utility_kept is None)
        own = PrivacyPlan(summary, rule_at(policy.privacy, parameter, point.value))
        masks = point.configuration.masks
        verdict = own.check({a.name: a.candidate(masks[a.name]) for a in summary.all_attributes})
        assert verdict.admissible
        assert point.smallest_class == verdict.smallest_class
        assert point.suppressed_rows == verdict.suppressed_rows
    sign = -1 if objective in ("g3", "nu-entropy", "discernibility") else 1
    shares = [point.utility_kept for point in front.points]
    if all(point.objective is None for point in front.points):  # what the releases keep is compared
        scores = [
            s if share is None else sign * share for s, share in zip(scores, shares, strict=True)
        ]
    for i, point in enumerate(front.points):
        later = [sign * s for s in scores[i + 1 :] if s is not None]
        wanted = scores[i] is not None and any(s >= sign * scores[i] - 1e-9 for s in later)
        assert point.dominated == wanted
    strict = [p.value for p in front.points]
    assert strict == sorted(strict, reverse=parameter in ("risk", "suppression", "t"))
    json.dumps(front.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("objective", "rule", "span"),
    [
        ("adjusted-pillai", {"k": 20}, "k=2..12"),
        ("discernibility", {"k": 20}, "k=2..12"),
        ("g3", {"k": 5, "suppression": 0.1}, "k=2,3,5,9,14"),
        ("cmim", {"k": 4}, "suppression=0..0.3"),
        ("adjusted-pillai", {"k": 4}, "suppression=0..0.3"),
        ("discernibility", {"l_diversity": DIVERSE, "suppression": 0.05}, "l=1,2,3"),
        ("g3", {"l_diversity": DIVERSE, "suppression": 0.05}, "l=1,2,3"),
    ],
)
def test_without_time_no_point_is_worse_than_a_stricter_one(
    summary: Summary, objective: str, rule: dict[str, Any], span: str
) -> None:
    policy = policy_of(rule)
    front = search(
        summary, policy, objective=objective, front=span, explain_best=False, time_limit=0
    ).front
    sign = {"adjusted-pillai": 1, "cmim": 1}.get(objective, -1)
    strictest_first = [sign * p.reached for p in front.points if p.reached is not None][::-1]
    assert len(strictest_first) > 1
    if objective != "discernibility":  # which charges what each rule suppresses
        assert strictest_first == sorted(strictest_first)
    for one in front.points:
        if one.reached is None:
            continue
        alone = best(
            summary, policy, rule_at(policy.privacy, front.parameter, one.value), objective
        )
        assert sign * one.reached <= sign * alone.search.best + 1e-9
        if one.proven:
            assert one.reached == pytest.approx(alone.search.best, rel=1e-9)


def test_a_point_starts_from_what_the_search_found(summary: Summary) -> None:
    # The search has time; the front none: what meets k = 6 meets every smaller k.
    policy = policy_of({"k": 6})
    searcher = Searcher(summary, Study(summary, policy).plan, "adjusted-pillai", "adjusted-pillai")
    found, figures = searcher.run(policy.privacy, top=1, time_limit=None)
    assert figures.optimal
    front = trace_front(
        searcher,
        FrontRange.parse("k=2..6"),
        Clock(0),
        [box for _, box in found.best],
        found.bound,
    )
    assert front.points[-1].proven
    assert front.points[-1].score == pytest.approx(figures.best)
    assert all(p.score >= figures.best - 1e-9 for p in front.points)


def test_an_interrupted_search_takes_no_time_for_the_front(
    summary: Summary, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float | None] = []
    run = Searcher.run

    def interrupted(self: Searcher, *args: Any, **options: Any) -> Any:
        given.append(options["time_limit"].left())
        found, figures = run(self, *args, **options)
        found.interrupted = True
        found.bound = math.inf
        return found, figures

    monkeypatch.setattr(Searcher, "run", interrupted)
    search(summary, policy_of({"k": 4}), front="k=2..4")
    assert given[0] is None
    assert given[1:] == [0.0] * (len(given) - 1)
    assert len(given) > 1


def test_a_front_that_no_table_of_the_size_can_meet(summary: Summary) -> None:
    with pytest.raises(PolicyError, match=r"requires 61 rows.*60 rows") as caught:
        search(summary, policy_of({"k": 3}), front="k=61..70")
    assert "values of k that the table can meet" in caught.value.hint
    with pytest.raises(PolicyError, match="suppression requires") as caught:
        check_span(FrontRange.parse("suppression=0,0.1"), PrivacyRule.parse({"k": 99}), 60, {})
    assert "smaller k" in caught.value.hint
    with pytest.raises(
        PolicyError, match=r"l requires 4 values of 'ill' in .*, but .* has 3"
    ) as caught:
        search(summary, policy_of({"l_diversity": DIVERSE}), front="l=4,5")
    assert "values of l that" in caught.value.hint
    # What the range does not set is mended elsewhere.
    rule = PrivacyRule.parse({"alpha_k": {"attribute": "s", "alpha": 0.3}})
    with pytest.raises(PolicyError, match="k requires 4 values of 's'") as caught:
        check_span(FrontRange.parse("k=2,3"), rule, 60, {"s": 3})
    assert "alpha of at least 0.334" in caught.value.hint
    # Part of a range may lie beyond the table: those points say so.
    front = search(summary, policy_of({"k": 3}), front="k=3,61", explain_best=False).front
    assert [p.score is None for p in front.points] == [False, True]
    assert all(p.proven for p in front.points)
    rules = policy_of({"l_diversity": DIVERSE, "suppression": 0.4})
    for objective in ("adjusted-pillai", "class-entropy"):
        front = search(summary, rules, front="l=2,9", objective=objective, explain_best=False).front
        assert [p.score is None for p in front.points] == [False, True]


def point(value: float, score: float | None) -> FrontPoint:
    return FrontPoint(value, score, None, None, {}, 0, 0, True)


def test_dominated_points() -> None:
    given = [
        point(2, 0.9),
        point(3, 0.7),
        point(4, 0.7),
        point(5, None),
        point(6, 0.8),
        point(9, 0.1),
    ]
    marked = [p.dominated for p in front_of(FrontRange("k", ()), given, 1).points]
    assert marked == [False, True, True, False, False, False]
    losses = [
        p.dominated
        for p in front_of(
            FrontRange("k", ()), [point(2, 5.0), point(3, 5.0), point(4, 9.0)], -1
        ).points
    ]
    assert losses == [True, False, False]


@pytest.mark.parametrize("sign", [1, -1])
def test_knee(sign: int) -> None:
    # Utility stays high until k = 8 and then collapses: the distance to the chord is largest there.
    scores = {2: 1.0, 4: 0.98, 8: 0.95, 16: 0.3, 32: 0.0}
    points = [point(k, s if sign > 0 else 1 - s) for k, s in scores.items()]
    chord = {k: math.log2(k / 2) / 4 - (1 - s) for k, s in scores.items()}
    assert _knee("k", points) == max(chord, key=lambda k: chord[k]) == 8
    assert _knee("k", points[:2]) is None
    beaten = replace(point(9, points[2].reached), dominated=True)
    far_off = replace(point(24, points[0].reached), dominated=True)
    assert _knee("k", [*points[:3], beaten, points[3], far_off, points[4], point(40, None)]) == 8
    assert _knee("k", [points[0], far_off, points[4]]) is None
    straight = [point(k, sign * (5 - math.log2(k))) for k in (2, 4, 8, 16)]
    assert _knee("k", straight) is None
    shares = [point(s, sign * u) for s, u in ((0.3, 1.0), (0.2, 0.99), (0.1, 0.5), (0.0, 0.0))]
    assert _knee("suppression", shares) == 0.2


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("k=2..5", (2, 3, 4, 5)),
        ("k=2,10,5", (2, 5, 10)),
        ("suppression=0,0.1", (0.1, 0)),
        ("risk=0.05, 0.2", (0.2, 0.05)),
        ("l=1.5,1", (1, 1.5)),
        ("suppression=0.1..0.1", (0.1,)),
    ],
)
def test_ranges(text: str, values: tuple[float, ...]) -> None:
    assert FrontRange.parse(text).values == values


def test_wide_ranges_are_rounded() -> None:
    values = FrontRange.parse("k=2..1000").values
    assert values == (2, 3, 5, 10, 20, 40, 70, 150, 300, 500, 1000)


@pytest.mark.parametrize(
    "text",
    [
        "k=",
        "k=a",
        "k=5..2",
        "k=0",
        "k=2.5",
        "risk=0",
        "suppression=1",
        "k=2..inf",
        "q=3",
        "k=2..1e300",
        "k=2.2..2.8",
    ],
)
def test_bad_ranges(text: str) -> None:
    with pytest.raises(PolicyError, match=r"front|Front"):
        FrontRange.parse(text)


def test_a_front_without_a_parameter() -> None:
    with pytest.raises(PolicyError, match="does not name a parameter") as caught:
        FrontRange.parse("2..50")
    known = caught.value.hint.partition("Possible parameters: ")[2].rstrip(".").split(", ")
    assert {"k", "l", "t", "risk", "suppression"} <= set(known)
    assert "base" not in known, "a number of which no model says which way asks for more"


def test_a_front_over_l_needs_diversity(summary: Summary) -> None:
    with pytest.raises(PolicyError, match="needs a rule with one of: l_diversity"):
        search(summary, policy_of({"k": 3}), front="l=2,3")


@pytest.mark.parametrize(
    ("objective", "rule"),
    [
        ("adjusted-pillai", {"k": 4}),
        ("loss", {"k": 4}),
        ("discernibility", {"k": 4, "suppression": 0.1}),
        ("adjusted-pillai", {"k": 4, "suppression": 0.1}),
        ("g3", {"k": 3, "l_diversity": DIVERSE, "suppression": 0.05}),
        ("loss", {"k": 3, "l_diversity": DIVERSE, "suppression": 0.05}),
        ("adjusted-pillai", {"t_closeness": CLOSE}),
        ("discernibility", {"t_closeness": CLOSE}),
    ],
)
def test_binding(summary: Summary, objective: str, rule: dict[str, Any]) -> None:
    policy = policy_of(rule)
    advice = search(summary, policy, objective=objective, top=1, explain_best=True)
    sign = 1 if objective == "adjusted-pillai" else -1
    plan = PrivacyPlan(summary, policy.privacy)
    masks = advice.best.configuration.masks
    choice = {a.name: a.candidate(masks[a.name]) for a in summary.all_attributes}
    named = {(f.attribute, f.mask): f for f in advice.binding.finer}
    for attribute in summary.all_attributes:
        current = choice[attribute.name]
        finer = [
            c
            for c in attribute.candidates
            if c is not current and refines(c.groups, current.groups)
        ]
        covers = [
            c for c in finer if not any(o is not c and refines(c.groups, o.groups) for o in finer)
        ]
        variable = next(v for v in make_problem(summary).variables if v.name == attribute.name)
        hidden = {c: hidden_share(attribute, c) for c in variable.candidates if c.noise is None}
        apart = [
            c
            for c in hidden
            if hidden[c] < hidden[current]
            and not refines(c.groups, current.groups)
            and not refines(current.groups, c.groups)
        ]
        covers += sorted(apart, key=lambda c: -hidden[c])[:NEXT]
        wanted = {str(c.declared) for c in covers}
        assert {mask for name, mask in named if name == attribute.name} == wanted
        for candidate in covers:
            found = named[attribute.name, str(candidate.declared)]
            verdict = plan.check({**choice, attribute.name: candidate})
            assert found.violations == verdict.violations
            assert found.rows_failing == verdict.suppressed_rows
            assert found.allowed_rows == verdict.allowed_rows
            assert found.smallest_class == verdict.smallest_before
            # What is admissible and finer cannot be better, or the search would have found it.
            assert not verdict.admissible or found.gain <= 1e-9
    expected = {}
    for change, weaker in relaxations(policy.privacy):
        alone = best(summary, policy, weaker, objective)
        expected[change] = alone.search.best
    assert {r.change: r.score for r in advice.binding.relaxations} == pytest.approx(expected)
    for relaxed in advice.binding.relaxations:
        assert relaxed.proven
        assert relaxed.gain == pytest.approx(sign * (relaxed.score - advice.search.best), abs=1e-9)
        assert (
            bool(relaxed.masks)
            or relaxed.gain == pytest.approx(0, abs=1e-9)
            or objective == "discernibility"
        )
    json.dumps(advice.to_dict(), allow_nan=False)


def test_relaxations() -> None:
    rule = PrivacyRule.parse({"k": 5, "suppression": 0.02})
    found = dict(relaxations(rule))
    assert set(found) == {
        "k = 4 instead of 5",
        "3 % of the rows suppressed instead of 2 %",
    }
    assert found["k = 4 instead of 5"] == PrivacyRule.parse({"k": 4, "suppression": 0.02})
    diverse = {"k": 5, "l_diversity": {"attribute": "ill", "l": 2}}
    assert "without distinct l-diversity of ill (l = 2)" in dict(
        relaxations(PrivacyRule.parse(diverse))
    )
    assert relaxations(PrivacyRule()) == []
    assert [c for c, _ in relaxations(PrivacyRule.parse({"k": 2, "suppression": 0.995}))] == []


def test_an_advice_without_a_front_says_how_to_get_one(summary: Summary) -> None:
    advice = search(summary, policy_of({"k": 3}), front="k=2,3", explain_best=False)
    assert advice.require_front() is advice.front
    with pytest.raises(DataError, match="no front") as caught:
        search(summary, policy_of({"k": 3}), explain_best=False).require_front()
    assert "front='k=2..10'" in caught.value.hint
