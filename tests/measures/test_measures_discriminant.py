"""Out-of-fold discriminants from counts, held against explicit ones on rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from measures_brute import (
    Pairs,
    by_attribute,
    cooccurrence,
    data,
    in_parts,
    in_thresholds,
    onehot,
)
from scipy.stats import binom, norm

from aegis.errors import InternalError
from aegis.measures import CountsByFold, Encoding, discriminant, get, naive_bayes, out_of_fold
from aegis.measures.auc_bound import reachable_auc
from aegis.measures.by_fold import OWN_COVARIANCES, ClassCounts, CommonLevels, OtherFolds
from aegis.measures.discriminant import PENALTIES

measure = get("held-out-auc")


@st.composite
def divided(draw):
    """Codes, labels and the part of each row; parts and classes without rows among them."""
    codes, label = draw(data())
    size = st.lists(st.integers(0, 3), min_size=len(label), max_size=len(label))
    return codes, label, np.array(draw(size))


def counted(codes, label, fold):
    folds, _ = in_parts(codes, label, fold)
    return replace(cooccurrence(codes, label), folds=dict.fromkeys(Encoding, folds))


def _indicators(codes):
    return np.hstack([onehot(column) for column in codes.T])


def explicit(features, label, fold, penalty):
    """AUC under normal scores of rows by directions fitted without their part, row by row."""
    found = []
    classes = [c for c in range(int(label.max()) + 1) if (label == c).any()]
    if len(classes) < 2:
        return 0.5
    for target in classes[1:] if len(classes) == 2 else classes:
        own = label == target
        scores = np.full(len(label), np.nan)
        for k in range(int(fold.max()) + 1):
            train, test = fold != k, fold == k
            one, rest = features[train & own], features[train & ~own]
            if not len(one) or not len(rest):
                continue
            within = (np.cov(one.T, bias=True, ddof=0) + np.cov(rest.T, bias=True, ddof=0)) / 2
            ridge = penalty / train.sum() * np.eye(features.shape[1])
            slope = np.linalg.solve(np.atleast_2d(within) + ridge, one.mean(0) - rest.mean(0))
            middle = (one.mean(0) + rest.mean(0)) / 2
            scores[test] = (features[test] - middle) @ slope
        seen = ~np.isnan(scores)
        high, low = scores[seen & own], scores[seen & ~own]
        if len(high) and len(low):
            gap, variance = high.mean() - low.mean(), high.var() + low.var()
            size = np.sqrt((high**2).mean() + (low**2).mean())
            if variance > 1e-11 * size**2:
                found.append(norm.cdf(gap / np.sqrt(variance)))
            else:
                found.append(0.5 if abs(gap) <= 1e-11 * size else float(gap > 0))
    return float(np.mean(found)) if found else 0.5


@given(rows=divided())
def test_out_of_fold_scores_are_those_of_explicit_discriminants(rows):
    codes, label, fold = rows
    folds, _ = in_parts(codes, label, fold)
    found = out_of_fold(folds).aucs[0]
    expected = [explicit(_indicators(codes), label, fold, penalty) for penalty in PENALTIES]
    assert found == pytest.approx(expected, abs=1e-8)


@st.composite
def many_classes(draw):
    """The same of more classes than have a covariance each; some have all rows in one part."""
    seed = draw(st.integers(0, 2**32 - 1))
    classes = draw(st.integers(OWN_COVARIANCES + 1, OWN_COVARIANCES + 4))
    random = np.random.default_rng(seed)
    label = np.concatenate([np.arange(classes), random.integers(0, classes, 40)])
    noise = random.integers(0, 4, (len(label), 3))
    codes = np.where(random.random(noise.shape) < 0.5, label[:, None] % [2, 3, 4], noise)
    return codes, label, random.integers(0, draw(st.integers(2, 4)), len(label))


def explicit_alike(codes, label, fold, penalty):
    """AUC of many classes, row by row: one covariance, and squares shared as of separate attributes."""
    columns = [onehot(column) for column in codes.T]
    features, found = np.hstack(columns), []
    ends = np.cumsum([column.shape[1] for column in columns])[:-1]
    for own in (label == target for target in range(int(label.max()) + 1)):
        sums = np.zeros((2, 3))  # by side: rows, scores and their squares
        for k in range(int(fold.max()) + 1):
            train, test = fold != k, fold == k
            if not (train & own).any() or not (train & ~own).any():
                continue
            shares = (own[train].mean(), (~own[train]).mean())
            fitted = [features[train & side] for side in (own, ~own)]
            within = sum(w * np.cov(x.T, bias=True) for w, x in zip(shares, fitted, strict=True))
            ridge = penalty / train.sum() * np.eye(features.shape[1])
            gap = fitted[0].mean(0) - fitted[1].mean(0)
            slope = np.linalg.solve(within + ridge, gap)
            scores = (features - (fitted[0].mean(0) + fitted[1].mean(0)) / 2) @ slope
            by_column = [x @ b for x, b in zip(columns, np.split(slope, ends), strict=True)]
            sides = [test & own, test & ~own]
            both = sum(scores[side].var() * side.sum() for side in sides if side.any())
            alone = [sum(c[s].var() * s.sum() for c in by_column) if s.any() else 0 for s in sides]
            for place, side in enumerate(sides):
                if side.any():
                    mean, total = scores[side].mean(), sum(alone)
                    inside = both * alone[place] / total if total > 1e-20 else 0.0
                    sums[place] += side.sum() * np.array([1, mean, mean**2]) + [0, 0, inside]
        if sums[:, 0].all():
            mean, square = sums[:, 1] / sums[:, 0], sums[:, 2] / sums[:, 0]
            found.append(norm.cdf((mean[0] - mean[1]) / np.sqrt((square - mean**2).sum())))
    return float(np.mean(found))


@settings(max_examples=8)
@given(rows=many_classes())
def test_many_classes_are_scored_by_the_counts_of_all_rows_and_label_tables(rows):
    codes, label, fold = rows
    counts, bounds = in_parts(codes, label, fold)
    expected = [explicit_alike(codes, label, fold, penalty) for penalty in PENALTIES]
    whole = replace(counts, by_attribute=by_attribute(counts.joint, bounds))
    assert out_of_fold(whole).aucs[0] == pytest.approx(expected, abs=1e-8)
    assume(bounds[1])
    apart = split(whole, bounds, 1)
    for _ in range(2):  # once solved, and remembered
        assert out_of_fold(apart).aucs[0] == pytest.approx(expected, abs=1e-8)
    assert naive_bayes(apart).aucs[0] == pytest.approx(naive_bayes(whole).aucs[0], abs=1e-8)
    assert reachable_auc(apart) == pytest.approx(reachable_auc(whole), abs=1e-8)
    assert max(*expected, *naive_bayes(whole).aucs[0]) <= reachable_auc(whole) + 1e-7
    coarser = codes.copy()
    coarser[coarser[:, 0] == 1, 0] = 0
    assert reachable_auc(in_parts(coarser, label, fold)[0]) <= reachable_auc(whole) + 1e-7


def test_no_counts_by_class_are_made_of_many_classes():
    random = np.random.default_rng(4)
    label, fold = np.arange(400) % 40, random.integers(0, 5, 400)
    counts = in_parts(random.integers(0, 4, (400, 3)), label, fold)[0]
    asked = []

    def count(some):
        asked.append(some)
        return np.tril(counts.total.whole).sum(axis=1, keepdims=True)

    scores = out_of_fold(replace(counts, total=ClassCounts(count, 40, 1)))
    assert scores.aucs[0] == pytest.approx(out_of_fold(counts).aucs[0], abs=1e-12)
    assert set(asked) == {None}


def test_noise_varies_the_directions_of_many_classes_by_their_covariance():
    random = np.random.default_rng(3)
    classes = OWN_COVARIANCES + 1
    label = np.concatenate([np.arange(classes)] * 3 + [np.zeros(30, dtype=int)])
    fold = np.arange(len(label)) // classes % 3
    codes = np.where(random.random((len(label), 2)) < 0.5, label[:, None] % 3, 1)
    counts = in_parts(codes, label, fold)[0]
    features = _indicators(codes)[:, _indicators(codes).std(axis=0) > 0]
    chance = random.normal(size=(features.shape[1], 2))
    added = out_of_fold(replace(counts, chance=chance), [10.0]).second - (
        out_of_fold(counts, [10.0]).second
    )
    for place in (0, 5):
        own = label == place
        for k in range(3):
            fit, test = fold != k, fold == k
            shares = own[fit].mean(), (~own[fit]).mean()
            sides = (features[fit & own], features[fit & ~own])
            within = sum(w * np.cov(x.T, bias=True) for w, x in zip(shares, sides, strict=True))
            ridge = 10 / fit.sum() * np.eye(features.shape[1])
            n = fit.sum(), (fit & own).sum() * (fit & ~own).sum()
            varied = np.linalg.solve(within + ridge, chance * np.sqrt(n[0] / n[1] / len(label)))
            for side, rows in enumerate((features[test & ~own], features[test & own])):
                away = features[test] - features[test].mean(axis=0)
                expected = ((away @ varied) ** 2).sum() * len(rows) / test.sum()
                assert added[k, place, side, 0] == pytest.approx(expected, abs=1e-9)


def test_many_classes_are_factorised_once(monkeypatch):
    random = np.random.default_rng(4)
    label = np.arange(400) % 40
    counts = in_parts(random.integers(0, 4, (400, 3)), label, random.integers(0, 5, 400))[0]
    factors = []
    solved = discriminant.solved
    monkeypatch.setattr(discriminant, "solved", lambda *a: factors.append(1) or solved(*a))
    out_of_fold(counts)
    assert len(factors) == 5  # one a part, instead of one a part and class


@given(rows=divided(), ordered=st.lists(st.booleans(), min_size=4, max_size=4))
def test_thresholds_are_counts_of_rows_on_one_side(rows, ordered):
    codes, label, fold = rows
    folds, offsets = in_parts(codes, label, fold)
    known = ordered[: codes.shape[1]]
    found = in_thresholds(folds, offsets, known)
    steps = np.column_stack(
        [
            column >= level if known[i] else column == level
            for i, column in enumerate(codes.T)
            for level in np.unique(column)
        ]
    ).astype(float)
    steps = steps[:, (steps == 0).any(axis=0)]
    for k in range(folds.rows.shape[0]):
        for y in range(folds.rows.shape[1]):
            own = steps[(fold == k) & (label == y)]
            assert np.array_equal(found.joint[k, y], own.sum(axis=0))
            assert np.array_equal(found.total.whole[k, y], own.T @ own)


@given(rows=divided())
def test_the_measure_is_the_best_penalty_of_the_better_coding_and_leaves_parts_out(rows):
    codes, label, fold = rows
    names, offsets = in_parts(codes, label, fold)
    steps = in_thresholds(names, offsets, [True] * codes.shape[1])
    folds = {Encoding.NAMES: names, Encoding.NUMBERS: names, Encoding.THRESHOLDS: steps}
    counts = replace(counted(codes, label, fold), folds=folds)
    numbers, trees = (out_of_fold(own).aucs[0].max() for own in (names, steps))
    assert measure(counts) == pytest.approx(max(numbers, trees, 0.5))
    assert get("held-out-auc(lr)")(counts) == pytest.approx(max(numbers, 0.5))
    assert get("held-out-auc(gbdt)")(counts) == pytest.approx(max(trees, 0.5))
    assert 0.5 <= measure(counts) <= 1
    without = measure.without_folds(counts)
    assert len(without) == names.rows.shape[0]
    assert ((without >= 0.5) & (without <= 1)).all()


def test_it_is_half_where_nothing_can_be_told():
    label = np.array([0, 1] * 10)
    fold = np.arange(20) % 5
    assert measure(counted(np.zeros((20, 1), dtype=int), label, fold)) == 0.5
    assert measure(counted(label[:, None], np.zeros(20, dtype=int), fold)) == 0.5
    # The second class has all its rows in one part: no direction can be fitted without it.
    assert measure(counted(label[:, None], label, label)) == 0.5


def test_a_rare_class_counts_as_much_as_a_frequent_one():
    generator = np.random.default_rng(5)
    label = (np.arange(6000) % 50 == 0).astype(int)  # 2 %
    fold = generator.integers(0, 5, 6000)
    told = [np.where(generator.random(6000) < 0.6, label, 1 - label) for _ in range(8)]
    # Eight codes, each right in 3 of 5 rows: a row of the class has more of them than another
    # with probability P(Bin(16, 0.6) > 8) + P(Bin(16, 0.6) = 8) / 2.
    expected = 1 - (binom.cdf(8, 16, 0.6) + binom.cdf(7, 16, 0.6)) / 2
    assert measure(counted(np.stack(told, axis=1), label, fold)) == pytest.approx(
        expected, abs=0.03
    )
    noise = generator.integers(0, 40, (6000, 2))
    assert measure(counted(noise, label, fold)) < 0.56


def test_counts_that_do_not_fit_or_are_no_numbers_are_refused():
    rows, broken = np.full((2, 2), 4.0), np.ones((2, 2, 3, 3))
    broken[0, 0, 1, 0] = np.nan
    outside = OtherFolds.of(rows)
    with pytest.raises(InternalError, match="Counts by fold"):
        CountsByFold(np.ones((2, 3)), np.ones((2, 2, 3)), Pairs(broken), outside)
    with pytest.raises(InternalError):
        out_of_fold(CountsByFold(rows, np.ones((2, 2, 3)), Pairs(broken), outside))
    with pytest.raises(InternalError, match="needs folds"):
        measure(cooccurrence(np.array([[0], [1]]), np.array([0, 1])))


def split(counts, bounds, common):
    """Counts of attributes of which the first `common` ones are taken for those of many."""
    first = int(bounds[common])
    alone = replace(
        counts,
        joint=counts.joint[..., :first],
        total=Pairs(counts.total.whole[..., :first, :first]),
    )
    levels = np.diff(bounds[common:]).tolist()
    return replace(
        counts,
        total=Pairs(counts.total.whole, first),
        common=CommonLevels(alone),
        blocks=list(enumerate(levels)),
    )


@given(rows=divided(), common=st.integers(1, 3))
def test_counts_with_common_levels_say_the_same(rows, common):
    counts, bounds = in_parts(*rows)
    whole = replace(counts, by_attribute=by_attribute(counts.joint, bounds))
    assume(common < len(bounds) - 1 and bounds[common])
    apart = split(whole, bounds, common)
    for own in (None, *range(whole.rows.shape[1])):
        for k in range(len(whole.rows)):
            pieces = (c.square(own).of_fold(k) for c in (apart, whole))
            assert np.array_equal(*pieces)
    assert reachable_auc(apart) == pytest.approx(reachable_auc(whole), abs=1e-8)
    for scores_of in (out_of_fold, naive_bayes, out_of_fold):  # once solved, and remembered
        scores, expected = scores_of(apart), scores_of(whole)
        assert scores.first == pytest.approx(expected.first, abs=1e-7)
        assert scores.second == pytest.approx(expected.second, abs=1e-6)
        assert scores.aucs[0] == pytest.approx(expected.aucs[0], abs=1e-8)


def test_common_levels_have_no_noise():
    counts = in_parts(np.array([[0], [1]]), np.array([0, 1]), np.array([0, 1]))[0]
    CommonLevels(counts)
    with pytest.raises(InternalError, match="without noise"):
        CommonLevels(replace(counts, chance=np.zeros((counts.joint.shape[-1], 1))))
