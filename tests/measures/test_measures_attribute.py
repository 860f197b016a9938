"""Measures of one attribute: against their definitions, each other, and the golden numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measures_brute import BRUTE, count_tables, entropy, expected_mi, groupings, rows_of

from aegis.errors import DataError
from aegis.measures import (
    MEASURES,
    Contingency,
    Direction,
    LabelSpread,
    Scope,
    chance_of_share,
    get,
)
from aegis.measures.association import expected_mutual_information, label_entropy

ATTRIBUTE = [measure for measure in MEASURES if measure.scope is Scope.ATTRIBUTE]
EXAMPLE_6 = [[0, 0, 1, 7, 12], [15, 25, 29, 9, 2]]


def names(measures):
    return [measure.name for measure in measures]


@pytest.mark.parametrize("measure", ATTRIBUTE, ids=names(ATTRIBUTE))
@given(table=count_tables())
def test_equals_its_definition(measure, table):
    assert measure.name in BRUTE, (
        f"add a definition by rows of {measure.name!r} to BRUTE in measures_brute.py"
    )
    assert measure(Contingency.of(table)) == pytest.approx(BRUTE[measure.name](table), abs=1e-11)


@pytest.mark.parametrize("measure", ATTRIBUTE, ids=names(ATTRIBUTE))
@given(table=count_tables(max_rows=3), copies=st.integers(90, 100))
def test_merging_equal_rows_changes_nothing(measure, table, copies):
    many = np.repeat(table, copies, axis=0)
    merged = Contingency.of(many)
    table_once = many[many.any(axis=1)][:, many.any(axis=0)]
    single = Contingency(table_once, np.ones(len(table_once), dtype=np.int64))
    assert measure(merged) == pytest.approx(measure(single), rel=1e-11, abs=1e-11)


@given(table=count_tables(max_rows=4, max_count=2), copies=st.integers(80, 90))
def test_merged_tables_are_smaller_and_count_the_same(table, copies):
    merged = Contingency.of(np.repeat(table, copies, axis=0))
    rows = np.count_nonzero(table.any(axis=1)) * copies
    assert merged.rows == rows
    assert merged.n == table.sum() * copies
    assert merged.cells == np.count_nonzero(table) * copies
    assert (merged.column_totals == table.sum(axis=0)[table.any(axis=0)] * copies).all()
    if rows >= 256:
        assert len(merged.table) <= 4


def test_rows_too_large_for_one_key_are_merged_too():
    table = np.tile([[2**40, 2**41, 1], [2**40, 2**41, 2]], (200, 1))
    merged = Contingency.of(table)
    assert sorted(merged.table[:, 2]) == [1, 2]
    assert merged.multiplicity.tolist() == [200, 200]


@pytest.mark.parametrize("measure", ATTRIBUTE, ids=names(ATTRIBUTE))
@given(data=st.data())
def test_order_and_empty_rows_do_not_matter(measure, data):
    table = data.draw(count_tables())
    order = data.draw(st.permutations(range(len(table))))
    padded = np.vstack([np.zeros_like(table[:1]), table[order]])
    assert measure(Contingency.of(padded)) == pytest.approx(
        measure(Contingency.of(table)), abs=1e-12
    )


def grouped(table, groups):
    """Return the table under a mask: the rows of each group are added up."""
    coarse = np.zeros((max(groups) + 1, len(table[0])), dtype=np.int64)
    np.add.at(coarse, np.asarray(groups), np.asarray(table))
    return Contingency.of(coarse)


@pytest.mark.parametrize(
    "measure", [m for m in ATTRIBUTE if m.monotone], ids=names(m for m in ATTRIBUTE if m.monotone)
)
@given(data=st.data())
def test_monotone_measures_never_improve_under_a_mask(measure, data):
    table = data.draw(count_tables(max_rows=6))
    groups = data.draw(groupings(len(table)))
    sign = measure.direction.sign
    fine, coarse = Contingency.of(table), grouped(table, groups)
    assert sign * measure(coarse) <= sign * measure(fine) + 1e-12


@pytest.mark.parametrize(
    ("name", "table", "groups"),
    [
        ("adjusted-mi", [[2, 1], [1, 2], [2, 1], [1, 2], [9, 0]], [0, 0, 0, 0, 1]),
        ("mi-miller-madow", [[2, 1], [1, 2], [2, 1], [1, 2], [9, 0]], [0, 0, 0, 0, 1]),
        ("rfi", [[2, 1], [1, 2], [2, 1], [1, 2], [9, 0]], [0, 0, 0, 0, 1]),
        ("adjusted-cramers-v", [[2, 1], [1, 2], [2, 1], [1, 2], [9, 0]], [0, 0, 0, 0, 1]),
        ("cramers-v-plain", [[5, 0, 0], [0, 3, 3], [0, 2, 3]], [0, 1, 1]),
        ("held-out-g3", [[1, 0], [1, 1], [0, 1], [1, 0], [5, 0], [1, 1]], [0, 0, 0, 0, 0, 0]),
    ],
)
def test_measures_not_called_monotone_can_improve_under_a_mask(name, table, groups):
    measure = get(name)
    assert not measure.monotone
    sign = measure.direction.sign
    fine, coarse = Contingency.of(table), grouped(table, groups)
    assert sign * measure(coarse) > sign * measure(fine) + 1e-6


@pytest.mark.parametrize("measure", ATTRIBUTE, ids=names(ATTRIBUTE))
def test_the_direction_prefers_an_attribute_that_tells_the_label(measure):
    tells, silent = Contingency.of([[9, 0], [0, 9]]), Contingency.of([[5, 4], [4, 5]])
    assert measure.direction.sign * (measure(tells) - measure(silent)) > 0.05


@pytest.mark.parametrize("measure", ATTRIBUTE, ids=names(ATTRIBUTE))
@pytest.mark.parametrize(
    "table", [[[3, 7, 5]], [[3], [4]], [[0, 0], [0, 0]], [[1]], np.zeros((0, 2))]
)
def test_nothing_to_tell_gives_no_information(measure, table):
    counts = np.asarray(table, dtype=int)
    value = measure(Contingency.of(counts))
    if (
        measure.direction is Direction.HIGHER
        or counts.sum() == 0
        or np.count_nonzero(counts.sum(axis=0)) < 2
    ):
        assert value == 0
    else:
        errors = {"g1": 1 - (9 + 49 + 25) / 225, "g2": 1.0, "g3": 8 / 15, "held-out-g3": 8 / 15}
        expected = errors.get(measure.name, BRUTE[measure.name](counts))
        assert value == pytest.approx(expected)


@given(table=count_tables())
def test_identities(table):
    counts = Contingency.of(table)
    value = {measure.name: measure(counts) for measure in ATTRIBUTE}
    assert value["phi2"] * counts.n == pytest.approx(value["chi2"])
    assert 0 <= value["mi"] <= min(label_entropy(counts), math.log2(max(counts.rows, 1))) + 1e-12
    assert 0 <= value["adjusted-mi"] <= value["mi"]
    assert value["rfi"] <= 1 + 1e-12
    assert 0 <= value["cramers-v-plain"] <= 1 + 1e-12
    assert 0 <= value["adjusted-cramers-v"] <= 1 + 1e-12
    assert 0 <= value["g1"] <= value["g2"] + 1e-12
    assert 0 <= value["g3"] <= value["g2"]
    assert value["g3"] <= value["held-out-g3"] + 1e-12
    transposed = Contingency.of(table.T)
    for name in (
        "mi",
        "adjusted-mi",
        "mi-miller-madow",
        "chi2",
        "adjusted-cramers-v",
        "cramers-v-plain",
    ):
        assert get(name)(transposed) == pytest.approx(value[name], abs=1e-11)


@given(table=count_tables())
def test_label_entropy(table):
    rows = rows_of(table)
    expected = entropy(y for _, y in rows) if rows else 0.0
    assert label_entropy(Contingency.of(table)) == pytest.approx(expected, abs=1e-12)


def test_a_key_shines_only_uncorrected():
    key = Contingency.of(np.repeat(np.eye(2, dtype=int), 50, axis=0))
    assert get("mi")(key) == pytest.approx(1)
    assert get("g3")(key) == 0
    assert get("rfi")(key) == pytest.approx(0, abs=1e-12)
    assert get("adjusted-cramers-v")(key) == 0
    # Left out, each row finds its class in the minority: the pessimism of leave-one-out.
    assert get("held-out-g3")(key) == 1


@pytest.mark.parametrize(
    ("totals", "classes"),
    [
        ([40, 60, 200, 7], [100, 207]),
        ([600, 900, 1500, 3], [800, 1203, 1000]),
        ([1, 2, 2997], [2990, 10]),
    ],
)
def test_expected_information_equals_the_full_sum_where_only_some_counts_are_visited(
    totals, classes
):
    table = _with_totals(totals, classes)
    exact = expected_mi(table)
    assert expected_mutual_information(Contingency.of(table)) == pytest.approx(exact, rel=1e-10)


def _with_totals(rows, columns):
    """North-west corner rule: any table with these totals, since E0 depends on nothing else."""
    rows, columns = list(rows), list(columns)
    table = np.zeros((len(rows), len(columns)), dtype=int)
    for x in range(len(rows)):
        for y in range(len(columns)):
            table[x, y] = min(rows[x], columns[y])
            rows[x] -= table[x, y]
            columns[y] -= table[x, y]
    return table


def test_expected_information_at_a_billion_rows_is_its_asymptote():
    table = _with_totals([10**8, 2 * 10**8, 7 * 10**8], [4 * 10**8, 5 * 10**8, 10**8])
    asymptote = 4 / (2 * 10**9 * math.log(2))
    assert expected_mutual_information(Contingency.of(table)) == pytest.approx(asymptote, rel=1e-7)


@pytest.mark.parametrize(
    ("name", "value", "digits"),
    [
        ("mi", 0.41765, 5),
        # The reference prints 0.403223, which subtracts 2 / (200 ln 2) from MI rounded to 0.41765.
        ("mi-miller-madow", 0.403222, 6),
        ("g1", 0.483, 10),
        ("g2", 1.0, 10),
        ("g3", 0.59, 10),
        ("chi2", 58.63467, 5),
        ("phi2", 0.586347, 6),
        ("cramers-v-plain", 0.765733, 6),
        ("adjusted-cramers-v", 0.742640, 6),
        ("rfi", 0.171614, 6),
    ],
)
def test_example_6_of_aegis(name, value, digits):
    assert get(name)(Contingency.of(EXAMPLE_6)) == pytest.approx(value, abs=0.51 * 10**-digits)


def test_expected_information_of_example_6():
    table = Contingency.of(EXAMPLE_6)
    assert expected_mutual_information(table) == pytest.approx(0.031216, abs=0.51e-6)
    assert get("mi")(table) * math.log(2) == pytest.approx(0.28949, abs=0.51e-5)


def test_bergsma_oracle():
    table = np.zeros((10, 4), dtype=int)
    for i in range(150):
        table[i % 10, i % 4] += 1
    assert get("cramers-v-plain")(Contingency.of(table)) == pytest.approx(0.5798088336, abs=1e-10)
    assert get("adjusted-cramers-v")(Contingency.of(table)) == pytest.approx(
        0.5305112825, abs=1e-10
    )


@pytest.mark.parametrize(
    "table",
    [
        [1, 2],
        [[1, -1]],
        [[0.5, 1]],
        [[float("nan"), 1]],
        [[float("inf"), 1]],
        [["1", "2"]],
    ],
)
def test_what_is_no_table_of_counts_is_refused(table):
    with pytest.raises(DataError, match=r"contingency table.*Give"):
        Contingency.of(table)


def test_whole_floats_are_counts():
    assert Contingency.of([[1.0, 2.0]]).table.dtype == np.int64


@pytest.mark.parametrize("label", ["class", "number"])
def test_the_chance_of_a_share_is_that_of_random_permutations(label):
    random = np.random.default_rng(3)
    rows = np.array([20.0, 12.0, 9.0, 7.0, 6.0])
    level = np.repeat(np.arange(5), rows.astype(int))
    told = random.normal(size=54) if label == "number" else np.repeat([0.0, 1.0], [40, 14])
    told = told - told.mean()
    spread = LabelSpread.of_classes(np.array([40.0, 14.0]))
    if label == "number":
        spread = LabelSpread.of_number(54, 54 * (told**4).sum() / (told**2).sum() ** 2)
    chances = []
    for _ in range(4_000):
        sums = np.bincount(level, random.permutation(told))
        share = float((sums**2 / rows).sum() / (told**2).sum())
        chances.append(chance_of_share(share, rows, spread))
    for limit in (0.5, 0.1, 0.02):
        assert np.mean(np.array(chances) < limit) == pytest.approx(limit, rel=0.25)
    assert chance_of_share(0.9, np.ones(54), spread) == 1.0
