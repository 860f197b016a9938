from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from aegis.errors import DataError, PolicyError
from aegis.papers.reconstruction import Evidence, MaskedJoint, closed_form, composite_link, smooth
from aegis.papers.reconstruction.evidence import aggregate


def bell(size, centre, width, rows):
    shape = np.exp(-0.5 * ((np.arange(size) - centre) / width) ** 2)
    return rows * shape / shape.sum()


def joint_of(name, codes, truth):
    codes = np.asarray(codes)
    return MaskedJoint(name, codes, aggregate(codes, truth, int(codes.max()) + 1))


@pytest.mark.parametrize("offset", [None, np.array([3.0, 1, 2, 5, 1, 2, 4, 1, 1, 2])])
@pytest.mark.parametrize("penalty", [0.5, 100.0])
def test_fit_is_the_minimum_of_the_penalised_deviance(offset, penalty):
    codes = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 3])
    seen = np.array([40.0, 30, 12, 3])
    weights = np.ones(10) if offset is None else offset

    def objective(b):
        mu = np.bincount(codes, weights * np.exp(b))
        return (
            2 * (seen * np.log(seen / mu) - seen + mu).sum() + penalty * (np.diff(b, 2) ** 2).sum()
        )

    best = optimize.minimize(objective, np.zeros(10), method="BFGS", options={"gtol": 1e-9})
    fit = composite_link(seen, codes, offset=offset, penalty=penalty)
    reached = objective(np.log(fit.intensity / weights))
    assert reached == pytest.approx(best.fun, abs=1e-4)
    assert fit.intensity == pytest.approx(weights * np.exp(best.x), rel=2e-2)
    assert fit.aic == pytest.approx(fit.deviance + 2 * fit.dimension)


def test_penalty_is_the_one_of_least_aic():
    seen, codes = np.bincount(np.arange(40) // 5, bell(40, 15, 6, 500)), np.arange(40) // 5
    chosen = composite_link(seen, codes)
    for factor in (0.1, 10.0):
        other = composite_link(seen, codes, penalty=chosen.penalty * factor)
        assert chosen.aic <= other.aic + 1e-3


def test_heavy_penalties_leave_a_log_line():
    fit = composite_link([50.0, 30, 12], np.arange(12) // 4, penalty=1e9)
    assert np.abs(np.diff(np.log(fit.intensity), 2)).max() < 1e-4
    assert fit.dimension == pytest.approx(2, abs=0.05)


def test_a_bell_is_found_again_where_the_closed_form_shows_steps():
    truth = np.stack([bell(300, 90, 30, 4000), bell(300, 160, 45, 2500)], axis=1)
    mask = joint_of("width 30", np.arange(300) // 30, truth)
    for histogram in (None, truth.sum(axis=1)):
        evidence = Evidence(300, 2, [mask], histogram, ordered=np.ones(300, dtype=bool))
        fit = smooth(evidence).against(truth)
        steps = closed_form(evidence).against(truth)
        assert fit.total_variation < 0.2 * steps.total_variation
        assert fit.converged
        assert fit.residual <= 1e-7 * truth.sum()
        assert len(fit.details["penalty"]) == 2


@given(st.integers(0, 10**6), st.booleans())
def test_the_evidence_is_met_whatever_the_table(number, known):
    generator = np.random.default_rng(number)
    atoms = int(generator.integers(3, 12))
    truth = generator.integers(0, 12, (atoms, 3)).astype(float)
    truth[generator.integers(atoms), 0] += 1
    truth[:, 2] = 0
    masks = [
        joint_of("runs", np.cumsum(generator.integers(0, 2, atoms)), truth),
        joint_of("any", generator.integers(0, 3, atoms), truth),
    ]
    ordered = np.ones(atoms, dtype=bool)
    evidence = Evidence(atoms, 3, masks, truth.sum(axis=1) if known else None, ordered=ordered)
    result = smooth(evidence)
    if result.converged:
        assert result.residual <= 1e-6 * truth.sum()
    assert result.table.min() >= 0
    assert result.table[:, 2].sum() == 0


def test_an_atom_without_order_keeps_the_closed_form():
    truth = np.stack([bell(41, 20, 8, 900), bell(41, 25, 6, 400)], axis=1)
    truth[-1] = [70, 11]
    ordered = np.arange(41) < 40
    mask = joint_of("eights and null", np.where(ordered, np.arange(41) // 8, 5), truth)
    result = smooth(Evidence(41, 2, [mask], ordered=ordered))
    assert result.table[-1] == pytest.approx([70, 11])


@pytest.mark.parametrize("known", [True, False])
def test_two_groups_bend_shares_but_not_counts(known):
    truth = np.stack([bell(60, 20, 12, 4000), bell(60, 40, 12, 4000)], axis=1) + 1
    histogram = truth.sum(axis=1) if known else None
    mask = joint_of("halves", np.arange(60) // 30, truth)
    evidence = Evidence(60, 2, [mask], histogram, ordered=np.ones(60, dtype=bool))
    found, steps = smooth(evidence).against(truth), closed_form(evidence).against(truth)
    assert found.details["curve"] == (1.0 if known else 0.0)
    if known:
        assert found.total_variation < 0.8 * steps.total_variation
    else:
        assert found.table == pytest.approx(steps.table)
        assert any("Theorem 1" in note for note in found.notes)
        assert any("No smooth curve" in note for note in found.notes)


def test_what_does_not_predict_is_not_used():
    # Heaped counts: every other group of two holds nearly all rows, as whole years among months.
    heap = np.repeat(np.tile([40.0, 1.0], 10), 2)
    truth = np.stack([heap, heap[::-1]], axis=1)
    mask = joint_of("twos", np.arange(40) // 2, truth)
    evidence = Evidence(40, 2, [mask], ordered=np.ones(40, dtype=bool))
    found = smooth(evidence)
    assert found.details["curve"] == 0
    assert found.table == pytest.approx(closed_form(evidence).table)


def test_the_order_of_groups_is_that_of_their_atoms():
    # The same groups under other numbers make the same curve.
    truth = np.stack([bell(60, 20, 9, 900), bell(60, 35, 9, 700)], axis=1)
    codes = np.arange(60) // 10
    shuffled = np.array([3, 0, 5, 1, 4, 2])[codes]
    ordered = np.ones(60, dtype=bool)
    one, two = (
        smooth(Evidence(60, 2, [joint_of("m", numbered, truth)], ordered=ordered))
        for numbered in (codes, shuffled)
    )
    assert one.details["curve"] > 0
    assert one.table == pytest.approx(two.table)


def test_bad_calls():
    truth = np.ones((4, 1))
    mask = joint_of("m", [0, 0, 1, 1], truth)
    with pytest.raises(PolicyError, match="needs an ordered attribute"):
        smooth(Evidence(4, 1, [mask]))
    with pytest.raises(DataError, match="at least 3 atoms"):
        smooth(Evidence(4, 1, [mask], ordered=np.array([True, True, False, False])))
    with pytest.raises(DataError, match="at least 3 atoms"):
        composite_link([1.0], [0, 0])
    with pytest.raises(DataError, match="at least one row"):
        composite_link([0.0], [0, 0, 0])
    with pytest.raises(DataError, match="offset has shape"):
        composite_link([1.0], [0, 0, 0], offset=[1.0])
    with pytest.raises(PolicyError, match="penalty=0"):
        composite_link([1.0], [0, 0, 0], penalty=0)
