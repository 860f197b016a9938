"""Measures of a whole configuration: against pseudo-inverse and exhaustive versions."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from measures_brute import cmim, cooccurrence, count_tables, data, pillai, stack

from aegis.errors import InternalError
from aegis.measures import MEASURES, Contingency, Cooccurrence, fit_pillai, get, pillai_trace
from aegis.measures.association import pair_information
from aegis.measures.catalog import attribute_information, cmim_path


@given(rows=data())
def test_pillai_equals_the_pseudo_inverse(rows):
    codes, label = rows
    fit = fit_pillai(cooccurrence(codes, label))
    trace, rank = pillai(codes, label)
    assert fit.rank == rank
    assert fit.trace == pytest.approx(trace, abs=1e-9)
    classes, n = len(np.unique(label)), len(label)
    if classes > 1 and n - rank - 1 > 0:
        limit = classes - 1
        expected = trace - (1 - trace / limit) * rank * limit / (n - rank - 1)
        assert fit.adjusted == pytest.approx(expected, abs=1e-8)
    else:
        assert fit.adjusted == 0


@given(rows=data())
def test_pillai_lies_in_its_range(rows):
    codes, label = rows
    fit = fit_pillai(cooccurrence(codes, label))
    assert -1e-12 <= fit.trace <= min(fit.rank, len(np.unique(label)) - 1) + 1e-9
    assert fit.adjusted <= fit.trace + 1e-9


@given(table=count_tables())
def test_pillai_of_one_attribute_is_phi_square(table):
    by_class = np.array([np.diag(column) for column in table.T])
    counts = Cooccurrence.of(by_class, [0, len(table)])
    assert get("pillai-plain")(counts) == pytest.approx(
        get("phi2")(Contingency.of(table)), abs=1e-11
    )


def test_pillai_of_example_6():
    table = np.array([[0, 0, 1, 7, 12], [15, 25, 29, 9, 2]])
    counts = Cooccurrence.of(np.array([np.diag(column) for column in table.T]), [0, 2])
    assert get("pillai-plain")(counts) == pytest.approx(0.586347, abs=0.51e-6)


@given(rows=data(max_attributes=3), coarse=st.data())
def test_plain_pillai_never_grows_under_a_mask(rows, coarse):
    codes, label = rows
    mask = np.array(coarse.draw(st.lists(st.integers(0, 3), min_size=4, max_size=4)))
    masked = codes.copy()
    masked[:, 0] = mask[codes[:, 0]]
    plain = get("pillai-plain")
    assert plain(cooccurrence(masked, label)) <= plain(cooccurrence(codes, label)) + 1e-9


@given(rows=data())
def test_an_attribute_that_others_determine_adds_nothing(rows):
    codes, label = rows
    fit = fit_pillai(cooccurrence(codes, label))
    more = np.column_stack([codes, codes[:, 0] // 2, codes[:, 0], np.zeros_like(label)])
    again = fit_pillai(cooccurrence(more, label))
    assert again.rank == fit.rank
    assert again.trace == pytest.approx(fit.trace, abs=1e-9)
    assert again.adjusted == pytest.approx(fit.adjusted, abs=1e-7)


def test_rank_is_exact_on_many_nested_rare_levels():
    rng = np.random.default_rng(5)
    fine = np.minimum(rng.geometric(0.04, 4000), 150) - 1
    other = rng.integers(0, 90, 4000)
    codes = np.column_stack([fine, fine // 3, fine // 7, other, other % 9, fine // 21])
    label = (rng.random(4000) < 0.2 + 0.5 * (fine < 12)).astype(int)
    fit = fit_pillai(cooccurrence(codes, label))
    trace, rank = pillai(codes, label)
    assert fit.rank == rank == len(np.unique(fine)) + len(np.unique(other)) - 2
    assert fit.trace == pytest.approx(trace, abs=1e-9)


def test_one_row_of_a_billion_is_not_lost():
    # Two attributes that differ in one row; the pivot is about 2e-9 of the variance.
    half = 500_000_000
    total = np.array(
        [
            [half, 0, half, 0],
            [0, half, 1, half - 1],
            [half, 1, half + 1, 0],
            [0, half - 1, 0, half - 1],
        ]
    )
    joint = np.array([[half // 2] * 2] * 4)
    joint[2:] = [[half // 2 + 1, half // 2], [half // 2 - 1, half // 2]]
    fit = pillai_trace(total, joint, 2 * half, np.array([0, 2, 4]))
    assert fit.rank == 2


@pytest.mark.parametrize(
    "name",
    [
        "adjusted-pillai",
        "pillai-plain",
        "held-out-pillai-values",
        "held-out-pillai",
        "target-coded",
        "held-out-target-coded",
        "cmim",
    ],
)
@pytest.mark.parametrize(
    ("codes", "label"),
    [
        ([[0], [1], [2]], [0, 0, 0]),
        ([[1], [1], [1]], [0, 1, 1]),
        ([[0, 0]], [0]),
    ],
)
def test_nothing_to_tell_scores_zero(name, codes, label):
    assert get(name)(cooccurrence(np.array(codes), np.array(label))) == 0


@pytest.mark.parametrize(
    "name",
    [
        "adjusted-pillai",
        "pillai-plain",
        "held-out-pillai-values",
        "held-out-pillai",
        "target-coded",
        "held-out-target-coded",
        "cmim",
    ],
)
def test_empty_configurations_score_zero(name):
    no_attribute = Cooccurrence.of(np.zeros((2, 0, 0), dtype=int), [0])
    no_row = Cooccurrence.of(np.zeros((2, 3, 3), dtype=int), [0, 1, 3])
    assert get(name)(no_attribute) == 0
    assert get(name)(no_row) == 0
    assert no_attribute.attributes == 0
    assert no_row.class_totals.tolist() == [0, 0]


def test_a_saturated_configuration_says_nothing():
    fit = fit_pillai(cooccurrence(np.array([[0], [1], [2]]), np.array([0, 1, 0])))
    assert fit.rank == 2
    assert fit.trace == pytest.approx(1)
    assert fit.adjusted == 0


def test_pillai_takes_scaled_counts():
    rng = np.random.default_rng(1)
    codes, label = rng.integers(0, 4, (60, 3)), rng.integers(0, 3, 60)
    by_class, offsets = stack(codes, label)
    whole = fit_pillai(Cooccurrence.of(by_class, offsets))
    half = fit_pillai(Cooccurrence.of(by_class / 2, offsets))
    assert half.trace == pytest.approx(whole.trace)
    assert half.rank == whole.rank


@given(rows=data())
def test_cmim_equals_the_exhaustive_choice(rows):
    codes, label = rows
    counts = cooccurrence(codes, label)
    path = cmim_path(counts)
    order, gains = cmim(codes, label)
    assert path.gains == pytest.approx(gains, abs=1e-9)
    assert path.total == pytest.approx(sum(gains), abs=1e-9)
    assert get("cmim")(counts) == path.total
    # Where two attributes tie up to rounding, either order is right and the gains decide.
    if len({round(gain, 7) for gain in gains}) == len(gains) and not _duplicates(codes):
        assume(len(set(np.round(attribute_information(counts), 7))) == codes.shape[1])
        assert list(path.order) == order


def _duplicates(codes):
    patterns = {tuple(np.unique(column, return_inverse=True)[1]) for column in codes.T}
    return len(patterns) < codes.shape[1]


def test_cmim_ties_go_to_the_lower_index():
    column = np.array([0, 0, 1, 1] * 10)
    path = cmim_path(cooccurrence(np.column_stack([0 * column, column, column]), column))
    assert path.order == (1,)


def test_cmim_needs_the_information_of_pairs():
    counts = replace(cooccurrence(np.array([[0, 1], [1, 0]]), np.array([0, 1])), pairs=None)
    with pytest.raises(InternalError, match="needs pairs"):
        get("cmim")(counts)


@given(rows=data())
def test_attribute_information_is_the_corrected_measure(rows):
    codes, label = rows
    counts = cooccurrence(codes, label)
    bounds = counts.offsets
    tables = [counts.joint[a:b] for a, b in pairwise(bounds)]
    expected = [get("adjusted-mi")(Contingency.of(table)) for table in tables]
    assert attribute_information(counts) == pytest.approx(expected, abs=1e-11)


@given(rows=data(max_attributes=2))
def test_pair_information_is_that_of_the_pairs_of_values(rows):
    codes, label = rows
    by_class, bounds = stack(codes, label)
    block = by_class[:, : bounds[1], bounds[-2] :]
    flat = block.reshape(len(block), -1).T
    assert pair_information(block) == pytest.approx(
        get("adjusted-mi")(Contingency.of(flat)), abs=1e-11
    )
    assert pair_information(block.transpose(0, 2, 1)) == pytest.approx(pair_information(block))


@pytest.mark.parametrize("offsets", [[0, 2], [1, 3], [0, 0, 3], [0, 2, 1, 3]])
def test_offsets_that_do_not_divide_the_levels_are_refused(offsets):
    with pytest.raises(InternalError, match="Offsets"):
        Cooccurrence(1, np.zeros((3, 2)), np.zeros((3, 3)), np.array(offsets))


def test_counts_that_do_not_fit_each_other_are_refused():
    with pytest.raises(InternalError, match="joint"):
        Cooccurrence(1, np.zeros((3, 2)), np.zeros((4, 4)), np.array([0, 3]))


def test_a_measure_that_gives_no_number_is_refused():
    broken = replace(MEASURES.get("mi"), name="broken", compute=lambda counts: float("nan"))
    with pytest.raises(InternalError, match="not a number"):
        broken(Contingency(np.array([[2, 1], [0, 3]]), np.ones(2, dtype=np.int64)))
