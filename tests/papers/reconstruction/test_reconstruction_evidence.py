from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from aegis.errors import DataError, PolicyError
from aegis.papers.reconstruction import (
    Evidence,
    MaskedJoint,
    NoisyJoint,
    all_evidence,
    closed_form,
    reconstruct,
    total_variation,
)
from aegis.papers.reconstruction.combine import common_refinement, drop_implied, merge_intervals
from aegis.papers.reconstruction.evidence import aggregate


def joint_of(name, codes, truth, groups=None):
    codes = np.asarray(codes)
    return MaskedJoint(name, codes, aggregate(codes, truth, groups or int(codes.max()) + 1))


@st.composite
def tables(draw, *, smallest=0, atoms=9):
    shape = draw(st.integers(2, atoms)), draw(st.integers(1, 3))
    cells = st.lists(
        st.integers(smallest, 15), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]
    )
    truth = np.array(draw(cells), dtype=float).reshape(shape)
    assume(truth.sum() > 0)
    return truth


@st.composite
def groupings(draw, atoms):
    if draw(st.booleans()):
        cuts = draw(st.lists(st.booleans(), min_size=atoms, max_size=atoms))
        return np.cumsum(cuts)
    groups = draw(st.integers(1, 5))
    return np.array(draw(st.lists(st.integers(0, groups - 1), min_size=atoms, max_size=atoms)))


@given(tables(), st.data(), st.booleans())
def test_closed_form_equals_ipf(truth, data, known):
    mask = joint_of("m", data.draw(groupings(len(truth))), truth)
    histogram = truth.sum(axis=1) if known else None
    evidence = Evidence(*truth.shape, [mask], histogram)
    exact, iterated = closed_form(evidence), reconstruct(evidence, "ipf")
    assert np.abs(exact.table - iterated.table).max() <= 1e-9 * truth.sum()
    assert iterated.iterations <= 2
    assert exact.residual <= 1e-9 * truth.sum()


def entropy(table):
    p = table / table.sum()
    return -(p[p > 0] * np.log2(p[p > 0])).sum()


def information(table):
    return entropy(table.sum(axis=1)) + entropy(table.sum(axis=0)) - entropy(table)


@given(tables(), st.data(), st.booleans())
def test_theorem_1_reconstruction_has_the_information_of_the_mask(truth, data, known):
    mask = joint_of("m", data.draw(groupings(len(truth))), truth)
    evidence = Evidence(*truth.shape, [mask], truth.sum(axis=1) if known else None)
    table = closed_form(evidence).table
    assert information(table) == pytest.approx(information(mask.joint), abs=1e-9)


@given(tables(smallest=1), st.data(), st.booleans())
def test_all_evidence_equals_plain_ipf(truth, data, known):
    masks = [
        joint_of(f"m{number}", data.draw(groupings(len(truth))), truth)
        for number in range(data.draw(st.integers(1, 4)))
    ]
    evidence = Evidence(*truth.shape, masks, truth.sum(axis=1) if known else None)
    short = all_evidence(evidence, tolerance=1e-10, max_sweeps=5000)
    families_only = reconstruct(evidence, "ipf")
    assume(families_only.converged)
    assume(short.converged)
    assert total_variation(short.table, families_only.table) < 1e-5
    assert short.residual <= 1e-7 * truth.sum()


@given(tables(), st.data())
def test_masks_of_consecutive_atoms_determine_their_common_refinement(truth, data):
    atoms = len(truth)
    cut = st.lists(st.booleans(), min_size=atoms, max_size=atoms)
    masks = [joint_of(f"m{n}", np.cumsum(data.draw(cut)), truth) for n in range(3)]
    result = all_evidence(Evidence(*truth.shape, masks))
    block = common_refinement([mask.codes for mask in masks])
    blocks = int(block.max()) + 1
    assert aggregate(block, result.table, blocks) == pytest.approx(aggregate(block, truth, blocks))
    assert result.iterations == 0


@given(tables(), st.data())
def test_merged_masks_hold_exactly_what_the_single_ones_did(truth, data):
    masks = [joint_of(f"m{n}", data.draw(groupings(len(truth))), truth) for n in range(4)]
    kept = drop_implied(merge_intervals(masks, 1e-9), 1e-9)
    before = common_refinement([mask.codes for mask in masks])
    after = common_refinement([mask.codes for mask in kept])
    assert (np.equal.outer(before, before) == np.equal.outer(after, after)).all()
    for mask in kept:
        assert mask.joint == pytest.approx(aggregate(mask.codes, truth, mask.groups))


def test_identity_among_the_candidates_returns_the_truth():
    truth = np.array([[3.0, 0], [1, 5], [0, 2]])
    masks = [joint_of("identity", [0, 1, 2], truth), joint_of("pair", [0, 0, 1], truth)]
    result = reconstruct(Evidence(3, 2, masks), truth=truth)
    assert result.total_variation == 0
    assert (result.table == truth).all()


@pytest.mark.parametrize("known", [True, False])
def test_a_fit_that_stops_early_says_so_and_keeps_the_table_usable(known):
    truth = np.random.default_rng(2).integers(0, 9, (30, 2)).astype(float)
    masks = [
        joint_of(f"m{n}", np.random.default_rng(n).integers(0, 5, 30), truth) for n in range(4)
    ]
    evidence = Evidence(30, 2, masks, truth.sum(axis=1) if known else None)
    result = all_evidence(evidence, max_sweeps=1)
    assert not result.converged
    assert "did not converge" in result.notes[0]
    assert result.residual > 1e-6
    assert result.table.sum() == pytest.approx(truth.sum())
    assert all_evidence(evidence).converged


def test_noisy_joints_left_unused_are_said():
    truth = np.array([[3.0, 1], [1, 5]])
    noisy = NoisyJoint("response", np.eye(2), truth)
    result = all_evidence(Evidence(2, 2, [joint_of("all", [0, 0], truth)], None, [noisy]))
    assert any("response" in note for note in result.notes)
    assert any("Theorem 1" in note for note in result.notes)


class TestInconsistent:
    truth = np.array([[4.0, 1], [2, 3], [1, 1], [0, 5]])

    def test_cumulative_counts_that_differ_at_a_cut(self):
        good = joint_of("halves", [0, 0, 1, 1], self.truth)
        bad = MaskedJoint("other", np.array([0, 0, 1, 2]), np.array([[5.0, 4], [2, 1], [0, 5]]))
        with pytest.raises(DataError, match=r"'halves' and 'other' contradict each other by 1"):
            all_evidence(Evidence(4, 2, [good, bad]))

    def test_a_negative_count_between_two_cuts(self):
        one = MaskedJoint("one", np.array([0, 0, 1]), np.array([[2.0], [8]]))
        two = MaskedJoint("two", np.array([0, 1, 1]), np.array([[6.0], [4]]))
        with pytest.raises(DataError, match=r"'two' and 'one' contradict each other by 4 rows"):
            all_evidence(Evidence(3, 1, [one, two]))

    def test_a_coarse_mask_that_is_not_the_sum_of_a_finer_one(self):
        fine = joint_of("fine", [0, 1, 0, 2], self.truth)
        coarse = MaskedJoint("coarse", np.array([0, 1, 0, 1]), np.array([[6.0, 2], [1, 8]]))
        with pytest.raises(DataError, match=r"'fine' and 'coarse' contradict"):
            all_evidence(Evidence(4, 2, [coarse, fine]))

    def test_histogram_against_joint_names_the_group(self):
        mask = joint_of("halves", [0, 0, 1, 1], self.truth)
        with pytest.raises(DataError, match=r"'halves' has 10 rows in group 0, the histogram 9"):
            closed_form(Evidence(4, 2, [mask], np.array([4.0, 5, 3, 5])))

    def test_totals_by_label(self):
        one = joint_of("one", [0, 0, 1, 1], self.truth)
        two = joint_of("two", [0, 0, 0, 0], self.truth[:, ::-1])
        with pytest.raises(DataError, match=r"'one' has 7 rows of label 0, mask 'two' has 10"):
            Evidence(4, 2, [one, two])

    def test_total_of_the_histogram(self):
        with pytest.raises(DataError, match=r"'one' has 17 rows, the histogram 18"):
            Evidence(4, 2, [joint_of("one", [0, 0, 1, 1], self.truth)], np.array([5.0, 5, 3, 5]))

    def test_rows_in_a_group_without_atoms(self):
        with pytest.raises(DataError, match=r"4 rows in group 1, to which no atom belongs"):
            MaskedJoint("m", np.array([0, 0]), np.array([[1.0], [4.0]]))


def test_bad_evidence():
    truth = np.ones((3, 2))
    with pytest.raises(DataError, match=r"covers 2 atoms and 2 labels"):
        Evidence(3, 2, [joint_of("m", [0, 1], np.ones((2, 2)))])
    with pytest.raises(DataError, match="histogram has shape"):
        Evidence(3, 2, [], np.ones(2))
    with pytest.raises(DataError, match="`ordered`"):
        Evidence(3, 2, ordered=np.array([True]))
    with pytest.raises(DataError, match="nothing to fit"):
        Evidence(0, 2)
    with pytest.raises(DataError, match="groups, labels"):
        MaskedJoint("m", np.array([0]), np.ones(1))
    with pytest.raises(DataError, match="2 possible reports"):
        NoisyJoint("n", np.eye(2), np.ones((3, 2)))
    with pytest.raises(PolicyError, match="at least one deterministic mask"):
        all_evidence(Evidence(3, 2))
    two = Evidence(3, 2, [joint_of("a", [0, 0, 1], truth), joint_of("b", [0, 1, 1], truth)])
    with pytest.raises(PolicyError, match="exactly one masked joint; given: a, b"):
        closed_form(two)
    assert closed_form(two.only("b")).table.sum() == 6
    with pytest.raises(PolicyError, match="Unknown masked joint 'c'"):
        two.only("c")
    assert Evidence(3, 2).rows == 0
    assert Evidence(3, 2, histogram=np.ones(3)).rows == 3
