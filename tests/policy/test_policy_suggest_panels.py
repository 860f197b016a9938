"""What is followed over time is asked about, where no trait tells whether it is a person."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.policy.model import Role
from aegis.policy.suggest import init_policy
from aegis.policy.suggest.names import (
    BY_CHANCE,
    ONCE,
    find_once_each,
    names_measure,
    names_thing_or_time,
    names_time,
)
from aegis.sources import open_table

FOLLOWED, TIMES = 60, 8


def panel(key: str = "v1", time: str = "year") -> pd.DataFrame:
    """Return 60 of something, each observed at 8 times, with nothing else that tells them."""
    random = np.random.default_rng(3)
    rows = FOLLOWED * TIMES
    return pd.DataFrame(
        {
            key: np.repeat(np.arange(FOLLOWED) + 11, TIMES),
            time: np.tile(np.arange(TIMES) + 2001, FOLLOWED),
            "hours": random.integers(0, 60, rows),
            "better": random.integers(0, 2, rows),
        }
    )


def warns(table: pd.DataFrame, column: str) -> bool:
    """Return whether a person is asked about a column, which stays a feature."""
    proposed = init_policy(table, label="better")
    assert (proposed.policy.attributes[column].role, proposed.person) == (Role.FEATURE, None)
    warning = proposed.profiles[column].warning
    assert not warning or "make it an identifier" in warning
    return "comes once" in warning


@pytest.mark.parametrize(("key", "time"), [("v1", "year"), ("respond", "wave"), ("runner", "Jahr")])
def test_a_key_is_asked_about_by_the_time_beside_it(key: str, time: str) -> None:
    assert warns(panel(key, time), key)


@pytest.mark.parametrize("key", ["day_of_year", "plot", "week"])
def test_a_thing_or_a_time_is_no_key(key: str) -> None:
    assert not warns(panel(key, "date" if key == "week" else "year"), key)


def test_a_time_that_comes_twice_makes_no_key() -> None:
    table = panel()
    table["year"] //= 2
    assert not warns(table, "v1")


def test_beside_a_clock_everything_is_once() -> None:
    table = panel()
    table["year"] = np.random.default_rng(1).permutation(len(table))
    assert not warns(table, "v1")


def test_names() -> None:
    assert names_time("Visit")
    assert not names_time("year_of_birth")
    assert names_thing_or_time("day of year")
    assert not names_thing_or_time("respondent")
    assert all(map(names_measure, ("avgsal", "avg_pay", "totpop", "births")))
    assert not any(map(names_measure, ("uid", "student", "average_date")))


pairs = st.lists(st.tuples(st.integers(0, 8), st.one_of(st.none(), st.integers(0, 8))), max_size=40)


@given(pairs.filter(lambda rows: len(rows) > 1))
def test_what_is_once_each_is_what_pandas_counts(rows: list[tuple[int, int | None]]) -> None:
    table = pd.DataFrame(rows, columns=["who", "year"]).astype("Int64")
    source = open_table(table)
    agree = {
        name: sum(n * (n - 1) for n in table[name].value_counts()) / (len(table) * (len(table) - 1))
        for name in table
    }
    told = find_once_each(source, source.table, {"who": agree["who"]}, {"year": agree["year"]})
    expected = len(table) * (len(table) - 1) / 2 * agree["who"] * agree["year"]
    known = table.dropna()
    once = len(known) > 0 and len(known.drop_duplicates()) >= ONCE * len(known)
    wanted = once and expected >= -math.log(BY_CHANCE)
    assert told == ({"who": "year"} if wanted else {})
