"""Grouped counts that are remembered, against those that are added up anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from aegis import array_cache
from aegis.advisor.grouping import RowGroups

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


@given(seed=st.integers(0, 99), listed=st.lists(choices, max_size=8), room=st.integers(1, 900))
def test_remembered_rows_change_nothing(seed, listed, room):
    pairs = counts(seed)
    for given_pairs in (pairs, Counts(sparse.csr_array(pairs.total), pairs.stacked_joint)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(array_cache, "_REMEMBERED_BYTES", room)
            remembering = RowGroups(given_pairs, OFFSETS)
            for choice in listed:
                levels = [LEVELS[i][one] for i, one in enumerate(choice)]
                found = remembering.counts(levels, choice)
                total, joint = by_definition(pairs, levels)
                assert found.total.tolist() == total.tolist()
                assert found.joint.tolist() == joint.tolist()
                sizes = [int(own.max()) + 1 for own in levels]
                assert found.offsets.tolist() == [0, *np.cumsum(sizes)]


def test_channels_of_noise_are_not_remembered():
    pairs = counts(1)
    channel = np.array([[0.5, 0.5], [1, 0], [0, 1]])
    levels = [channel, LEVELS[1][0], LEVELS[2][1]]
    remembering = RowGroups(pairs, OFFSETS)
    first, second = (
        remembering.counts([own, *levels[1:]], "abc") for own in (channel, 1 - channel)
    )
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


def test_no_more_is_remembered_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(array_cache, "_REMEMBERED_BYTES", 400)
    remembering = RowGroups(counts(2), OFFSETS)
    for one in range(4):
        remembering.counts([LEVELS[0][one], LEVELS[1][0], LEVELS[2][0]], [one, 0, 0])
        held = sum(remembering._rows[key].nbytes for key in reversed(remembering._rows))
        assert held == remembering._rows.size
        assert held <= 400 or len(remembering._rows) == 1
