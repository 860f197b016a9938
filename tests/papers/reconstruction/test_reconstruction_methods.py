from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import DataError, PolicyError
from aegis.papers.reconstruction import (
    METHODS,
    Evidence,
    MaskedJoint,
    NoisyJoint,
    Reconstruction,
    Settings,
    controlled_rounding,
    randomised_rounding,
    reconstruct,
    sampling,
    total_variation,
)
from aegis.papers.reconstruction.evidence import aggregate

TRUTH = np.array([[4.0, 1], [2, 3], [1, 1], [0, 5], [3, 3]])
CODES = np.array([0, 0, 1, 1, 1])
MASK = MaskedJoint("m", CODES, aggregate(CODES, TRUTH, 2))


def full_evidence():
    noisy = NoisyJoint("exact", np.eye(5), TRUTH)
    return Evidence(5, 2, [MASK], TRUTH.sum(axis=1), [noisy], np.ones(5, dtype=bool))


@pytest.mark.parametrize("method", METHODS.names())
def test_every_method_keeps_the_masked_joint(method):
    result = reconstruct(full_evidence(), method, truth=TRUTH)
    assert result.method == method
    assert result.converged
    assert result.table.shape == TRUTH.shape
    assert aggregate(CODES, result.table, 2) == pytest.approx(MASK.joint, abs=1e-6)
    assert 0 <= result.total_variation <= 1
    assert json.loads(json.dumps(result.to_dict()))["method"] == method


def test_unknown_methods_list_the_known_ones():
    with pytest.raises(PolicyError, match="Did you mean 'smooth'"):
        reconstruct(full_evidence(), "smoth")
    with pytest.raises(PolicyError, match="a masked joint or a histogram"):
        reconstruct(Evidence(2, 2), "ipf")


def test_the_result_shows_itself_and_cannot_be_changed():
    result = Reconstruction(TRUTH, "smooth", notes=("a < b",), details={"penalty": (1.0, 2.0)})
    assert "converged=True" in repr(result)
    assert "total variation" not in repr(result)
    assert "total variation=0.000000" in repr(result.against(TRUTH))
    assert "a &lt; b" in result._repr_html_()
    assert result.to_dict()["details"] == {"penalty": [1.0, 2.0]}
    with pytest.raises(ValueError, match="read-only"):
        result.table[0, 0] = 9
    with pytest.raises(TypeError):
        result.details["penalty"] = 1.0


class TestTotalVariation:
    def test_known_values(self):
        assert total_variation([1, 0], [0, 5]) == 1
        assert total_variation([[1, 3]], [[2, 6]]) == 0
        assert total_variation([1, 1], [3, 1]) == pytest.approx(0.25)

    def test_bad_tables(self):
        with pytest.raises(DataError, match=r"given \(2,\) and \(1,\)"):
            total_variation([1, 2], [1])
        for bad in ([0, 0], [-1, 2], [np.nan, 1]):
            with pytest.raises(DataError, match="positive total"):
                total_variation(bad, [1, 1])


class TestSampling:
    def test_seed_gives_the_draw_and_whole_rows(self):
        evidence = Evidence(5, 2, [MASK])
        one, two = sampling(evidence, seed=3), sampling(evidence, seed=3)
        assert (one.table == two.table).all()
        assert (one.table == np.round(one.table)).all()
        assert (aggregate(CODES, one.table, 2) == MASK.joint).all()
        assert one.residual == 0
        assert (
            reconstruct(evidence, "sampling", settings=Settings(seed=4)).table != one.table
        ).any()

    @pytest.mark.parametrize("known", [True, False])
    def test_the_mean_of_draws_is_the_closed_form(self, known):
        evidence = Evidence(5, 2, [MASK], TRUTH.sum(axis=1) if known else None)
        mean = np.mean([sampling(evidence, seed=s).table for s in range(3000)], axis=0)
        assert mean == pytest.approx(reconstruct(evidence, "closed-form").table, abs=0.15)

    def test_bad_evidence(self):
        half = MaskedJoint("half", np.array([0, 0]), np.array([[0.5]]))
        with pytest.raises(DataError, match="'half' has fractions"):
            sampling(Evidence(2, 1, [half]), seed=0)
        whole = MaskedJoint("whole", np.array([0, 1]), np.array([[1.0], [1]]))
        with pytest.raises(DataError, match="1 rows in group 0, the histogram 0 rows"):
            Evidence(2, 1, [whole], np.array([0.0, 2]))


class TestRounding:
    def test_largest_remainders_get_the_rows(self):
        table = np.array([0.5, 1.4, 0.7, 2.4])
        assert controlled_rounding(table).tolist() == [1, 1, 1, 2]
        # Equal fractions: the lowest index first.
        assert controlled_rounding([1 / 3, 1 / 3, 1 / 3]).tolist() == [1, 0, 0]

    @given(st.integers(0, 10**6))
    def test_class_totals_are_kept_and_no_cell_moves_by_a_row(self, number):
        generator = np.random.default_rng(number)
        atoms = int(generator.integers(1, 15))
        codes = generator.integers(0, 4, atoms)
        joint = generator.integers(0, 30, (4, 3)).astype(float)
        joint[np.bincount(codes, minlength=4) == 0] = 0
        table = reconstruct(
            Evidence(atoms, 3, [MaskedJoint("m", codes, joint)]), "closed-form"
        ).table
        rounded = controlled_rounding(table)
        assert (rounded.sum(axis=0) == joint.sum(axis=0)).all()
        assert np.abs(rounded - table).max() < 1 + 1e-6
        assert rounded.dtype == np.int64

    @given(st.lists(st.floats(0, 9), min_size=1, max_size=9))
    def test_no_other_rounding_is_closer(self, values):
        # Largest remainder minimises the sum of absolute errors at a fixed total.
        table = np.array(values)
        rounded = controlled_rounding(table)
        error = np.abs(rounded - table).sum()
        for i in range(len(table)):
            for j in range(len(table)):
                other = rounded.copy()
                other[i] += 1
                other[j] -= 1
                assert error <= np.abs(other - table).sum() + 1e-6

    def test_randomised_rounding_is_seeded_and_unbiased(self):
        table = np.array([[0.25, 3.0], [1.75, 0.0]])
        assert (randomised_rounding(table, seed=1) == randomised_rounding(table, seed=1)).all()
        draws = np.array([randomised_rounding(table, seed=s) for s in range(4000)])
        assert draws.mean(axis=0) == pytest.approx(table, abs=0.03)
        assert (np.abs(draws - table) < 1).all()

    def test_bad_tables(self):
        for call in (controlled_rounding, lambda table: randomised_rounding(table, seed=0)):
            with pytest.raises(DataError, match="table to round"):
                call([-1.0])
