from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from aegis.errors import DataError, PolicyError
from aegis.papers.reconstruction import Groups, ipf, total_variation
from aegis.papers.reconstruction.families import determine


def margin(name, shape, axes, targets):
    """Return the family that fixes the sums of a table over all axes but `axes`."""
    kept = [size if axis in axes else 1 for axis, size in enumerate(shape)]
    numbers = np.arange(targets.size).reshape(kept)
    return Groups(name, np.broadcast_to(numbers, shape).ravel(), targets.ravel())


def naive(seed, families, sweeps):
    cells = seed.ravel().astype(float).copy()
    for _ in range(sweeps):
        for family in families:
            for group, target in enumerate(family.targets):
                members = [i for i in range(len(cells)) if family.codes[i] == group]
                total = sum(cells[i] for i in members)
                for i in members:
                    cells[i] = cells[i] * target / total if total > 0 else 0.0
    return cells.reshape(seed.shape)


@st.composite
def problems(draw, *, smallest=1):
    atoms, labels = draw(st.integers(2, 7)), draw(st.integers(1, 3))
    size = atoms * labels
    numbers = st.lists(st.integers(smallest, 20), min_size=size, max_size=size)
    truth = np.array(draw(numbers), dtype=float)
    seed = np.array(draw(st.lists(st.integers(1, 5), min_size=size, max_size=size)), dtype=float)
    families = []
    for number in range(draw(st.integers(1, 4))):
        groups = draw(st.integers(1, 5))
        code = st.integers(0, groups - 1)
        codes = np.array(draw(st.lists(code, min_size=size, max_size=size)))
        families.append(Groups(f"f{number}", codes, np.bincount(codes, truth, groups)))
    return seed.reshape(atoms, labels), families, truth.reshape(atoms, labels)


@given(problems())
def test_meets_all_targets_with_the_seed_scaled_by_one_factor_per_group(problem):
    # The two properties define the fixed point (Csiszar 1975): the totals hold, and the log of
    # table over seed is a sum of one number per group.
    seed, families, truth = problem
    result = ipf(seed, families, tolerance=1e-10, max_sweeps=20_000)
    assume(result.converged)
    for family in families:
        sums = np.bincount(family.codes, result.table.ravel(), len(family.targets))
        assert np.abs(sums - family.targets).max() <= 2e-9 * truth.sum()
    design = np.concatenate(
        [np.eye(len(family.targets))[family.codes] for family in families], axis=1
    )
    logs = np.log(result.table.ravel() / seed.ravel())
    fitted = design @ np.linalg.lstsq(design, logs, rcond=None)[0]
    assert np.abs(fitted - logs).max() < 1e-5


@given(problems())
def test_equals_the_plain_loop(problem):
    seed, families, _ = problem
    result = ipf(seed, families, tolerance=1e-10, max_sweeps=300)
    assume(result.converged)
    looped = naive(seed, families, 60)
    gaps = [
        np.abs(np.bincount(f.codes, looped.ravel(), len(f.targets)) - f.targets).max()
        for f in families
    ]
    assume(max(gaps) < 1e-9)
    assert total_variation(result.table, looped) < 1e-5


@given(problems(smallest=0))
def test_zero_cells_and_empty_groups(problem):
    seed, families, truth = problem
    assume(truth.sum() > 0)
    seed = np.where(truth == 0, 0.0, seed)
    result = ipf(seed, families)
    assert (result.table[truth == 0] == 0).all()
    if result.converged:
        assert result.residual <= 1e-8 * truth.sum()
        for family in families:
            sums = np.bincount(family.codes, result.table.ravel(), len(family.targets))
            assert np.abs(sums - family.targets).max() <= 1.1e-8 * truth.sum()
    else:
        assert "did not converge" in result.notes[0]


@given(problems(smallest=0), st.randoms(use_true_random=False))
def test_elimination_only_sets_what_every_solution_has(problem, random):
    seed, families, truth = problem
    assume(truth.sum() > 0)
    known = determine(seed.ravel(), families, 1e-9 * truth.sum())
    # The truth meets the targets, so whatever is set must be the truth itself.
    assert known.cells[~known.open] == pytest.approx(truth.ravel()[~known.open], abs=1e-6)


def test_a_chain_that_determines_everything_needs_no_sweep():
    # Overlapping pairs shifted by one: 0|12|34|.. and 01|23|..; plain IPF creeps here.
    truth = np.arange(1.0, 41.0)
    index = np.arange(40)
    one, two = (index + 1) // 2, index // 2
    families = [
        Groups("shifted", one, np.bincount(one, truth)),
        Groups("pairs", two, np.bincount(two, truth)),
    ]
    result = ipf(np.ones(40), families)
    assert result.table == pytest.approx(truth)
    assert result.iterations == 0
    assert result.converged


def test_two_way_margins_of_deming_and_stephan_type():
    seed = np.array([[8.0, 4, 6, 7], [3, 6, 5, 2], [9, 11, 3, 1]])
    rows, columns = np.array([20.0, 18, 22]), np.array([18.0, 16, 12, 14])
    families = [margin("rows", (3, 4), (0,), rows), margin("columns", (3, 4), (1,), columns)]
    result = ipf(seed, families, tolerance=1e-12)
    assert result.table.sum(axis=1) == pytest.approx(rows, abs=1e-9)
    assert result.table.sum(axis=0) == pytest.approx(columns, abs=1e-9)
    # IPF keeps the odds ratios of the seed.
    odds = result.table[:2, 0] * result.table[1::-1, 3]
    wanted = seed[:2, 0] * seed[1::-1, 3]
    assert odds[0] / odds[1] == pytest.approx(wanted[0] / wanted[1])
    assert seed[0, 0] == 8


def test_an_empty_table_is_fitted_by_nothing():
    result = ipf(np.ones((2, 2)), [margin("rows", (2, 2), (0,), np.zeros(2))])
    assert result.table.sum() == 0
    assert result.converged


def test_unfinished_work_is_said():
    generator = np.random.default_rng(1)
    truth, seed = generator.random((6, 5)) + 0.01, generator.random((6, 5)) + 0.01
    families = [
        margin("rows", (6, 5), (0,), truth.sum(1)),
        margin("columns", (6, 5), (1,), truth.sum(0)),
    ]
    result = ipf(seed, families, tolerance=1e-14, max_sweeps=2)
    assert not result.converged
    assert result.iterations == 2
    assert "after 2 sweeps" in result.notes[0]
    assert result.residual > 0


class TestInconsistent:
    def test_totals_that_differ_name_both_families(self):
        families = [
            margin("age", (2, 2), (0,), np.array([3.0, 4])),
            margin("label", (2, 2), (1,), np.array([3.0, 5])),
        ]
        with pytest.raises(DataError, match=r"'age' adds up to 7 rows, family 'label' to 8"):
            ipf(np.ones((2, 2)), families)

    def test_a_positive_target_on_zero_cells(self):
        family = margin("rows", (2, 2), (0,), np.array([3.0, 4]))
        with pytest.raises(DataError, match=r"'rows' requires 3 rows in group 0.*only 0"):
            ipf(np.array([[0.0, 0], [1, 1]]), [family])

    def test_a_group_without_cells(self):
        with pytest.raises(DataError, match=r"'lost' requires 2 rows in group 1"):
            ipf(np.ones(2), [Groups("lost", np.array([0, 0]), np.array([1.0, 2]))])

    def test_a_cell_fixed_at_more_than_its_other_group_has(self):
        fine = Groups("fine", np.array([0, 1, 1]), np.array([9.0, 1]))
        coarse = Groups("coarse", np.array([0, 0, 1]), np.array([5.0, 5]))
        with pytest.raises(DataError, match=r"'coarse'.*put 9 there|'coarse'.*put"):
            ipf(np.ones(3), [fine, coarse])

    def test_a_stalled_residual_is_proved_and_the_family_named(self):
        # Three pairwise margins of a 2x2x2 table, each possible, together impossible.
        even, odd = np.array([[5.0, 1], [1, 5]]), np.array([[1.0, 5], [5, 1]])
        families = [
            margin("ab", (2, 2, 2), (0, 1), even),
            margin("bc", (2, 2, 2), (1, 2), even),
            margin("ac", (2, 2, 2), (0, 2), odd),
        ]
        with pytest.raises(DataError, match=r"no table meets all families.*'(ab|bc|ac)' stalls"):
            ipf(np.ones((2, 2, 2)), families)

    def test_a_family_that_contradicts_a_finer_one(self):
        families = [
            margin("both", (2, 2), (0, 1), np.array([[1.0, 2], [3, 4]])),
            margin("rows", (2, 2), (0,), np.array([4.0, 6])),
        ]
        with pytest.raises(
            DataError, match=r"'rows' requires 4 rows in group 0.*put 3 there|'rows'"
        ):
            ipf(np.ones((2, 2)), families)


@pytest.mark.parametrize(
    ("seed", "families", "options", "error", "message"),
    [
        (np.ones(2), [], {}, PolicyError, "at least one constraint family"),
        (np.ones(3), [Groups("g", np.array([0, 0]), np.ones(1))], {}, DataError, "cover"),
        (np.array([1, np.nan]), [Groups("g", np.array([0, 0]), np.ones(1))], {}, DataError, "seed"),
        (
            np.ones(2),
            [Groups("g", np.array([0, 0]), np.ones(1))],
            {"tolerance": 0},
            PolicyError,
            "0",
        ),
        (
            np.ones(2),
            [Groups("g", np.array([0, 0]), np.ones(1))],
            {"max_sweeps": 0},
            PolicyError,
            "sweeps",
        ),
    ],
)
def test_bad_calls(seed, families, options, error, message):
    with pytest.raises(error, match=message):
        ipf(seed, families, **options)


def test_bad_families():
    with pytest.raises(DataError, match="negative"):
        Groups("g", np.array([0]), np.array([-1.0]))
    with pytest.raises(DataError, match=r"run from 0 to 3, but there are 2 groups"):
        Groups("g", np.array([0, 3]), np.ones(2))
    with pytest.raises(DataError, match="integers"):
        Groups("g", np.array([0.0, 1.0]), np.ones(2))
