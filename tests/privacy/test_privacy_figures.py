from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from privacy_brute import (
    LEVELS,
    VALUES,
    Rows,
    entropy,
    gains,
    groups,
    log_ratios,
    moved,
    recursive,
    rows,
    shares,
    table_of,
    tree_distance,
)

from aegis.privacy import ClassTable
from aegis.privacy import diversity as close
from aegis.privacy import diversity as div


def everyone(given: Rows) -> list[int]:
    return [value for _, value in given]


@given(rows, st.integers(1, 5))
def test_diversity_is_brute_force(given: Rows, l: int) -> None:  # noqa: E741
    counts, classes = table_of(given).sensitive["s"], groups(given)
    assert div.distinct_values(counts).tolist() == [len(set(one)) for one in classes]
    assert counts.certain.tolist() == [len(set(one)) == 1 for one in classes]
    assert div.largest_share(counts) == pytest.approx([max(shares(one)) for one in classes])
    assert div.entropy(counts) == pytest.approx([entropy(one) for one in classes], abs=1e-12)
    assert div.effective_values(counts) == pytest.approx(np.exp([entropy(one) for one in classes]))
    assert div.recursive_ratio(counts, l) == pytest.approx([recursive(one, l) for one in classes])


@given(rows)
def test_closeness_is_brute_force(given: Rows) -> None:
    counts, classes, total = table_of(given).sensitive["s"], groups(given), everyone(given)
    expected = [0.5 * sum(map(abs, np.subtract(shares(one), shares(total)))) for one in classes]
    assert close.equal_distance(counts) == pytest.approx(expected, abs=1e-12)
    assert close.relative_gain(counts) == pytest.approx([max(gains(one, total)) for one in classes])
    ratios = [log_ratios(one, total) for one in classes]
    assert close.log_ratio(counts) == pytest.approx([max(one) for one in ratios], abs=1e-12)
    present = [max(ratio for ratio in one if ratio < math.inf) for one in ratios]
    assert close.log_ratio(counts, absent=False) == pytest.approx(present, abs=1e-12)
    p = [share for share in shares(total) if share]
    for figure, one in zip(close.enhanced_gain(counts), classes, strict=True):
        broken = any(
            gain > -math.log(share) + 1e-9 for gain, share in zip(gains(one, total), p, strict=True)
        )
        assert figure == (math.inf if broken else pytest.approx(max(gains(one, total))))


@given(rows)
def test_ordered_distance_is_earth_moving_over_the_ranks_that_occur(given: Rows) -> None:
    counts, total = table_of(given).sensitive["s"], everyone(given)
    ranks = [value for value in range(VALUES) if value in total]
    span = max(len(ranks) - 1, 1)
    distance = np.abs(np.subtract.outer(range(len(ranks)), range(len(ranks)))) / span
    p = [shares(total)[value] for value in ranks]
    expected = [moved([shares(one)[v] for v in ranks], p, distance) for one in groups(given)]
    assert close.ordered_distance(counts) == pytest.approx(expected, abs=1e-9)


@given(rows)
def test_hierarchical_distance_is_earth_moving_over_the_tree(given: Rows) -> None:
    counts, total = table_of(given).sensitive["s"], everyone(given)
    expected = [moved(shares(one), shares(total), tree_distance(LEVELS)) for one in groups(given)]
    assert close.hierarchical_distance(counts, LEVELS) == pytest.approx(expected, abs=1e-9)
    # Without its root column the tree is the same: a root is put on top.
    assert close.hierarchical_distance(counts, LEVELS[:, :2]) == pytest.approx(expected, abs=1e-9)


@given(rows)
def test_a_flat_tree_is_equal_distance(given: Rows) -> None:
    counts = table_of(given).sensitive["s"]
    flat = np.array([[7], [5], [3], [9]])
    assert close.hierarchical_distance(counts, flat) == pytest.approx(
        close.equal_distance(counts), abs=1e-12
    )
    assert not close.hierarchical_distance(counts, np.zeros((4, 1), dtype=int)).any()


@given(rows, st.randoms(use_true_random=False))
def test_order_of_codes_matters_only_to_the_ordered_distance(given: Rows, random: object) -> None:
    order = list(range(VALUES))
    random.shuffle(order)  # type: ignore[attr-defined]
    before = table_of(given).sensitive["s"]
    after = table_of([(one, order[value]) for one, value in given]).sensitive["s"]
    levels = LEVELS[np.argsort(order)]
    for figure in (close.equal_distance, close.relative_gain, close.log_ratio, div.entropy):
        assert figure(before) == pytest.approx(figure(after), abs=1e-12)
    assert close.hierarchical_distance(before, LEVELS) == pytest.approx(
        close.hierarchical_distance(after, levels), abs=1e-12
    )


def test_salaries_of_li_et_al() -> None:
    """Section 5.1 of the paper: classes {3k, 4k, 5k} and {6k, 8k, 11k} of salaries 3k to 11k."""
    salaries = [3, 4, 5, 6, 11, 8, 7, 9, 10]
    table = ClassTable.from_cells(
        [0, 0, 0, 1, 1, 1, 2, 2, 2],
        [1] * 9,
        {"salary": ([one - 3 for one in salaries], tuple(f"{n}k" for n in range(3, 12)))},
    )
    first, second, _ = close.ordered_distance(table.sensitive["salary"])
    assert first == pytest.approx(0.375)
    assert second == pytest.approx(1 / 6)


def test_entropies_of_table_two() -> None:
    """Entropies in bits of clusters with two of three, all, and none of three values alike."""
    table = table_of([(0, 0), (0, 0), (0, 1), (1, 2), (1, 2), (1, 2), (2, 0), (2, 1), (2, 2)])
    bits = div.entropy(table.sensitive["s"]) / math.log(2)
    assert np.round(bits, 4).tolist() == [0.9183, 0.0, 1.585]


def test_equally_frequent_values_have_a_whole_number_of_effective_values() -> None:
    table = table_of([(one, value) for one in range(3) for value in range(3)])
    assert div.effective_values(table.sensitive["s"]).tolist() == [3.0, 3.0, 3.0]


def test_empty_tables_have_no_figures() -> None:
    counts = ClassTable.from_cells([], [], {"s": ([], ("a",))}).sensitive["s"]
    for figure in (
        div.entropy,
        div.largest_share,
        close.equal_distance,
        close.ordered_distance,
        close.relative_gain,
        close.enhanced_gain,
        close.log_ratio,
    ):
        assert len(figure(counts)) == 0
    assert len(div.recursive_ratio(counts, 2)) == 0
    assert len(close.hierarchical_distance(counts, np.array([[0, 0]]))) == 0
