from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import DataError, PolicyError
from aegis.papers.evaluation.evaluate import check_request
from aegis.papers.evaluation.training import make_splits, rare_classes
from aegis.papers.requests import EvaluationRequest

labels = st.lists(st.integers(-1, 3), min_size=12, max_size=60).map(
    lambda values: np.array([0] * 4 + values)
)


@given(labels, st.floats(0.2, 0.8), st.integers(0, 5))
def test_a_split_divides_the_labelled_rows_by_class(label, share, seed):
    for split in make_splits(label, count=3, test_share=share, seed=seed):
        both = np.concatenate([split.train, split.test])
        assert sorted(both.tolist()) == np.flatnonzero(label >= 0).tolist()
        for one in range(4):
            rows = int((label == one).sum())
            tested = int((label[split.test] == one).sum())
            assert tested == max(0, min(int(share * rows + 0.5), rows - 1))


def test_splits_differ_and_do_not_depend_on_their_number():
    label = np.arange(100) % 2
    few = make_splits(label, count=2, test_share=0.3, seed=7)
    many = make_splits(label, count=4, test_share=0.3, seed=7)
    assert [s.test.tolist() for s in few] == [s.test.tolist() for s in many[:2]]
    assert len({tuple(s.test.tolist()) for s in many}) == 4
    other = make_splits(label, count=1, test_share=0.3, seed=8)
    assert other[0].test.tolist() != few[0].test.tolist()


def test_a_class_with_one_row_is_trained_on_and_said():
    label = np.array([0] * 10 + [1] * 10 + [2])
    splits = make_splits(label, count=2, test_share=0.5, seed=0)
    assert all(20 in s.train for s in splits)
    assert rare_classes(splits, label).tolist() == [2]


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, float("nan")])
def test_a_share_out_of_range_is_refused(share):
    with pytest.raises(PolicyError, match="above 0 and below 1"):
        make_splits(np.array([0, 1]), count=1, test_share=share, seed=0)


def test_no_split_is_refused():
    with pytest.raises(PolicyError, match="at least 1"):
        make_splits(np.array([0, 1]), count=0, test_share=0.3, seed=0)


@pytest.mark.parametrize("wrong", [{"splits": 0}, {"test_share": 1.0}])
def test_wrong_splits_are_refused_before_any_work(wrong):
    """Aegis ranked all configurations first."""
    with pytest.raises(PolicyError, match=r"at least 1|above 0 and below 1"):
        check_request(EvaluationRequest(**wrong))


def test_a_table_that_leaves_nothing_to_test_is_refused():
    with pytest.raises(DataError, match="2 labelled rows"):
        make_splits(np.array([0, 1, -1]), count=1, test_share=0.3, seed=0)
