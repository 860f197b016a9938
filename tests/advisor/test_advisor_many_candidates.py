"""The search where candidates are so many, and compare so little, that domains are divided."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from advisor_support import all_choices
from aegis import search
from aegis.advisor import PrivacyPlan, Scorer
from aegis.advisor.search import Searcher, problem
from aegis.advisor.search import objective as trace
from aegis.advisor.search.front import _finer
from aegis.advisor.search.neighbours import NEXT
from aegis.advisor.search.problem import Clock, _refinements, make_problem, members
from aegis.measures import MEASURES
from aegis.policy import Policy, load_policy
from aegis.summary import Summary, build, cooccurrence, summarize

WIDTHS = range(21, 61)


def policy_of(attributes: dict[str, Any], measure: str = "adjusted-pillai") -> Policy:
    return load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 4, "suppression": 0.05},
            "measure": measure,
            "attributes": attributes,
        }
    )


def masks_of(widths: range) -> list[Any]:
    return ["suppress", *({"bucketize": {"width": w}} for w in widths)]


@cache
def two_wide(seed: int) -> tuple[Summary, Policy]:
    """Return two quasi-identifiers of 40 widths that hardly compare."""
    random = np.random.default_rng(seed)
    columns = {name: random.integers(0, 150, 300) for name in "vw"}
    y = (columns["v"] + columns["w"] + random.normal(0, 40, 300) > 150).astype(int)
    attributes = {n: {"role": "quasi-identifier", "masks": masks_of(WIDTHS)} for n in columns}
    policy = policy_of(attributes)
    return summarize(pa.table({**columns, "y": y}), policy), policy


@cache
def admissible_values(seed: int, measure: str = "adjusted-pillai") -> list[float]:
    summary, policy = two_wide(seed)
    plan, scorer = PrivacyPlan(summary, policy.privacy), Scorer(summary)
    chosen = (c for c in all_choices(summary) if plan.check(c).admissible)
    return sorted((scorer.value(c, MEASURES.get(measure)) for c in chosen), reverse=True)


@pytest.mark.parametrize("measure", ["mi", "adjusted-pillai"])
def test_one_attribute(measure: str) -> None:
    random = np.random.default_rng(0)
    values = random.permutation(3000)[:300]
    table = pa.table(
        {"v": values, "w": random.integers(0, 5, 300), "y": random.integers(0, 2, 300)}
    )
    attributes = {
        "v": {"role": "quasi-identifier", "masks": masks_of(range(1, 101))},
        "w": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
    }
    policy = policy_of(attributes, measure)
    summary = summarize(table, policy)
    advice = search(summary, policy, top=1, prefer="score", explain_best=False)
    plan, scorer = PrivacyPlan(summary, policy.privacy), Scorer(summary)
    found = [
        scorer.value(c, MEASURES.get(measure))
        for c in all_choices(summary)
        if plan.check(c).admissible
    ]
    assert advice.optimal
    assert advice.best.score == pytest.approx(max(found), rel=1e-9)
    assert advice.search.work.nodes <= advice.search.work.combinations


@pytest.mark.parametrize(
    "objective", ["adjusted-pillai", "discernibility", "held-out-pillai-values"]
)
def test_two_attributes(objective: str) -> None:
    summary, policy = two_wide(1)
    assert make_problem(summary).division(make_problem(summary).root) is not None
    advice = search(summary, policy, objective=objective, top=3, prefer="score", explain_best=False)
    assert advice.optimal
    if objective == "discernibility":
        return  # compared with brute force on other tables
    wanted = admissible_values(1, objective)[:3]
    values = [one.score if one.objective is None else one.objective for one in advice.ranking]
    assert values == pytest.approx(wanted, rel=1e-9)


def test_the_next_finer_masks_are_those_of_the_fewest_groups() -> None:
    summary, policy = two_wide(1)
    searcher = Searcher(
        summary, PrivacyPlan(summary, policy.privacy), "adjusted-pillai", "adjusted-pillai"
    )
    variable = searcher.problem.variables[0]
    hidden = tuple(1 for _ in searcher.problem.variables)  # `suppress` is the first candidate
    finer = _finer(searcher, hidden, searcher.objective.bound(hidden), Clock(None))
    shown = [one.mask for one in finer if one.attribute == variable.name]
    assert len(shown) == NEXT
    by_name = {str(c.declared): c.size for c in variable.candidates}
    left = [size for name, size in by_name.items() if name not in {*shown, "suppress"}]
    assert max(by_name[name] for name in shown) <= min(left)


class _Clock:
    """A clock that stands still and then jumps."""

    def __init__(self, readings: int) -> None:
        self.left = readings

    def monotonic(self) -> float:
        self.left -= 1
        return 0.0 if self.left > 0 else 1e9


def test_a_time_limit_leaves_an_incumbent_and_a_valid_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    summary, policy = two_wide(2)
    best = admissible_values(2)[0]
    searcher = Searcher(
        summary, PrivacyPlan(summary, policy.privacy), "adjusted-pillai", "adjusted-pillai"
    )
    divided = 0
    for readings in range(1, 1400, 120):
        monkeypatch.setattr(problem, "time", _Clock(readings))
        found, figures = searcher.run(policy.privacy, top=1, time_limit=1.0)
        assert found.best
        assert found.best[0][0] <= best + 1e-9
        assert found.bound >= best - 1e-9
        assert figures.optimal == (found.best[0][0] >= found.bound - 1e-12)
        divided += found.nodes == 1
    assert divided  # some stop came while the first domain was divided
    monkeypatch.setattr(problem, "time", time)
    found, figures = searcher.run(policy.privacy, top=1, time_limit=None)
    assert figures.optimal
    assert found.best[0][0] == pytest.approx(best, rel=1e-9)


def test_covers_hold_a_domain_and_bound_it_tightly() -> None:
    summary, _ = two_wide(1)
    variable = make_problem(summary).variables[0]
    covers = variable.covers(variable.full)
    assert len(covers) > 16
    held = 0
    for part in covers:
        held |= part
        sizes = [len(np.unique(variable.candidates[c].levels)) for c in members(part)]
        assert len(np.unique(variable.level_join(part))) == max(sizes)
    assert held == variable.full
    assert variable.covers(0b111) == ()


def test_many_levels_are_not_fitted_before_they_are_divided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    summary, policy = two_wide(1)
    monkeypatch.setattr(trace, "_LEVELS", 10)
    advice = search(summary, policy, top=1, prefer="score", explain_best=False)
    assert advice.optimal
    assert advice.best.score == pytest.approx(admissible_values(1)[0], rel=1e-9)


def test_bounds_from_sparse_counts_are_those_from_dense_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    summary, policy = two_wide(1)
    dense = Searcher(
        summary, PrivacyPlan(summary, policy.privacy), "adjusted-pillai", "adjusted-pillai"
    ).objective
    monkeypatch.setattr(trace, "_DENSE", 0)
    again = sparsely(summary, monkeypatch)
    sparse = Searcher(
        again, PrivacyPlan(again, policy.privacy), "adjusted-pillai", "adjusted-pillai"
    ).objective
    random = np.random.default_rng(0)
    for _ in range(30):
        box = tuple(int(random.integers(1, v.full + 1)) for v in make_problem(summary).variables)
        leaf = tuple(1 << int(random.integers(len(WIDTHS))) for _ in box)
        assert sparse.bound(leaf) == pytest.approx(dense.bound(leaf), rel=1e-9)
        assert sparse.bound(box) == pytest.approx(dense.bound(box), rel=1e-9)


def sparsely(summary: Summary, monkeypatch: pytest.MonkeyPatch) -> Summary:
    """Return the summary of the same counts, held sparsely."""
    monkeypatch.setattr(cooccurrence, "_DENSE_CELLS", 0)
    monkeypatch.setattr(cooccurrence, "_SPARSE_FACTOR", 0)
    return replace(summary, pairs=replace(summary.pairs))


def test_sparse_totals_are_the_dense_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    summary, _ = two_wide(1)
    whole = summary.pairs.total
    parts = [build.without_fold(summary.pairs, f).total for f in range(3)]
    again = sparsely(summary, monkeypatch).pairs
    assert again.total.nnz < whole.size / 4
    np.testing.assert_array_equal(again.total.toarray(), whole)
    for fold, part in enumerate(parts):
        np.testing.assert_array_equal(build.without_fold(again, fold).total.toarray(), part)


@given(
    groups=arrays(
        np.int32, st.tuples(st.integers(1, 5), st.integers(33, 60)), elements=st.integers(0, 3)
    )
)
def test_refinement_is_that_of_the_definition(groups: Any) -> None:
    pairs = np.concatenate([groups, groups // 2, np.arange(groups.shape[1])[None]])
    pairs = np.stack([np.unique(row, return_inverse=True)[1] for row in pairs]).astype(np.int32)
    found = _refinements(pairs)
    for i, fine in enumerate(pairs):
        for c, coarse in enumerate(pairs):
            shown = {(int(a), int(b)) for a, b in zip(fine, coarse, strict=True)}
            assert found[i, c] == (len(shown) == len(set(fine.tolist())))


@given(chosen=st.sets(st.integers(0, 400)))
def test_members_of_long_domains(chosen: set[int]) -> None:
    assert members(sum(1 << i for i in chosen)) == sorted(chosen)
