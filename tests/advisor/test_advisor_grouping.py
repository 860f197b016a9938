"""Counts by atom added up to counts by level, against the sums written out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from aegis.advisor.encodings import RowGroups

SIZES = (3, 1, 5)
OFFSETS = np.array([0, 3, 4, 9])
LEVELS = (
    [np.array(a) for a in ([0, 1, 2], [0, 1, 1], [1, 0, 1], [0, 0, 0])],
    [np.array([0])],
    [np.array(a) for a in ([0, 1, 2, 3, 4], [0, 0, 1, 1, 0], [2, 1, 1, 0, 0])],
)


@dataclass
class Counts:
    total: Any
    stacked_joint: Any


def counts(seed: int) -> Counts:
    rng = np.random.default_rng(seed)
    half = rng.integers(0, 50, (9, 9))
    return Counts((half + half.T).astype(float), rng.integers(0, 9, (9, 2)).astype(float))


def by_definition(pairs, levels):
    """Return S' G S and S' J, with S filled in entry by entry."""
    grouping = np.zeros((OFFSETS[-1], sum(int(own.max()) + 1 for own in levels)))
    start = 0
    for own, first in zip(levels, OFFSETS, strict=False):
        for atom, level in enumerate(own):
            grouping[first + atom, start + level] = 1
        start += int(own.max()) + 1
    return grouping.T @ pairs.total @ grouping, grouping.T @ pairs.stacked_joint


choices = st.tuples(*(st.integers(0, len(levels) - 1) for levels in LEVELS))


@given(seed=st.integers(0, 99), listed=st.lists(choices, max_size=8))
def test_counts_by_atom_are_added_up_to_counts_by_level(seed, listed):
    pairs = counts(seed)
    for known in (pairs.total, sparse.csr_array(pairs.total)):
        grouped = RowGroups(lambda known=known: known, pairs.stacked_joint, OFFSETS)
        for choice in listed:
            levels = [LEVELS[i][one] for i, one in enumerate(choice)]
            found = grouped.counts(levels)
            total, joint = by_definition(pairs, levels)
            assert found.total.tolist() == total.tolist()
            assert found.joint.tolist() == joint.tolist()
            sizes = [int(own.max()) + 1 for own in levels]
            assert found.offsets.tolist() == [0, *np.cumsum(sizes)]


def test_expected_counts_of_noise():
    pairs = counts(1)
    channel = np.array([[0.5, 0.5], [1, 0], [0, 1]])
    levels = [channel, LEVELS[1][0], LEVELS[2][1]]
    grouped = RowGroups(lambda: pairs.total, pairs.stacked_joint, OFFSETS)
    first, second = (grouped.counts([own, *levels[1:]]) for own in (channel, 1 - channel))
    for found, shown in ((first, channel), (second, 1 - channel)):
        grouping = np.zeros((9, 5))
        grouping[:3, :2], grouping[3, 2] = shown, 1
        grouping[range(4, 9), 3 + levels[2]] = 1
        joint = grouping.T @ pairs.stacked_joint
        total = grouping.T @ pairs.total @ grouping
        total[:2, :2] = np.diag(joint[:2].sum(axis=1))
        assert found.total == pytest.approx(total)
        assert found.joint == pytest.approx(joint)
        assert found.offsets.tolist() == [0, 2, 3, 5]
        assert found.chance is not None
