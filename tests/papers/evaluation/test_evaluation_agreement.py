from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.papers.evaluation.result import Judged, agree, kendall, reliability, spearman

numbers = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=15)


def ranks(values):
    return [sum(w < v for w in values) + (sum(w == v for w in values) + 1) / 2 for v in values]


@given(numbers)
def test_correlations_are_their_definitions(pairs):
    one, two = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    if len(set(one)) == 1 or len(set(two)) == 1:
        assert spearman(one, two) is None
        assert kendall(one, two) is None
        return
    expected = float(np.corrcoef(ranks(one), ranks(two))[0, 1])
    assert spearman(one, two) == pytest.approx(expected, abs=1e-9)
    sign = np.sign(np.subtract.outer(one, one)) * np.sign(np.subtract.outer(two, two))
    first, second = np.subtract.outer(one, one) != 0, np.subtract.outer(two, two) != 0
    assert kendall(one, two) == pytest.approx(
        sign.sum() / np.sqrt(first.sum() * second.sum()), abs=1e-9
    )


def test_the_loss_is_that_of_the_choice_and_the_mean_of_equal_ones():
    accuracy = {"a": 0.9, "b": 0.8, "c": 0.7}
    good = Judged("good", 1, {"a": 3.0, "b": 2.0, "c": 1.0})
    found = agree(good, "lr", "accuracy", accuracy, sign=1, share=True)
    assert (found.spearman, found.kendall, found.loss, found.chosen) == (1.0, 1.0, 0.0, ("a",))
    low = Judged("low", -1, {"a": 3.0, "b": 2.0, "c": 1.0})
    found = agree(low, "lr", "accuracy", accuracy, sign=1, share=True)
    assert found.spearman == -1.0
    assert found.loss == pytest.approx(0.2)
    assert found.points == pytest.approx(20.0)
    blind = Judged("blind", -1, {"a": 0.0, "b": 0.0, "c": 0.0})
    found = agree(blind, "lr", "accuracy", accuracy, sign=1, share=True)
    assert found.spearman is None
    assert found.loss == pytest.approx(0.1)
    assert found.chosen == ("a", "b", "c")


def test_a_lower_log_loss_is_better():
    judged = Judged("mi", 1, {"a": 2.0, "b": 1.0})
    found = agree(judged, "lr", "log_loss", {"a": 0.3, "b": 0.5}, sign=-1, share=False)
    assert found.spearman == pytest.approx(1.0)
    assert found.loss == 0.0
    worse = agree(judged, "lr", "log_loss", {"a": 0.5, "b": 0.3}, sign=-1, share=False)
    assert worse.points == worse.loss == pytest.approx(0.2)


def test_reliability_correlates_even_and_odd_splits():
    values = {"a": {0: 1.0, 1: 1.1, 2: 1.2}, "b": {0: 2.0, 1: 2.1, 2: 2.2}, "c": {0: 3, 1: 0, 2: 3}}
    assert reliability(values) == pytest.approx(spearman([1.1, 2.1, 3], [1.1, 2.1, 0]))
    assert reliability({"a": {0: 1.0}, "b": {0: 2.0}}) is None
