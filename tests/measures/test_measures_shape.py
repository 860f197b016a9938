"""The shape of scores: sums of independent attributes against enumeration, and within the bound."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measures_brute import by_attribute, cooccurrence, data, in_parts
from scipy.stats import norm

from aegis.measures import Encoding, get
from aegis.measures.auc_bound import reachable_auc
from aegis.measures.discriminant import shape_factors

measure = get("held-out-auc")


def counted(codes, label, fold):
    folds, offsets = in_parts(codes, label, fold)
    folds = replace(folds, by_attribute=by_attribute(folds.joint, offsets))
    return replace(cooccurrence(codes, label), folds=dict.fromkeys(Encoding, folds))


def enumerated(slopes, share, bounds):
    """AUC of the sum of independent attributes, and under normal scores, value by value."""
    own = [range(*ends) for ends in pairwise(bounds)]
    sums = [(sum(slopes[list(v)]), share[:, list(v)].prod(axis=1)) for v in product(*own)]
    area = sum(
        one[1] * other[0] * (0.5 if abs(s - t) < 1e-9 else float(s > t))
        for s, one in sums
        for t, other in sums
    )
    mean = sum(s * p for s, p in sums)
    spread = sum(s**2 * p for s, p in sums) - mean**2
    return area, norm.cdf((mean[1] - mean[0]) / np.sqrt(spread.sum()))


@pytest.mark.parametrize("seed", range(20))
def test_factors_are_those_of_independent_attributes(seed):
    random = np.random.default_rng(seed)
    bounds = np.cumsum([0, *random.integers(2, 5, random.integers(1, 4))])
    share = np.hstack([random.dirichlet(np.ones(n), 2) for n in np.diff(bounds)])
    slopes = random.permutation(bounds[-1]) + random.uniform(-0.3, 0.3, bounds[-1])
    if (share[1] - share[0]) @ slopes < 0:
        slopes = -slopes
    rows = np.array([[700.0, 40.0]])
    factors = shape_factors(slopes[None], share[None] * rows[..., None], rows, bounds)
    area, normal = enumerated(slopes, share, bounds)
    shaped = norm.cdf(factors[0] * norm.ppf(normal))
    assert shaped == pytest.approx(min(max(area, 0.5), normal), abs=0.01)


def test_a_score_of_two_values_has_the_area_of_its_two_shares():
    label = np.repeat([0, 1], [900, 100])
    code = np.concatenate([np.arange(900) % 10 < 4, np.arange(100) % 10 < 9]).astype(int)
    fold = np.arange(1000) // 10 % 5
    scored = measure(counted(code[:, None], label, fold))
    assert scored == pytest.approx(0.5 + (0.9 - 0.4) / 2, abs=1e-3)
    normal = norm.cdf(0.5 / np.sqrt(0.4 * 0.6 + 0.9 * 0.1))
    assert normal > scored + 0.05


@st.composite
def divided(draw):
    codes, label = draw(data())
    size = st.lists(st.integers(0, 3), min_size=len(label), max_size=len(label))
    return codes, label, np.array(draw(size))


@given(rows=divided(), times=st.sampled_from([1, 5, 20]))
def test_it_is_a_number_within_what_bounds_normal_scores(rows, times):
    codes, label, fold = (np.repeat(one, times, axis=0) for one in rows)
    counts = counted(codes, label, fold)
    scored, most = measure(counts), reachable_auc(counts.by_fold())
    assert 0.5 <= scored <= most + 1e-7
    assert np.isfinite(measure.without_folds(counts)).all()


def test_too_few_rows_of_a_class_say_nothing_of_a_shape():
    rows = np.array([[50.0, 4.0]])
    joint = np.array([[[20.0, 30.0], [3.0, 1.0]]])
    assert shape_factors(np.array([[1.0, 0.0]]), joint, rows, np.array([0, 2])) is None
