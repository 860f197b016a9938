"""What pairs of attributes add, held against explicit regressions on rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.linear_model import Ridge

from aegis.errors import PolicyError
from aegis.measures import get
from aegis.measures.pair_gains import BELIEVED, pair_gains, pair_gains_of_number, strongest


@st.composite
def rows_of_a_pair(draw):
    """Two attributes, label and part of each row; parts and classes without rows among them."""
    count = draw(st.integers(2, 40))

    def column(most: int) -> np.ndarray:
        return np.array(draw(st.lists(st.integers(0, most), min_size=count, max_size=count)))

    return column(2), column(3), column(draw(st.integers(1, 2))), column(2)


def table(a, b, label, fold) -> np.ndarray:
    counted = np.zeros((3, 3, 3, 4))
    np.add.at(counted, (fold, label, a, b), 1)
    return counted


def explicit(a, b, label, fold, target) -> np.ndarray:
    """The gain for one class, from rows: (1 + K,) by regressions and AUCs that see each row."""
    own = label == target
    indicators = np.hstack([np.eye(3)[a], np.eye(4)[b]])
    areas, weights = np.full((2, 3), 0.5), np.zeros(3)
    for k in range(3):
        train, test = fold != k, fold == k
        if not (train & own).any() or not (train & ~own).any():
            continue
        n1, n0 = (train & own).sum(), (train & ~own).sum()
        weight = np.where(own, 1 / (2 * n1), 1 / (2 * n0)) * train
        aim, ridge = np.where(own, 1.0, -1.0), BELIEVED / (n1 + n0)
        centred = indicators - weight @ indicators
        slopes = np.linalg.solve(
            (centred * weight[:, None]).T @ centred + ridge * np.eye(7),
            centred.T @ (weight * aim),
        )
        fitted = centred @ slopes
        left = np.zeros(len(a))
        for i in np.flatnonzero(test):
            same = (a == a[i]) & (b == b[i])
            left[i] = (weight * (aim - fitted))[same].sum() / (weight[same].sum() + ridge)
        high, low = np.flatnonzero(test & own), np.flatnonzero(test & ~own)
        if len(high) and len(low):
            weights[k] = len(high)
            for place, score in enumerate((fitted, fitted + left)):
                gap = score[high][:, None] - score[low]
                equal = np.abs(gap) <= 1e-9 * np.abs(score).max()
                areas[place, k] = np.where(equal, 0.5, gap > 0).mean()
    gains = []
    for without in (None, 0, 1, 2):
        share = np.where(np.arange(3) == without, 0.0, weights)
        means = areas @ share / share.sum() if share.sum() else np.full(2, 0.5)
        apart = norm.ppf(np.clip(means, 1e-9, 1 - 1e-9))
        squares = apart * np.abs(apart)
        gains.append(squares[1] - squares[0])
    return np.array(gains)


@given(rows_of_a_pair())
def test_gains_are_those_of_explicit_regressions_on_rows(rows):
    a, b, label, fold = rows
    classes = np.unique(label)
    got = pair_gains(table(a, b, label, fold)[None])
    told = classes[1:] if len(classes) == 2 else classes if len(classes) > 2 else []
    assert got.shape == (1, len(told), 4)
    for place, target in enumerate(told):
        wanted = explicit(a, b, label, fold, target)
        np.testing.assert_allclose(got[0, place], wanted, atol=1e-8)


def test_many_pairs_are_worked_on_as_each_alone():
    random = np.random.default_rng(4)
    drawn = [random.integers(0, most, (2, 200)) for most in (3, 4, 3, 3)]
    tables = np.stack([table(*(values[place] for values in drawn)) for place in range(2)])
    together = pair_gains(tables)
    for place in range(2):
        np.testing.assert_allclose(pair_gains(tables[place : place + 1])[0], together[place])
    assert pair_gains(np.zeros((0, 5, 2, 8, 8))).shape[0] == 0


def test_what_only_two_together_tell_is_a_gain_and_what_each_tells_is_none():
    random = np.random.default_rng(0)
    a, b = random.integers(0, 2, (2, 3000))
    fold = np.arange(3000) % 3
    noise = random.random(3000) < 0.2
    exclusive, summed = (a ^ b) ^ noise, np.where(random.random(3000) < 0.5, a, b) ^ noise
    gains = [float(pair_gains(table(a, b, y, fold)[None])[0, 0, 0]) for y in (exclusive, summed)]
    assert norm.cdf(np.sqrt(gains[0])) == pytest.approx(0.8, abs=0.02)
    assert abs(gains[1]) < 0.01


def test_the_strongest_pair_counts_by_its_smallest_gain():
    first, second, third = [0.5, 0.1, 0.6], [0.3, 0.2, 0.4], [0.9, -0.1, 0.9]
    gains = np.array([[first], [second], [third]])
    assert strongest(gains) == pytest.approx([0.2, 0.1, 0.3])
    both = np.concatenate([gains, gains[[2, 2, 2]]], axis=1)  # of the second class none gains
    assert strongest(both) == pytest.approx([0.1, 0.05, 0.15])
    assert strongest(np.zeros((0, 0, 6))).tolist() == [0] * 6


def test_interactions_are_named_and_have_an_auc_alone():
    assert get("held-out-auc(pairs)").name == "held-out-auc(pairs)"
    for name in ("held-out-accuracy(pairs)", "held-out-log-loss(lr+pairs)"):
        with pytest.raises(PolicyError, match="only the AUC of models with interactions"):
            get(name)


def explicit_of_number(a, b, number, fold) -> np.ndarray:
    """The gain in R2, from rows: (1 + K,) by scikit-learn's ridge and the mean residual of each cell."""
    indicators = np.hstack([np.eye(3)[a], np.eye(4)[b]])
    fallen, squares = np.zeros(3), np.zeros(3)
    for k in range(3):
        train, test = fold != k, fold == k
        squares[k] = ((number[test] - number.mean()) ** 2).sum()
        if not train.any() or not test.any():
            continue
        model = Ridge(alpha=BELIEVED).fit(indicators[train], number[train])
        left = number - model.predict(indicators)
        for i in np.flatnonzero(test):
            same = train & (a == a[i]) & (b == b[i])
            shrunk = left[same].sum() / (same.sum() + BELIEVED)
            fallen[k] += left[i] ** 2 - (left[i] - shrunk) ** 2
    gains = []
    for without in (None, 0, 1, 2):
        share = np.where(np.arange(3) == without, 0.0, 1.0)
        whole = share @ squares
        gains.append(share @ fallen / whole if whole > 1e-9 else 0.0)
    return np.array(gains)


@given(rows_of_a_pair(), st.integers(0, 2**32))
def test_gains_in_r2_equal_explicit_regressions(rows, seed) -> None:
    a, b, _, fold = rows
    number = np.random.default_rng(seed).normal(100.0, 9.0, len(a)).round(1)
    counted, away = np.zeros((1, 3, 3, 4)), np.zeros((1, 3, 3, 4))
    np.add.at(counted[0], (fold, a, b), 1)
    np.add.at(away[0], (fold, a, b), number - number.mean())
    squares = np.bincount(fold, (number - number.mean()) ** 2, 3)
    if not (fold[:, None] != np.arange(3)).any(axis=0).all():
        return  # a fold that holds all rows: nothing is fitted
    gains = pair_gains_of_number(counted, away, squares)
    assert gains.shape == (1, 1, 4)
    np.testing.assert_allclose(gains[0, 0], explicit_of_number(a, b, number, fold), atol=1e-9)
