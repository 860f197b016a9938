"""Expected accuracy and log loss, naive Bayes and named learners, held against rows and models."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measures_brute import cooccurrence, data, in_parts, onehot
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import norm

from aegis.errors import PolicyError
from aegis.measures import MEASURES, Encoding, get, metric_name, naive_bayes, out_of_fold
from aegis.measures import merits as merit

PENALTY = 10.0


@st.composite
def divided(draw):
    """Codes, labels and the part of each row; parts and classes without rows among them."""
    codes, label = draw(data())
    size = st.lists(st.integers(0, 3), min_size=len(label), max_size=len(label))
    return codes, label, np.array(draw(size))


def counted(codes, label, fold):
    folds, _ = in_parts(codes, label, fold)
    return replace(cooccurrence(codes, label), folds=dict.fromkeys(Encoding, folds))


def indicators(codes, label):
    """One column per level that some rows show and others do not."""
    columns = np.hstack([onehot(column) for column in codes.T])
    return columns[:, (columns.sum(axis=0) > 0) & (columns.sum(axis=0) < len(label))]


def discriminant(one, rest):
    """Slope and offset, from the rows themselves."""
    within = np.atleast_2d(np.cov(one.T, bias=True)) + np.atleast_2d(np.cov(rest.T, bias=True))
    ridge = PENALTY / (len(one) + len(rest)) * np.eye(one.shape[1])
    slope = np.linalg.solve(within / 2 + ridge, one.mean(axis=0) - rest.mean(axis=0))
    return slope, slope @ (one.mean(axis=0) + rest.mean(axis=0)) / 2


def bernoulli(one, rest):
    """The log-odds of naive Bayes with one row added to each cell, as slope and offset."""
    odds, offset = np.zeros(one.shape[1]), -math.log(len(one) / len(rest))
    for level in range(one.shape[1]):
        shares = [(rows[:, level].sum() + 1) / (len(rows) + 2) for rows in (one, rest)]
        odds[level] = math.log(shares[0] / shares[1] * (1 - shares[1]) / (1 - shares[0]))
        offset -= math.log((1 - shares[0]) / (1 - shares[1]))
    return odds, offset


@pytest.mark.parametrize(
    ("scored", "fitted"),
    [
        (lambda folds: out_of_fold(folds, [PENALTY], jointly=True), discriminant),
        (lambda folds: naive_bayes(folds, jointly=True), bernoulli),
    ],
    ids=["discriminant", "naive Bayes"],
)
@settings(max_examples=60)
@given(rows=divided())
def test_moments_by_class_are_those_of_rows_scored_out_of_fold(scored, fitted, rows):
    codes, label, fold = rows
    folds, _ = in_parts(codes, label, fold)
    found = scored(folds)
    features = indicators(codes, label)
    for place, target in enumerate(found.compared):
        own = label == target
        for k in range(len(folds.rows)):
            one, rest = features[own & (fold != k)], features[~own & (fold != k)]
            assert found.scored[k, place] == (len(one) > 0 and len(rest) > 0)
            if not found.scored[k, place]:
                assert not found.first[k, place].any()
                continue
            slope, offset = fitted(one, rest) if features.shape[1] else (np.zeros(0), 0.0)
            if not features.shape[1] and fitted is bernoulli:
                offset = -math.log(len(one) / len(rest))
            scores = features @ slope - offset
            here = fold == k
            for side, of in enumerate((here & ~own, here & own)):
                assert found.counted[k, place, side] == of.sum()
                assert found.first[k, place, side, 0] == pytest.approx(scores[of].sum(), abs=1e-8)
                squares = (scores[of] ** 2).sum()
                assert found.second[k, place, side, 0] == pytest.approx(squares, abs=1e-8)
            if (both := found.together) is None:
                assert len(found.compared) == 1
                continue
            for c in range(folds.rows.shape[1]):
                of = scores[here & (label == c)]
                assert both.first[k, c, place, 0] == pytest.approx(of.sum(), abs=1e-8)
                assert both.second[k, c, place, place, 0] == pytest.approx((of**2).sum(), abs=1e-8)


@pytest.mark.parametrize("seed", range(12))
def test_two_classes_reach_what_the_best_threshold_and_logistic_curve_do(seed):
    random = np.random.default_rng(seed)
    share = random.dirichlet([1, 1]) * 0.98 + 0.01
    mean = np.array([0.0, random.uniform(0, 4)])
    deviation = random.uniform(0.3, 3, 2)
    shaped = (share[None, None], mean[None, None], deviation[None, None])

    def wrong(threshold):
        one, rest = norm.sf(threshold, mean[1], deviation[1]), norm.cdf(threshold, *_of(0))
        return -(share[1] * one + share[0] * rest)

    def _of(c):
        return mean[c], deviation[c]

    grid = np.linspace(-30, 30, 4001)
    start = grid[np.argmin(wrong(grid))]
    near = minimize_scalar(wrong, bounds=(start - 0.05, start + 0.05), method="bounded")
    best = max(-near.fun, share.max())
    found = max(float(merit._best_threshold(*shaped)[0, 0]), share.max())
    assert found == pytest.approx(best, abs=1e-8)

    points = np.linspace(-10, 10, 2001)
    weights = norm.pdf(points) / norm.pdf(points).sum()

    def loss(curve):
        total = 0.0
        for c, sign in ((0, 1.0), (1, -1.0)):
            odds = curve[0] + curve[1] * (mean[c] + deviation[c] * points)
            total += share[c] * (weights * np.logaddexp(0, sign * odds)).sum()
        return total

    least = minimize(loss, [math.log(share[1] / share[0]), mean[1]], tol=1e-14)
    turned = min(least.fun, merit.constant_log_loss(share)) if least.x[1] >= 0 else None
    if turned is not None:
        assert float(merit._least_loss(*shaped)[0, 0]) == pytest.approx(turned, abs=1e-8)


@given(rows=divided(), learners=st.sampled_from(["", "(lr)", "(nb)", "(gbdt)", "(lr+nb+gbdt)"]))
@settings(max_examples=12)
def test_merits_stay_between_a_constant_prediction_and_perfection(rows, learners):
    counts = counted(*rows)
    classes = counts.by_fold().rows.sum(axis=0)
    for name in ("held-out-auc", "held-out-accuracy", "held-out-log-loss"):
        measure = get(name + learners)
        value, worst, sign = measure(counts), measure.worst(classes), measure.direction.sign
        without = measure.without_folds(counts)
        assert np.isfinite([value, *without]).all()
        assert len(without) == len(counts.by_fold().rows)
        if "nb" not in learners or name != "held-out-log-loss":
            assert sign * value >= sign * worst - 1e-9
        assert value >= 0 if name == "held-out-log-loss" else value <= 1 + 1e-12


def test_constant_attributes_and_one_class_reach_what_a_constant_does():
    label, fold = np.array([0, 1, 1, 1] * 5), np.arange(20) % 5
    blind = counted(np.zeros((20, 1), dtype=int), label, fold)
    assert get("held-out-accuracy")(blind) == 0.75
    assert get("held-out-log-loss")(blind) == pytest.approx(merit.constant_log_loss([5, 15]))
    single = counted(label[:, None], np.zeros(20, dtype=int), fold)
    assert get("held-out-accuracy")(single) == 1.0
    assert get("held-out-log-loss")(single) == 0.0
    # All rows of the second class are in one part, so that nothing is known of it elsewhere.
    assert get("held-out-accuracy")(counted(label[:, None], label, label)) == 0.75


@pytest.mark.parametrize("classes", [2, 4])
def test_merits_are_near_what_trained_models_reach(classes):
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_validate
    from sklearn.naive_bayes import BernoulliNB

    random = np.random.default_rng(classes)
    label = random.choice(classes, 4000, p=[0.85, 0.15] if classes == 2 else [0.4, 0.3, 0.2, 0.1])
    told = [
        np.where(random.random(4000) < 0.3, label, random.integers(0, 4, 4000)) for _ in "abcde"
    ]
    codes = np.stack(told, axis=1)
    counts = counted(codes, label, random.integers(0, 5, 4000))
    features = np.hstack([onehot(column) for column in codes.T])
    metrics = {"auc": "roc_auc_ovr", "accuracy": "accuracy", "log-loss": "neg_log_loss"}
    for name, model in (("lr", LogisticRegression()), ("nb", BernoulliNB())):
        scored = cross_validate(model, features, label, cv=5, scoring=metrics)
        for one in metrics:
            if (name, one, classes) == ("nb", "log-loss", 4):
                continue  # of several classes it is that of calibrated scores
            reached = abs(scored[f"test_{one}"].mean())
            expected = get(metric_name(one, name))(counts)
            near = {"auc": 0.01, "accuracy": 0.03, "log-loss": 0.06}[one]
            assert expected == pytest.approx(reached, abs=near)


def test_learners_and_merits_are_named_in_the_measure():
    assert metric_name(None, None) is None
    assert metric_name("accuracy", None) == "held-out-accuracy"
    assert metric_name(None, "gbdt, lr,lr") == "held-out-auc(lr+gbdt)"
    assert get("held-out-auc(gbdt,lr)") is get("held-out-auc(lr+gbdt)")
    assert "held-out-auc(nb)" in MEASURES
    assert "held-out-auc(svm)" not in MEASURES
    assert "held-out-auc(nb)" not in MEASURES.names()
    with pytest.raises(PolicyError, match=r"Unknown model .* 'svm'.*lr, nb, gbdt"):
        get("held-out-auc(svm)")
    with pytest.raises(PolicyError, match="Unknown metric 'f1'"):
        metric_name("f1", None)


def test_scores_that_cancel_but_for_rounding_tell_nothing():
    # Every row scores its offset: what was left of the difference passed for a perfect score.
    codes = np.array([[0, 0, 2], [2, 1, 2], [0, 0, 2], [3, 1, 2], [2, 1, 0]])
    label, fold = np.array([0, 1, 1, 0, 0]), np.array([3, 2, 3, 2, 2])
    assert out_of_fold(in_parts(codes, label, fold)[0], [50.0]).aucs[0][0] == 0.5
