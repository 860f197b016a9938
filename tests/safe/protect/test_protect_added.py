"""The variance that level counts adds, against what many keys do to many counts."""

from __future__ import annotations

import numpy as np
import pytest
from protect_support import make_table

from aegis.safe.protect import CellMethod, Perturbation, protect
from aegis.safe.protect.added_variance import _expected, added_variance, variance_by_count
from aegis.safe.protect.model import Protection, ProtectionLevel

KEY = b"0123456789abcdef-secret"


@pytest.mark.parametrize("method", list(CellMethod))
@pytest.mark.parametrize("count", [0, 1, 4, 9, 10, 17, 23])
def test_the_variance_of_a_count_is_that_of_many_keys(method, count):
    asked = Perturbation(KEY, method, threshold=6)
    said = Protection(
        ProtectionLevel.COUNTS, method=method, threshold=6, step=6, variance=asked.spread
    )
    drawn = np.array([asked.change(count, (str(i),)) for i in range(4000)]) - count
    by_count = variance_by_count(said)
    expected = by_count[min(count, len(by_count) - 1)]
    assert np.mean(drawn.astype(float) ** 2) == pytest.approx(expected, rel=0.12, abs=1e-9)


@pytest.mark.parametrize("method", list(CellMethod))
@pytest.mark.parametrize("mean", [0.1, 0.8, 4.0, 30.0])
def test_the_expected_variance_is_that_of_poisson_counts(method, mean):
    said = Protection(ProtectionLevel.COUNTS, method=method, threshold=10, step=10, variance=5.0)
    by_count = np.array(variance_by_count(said))
    counts = np.random.default_rng(0).poisson(mean, 100_000)
    drawn = by_count[
        np.minimum(counts % 10 if method is CellMethod.ROUNDING else counts, len(by_count) - 1)
    ]
    expected = _expected(tuple(by_count.tolist()), np.array([[mean]]))
    assert expected[0, 0] == pytest.approx(float(drawn.mean()), rel=0.03)


def test_a_rare_class_is_not_taken_for_noisier_than_it_is(policy):
    counts = protect(make_table(600), policy, level="counts", key=KEY, method="rounding")
    for attribute in counts.attributes.values():
        added = added_variance(counts, attribute)
        assert added.shape == attribute.table.shape
        assert (added > 0).all()
    # A class that hardly any row has is in most cells not there at all, and stays so.
    from dataclasses import replace

    rare = replace(counts, class_counts=np.array([599.9, 0.1]))
    attribute = next(iter(rare.attributes.values()))
    assert (added_variance(rare, attribute)[:, 1] < 1).all()


def test_noise_adds_the_same_to_all(protected):
    for attribute in protected.attributes.values():
        added = added_variance(protected, attribute)
        expected = (
            protected.cell_error**2 * attribute.units[:, None] * np.ones_like(attribute.table)
        )
        assert added == pytest.approx(expected)


@pytest.mark.parametrize("method", list(CellMethod))
def test_the_error_of_a_large_cell_is_that_of_many_keys(method):
    asked = Perturbation(KEY, method, threshold=6)
    counts = 600 + np.arange(6000) % 6
    drawn = np.array([asked.change(int(c), (str(i),)) for i, c in enumerate(counts)]) - counts
    assert np.mean(drawn.astype(float) ** 2) == pytest.approx(asked.error**2, rel=0.1)
