"""Association of two columns: against its formula, its mean under shuffling, and its bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measures_brute import cooccurrence, count_tables, data, groupings

from aegis.measures import Contingency, get
from aegis.measures.columns import contingencies, mean_contingency
from aegis.measures.cooccurrence import PairSide


def pair_contingency(table, told_apart=None):
    """The value of one pair of columns, given the number of rows by their values."""
    sides = [
        PairSide.of(table.sum(axis=1 - axis), np.array([0, table.shape[axis]])) for axis in (0, 1)
    ]
    if told_apart is not None:
        sides = [
            PairSide(side.rows, side.bounds, np.array([told]))
            for side, told in zip(sides, told_apart, strict=True)
        ]
    return contingencies(table, *sides)[0, 0]


@given(table=count_tables())
def test_it_is_phi_square_less_chance(table):
    rows, columns = np.count_nonzero(table.sum(axis=1)), np.count_nonzero(table.sum(axis=0))
    if min(rows, columns) < 2:
        assert pair_contingency(table) == 0
        return
    beyond = get("phi2")(Contingency.of(table)) - (rows - 1) * (columns - 1) / (table.sum() - 1)
    assert pair_contingency(table) == pytest.approx(beyond / (1 + abs(beyond)), abs=1e-12)
    assert pair_contingency(table) == pytest.approx(pair_contingency(table.T), abs=1e-12)
    assert -1 < pair_contingency(table) < 1


@given(rows=data(max_attributes=3))
def test_the_mean_is_over_all_pairs_and_reads_no_label(rows):
    codes, label = rows
    wanted = [
        pair_contingency(np.histogram2d(codes[:, i], codes[:, j], bins=[range(6)] * 2)[0])
        for i in range(codes.shape[1])
        for j in range(i)
    ]
    found = mean_contingency(cooccurrence(codes, label))
    assert found == pytest.approx(np.mean(wanted) if wanted else 0, abs=1e-12)
    assert found == pytest.approx(mean_contingency(cooccurrence(codes, label * 0)), abs=1e-12)


def test_rows_in_random_order_show_none_on_average():
    random = np.random.default_rng(5)
    one, other = random.integers(0, 9, 60), random.integers(0, 7, 60) ** 2 // 6
    beyond = []
    for _ in range(3000):
        table = np.zeros((9, 7))
        np.add.at(table, (one, random.permutation(other)), 1)
        value = pair_contingency(table)
        beyond.append(value / (1 - abs(value)))  # x of x / (1 + |x|)
    assert abs(np.mean(beyond)) < 4 * np.std(beyond) / np.sqrt(len(beyond))


@given(table=count_tables(), seed=st.data())
def test_without_the_correction_no_coarsening_raises_it(table, seed):
    own = seed.draw(groupings(len(table)))
    coarse = np.zeros((3, table.shape[1]))
    np.add.at(coarse, own, table)
    if table.sum() > 1:
        plain = pair_contingency(table, (1 + 1e-12, 1 + 1e-12))
        assert pair_contingency(coarse, (1 + 1e-12, 1 + 1e-12)) <= plain + 1e-9
