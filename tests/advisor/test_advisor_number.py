"""A number to predict: the best is that of all combinations, and no bound is below what it bounds."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import aegis
from aegis.advisor import Scorer
from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.search.objective import FinestBound
from aegis.advisor.search.problem import make_problem
from aegis.measures import MEASURES
from aegis.measures.number import explained_share
from aegis.summary import summarize

R2 = "held-out-r2"


def case(seed: int, rows: int = 240) -> tuple[pa.Table, dict[str, Any]]:
    draw = np.random.default_rng(seed)
    age = draw.integers(20, 60, rows)
    town = draw.choice(list("abcdefgh"), rows, p=np.array([8, 6, 5, 4, 3, 2, 1, 1]) / 30)
    degree = draw.integers(0, 4, rows)
    wage = 10 * age + 150 * (town == "b") + 80 * degree * (seed % 2) + draw.normal(0, 150, rows)
    policy = {
        "version": 1,
        "label": {"column": "wage", "kind": "number"},
        "privacy": {"k": 4, "suppression": 0.1},
        "attributes": {
            "age": {
                "role": "quasi-identifier",
                "masks": ["identity", {"bucketize": {"width": 7}}, {"bucketize": {"width": 10}}],
            },
            "town": {
                "role": "quasi-identifier",
                "masks": ["identity", {"keep_frequent": {"count": 3}}, "suppress"],
            },
            "degree": {
                "role": "quasi-identifier",
                "masks": ["identity", {"bucketize": {"width": 2}}, "suppress"],
            },
        },
    }
    table = pa.table({"age": age, "town": town, "degree": degree, "wage": np.round(wage, 1)})
    return table, policy


@pytest.mark.parametrize("seed", range(4))
def test_the_search_proves_the_best_of_all_combinations(seed: int) -> None:
    table, policy = case(seed)
    study = aegis.Study(table, policy)
    advice = study.search(top=30, prefer="score")
    summary = summarize(table, policy)
    scorer, plan = Scorer(summary), PrivacyPlan(summary, study.policy.privacy)
    names = list(summary.attributes)
    scores = []
    for chosen in product(*(summary.attributes[n].candidates for n in names)):
        choice = dict(zip(names, chosen, strict=True))
        if plan.check(choice).admissible:
            scores.append(scorer.value(choice, MEASURES.get(R2)))
    assert advice.optimal
    assert advice.measure == R2
    assert advice.ranking[0].score == pytest.approx(max(scores), abs=1e-12)
    found = [ranked.score for ranked in advice.ranking if ranked.admissible]
    assert found == pytest.approx(sorted(scores, reverse=True)[: len(found)], abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_no_box_holds_a_configuration_above_its_bound(seed: int) -> None:
    table, policy = case(seed)
    summary = summarize(table, policy)
    scorer, problem = Scorer(summary), make_problem(summary)
    bound = FinestBound(problem, explained_share)
    draw = np.random.default_rng(seed)
    for _ in range(12):
        box = tuple(int(draw.integers(1, v.full + 1)) for v in problem.variables)
        inside = product(
            *(
                [c for c in range(len(v.candidates)) if d >> c & 1]
                for v, d in zip(problem.variables, box, strict=True)
            )
        )
        best = max(
            scorer.value(problem.choice(tuple(1 << c for c in chosen)), MEASURES.get(R2))
            for chosen in inside
        )
        assert best <= bound.bound(box)


def test_coarser_masks_have_no_larger_bound() -> None:
    summary = summarize(*case(1))
    problem = make_problem(summary)
    bound = FinestBound(problem, explained_share)
    whole = bound.bound(tuple(v.full for v in problem.variables))
    for chosen in product(*(range(len(v.candidates)) for v in problem.variables)):
        assert bound.bound(tuple(1 << c for c in chosen)) <= whole + 1e-8


def test_a_label_that_the_attributes_do_not_predict_scores_nothing() -> None:
    draw = np.random.default_rng(0)
    table = pa.table({"a": draw.choice(list("xyz"), 300), "y": draw.normal(0, 1, 300)})
    policy = {
        "version": 1,
        "label": {"column": "y", "kind": "number"},
        "attributes": {"a": {"role": "feature"}},
    }
    scorer = Scorer(summarize(table, policy))
    assert 0 <= scorer.value(scorer.unmasked, MEASURES.get(R2)) < 0.02


def test_release_and_certificate_state_the_same_figure(tmp_path: Any) -> None:
    table, policy = case(0)
    study = aegis.Study(table, policy)
    advice = study.advise()
    file, certificate = tmp_path / "m.parquet", tmp_path / "c.json"
    release = study.apply(advice, file, certificate=certificate)
    assert release.utility is not None
    assert advice.utility is not None
    assert release.utility.value == pytest.approx(advice.utility.value, abs=1e-12)
    assert release.utility.rmse == pytest.approx(advice.utility.rmse, rel=1e-12)
    assert aegis.check_certificate(file, certificate, original=table).passed
    assert "error of a prediction" in (advice.headline or "")
    assert aegis.audit(file, quasi_identifiers=["age", "town", "degree"]).report.k >= 4
