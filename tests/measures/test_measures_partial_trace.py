"""The trace beside attributes that stay is that of all attributes together."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.measures import pillai_trace
from aegis.measures.pillai import PartialCovariances


def counts_of(codes, label):
    """Return co-occurrence, rows per level and class, and where attributes start."""
    sizes = [int(column.max()) + 1 for column in codes]
    shown = np.hstack([np.eye(size)[column] for size, column in zip(sizes, codes, strict=True)])
    return shown.T @ shown, shown.T @ np.eye(int(label.max()) + 1)[label], np.cumsum([0, *sizes])


def fit_of(given, groups):
    """Return the fit of attributes whose levels are grouped, each group of each attribute by itself."""
    starts = np.cumsum([0, *map(len, groups)]).tolist()
    levels = [slice(*ends) for ends in pairwise(starts)]
    return given.fit([given.grouped(own, group) for own, group in zip(levels, groups, strict=True)])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(4, 200),
    stays=st.lists(st.booleans(), min_size=2, max_size=5).filter(lambda s: sum(s) < len(s)),
    classes=st.integers(1, 4),
    copies=st.booleans(),
)
def test_it_is_the_trace_of_all_attributes(seed, rows, stays, classes, copies):
    draw = np.random.default_rng(seed)
    codes = [draw.integers(0, draw.integers(1, 9), rows) for _ in stays]
    if copies:
        codes[-1] = codes[0] // 2  # what one attribute says of another adds no rank
    label = (codes[0] + codes[-1] + draw.integers(0, 3, rows)) % classes
    total, joint, offsets = counts_of(codes, label)
    stays = np.array(stays)
    fixed = PartialCovariances.of(total, joint, rows, offsets, stays)
    if fixed is None:
        return
    groups = [draw.integers(0, 4, offsets[j + 1] - offsets[j]) for j in np.flatnonzero(~stays)]
    groups = [np.unique(group, return_inverse=True)[1] for group in groups]
    fit = fit_of(fixed, groups)
    masked = [codes[j] for j in np.flatnonzero(stays)]
    masked += [group[codes[j]] for group, j in zip(groups, np.flatnonzero(~stays), strict=True)]
    masked = [np.unique(column, return_inverse=True)[1] for column in masked]
    total, joint, offsets = counts_of(masked, label)
    plain = pillai_trace(total, joint, rows, offsets)
    assert fit.rank == plain.rank
    assert fit.trace == pytest.approx(plain.trace, abs=1e-9)
    assert fit.adjusted == pytest.approx(plain.adjusted, abs=1e-9)


def test_what_is_nearly_explained_is_not_eliminated():
    """Two columns that differ in one of many rows: dividing by what is between them costs digits."""
    rows = 100_000
    first = np.arange(rows) % 2
    second = first.copy()
    second[0] = 1 - second[0]
    codes, label = [first, second, np.arange(rows) % 3], (np.arange(rows) // 2) % 2
    total, joint, offsets = counts_of(codes, label)
    assert PartialCovariances.of(total, joint, rows, offsets, np.array([True, True, False])) is None
    assert (
        PartialCovariances.of(total, joint, rows, offsets, np.array([True, False, False]))
        is not None
    )
