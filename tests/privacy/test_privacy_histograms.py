"""Classes as plain matrices against the sparse tables, and what finer tables keep by brute force."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy_brute import LEVELS, VALUES, Rows, rows, table_of

from aegis.privacy import MODELS, Criterion, PrivacyRule
from aegis.privacy.admission import admits_dense
from aegis.privacy.histograms import Bounds, Histograms, ShareCaps, TreeGroups

DEMANDS: dict[str, tuple[dict[str, Any], ...]] = {
    "alpha_k": ({"alpha": 0.5}, {"alpha": 0.34}),
    "l_diversity.distinct": ({"l": 2}, {"l": 3}),
    "l_diversity.entropy": ({"l": 1.7}, {"l": 3}),
    "l_diversity.recursive": ({"l": 1, "c": 0.6}, {"l": 2, "c": 1.5}, {"l": 3, "c": 4}),
    "t_closeness.equal": ({"t": 0.1}, {"t": 0.25}, {"t": 0}),
    "t_closeness.ordered": ({"t": 0.08}, {"t": 0.2}, {"t": 0}),
    "t_closeness.hierarchical": ({"t": 0.08}, {"t": 0.2}, {"t": 0}),
    "beta_likeness.basic": ({"beta": 0.3}, {"beta": 1}, {"beta": 0}),
    "beta_likeness.enhanced": ({"beta": 0.3}, {"beta": 1}, {"beta": 0}),
    "delta_disclosure.all": ({"delta": 0.4}, {"delta": 1.2, "base": 2}),
    "delta_disclosure.present": ({"delta": 0.4}, {"delta": 1.2, "base": 2}),
}
CAPPED = [name for name in DEMANDS if MODELS.get(name).caps is not None]
DENSE = [name for name in DEMANDS if MODELS.get(name).dense is not None]
TREE = TreeGroups.of(LEVELS)


def criterion_of(name: str, demand: dict[str, Any], *, reference: str = "released") -> Criterion:
    beside = {"reference": reference} if MODELS.get(name).compares else {}
    return MODELS.get(name).criterion({"attribute": "s", **beside, **demand})


def dense_of(given: Rows) -> Histograms:
    ids = sorted({one for one, _ in given})
    counts = np.zeros((len(ids), VALUES))
    for one, value in given:
        counts[ids.index(one), value] += 1
    return Histograms(counts, TREE)


def test_every_model_of_a_sensitive_attribute_has_demands_here() -> None:
    given = {m.name for m in MODELS if m.dense is not None or m.caps is not None}
    assert given == set(DEMANDS)


@pytest.mark.parametrize("name", DENSE)
@given(given=rows)
@settings(max_examples=10, deadline=None)
def test_figures_are_those_of_the_sparse_table(name: str, given: Rows) -> None:
    criterion = criterion_of(name, DEMANDS[name][0])
    dense = criterion.model.dense
    assert dense is not None
    np.testing.assert_allclose(
        dense(dense_of(given), criterion), criterion.figures(table_of(given)), atol=1e-12
    )


@given(
    given=rows,
    chosen=st.lists(
        st.tuples(
            st.sampled_from(DENSE), st.integers(0, 1), st.sampled_from(["released", "input"])
        ),
        min_size=1,
        max_size=3,
    ),
    share=st.sampled_from([0.0, 0.15, 0.5, 1.0]),
)
@settings(max_examples=120, deadline=None)
def test_admission_is_that_of_the_rule(
    given: Rows, chosen: list[tuple[str, int, str]], share: float
) -> None:
    criteria = tuple(
        criterion_of(name, DEMANDS[name][place], reference=reference)
        for name, place, reference in chosen
    )
    rule = PrivacyRule(criteria, share)
    table = dense_of(given)
    room = rule.allowed_rows(len(given))
    quick = admits_dense(criteria, {"s": table}, table.sizes, room, {"s": table.totals})
    assert quick == rule.check(table_of(given)).admissible


@pytest.mark.parametrize("name", CAPPED)
@given(
    given=rows,
    place=st.integers(0, 2),
    share=st.sampled_from([0.0, 0.1, 0.3, 0.6]),
    merged=st.lists(st.integers(0, 2), min_size=6, max_size=6),
    reference=st.sampled_from(["released", "input"]),
)
@settings(max_examples=12, deadline=None)
def test_no_finer_table_keeps_more(
    name: str, given: Rows, place: int, share: float, merged: list[int], reference: str
) -> None:
    demand = DEMANDS[name][min(place, len(DEMANDS[name]) - 1)]
    if MODELS.get(name).compares:
        demand = {**demand, "reference": reference}
    criterion = criterion_of(name, demand)
    rule = PrivacyRule((criterion,), share)
    verdict = rule.check(table_of(given))
    if not verdict.admissible:
        return
    coarse = dense_of([(merged[one], value) for one, value in given])
    room = 0 if reference == "input" else rule.allowed_rows(len(given))
    assert criterion.model.caps is not None
    caps = criterion.model.caps(Bounds(coarse.totals, room, TREE), criterion)
    if caps is None:
        return
    most = caps.most_rows(coarse.counts)
    fine = sorted({one for one, _ in given})
    kept = dict(zip(fine, verdict.kept_classes.tolist(), strict=True))
    # Parts that are finer than the classes of the table, each of two halves.
    halves = [(merged[one], 2 * one + place % 2, value) for place, (one, value) in enumerate(given)]
    numbers = sorted({(group, half) for group, half, _ in halves})
    parts = dense_of([(numbers.index((group, half)), value) for group, half, value in halves])
    starts = np.flatnonzero(np.diff([group for group, _ in numbers], prepend=-1))
    most = np.minimum(most, caps.most_of_parts(parts.counts, starts))
    for number, group in enumerate(sorted({merged[one] for one, _ in given})):
        left = sum(merged[one] == group and kept[one] for one, _ in given)
        assert left <= most[number], (left, most, coarse.counts)


@given(
    counts=st.lists(st.integers(0, 6), min_size=VALUES, max_size=VALUES).filter(any),
    caps=st.lists(st.floats(0, 1), min_size=VALUES, max_size=VALUES),
    demand=st.floats(0.05, 1),
)
@settings(max_examples=60, deadline=None)
def test_most_rows_are_those_of_any_part_of_a_class(
    counts: list[int], caps: list[float], demand: float
) -> None:
    shares = np.array(caps)
    parts = np.array(list(itertools.product(*(range(count + 1) for count in counts))))
    sizes = parts.sum(axis=1)
    met = np.minimum(parts, sizes[:, None] * shares).sum(axis=1) >= demand * sizes
    within = int(sizes[met].max())
    most = ShareCaps(shares, demand).most_rows(np.array([counts], dtype=np.float64))[0]
    assert within <= most <= sum(counts)


@given(
    parts=st.lists(
        st.lists(st.integers(0, 5), min_size=VALUES, max_size=VALUES).filter(any),
        min_size=1,
        max_size=7,
    ),
    caps=st.lists(st.floats(0, 1), min_size=VALUES, max_size=VALUES),
    demand=st.floats(0.05, 2),
    by_tree=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_most_of_parts_are_those_of_any_choice_of_them(
    parts: list[list[int]], caps: list[float], demand: float, by_tree: bool
) -> None:
    groups = TREE.groups if by_tree else None
    shares = np.resize(np.array(caps), VALUES if groups is None else groups.shape[1])
    counts = np.array(parts, dtype=np.float64)
    chosen = np.array(list(itertools.product((0, 1), repeat=len(parts)))) @ counts
    sizes = chosen.sum(axis=1)
    grouped = chosen if groups is None else chosen @ groups
    met = np.minimum(grouped, sizes[:, None] * shares).sum(axis=1) >= demand * sizes
    most = ShareCaps(shares, demand, groups).most_of_parts(counts, np.array([0]))[0]
    assert sizes[met].max() <= most <= counts.sum()


def test_what_stays_whole_is_lost_whole_but_for_a_share() -> None:
    """A part with five rows of six of one value stays but for a share: two spare rows carry three rows of it."""
    caps = ShareCaps(np.full(2, 0.5))
    parts = np.array([[1.0, 3], [5, 1]])
    assert caps.most_of_parts(parts, np.array([0])).tolist() == [7]
    assert caps.most_rows(parts.sum(axis=0, keepdims=True)).tolist() == [8]
    assert caps.most_of_parts(parts, np.array([0, 1])).tolist() == [0, 0]


def test_a_part_that_costs_less_than_a_row_goes_only_where_nothing_is_spare() -> None:
    """All ten rows meet the demand, min(6, 5) + min(4, 5) = 0.9 * 10: no part has to go."""
    caps = ShareCaps(np.full(2, 0.5), 0.9)
    assert caps.most_of_parts(np.array([[1.0, 0], [5, 4]]), np.array([0])).tolist() == [10]


def test_bounds_are_tight_where_one_value_is_too_frequent() -> None:
    """Of nine rows with six of one value, which may be half of the kept ones, six can stay."""
    most = ShareCaps(np.full(4, 0.5)).most_rows(np.array([[6.0, 1, 1, 1], [2, 2, 2, 3]]))
    assert most.tolist() == [6, 9]


def test_a_class_without_the_values_that_the_rest_has_is_lost() -> None:
    criterion = criterion_of("t_closeness.equal", {"t": 0.2})
    assert criterion.model.caps is not None
    caps = criterion.model.caps(Bounds(np.array([50.0, 30, 15, 5]), 5), criterion)
    assert caps is not None
    assert caps.most_rows(np.array([[9.0, 0, 0, 0], [5, 3, 1, 0]])).tolist() == [0, 9]


def test_hierarchies_without_a_root_get_one() -> None:
    tree = TreeGroups.of(np.array([[0, 0], [1, 0], [2, 1]]))
    assert tree.height == 2
    assert tree.groups.sum(axis=0).tolist() == [1, 1, 1, 2, 1]
    assert TreeGroups.of(np.array([[0], [0]])).height == 0
