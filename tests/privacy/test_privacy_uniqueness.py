"""Estimates of uniqueness in the population, and diversity corrected for small classes."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow.csv as pc
import pytest
from privacy_brute import table_of

from aegis.errors import PolicyError
from aegis.privacy import MODELS, ClassTable, PrivacyRule
from aegis.privacy.diversity import corrected_values
from aegis.privacy.uniqueness import (
    ESTIMATORS,
    dankar,
    pitman,
    population_uniqueness,
    zayatz,
)


@pytest.fixture(scope="module")
def adult(shared_data: Path) -> np.ndarray:
    table = pc.read_csv(
        shared_data / "arx_adult" / "adult.csv", parse_options=pc.ParseOptions(delimiter=";")
    )
    counted = table.group_by(table.column_names).aggregate([([], "count_all")])
    return counted["count_all"].to_numpy().astype(np.int64)


@pytest.mark.parametrize(
    ("estimator", "fraction", "expected", "tolerance"),
    [
        (pitman, 0.1, 0.27684993883653597, 1e-7),
        (pitman, 0.01, 0.1446083531167384, 1e-7),
        (zayatz, 0.1, 0.3207402393466189, 1e-12),
        (zayatz, 0.2, 0.3577099234829125, 1e-12),
        (dankar, 1, 0.5142895033485844, 1e-12),
        (dankar, 0.1, 0.27684993883653597, 1e-7),
    ],
)
def test_figures_that_arx_prints(adult, estimator, fraction, expected, tolerance) -> None:
    assert estimator(adult, int(adult.sum() / fraction)) == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimates_are_near_what_is_drawn_from(name: str) -> None:
    """Sizes of the population are negative binomial; a fifth of its people are drawn."""
    draw = np.random.default_rng(5)
    crowds = 1 + draw.negative_binomial(0.4, 0.05, size=6000)
    people = int(crowds.sum())
    sample = draw.binomial(crowds, 0.2)
    true = (crowds == 1).sum() / people
    estimate = population_uniqueness(sample[sample > 0], people, name)
    # The last one's model is the true one. The others' are not, and err by a known direction.
    assert 0 < estimate < 1
    assert estimate == pytest.approx(true, rel={"snb": 0.2, "dankar": 0.5}.get(name, 3))


def test_limits() -> None:
    for name in ESTIMATORS:
        assert population_uniqueness(np.array([2, 3, 5]), 1000, name) == 0
        assert 0 <= population_uniqueness(np.array([1]), 1, name) <= 1
        assert 0 <= population_uniqueness(np.array([1, 1, 1]), 3000, name) <= 1
        assert 0 <= population_uniqueness(np.array([1, 1, 2, 90]), 10**7, name) <= 1


def test_a_rule_removes_unique_rows_where_they_are_too_many() -> None:
    table = ClassTable(np.array([1, 1, 1, 7, 10]))
    for threshold, kept in ((0.15, 5), (0.14, 2), (0, 2)):
        rule = PrivacyRule.parse({"sample_uniqueness": {"threshold": threshold}, "suppression": 1})
        assert rule.check(table).kept_classes.sum() == kept
    model = {"threshold": 0.001, "population": 10**6}
    rule = PrivacyRule.parse({"population_uniqueness": model, "suppression": 1})
    assert rule.criteria[0].model is MODELS.get("population_uniqueness.dankar")
    estimate = dankar(table.sizes, 10**6)
    asked = {"population_uniqueness": model | {"threshold": estimate}, "suppression": 1}
    assert PrivacyRule.parse(asked).check(table).kept_classes.all()
    asked["population_uniqueness"]["threshold"] = estimate / 2
    assert PrivacyRule.parse(asked).check(table).kept_classes.tolist() == [False] * 3 + [True] * 2


def test_corrected_entropy_by_sums() -> None:
    """G_1 = -gamma - ln 2, G_2 = 2 - gamma - ln 2, G_2n+1 = G_2n, G_2n+2 = G_2n + 2 / (2n + 1)."""
    values = [[0, 0, 1], [2], [0, 1, 2, 2, 2], [0, 1]]
    table = table_of([(place, v) for place, given in enumerate(values) for v in given])
    g = [math.nan, -np.euler_gamma - math.log(2), 2 - np.euler_gamma - math.log(2)]
    for n in range(3, 8):
        g.append(g[n - 1] if n % 2 else g[n - 2] + 2 / (n - 1))
    estimates = [
        math.exp(g[len(v)] - sum(v.count(x) * g[v.count(x)] for x in set(v)) / len(v))
        for v in values
    ]
    assert estimates[-1] == pytest.approx(math.exp(2))  # of two rows: no class is worth more
    expected = [min(x, len(set(v))) for x, v in zip(estimates, values, strict=True)]
    (counts,) = table.sensitive.values()
    assert corrected_values(counts).tolist() == pytest.approx(expected)
    rule = PrivacyRule.parse(
        {"l_diversity": {"attribute": "s", "l": 2, "kind": "entropy-grassberger"}}
    )
    assert rule.criteria[0].failing(table).tolist() == [x < 2 for x in expected]


def test_a_population_smaller_than_the_table_is_refused() -> None:
    rule = PrivacyRule.parse({"population_uniqueness": {"threshold": 0.1, "population": 9}})
    with pytest.raises(
        PolicyError, match=r"9 people, but the table, a sample of it, has 10"
    ) as told:
        rule.check(ClassTable.from_cells([0, 1], [6, 4]))
    assert "at least that" in (told.value.hint or "")
    assert rule.check(ClassTable.from_cells([0, 1], [5, 4])).admissible
