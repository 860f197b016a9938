"""Golden numbers on UCI Adult, plug-in and corrected, to 1e-8."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from measures_brute import cooccurrence

from aegis.measures import Contingency, fit_pillai, get
from aegis.measures.catalog import cmim_path

COLUMNS = {
    "age": 0,
    "workclass": 1,
    "fnlwgt": 2,
    "education": 3,
    "education-num": 4,
    "marital-status": 5,
    "occupation": 6,
    "relationship": 7,
    "race": 8,
    "sex": 9,
    "native-country": 13,
}
MEASURES = ("mi", "adjusted-mi", "chi2", "adjusted-cramers-v", "g1", "g2", "g3")
TABLE = {
    "age": (73, 0.09921780, 0.09762273, 3502.03646, 0.32456899, 0.00678846, 0.94723749, 0.24080956),
    "education": (
        16,
        0.09359084,
        0.09325854,
        4429.65330,
        0.36821890,
        0.05946282,
        0.99843371,
        0.22041706,
    ),
    "fnlwgt": (
        21648,
        0.56800992,
        0.08844819,
        22678.95603,
        0.17797068,
        0.00001327,
        0.24897884,
        0.09434600,
    ),
    "relationship": (
        6,
        0.16536576,
        0.16525499,
        6699.07690,
        0.45342258,
        0.09642657,
        1.0,
        0.24080956,
    ),
    "sex": (2, 0.03717139, 0.03714923, 1518.88682, 0.21591235, 0.21145015, 1.0, 0.24080956),
    "age by 10": (9, 0.08462225, 0.08444502, 3146.07501, 0.31044841, 0.06767887, 1.0, 0.24080956),
}


@pytest.fixture(scope="module")
def adult(shared_data):
    with (shared_data / "adult" / "adult.data").open(newline="") as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True) if row]
    columns = {name: [row[i] for row in rows] for name, i in COLUMNS.items()}
    columns["age by 10"] = [int(age) // 10 for age in columns["age"]]
    codes = {name: np.unique(values, return_inverse=True)[1] for name, values in columns.items()}
    return codes, np.unique([row[14] for row in rows], return_inverse=True)[1]


@pytest.mark.parametrize("attribute", TABLE)
def test_attribute_measures(adult, attribute):
    codes, label = adult
    values, *expected = TABLE[attribute]
    counts = np.zeros((int(codes[attribute].max()) + 1, 2), dtype=int)
    np.add.at(counts, (codes[attribute], label), 1)
    table = Contingency.of(counts)
    assert table.rows == values
    assert table.n == 32561
    for name, value in zip(MEASURES, expected, strict=True):
        # The reference gives chi-square to five decimals and everything else to eight.
        digits = 0.51e-5 if name == "chi2" else 1e-8
        assert get(name)(table) == pytest.approx(value, abs=digits), name


def _counts(adult, *attributes):
    codes, label = adult
    return cooccurrence(np.column_stack([codes[name] for name in attributes]), label)


def test_pillai_of_three_attributes(adult):
    fit = fit_pillai(_counts(adult, "age by 10", "education", "sex"))
    assert fit.rank == 24
    assert fit.trace == pytest.approx(0.2348545078, abs=1e-10)
    assert fit.adjusted == pytest.approx(0.2342901025, abs=1e-10)


def test_pillai_of_eight_attributes_and_of_a_redundant_ninth(adult):
    attributes = ["age", "workclass", "education", "marital-status", "occupation", "race", "sex"]
    fit = fit_pillai(_counts(adult, *attributes, "native-country"))
    assert fit.rank == 160
    assert fit.trace == pytest.approx(0.3514238052, abs=1e-10)
    assert fit.adjusted == pytest.approx(0.3482209598, abs=1e-10)
    again = fit_pillai(_counts(adult, *attributes, "native-country", "education-num"))
    assert again.rank == fit.rank
    assert again.adjusted == pytest.approx(fit.adjusted, abs=1e-12)


def test_cmim_order_gains_and_total(adult):
    attributes = ("age", "education", "marital-status", "occupation", "sex", "race")
    path = cmim_path(_counts(adult, *attributes))
    chosen = [attributes[i] for i in path.order]
    assert chosen == ["marital-status", "education", "occupation", "age", "sex", "race"]
    gains = [0.15639494, 0.08789383, 0.04112819, 0.03846635, 0.00444102, 0.00299020]
    assert path.gains == pytest.approx(gains, abs=1e-8)
    assert path.total == pytest.approx(0.3313145330, abs=1e-10)


def test_cmim_leaves_out_what_another_attribute_says(adult):
    path = cmim_path(_counts(adult, "education", "education-num"))
    assert path.order == (0,)
