"""What released columns say of hidden ones, and few columns that single out rows, by plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.privacy.inference import (
    Singling,
    find_implications,
    find_singling,
    lift,
    predictability_of_rows,
)

PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=60)


@given(PAIRS)
def test_guesses_do_not_see_their_own_row(rows: list[tuple[int, int]]) -> None:
    most_frequent = min(
        Counter(v for _, v in rows).items(), key=lambda entry: (-entry[1], entry[0])
    )[0]
    right = 0
    for place, (group, value) in enumerate(rows):
        others = Counter(v for i, (g, v) in enumerate(rows) if g == group and i != place)
        if not others:
            right += value == most_frequent
        else:  # a tie is no guess
            top = max(others.values())
            right += others[value] == top and list(others.values()).count(top) == 1
    by_group = defaultdict(list)
    for group, value in rows:
        by_group[group].append(value)
    fixed = sum(
        len(values)
        for values in by_group.values()
        if len(values) >= 5 and max(Counter(values).values()) >= 0.99 * len(values)
    )
    groups, values = np.array(rows).T
    told = predictability_of_rows(groups, values)
    assert told.right == pytest.approx(right / len(rows))
    assert told.fixed == pytest.approx(fixed / len(rows))
    most = sum(max(Counter(values).values()) for values in by_group.values())
    assert told.at_most == pytest.approx(most / len(rows))


@pytest.mark.parametrize(
    ("right", "without", "expected"), [(0.9, 0.8, 0.5), (0.8, 0.8, 0), (0.5, 0.8, 0), (1, 1, 0)]
)
def test_a_guess_is_as_much_better_as_it_takes_of_what_was_wrong(
    right: float, without: float, expected: float
) -> None:
    assert lift(right, without) == pytest.approx(expected)


def test_a_key_predicts_nothing_and_a_twin_everything() -> None:
    sex = np.arange(400) % 2
    hidden = {"sex": (sex, np.zeros_like(sex))}
    twin = np.where(sex == 1, np.arange(400) % 3, 3)
    [implied] = find_implications(hidden, {"key": np.arange(400), "title": twin})
    assert (implied.hidden, implied.released) == ("sex", "title")
    assert implied.right == implied.fixed == 1
    assert implied.right_without == 0.5
    assert (
        find_implications(hidden, {"key": np.arange(400), "noise": np.arange(400) // 2 % 5}) == ()
    )


@pytest.mark.parametrize("share", [0.5, 0.8, 0.9, 0.95, 0.98])
def test_unrelated_columns_give_nothing_away(share: float) -> None:
    """Where one value dominates, small groups have only this value: nearly all such tables warned."""
    warned = 0
    for seed in range(40):
        draw = np.random.default_rng(seed)
        rows = (100, 300, 1000, 5000)[seed % 4]
        hidden = (draw.random(rows) > share).astype(int)
        released = {
            f"of {values} values": draw.integers(0, values, rows) for values in (2, 10, rows // 10)
        }
        warned += bool(find_implications({"hidden": (hidden, np.zeros_like(hidden))}, released))
    assert warned <= 1


@pytest.mark.parametrize("rows", [60, 300, 5000])
def test_a_copy_of_a_rare_value_gives_it_away(rows: int) -> None:
    rare = (np.arange(rows) % 20 == 0).astype(int)
    released = {"copy": rare, "other": np.arange(rows) % 7}
    (implication,) = find_implications({"rare": (rare, np.zeros_like(rare))}, released)
    assert implication.released == "copy"
    partly = np.where(rare == 1, 0, np.arange(rows) % 4)  # three of four values exclude it
    if rows > 60:
        hidden = {"rare": (rare, np.zeros_like(rare))}
        assert find_implications(hidden, {"partly": partly})[0].fixed > 0.7


def test_what_the_own_mask_shows_is_no_gain() -> None:
    age = np.arange(600) % 40
    assert find_implications({"age": (age, age // 10)}, {"decade": age // 10}) == ()
    [implied] = find_implications({"age": (age, age // 10)}, {"months": age * 1})
    assert implied.right == 1
    assert implied.right_without < 0.2


def test_large_tables_are_screened_first_and_counted_in_full() -> None:
    random = np.random.default_rng(0)
    sex = random.integers(0, 2, 120_000)
    title = np.where(random.random(120_000) < 0.9, sex, 2)
    [implied] = find_implications(
        {"sex": (sex, np.zeros_like(sex))},
        {"title": title, "noise": random.integers(0, 9, 120_000)},
    )
    assert implied.fixed == pytest.approx((title < 2).mean())


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 5), min_size=2, max_size=25))
def test_few_columns_single_out_as_many_rows_as_stated(rows: list[tuple[int, ...]]) -> None:
    names = "abcde"

    def alone(columns: Sequence[str]) -> tuple[int, int]:
        sizes = Counter(tuple(row[names.index(c)] for c in columns) for row in rows)
        return sum(n == 1 for n in sizes.values()), len(sizes)

    values = {n: len({row[i] for row in rows}) for i, n in enumerate(names)}
    unique = alone(names)[0]
    few = find_singling(values, unique, lambda sets: [alone(s) for s in sets])
    if few is None:
        return
    assert 1 <= len(few.columns) <= 4
    assert few.unique_rows == alone(few.columns)[0]
    assert 0 < few.unique_rows <= unique


def test_a_column_that_is_nearly_a_key_needs_no_other() -> None:
    few = find_singling(
        {"a": 9, "b": 2}, 9, lambda sets: [(9, 9) if "a" in s else (0, 2) for s in sets]
    )
    assert few == Singling(("a",), 9)
