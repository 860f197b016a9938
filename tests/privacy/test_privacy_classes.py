from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from privacy_brute import LABELS, LEVELS, groups, rows, table_of

from aegis.arrays import number
from aegis.errors import DataError, InternalError
from aegis.privacy import ClassTable, SensitiveCounts

cells = st.lists(
    st.tuples(st.integers(-3, 3), st.integers(0, 4), st.integers(0, 3), st.integers(0, 3)),
    max_size=30,
)


def as_dict(table: ClassTable) -> dict[tuple[int, int], int]:
    counts = table.sensitive["s"]
    assert table.ids is not None
    return {
        (int(table.ids[c]), int(v)): int(n)
        for c, v, n in zip(counts.classes, counts.values, counts.counts, strict=True)
    }


@given(cells, st.sampled_from([1, 10**9]))
def test_cells_add_up_to_classes(given: list[tuple[int, int, int, int]], spread: int) -> None:
    ids = [one[0] * spread for one in given]
    counts = [one[1] for one in given]
    table = ClassTable.from_cells(ids, counts, {"s": ([one[2] for one in given], LABELS)})
    expected: Counter[tuple[int, int]] = Counter()
    for one, count, value, _ in given:
        expected[one * spread, value] += count
    expected = +expected
    assert as_dict(table) == dict(expected)
    sizes = Counter({one: 0 for one, _ in expected})
    for (one, _), count in expected.items():
        sizes[one] += count
    assert table.ids is not None
    assert dict(zip(table.ids.tolist(), table.sizes.tolist(), strict=True)) == dict(sizes)
    assert table.rows == sum(counts)
    assert len(table) == len(sizes)


@given(cells)
def test_population_of_empty_classes_is_absent(given: list[tuple[int, int, int, int]]) -> None:
    ids = [one[0] for one in given]
    counts = [one[1] for one in given]
    people = [one[1] + one[3] for one in given]
    table = ClassTable.from_cells(ids, counts, population=people)
    held = {one for one, count in zip(ids, counts, strict=True) if count}
    size: Counter[int] = Counter()
    for one, count in zip(ids, people, strict=True):
        size[one] += count
    assert table.population is not None
    assert table.population.tolist() == [size[one] for one in sorted(held)]
    assert table.absent == sum(count for one, count in size.items() if one not in held)


@given(rows, st.lists(st.booleans(), min_size=6, max_size=6))
def test_keep_is_the_table_of_the_kept_rows(
    given: list[tuple[int, int]], chosen: list[bool]
) -> None:
    table = table_of(given, [len(one) + 2 for one in groups(given)])
    classes = sorted({one for one, _ in given})
    kept = table.keep([chosen[one] for one in classes])
    rest = [one for one in given if chosen[one[0]]]
    assert kept.ids is not None
    assert kept.population is not None
    assert kept.ids.tolist() == sorted({one for one, _ in rest})
    assert as_dict(kept) == dict(Counter(rest))
    assert kept.population.tolist() == [len(one) + 2 for one in groups(rest)]
    assert kept.absent + kept.population.sum() == len(given) + 2 * len(classes)
    assert kept.sensitive["s"].labels == LABELS


def test_keeping_all_is_the_table_itself() -> None:
    table = ClassTable(np.array([3, 2]))
    assert table.keep([True, True]) is table
    assert table.keep([False, False]).rows == 0


@given(st.lists(st.integers(-50, 50) | st.integers(-(10**15), 10**15)))
def test_number_is_unique_with_inverse(keys: list[int]) -> None:
    unique, index = number(np.array(keys, dtype=np.int64))
    assert unique.tolist() == sorted(set(keys))
    assert unique[index].tolist() == keys


@given(rows)
def test_totals_and_sorted_counts(given: list[tuple[int, int]]) -> None:
    counts = table_of(given).sensitive["s"]
    found = Counter(value for _, value in given)
    assert counts.totals.tolist() == [found[value] for value in range(4)]
    expected = [sorted(Counter(one).values(), reverse=True) for one in groups(given)]
    assert counts.descending.tolist() == [count for one in expected for count in one]
    assert counts.reference.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [1]), "2 class identifiers, but 1 entries of 'counts'"),
        (([0], [-1]), "A cell has -1 rows"),
        (([0], [1], {"s": ([0, 1], LABELS)}), "2 entries of 's'"),
        (([0], [1], {"s": ([4], LABELS)}), "must lie in 0..3"),
        (([0], [1], {"s": ([-1], LABELS)}), "must lie in 0..3"),
    ],
)
def test_bad_cells_are_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        ClassTable.from_cells(*arguments)  # type: ignore[arg-type]


def test_population_below_the_table_is_refused() -> None:
    with pytest.raises(DataError, match="smaller than the table in 1 of 2 classes"):
        ClassTable(np.array([3, 2]), population=np.array([2, 2]))
    with pytest.raises(DataError, match="1 population sizes for 2 classes"):
        ClassTable(np.array([3, 2]), population=np.array([5]))
    with pytest.raises(DataError, match="entries of 'population'"):
        ClassTable.from_cells([0, 1], [1, 1], population=[2])


@pytest.mark.parametrize(
    ("classes", "values", "counts"),
    [
        ([0, 0], [1, 0], [1, 1]),
        ([1], [0], [1]),
        ([0, 2], [0, 0], [1, 1]),
        ([0, 0], [1, 1], [1, 1]),
        ([0], [4], [1]),
        ([0], [0], [0]),
        ([0], [0, 1], [1]),
    ],
)
def test_unsorted_or_wrong_contingency_is_a_bug(
    classes: list[int], values: list[int], counts: list[int]
) -> None:
    with pytest.raises(InternalError):
        SensitiveCounts(np.array(classes), np.array(values), np.array(counts), LABELS)


def test_counts_must_add_up_to_sizes() -> None:
    counts = SensitiveCounts(np.array([0]), np.array([0]), np.array([2]), LABELS)
    with pytest.raises(InternalError, match="do not add up"):
        ClassTable(np.array([3]), {"s": counts})
    with pytest.raises(InternalError, match="at least one row"):
        ClassTable(np.array([0]))
    with pytest.raises(InternalError, match="A mask of 1 classes does not fit a table of 2"):
        ClassTable(np.array([1, 2])).keep([False])


def test_hierarchy_must_fit_and_be_a_tree() -> None:
    cell = np.array([0])
    with pytest.raises(DataError, match="does not fit 4 sensitive values"):
        SensitiveCounts(cell, cell, np.array([2]), LABELS, LEVELS[:3])
    crossed = np.array([[0, 0, 0], [1, 0, 1], [2, 1, 0], [3, 1, 1]])
    with pytest.raises(DataError, match="group of level 1 lies in two groups of level 2"):
        SensitiveCounts(cell, cell, np.array([2]), LABELS, crossed)
