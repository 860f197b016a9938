"""The bound of the expected AUC: never exceeded, and never raised by a coarser mask."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measures_brute import data, in_parts, in_thresholds, onehot
from scipy.special import ndtr
from scipy.stats import norm

from aegis.measures import naive_bayes, out_of_fold
from aegis.measures.auc_bound import reachable_auc
from aegis.measures.numerics import cumulative


@st.composite
def divided(draw):
    codes, label = draw(data())
    size = st.lists(st.integers(0, 3), min_size=len(label), max_size=len(label))
    return codes, label, np.array(draw(size))


@settings(max_examples=60)
@given(rows=divided(), strength=st.sampled_from([1e-3, 1.0, 50.0]))
def test_no_scores_out_of_fold_exceed_it(rows, strength):
    folds, offsets = in_parts(*rows)
    most = reachable_auc(folds)
    ordered = in_thresholds(folds, offsets, [True] * rows[0].shape[1])
    for scores in (
        out_of_fold(folds, [strength]),
        out_of_fold(ordered, [strength]),
        naive_bayes(folds),
    ):
        assert scores.aucs[0][0] <= most + 1e-7


@settings(max_examples=50)
@given(rows=divided(), merged=st.integers(0, 3), attribute=st.integers(0, 3))
def test_a_coarser_mask_does_not_raise_it(rows, merged, attribute):
    codes, label, fold = rows
    whole = reachable_auc(in_parts(codes, label, fold)[0])
    coarser = codes.copy()
    column = coarser[:, attribute % codes.shape[1]]
    column[column == merged] = 0
    assert reachable_auc(in_parts(coarser, label, fold)[0]) <= whole + 1e-7


def test_it_is_that_of_least_squares_with_balanced_classes_in_each_part():
    random = np.random.default_rng(1)
    label = (random.random(400) < 0.2).astype(int)
    codes = np.stack([np.where(random.random(400) < 0.3, label, random.integers(0, 3, 400))] * 2)
    codes[1] = random.integers(0, 3, 400)
    fold = random.integers(0, 3, 400)
    features = np.hstack([onehot(column) for column in codes])
    crossed = np.hstack([features * (fold == k)[:, None] for k in range(3)])
    weight = np.where(label == 1, 0.5 / label.sum(), 0.5 / (label == 0).sum())
    root = np.sqrt(weight)[:, None]
    fitted = crossed @ np.linalg.lstsq(root * crossed, root[:, 0] * (2 * label - 1), rcond=None)[0]
    gap = fitted[label == 1].mean() - fitted[label == 0].mean()
    spread = fitted[label == 1].var() + fitted[label == 0].var()
    found = reachable_auc(in_parts(codes.T, label, fold)[0])
    assert found == pytest.approx(norm.cdf(gap / np.sqrt(spread)), abs=1e-6)


def test_where_nothing_can_be_told_it_is_half():
    label, fold = np.array([0, 1] * 10), np.arange(20) % 5
    assert reachable_auc(in_parts(label[:, None], label * 0, fold)[0]) == 0.5
    assert reachable_auc(in_parts(label[:, None], label, label)[0]) == 0.5
    assert reachable_auc(in_parts(label[:, None], label, fold)[0]) == pytest.approx(1.0)


@given(st.lists(st.floats(-40, 40) | st.sampled_from([np.inf, -np.inf, np.nan]), max_size=9))
def test_the_normal_distribution_is_that_of_scipy(values):
    np.testing.assert_allclose(cumulative(values), ndtr(values), rtol=2e-12, atol=1e-300)
