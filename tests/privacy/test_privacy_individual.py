"""Risks of single records: printed examples of sdcMicro's tests and guides, and brute force."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import PolicyError
from aegis.privacy.individual import (
    eigenvalue_distance,
    il1s,
    individual_risk,
    interval_share,
    key_counts,
)
from aegis.privacy.suda import special_uniques

KEYS = np.array([[2, 3, 2, 2, 3, 3, 1, 2], [3, 3, 3, 3, 3, 3, 4, 3], [1, 3, 1, 2, 1, 1, 1, 1]]).T
WEIGHTS = np.array([18.0, 45.5, 39.0, 17.0, 92.0, 8.0, 123.5, 51.0])


def holes(*cells: tuple[int, int]) -> np.ndarray:
    missing = np.zeros(KEYS.shape, dtype=bool)
    for cell in cells:
        missing[cell] = True
    return missing


def test_counts_that_sdcmicro_expects() -> None:
    """tests/testthat/test_freqCalc.R of sdcMicro 5.8."""
    counts, people = key_counts(KEYS, WEIGHTS)
    assert counts.tolist() == [3, 1, 3, 1, 2, 2, 1, 3]
    assert people.tolist() == [108.0, 45.5, 108.0, 17.0, 100.0, 100.0, 123.5, 108.0]


def test_a_missing_value_agrees_with_any() -> None:
    """tests/testthat/test_freqCalc.R: values missing in the third column of two records."""
    counts, people = key_counts(KEYS, WEIGHTS, holes((2, 2), (6, 2)))
    assert counts.tolist() == [3, 1, 4, 2, 2, 2, 1, 3]
    assert people.tolist() == [108.0, 45.5, 125.0, 56.0, 100.0, 100.0, 123.5, 108.0]


def test_a_record_without_any_value_agrees_with_all() -> None:
    """tests/testthat/test_freqCalc.R: the third column all missing, and a record with it."""
    missing = holes((2, 0), (2, 1))
    missing[:, 2] = True
    counts, people = key_counts(KEYS, WEIGHTS, missing)
    assert counts.tolist() == [4, 4, 8, 4, 4, 4, 2, 4]
    assert people.tolist() == [125.0, 184.5, 394.0, 125.0, 184.5, 184.5, 162.5, 125.0]


RISKS = [
    (
        True,
        (),
        [
            0.01369863,
            0.08579129,
            0.01369863,
            0.17707583,
            0.01877883,
            0.01877883,
            0.03931625,
            0.01369863,
        ],
    ),
    (
        False,
        (),
        [
            0.01355297,
            0.08579129,
            0.01355297,
            0.17707583,
            0.01877883,
            0.01877883,
            0.03931625,
            0.01355297,
        ],
    ),
    (
        True,
        ((7, 0), (2, 2), (6, 2)),
        [
            0.01369863,
            0.085791288,
            0.01055409,
            0.032466112,
            0.009836066,
            0.009836066,
            0.039316254,
            0.005973716,
        ],
    ),
    (
        False,
        ((7, 0), (2, 2), (6, 2)),
        [
            0.013552968,
            0.085791288,
            0.010504889,
            0.032466112,
            0.009756889,
            0.009756889,
            0.039316254,
            0.005962551,
        ],
    ),
]


@pytest.mark.parametrize(("approximate", "missing", "expected"), RISKS)
def test_risks_that_sdcmicro_expects(
    approximate: bool, missing: tuple[tuple[int, int], ...], expected: list[float]
) -> None:
    """tests/testthat/test_indivRisk.R of sdcMicro 5.8, methods "approx" and "exact"."""
    counts, people = key_counts(KEYS, WEIGHTS, holes(*missing))
    risk = individual_risk(counts, people, approximate=approximate)
    assert risk == pytest.approx(expected, rel=2e-7)


def test_who_stands_for_himself_alone_is_found_for_certain() -> None:
    counts, people = key_counts(KEYS, np.ones(len(KEYS)))
    for approximate in (True, False):
        risk = individual_risk(counts, people, approximate=approximate)
        assert risk == pytest.approx(1 / counts)


@given(st.integers(1, 30), st.floats(1.05, 40))
def test_the_risk_is_the_mean_of_one_over_the_people(records: int, factor: float) -> None:
    """The people F are f and a negative binomial number beyond: P(F = h) as in the source."""
    p = 1 / factor
    mean, chance = 0.0, p**records
    for people in range(records, 40_000):
        mean += chance / people
        chance *= people / (people - records + 1) * (1 - p)
    risk = individual_risk(np.array([records]), np.array([records * factor]))
    assert risk[0] == pytest.approx(mean, rel=1e-6)


def test_a_large_class_has_a_small_risk() -> None:
    risk = individual_risk(np.array([100_000]), np.array([1e9]))
    assert risk[0] == pytest.approx(1e-9, rel=1e-3)


@pytest.mark.parametrize("factor", [10, 1000, 1e6])
def test_the_risk_falls_from_class_to_larger_class(factor: float) -> None:
    """SciPy's 2F1(1, 1; 101; z) is infinite, so 100 records need the series."""
    records = np.arange(1, 200)
    risk = individual_risk(records, records * factor)
    assert (np.diff(risk) < 0).all()
    assert 0 < risk[-1] < risk[0] < 1


@given(
    st.lists(
        st.tuples(*[st.integers(-1, 2)] * 3, st.integers(1, 9)),
        min_size=1,
        max_size=12,
    )
)
def test_counts_are_those_of_all_pairs(records: list[tuple[int, ...]]) -> None:
    codes = np.array([one[:3] for one in records])
    weights = np.array([float(one[3]) for one in records])
    counts, people = key_counts(np.maximum(codes, 0), weights, codes < 0)
    for one, count, sum_ in zip(codes, counts, people, strict=True):
        agree = ((codes == one) | (codes < 0) | (one < 0)).all(axis=1)
        assert (count, sum_) == (agree.sum(), weights[agree].sum())


def codes_of(*columns: list[object]) -> np.ndarray:
    return np.array([[sorted(set(map(str, c))).index(str(v)) for v in c] for c in columns]).T


def test_scores_of_the_guide_of_the_household_survey_network() -> None:
    """The example of the SDC practice guide, as in tests/testthat/test_suda2.R of sdcMicro."""
    secondary, employed = "Secondary incomplete", "Employed"
    table = codes_of(
        [*["Urban"] * 4, "Rural", *["Urban"] * 5],
        ["F", "F", "F", "M", "F", "M", "F", "M", "F", "F"],
        [
            secondary,
            secondary,
            "Primary incomplete",
            "Complete",
            "Complete",
            "Complete",
            "Primary complete",
            "Post-secondary",
            secondary,
            secondary,
        ],
        [
            employed,
            employed,
            "Non-LF",
            employed,
            "Unemployed",
            employed,
            "Non-LF",
            "Unemployed",
            "Non-LF",
            "Non-LF",
        ],
    )
    uniques = special_uniques(table)
    assert uniques.scores.tolist() == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]
    assert uniques.sizes[4].tolist() == [1, 3, 0, 0]
    # Pairs of alike records: 1 and 2, 4 and 6, 9 and 10. DIS = 4 f / (4 f + 6 (1 - f)).
    assert uniques.match == pytest.approx(0.04 / (0.04 + 5.94))
    assert uniques.chances.argmax() == 4
    assert ((uniques.chances > 0) == (uniques.scores > 0)).all()
    # Odds go with the score to the power 1.4 - 4 / 20; over the four unique records their inverses
    # are on average those of a unique match.
    odds = uniques.chances[[2, 4, 6, 7]] / (1 - uniques.chances[[2, 4, 6, 7]])
    assert (1 / odds).mean() == pytest.approx(1 / uniques.match - 1)
    assert odds / odds[0] == pytest.approx([1, 2**1.2, 1, (10 / 6) ** 1.2])


def test_scores_of_a_book() -> None:
    """Templ (2017), as in tests/testthat/test_suda2.R of sdcMicro."""
    table = codes_of(
        [*["20s"] * 7, "60s"],
        [*["male"] * 4, *["female"] * 3, "male"],
        ["50k+", "50k+", *["50k-"] * 6],
        [*["high school"] * 4, "university", "high school", "middle school", "university"],
    )
    assert special_uniques(table).scores[4:].tolist() == [4, 2, 6, 8]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_columns_contribute_what_they_do_in_any_order(order: tuple[int, ...]) -> None:
    """tests/testthat/test_suda2.R of sdcMicro: 50, 37.5 and 37.5 %."""
    table = np.array([[2, 1, 1], [0, 3, 0], [0, 6, 0]]).T
    expected = np.array([0.5, 0.375, 0.375])
    shares = special_uniques(table[:, order]).shares
    assert shares == pytest.approx(expected[list(order)])


@given(st.lists(st.tuples(*[st.integers(-1, 2)] * 4), min_size=1, max_size=9), st.integers(1, 4))
def test_minimal_sample_uniques_are_those_of_the_definition(
    records: list[tuple[int, ...]], largest: int
) -> None:
    codes = np.array(records)
    found = special_uniques(np.maximum(codes, 0), missing=codes < 0, largest=largest)
    expected = np.zeros((len(records), largest))
    for place, one in enumerate(records):
        alone: list[set[int]] = []
        for size in range(1, largest + 1):
            for chosen in combinations(range(4), size):
                if any(one[c] < 0 for c in chosen) or any(a <= set(chosen) for a in alone):
                    continue
                same = [r for r in records if all(r[c] == one[c] for c in chosen)]
                if len(same) == 1:
                    alone.append(set(chosen))
                    expected[place, size - 1] += 1
    assert found.sizes.tolist() == expected.tolist()
    weigh = [math.prod(4 - i for i in range(k, min(largest, 3) + 1)) for k in range(1, largest + 1)]
    assert found.scores == pytest.approx(expected @ weigh)


def test_too_many_sets_of_columns_are_refused() -> None:
    with pytest.raises(PolicyError, match="sets of at most 30") as refused:
        special_uniques(np.zeros((2, 30), dtype=int))
    assert "at most 4 columns" in str(refused.value.hint)


def test_numbers_close_to_the_masked_ones() -> None:
    original = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0], [4.0, 8.0]])
    masked = original + np.array([[0.0, 0.0], [0.06, 0.0], [0.0, 0.5], [0.0, 0.0]])
    spread = masked.std(axis=0, ddof=1)
    assert 0.05 * spread[0] > 0.06 > 0.04 * spread[0]
    assert interval_share(original, masked) == 0.75
    assert interval_share(original, masked, 0.04) == 0.5
    assert interval_share(original, original) == 1


def test_information_losses_of_numbers() -> None:
    original = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    masked = original + np.array([[1.0, 0.0], [0.0, 0.0], [-2.0, 0.0]])
    assert il1s(original, masked) == pytest.approx(3 / math.sqrt(2))
    assert il1s(original, original) == 0
    noisy = np.array([[1.0, 2.0], [2.0, 4.5], [3.0, 5.0], [4.0, 9.0]])
    shuffled = np.column_stack([noisy[:, 0], noisy[[1, 0, 3, 2], 1]])
    assert eigenvalue_distance(noisy, 3 * noisy + 1) == 0
    correlation = np.corrcoef(noisy, rowvar=False)[0, 1]
    other = abs(np.corrcoef(shuffled, rowvar=False)[0, 1])
    off = abs(correlation - other)
    assert off > 0.1
    assert eigenvalue_distance(noisy, shuffled) == pytest.approx(
        off / (1 + correlation) + off / (1 - correlation)
    )
