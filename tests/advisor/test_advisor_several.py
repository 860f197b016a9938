"""Several labels: each is scored as a table with that label alone, and a search is as enumeration."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aegis
from aegis.advisor.scores import utility_kept
from aegis.advisor.search import search
from aegis.advisor.search.objectives import SharesKept
from aegis.advisor.search.problem import Clock
from aegis.advisor.search.searcher import Searcher
from aegis.advisor.several import SeveralScorer, scorer_of
from aegis.measures import MEASURES
from aegis.measures.several import combined
from aegis.policy import Configuration, Policy, load_policy

FEATURES: dict[str, Any] = {
    "a": {
        "role": "quasi-identifier",
        "masks": ["identity", {"bucketize": {"width": 2}}, {"bucketize": {"width": 4}}, "suppress"],
    },
    "b": {"role": "quasi-identifier", "masks": ["identity", {"keep_frequent": {"count": 1}}]},
    "c": {"role": "feature", "masks": ["identity", "suppress"]},
}
MASKED = {
    "role": "quasi-identifier",
    "masks": ["identity", {"keep_frequent": {"count": 2}}, "suppress"],
}
LABELS: list[Any] = [
    {"column": "y", "weight": 2},
    {"column": "z", "measure": "mi"},
    {"column": "n", "kind": "number", "weight": 0.5},
]


def table(seed: int, rows: int = 240) -> pa.Table:
    draw = np.random.default_rng(seed)
    a, b, c = (draw.integers(0, size, rows) for size in (8, 3, 2))
    y = (a + draw.integers(0, 6, rows) > 6).astype(int) + (draw.random(rows) < 0.2)
    z = (b * 2 + c + draw.integers(0, 3, rows)) % 4
    n = np.round(a * 0.5 + b - c + draw.normal(0, 1, rows), 2)
    texts = {"b": "uvw", "c": "pq", "y": "rst", "z": "klmo"}
    named = {k: [texts[k][i] for i in v] for k, v in {"b": b, "c": c, "y": y, "z": z}.items()}
    named["y"][0] = None  # type: ignore[call-overload]
    return pa.table({"a": a, **named, "n": n})


def policy(serve: str = "mean", **keys: Any) -> Policy:
    given = {
        "version": 1,
        "labels": LABELS,
        "measure": "adjusted-pillai",
        "serve": serve,
        "privacy": {"k": 4, "suppression": 0.1},
        "attributes": {**FEATURES, "z": MASKED},
    }
    return load_policy({**given, **keys})


def every(of: Policy) -> list[Configuration]:
    """Return every combination of candidate masks."""
    names = [a.name for a in of.attributes.values()]
    masks = [a.masks for a in of.attributes.values()]
    return [
        Configuration(f"c{i}", dict(zip(names, chosen, strict=True)))
        for i, chosen in enumerate(product(*masks))
    ]


def alone(of: Policy, column: str) -> Policy:
    """Return the policy that a user would write for one label, over the same features."""
    label = next(task for task in of.tasks if task.label.column == column)
    kept = {n: a for n, a in of.attributes.items() if n == column or n not in of.label.columns}
    return replace(
        of, label=label.label, attributes=kept, measure=label.measure_by(of.measure).name
    )


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6), serve=st.sampled_from(["mean", "worst"]))
def test_the_combination_is_that_of_single_labels(seed: int, serve: str) -> None:
    rows, of = table(seed), policy(serve)
    study, listed = aegis.Study(rows, of), every(of)
    advice = study.rank(listed, prefer="score")
    kept: dict[str, dict[str, float | None]] = {}
    for column in of.label.columns:
        own = alone(of, column)
        fewer = [
            Configuration(c.name, {n: m for n, m in c.masks.items() if n in own.attributes})
            for c in listed
        ]
        single = aegis.Study(rows, own).rank(fewer, prefer="score")
        measure, unmasked = MEASURES.get(single.measure), single.unmasked
        kept[column] = {
            r.name: utility_kept(r.score, unmasked, measure, single.label_rows)
            for r in single.ranking
        }
    weights = [task.weight for task in of.tasks]
    for ranked in advice.ranking:
        mask = str(ranked.configuration.masks["z"])
        own_kept = [kept[column][ranked.name] for column in of.label.columns]
        if mask == "suppress":
            own_kept[1] = 0.0
        assert list(ranked.labels.values()) == pytest.approx(own_kept, abs=1e-10)
        shares = [None if k is None else k / 100 for k in own_kept]
        assert ranked.score == pytest.approx(combined(serve, shares, weights), abs=1e-12)


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6), serve=st.sampled_from(["mean", "worst"]))
def test_a_search_finds_what_enumeration_finds(seed: int, serve: str) -> None:
    of = policy(serve)
    study = aegis.Study(table(seed), of)
    ranking = study.rank(every(of), prefer="score").ranking
    best = max((r.score for r in ranking if r.admissible), default=None)
    found = study.search(prefer="score", top=1)
    assert found.search is not None
    if best is None:
        assert found.best is None
        return
    assert found.optimal
    assert found.ranking[0].score == pytest.approx(best, abs=1e-9)
    for label in found.labels:
        most = max(k for r in ranking if r.admissible and (k := r.labels[label.label]) is not None)
        assert label.proven
        assert label.alone == pytest.approx(most, abs=1e-7)
        assert label.price is not None
        assert label.price >= 0


@pytest.mark.parametrize("serve", ["mean", "worst"])
def test_a_box_is_bounded_by_what_it_keeps_of_each_label(serve: str) -> None:
    of = policy(serve)
    study = aegis.Study(table(3), of)
    name = of.measure_by().name
    searcher = Searcher(study.summary, study.plan, name, name)
    draw = np.random.default_rng(0)
    scorer = scorer_of(study.summary)
    for _ in range(40):
        box = tuple(int(draw.integers(1, v.full + 1)) for v in searcher.problem.variables)
        bound = searcher.objective.bound(box)
        inside = [[1 << i for i in range(d.bit_length()) if d >> i & 1] for d in box]
        for leaf in product(*inside):
            value = searcher.objective.bound(leaf)
            assert value <= bound + 1e-9
            choice = searcher.problem.choice(leaf)
            assert value == pytest.approx(scorer.value(choice, searcher.measure), abs=1e-9)


def by_default(serve: str, seed: int = 3) -> Searcher:
    """Return a searcher for labels with their default measures, whose bounds are loose."""
    labels = ["y", "z", {"column": "n", "kind": "number"}]
    of = policy(serve, measure=None, labels=labels, attributes=FEATURES)
    study = aegis.Study(table(seed), of)
    name = of.measure_by().name
    return Searcher(study.summary, study.plan, name, name)


@pytest.mark.parametrize("serve", ["mean", "worst"])
def test_a_box_is_excluded_exactly_where_its_bound_excludes_it(serve: str) -> None:
    draw = np.random.default_rng(1)
    searcher, other = by_default(serve), by_default(serve)
    outcomes = set()
    for _ in range(60):
        within = tuple(int(draw.integers(1, v.full + 1)) for v in searcher.problem.variables)
        box = tuple(own & int(draw.integers(1, own + 1)) or own for own in within)
        value = float(draw.uniform(0.3, 1.0))
        if draw.random() < 0.5:
            searcher.objective.upper(within)
        excluded = searcher.objective.excludes(box, value, within)
        assert excluded == (other.objective.upper(box) <= value)
        outcomes.add(excluded)
    assert outcomes == {True, False}


def test_a_box_that_quick_labels_exclude_needs_no_bound_of_the_others() -> None:
    objective = by_default("mean").objective
    assert isinstance(objective, SharesKept)
    root = tuple(v.full for v in by_default("mean").problem.variables)
    coarsest = (8, 2, 2)  # suppress, keep_frequent and suppress
    assert objective.excludes(coarsest, 0.9, root)
    y, z, n = objective.labels
    assert n.known_share(coarsest) != 1.0
    assert z.known_share(coarsest) == 1.0
    assert y.measure.name == "held-out-auc"


def test_a_configuration_is_bounded_before_it_is_scored() -> None:
    objective, again = by_default("mean").objective, by_default("mean").objective
    assert isinstance(objective, SharesKept)
    sooner = 0
    for leaf in product((1, 2, 4, 8), (1, 2), (1, 2)):
        bounds = [label.quick_share(leaf) for label in objective.labels]
        assert objective.upper(leaf) >= again.bound(leaf) - 1e-9
        exact = [label.share(leaf) for label in objective.labels]
        assert all(b is not None and e is not None for b, e in zip(bounds, exact, strict=True))
        sooner += bounds != exact
        assert objective.upper(leaf) == pytest.approx(objective.bound(leaf), abs=1e-12)
    assert sooner > 8


def test_a_list_shares_the_bounds_of_labels_with_the_same_measure() -> None:
    searcher = by_default("mean")
    objective = searcher.objective
    assert isinstance(objective, SharesKept)
    for trace in searcher._traces:
        assert isinstance(trace, SharesKept)
        assert trace.labels[2] is objective.labels[2]
        assert trace.labels[0] is not objective.labels[0]


def test_labels_by_default_are_searched_by_a_list() -> None:
    of = policy(measure=None, labels=["y", "z", {"column": "n", "kind": "number"}])
    study = aegis.Study(table(5), of)
    best = max(r.score for r in study.rank(every(of), prefer="score").ranking if r.admissible)
    found = study.search(prefer="score", top=1)
    assert found.ranking[0].score == pytest.approx(best, abs=1e-9)
    assert found.optimal


@pytest.mark.parametrize(("seed", "serve"), [(0, "mean"), (1, "worst")])
def test_labels_by_default_are_proven_where_there_is_time(
    seed: int, serve: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "aegis.advisor.search.searcher"
    monkeypatch.setattr(f"{module}.ENUMERATED", 0)
    monkeypatch.setattr(f"{module}.LISTED", 1)
    labels = ["y", "z", {"column": "n", "kind": "number"}]
    of = policy(serve, measure=None, labels=labels, attributes=FEATURES)
    study = aegis.Study(table(seed), of)
    best = max(r.score for r in study.rank(every(of), prefer="score").ranking if r.admissible)
    gap = study.search(prefer="score", top=1).search
    found = study.search(prefer="score", top=1, prove=True)
    assert gap is not None
    assert gap.bound is not None
    assert gap.bound >= best - 1e-9
    assert found.optimal
    assert found.ranking[0].score == pytest.approx(best, abs=1e-9)


SHARES = st.lists(st.floats(0, 1), min_size=2, max_size=5)


@given(shares=SHARES, data=st.data(), serve=st.sampled_from(["mean", "worst"]))
def test_more_of_a_label_is_never_less_of_all(shares: list[float], data: Any, serve: str) -> None:
    weights = data.draw(st.lists(st.floats(0.01, 100), min_size=len(shares), max_size=len(shares)))
    place = data.draw(st.integers(0, len(shares) - 1))
    more = [*shares]
    more[place] = data.draw(st.floats(shares[place], 1))
    assert combined(serve, more, weights) >= combined(serve, shares, weights) - 1e-12


def test_one_of_several_labels_is_today_s_label() -> None:
    rows, keys = table(1), {"privacy": {"k": 4, "suppression": 0.1}, "attributes": FEATURES}
    of_list = load_policy({"version": 1, "labels": [{"column": "y", "weight": 3}], **keys})
    of_one = load_policy({"version": 1, "label": "y", **keys})
    told = []
    for of in (of_list, of_one):
        data = aegis.Study(rows, of).search().to_dict()
        del data["timings"], data["search"]["seconds"]
        told.append(data)
    assert told[0] == told[1]


def test_a_label_that_is_masked_to_one_class_keeps_nothing() -> None:
    of = policy(labels=["y", {"column": "z", "measure": "held-out-accuracy"}], measure=None)
    study = aegis.Study(table(2), of)
    for ranked in study.rank(every(of)).ranking:
        if str(ranked.configuration.masks["z"]) == "suppress":
            assert ranked.labels["z"] == 0


def test_labels_that_are_known_predict_each_other() -> None:
    rows = table(4)
    unknown, known = (
        scorer_of(aegis.summarize(rows, policy(labels_known=known))) for known in (False, True)
    )
    assert isinstance(unknown, SeveralScorer)
    assert isinstance(known, SeveralScorer)
    names = [[list(task.scorer.summary.attributes) for task in s.tasks] for s in (unknown, known)]
    assert names[0] == [["a", "b", "c"]] * 3
    assert names[1] == [["a", "b", "c", "z"], ["a", "b", "c"], ["a", "b", "c", "z"]]


def test_weights_and_measures_change_without_another_summary() -> None:
    study = aegis.Study(table(6), policy())
    summary = study.summary
    other = study.under(policy("worst", labels=["y", "z", LABELS[2]]))
    assert other.summary is not summary
    assert other.summary.pairs is summary.pairs
    assert study.under(policy()).summary is summary
    by = study.rank(every(policy()), measure="mi")
    assert [label.measure for label in by.labels] == ["mi", "mi", "held-out-r2"]


def test_the_released_rows_of_each_label_are_measured() -> None:
    of = policy()
    advice = aegis.Study(table(7), of).search()
    utility = advice.utility
    assert utility is not None
    assert list(utility.labels) == ["y", "z", "n"]
    shares = [f.utility_kept for f in utility.labels.values()]
    assert None not in shares
    mean = combined("mean", [s / 100 for s in shares if s is not None], [2, 1, 0.5])
    assert utility.value == pytest.approx(mean)
    assert utility.utility_kept == pytest.approx(100 * mean)


@pytest.mark.parametrize("cut", [{"bins": 3}, {"cuts": [1.5]}])
@pytest.mark.parametrize("held", [True, False])
def test_a_label_cut_into_ranges_scores_as_it_does_alone(
    cut: dict[str, Any], held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not held:
        monkeypatch.setattr("aegis.summary.coded_rows.MOST_ROWS", 0)
    label, data = {"column": "n", **cut}, table(4)
    both, own = policy(labels=["y", label]), alone(policy(labels=["y", label]), "n")
    advice = aegis.Study(data, both).rank(every(both)[:6], prefer="score")
    single = aegis.Study(data, own).rank(every(both)[:6], prefer="score")
    measure = MEASURES.get(single.measure)
    kept = {
        r.name: utility_kept(r.score, single.unmasked, measure, single.label_rows)
        for r in single.ranking
    }
    for ranked in advice.ranking:
        assert ranked.labels["n"] == pytest.approx(kept[ranked.name], abs=1e-9)


@pytest.mark.parametrize("front", [None, "k=2,5"])
def test_labels_leave_time_for_the_explanation(
    monkeypatch: pytest.MonkeyPatch, front: str | None
) -> None:
    """Each search takes all its time, and the rest is for standard errors."""
    begun: list[float] = []
    run = Searcher.run

    def slow(self: Searcher, *given: Any, time_limit: Clock, **more: Any) -> Any:
        begun.append(time_limit.left() or 0.0)
        found = run(self, *given, time_limit=time_limit, **more)
        self.problem.work.add(time_limit.left() or 0.0)
        return found

    def explained(*given: Any) -> None:
        begun.append(given[-1].left())

    monkeypatch.setattr(Searcher, "run", slow)
    monkeypatch.setattr(search, "explain", explained)
    study = aegis.Study(table(7), policy())
    study.search(prefer="score", top=1, work=60, explain_best=True, front=front)
    shares = begun[1:5]
    assert len(shares) == 4
    assert shares[0] == pytest.approx(shares[2], rel=0.05)
    assert shares[3] == pytest.approx(shares[0] * (1 if front is None else 2), rel=0.05)
