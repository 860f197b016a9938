"""Level counts: rounding and cell keys by brute force, what can be derived, and what is refused."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from protect_support import CANARY, make_table

import aegis
from aegis.errors import DataError, PolicyError
from aegis.safe.protect import (
    ProtectionLevel,
    audit_leak,
    dumps,
    loads,
    protect,
    rank_protected,
    reconstruct_protected,
    search_protected,
)
from aegis.safe.protect.cells import cells_of, join_similar, without_small
from aegis.safe.protect.derive.cells import Range, derivable_cells, ranges
from aegis.safe.protect.mechanisms import (
    _key_table,
    apply_key,
    key_table,
    keyed_range,
    round_randomly,
    rounded_range,
    uniform,
)

KEY = b"0123456789abcdef-secret"


@given(st.integers(0, 60), st.integers(2, 12), st.floats(0, 1, exclude_max=True))
def test_rounding_is_to_a_neighbour_and_its_range_holds(count, base, chance):
    published = round_randomly(count, base, chance)
    assert published % base == 0
    low, high = rounded_range(published, base)
    assert low <= count <= high
    possible = {
        n
        for n in range(published + 2 * base)
        for c in np.linspace(0, 1, 4 * base, endpoint=False)
        if round_randomly(n, base, float(c)) == published
    }
    assert (min(possible), max(possible)) == (low, high)


@given(st.integers(0, 40), st.integers(2, 9))
def test_rounding_is_right_on_average(count, base):
    chances = (np.arange(base * 50) + 0.5) / (base * 50)
    mean = np.mean([round_randomly(count, base, float(c)) for c in chances])
    assert mean == pytest.approx(count, abs=1e-9)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 9, 30, 500])
@pytest.mark.parametrize("variance", [2.0, 5.0])
def test_cell_keys_have_mean_zero_and_their_variance(count, variance):
    changes, probability = key_table(count, 8, variance, 3)
    assert probability.sum() == pytest.approx(1)
    assert probability @ changes == pytest.approx(0, abs=1e-6)
    shown = count + changes
    assert ((shown == 0) | (shown >= 3)).all()
    if count >= 30:
        assert probability @ changes.astype(float) ** 2 == pytest.approx(variance, abs=1e-4)


def test_cell_keys_of_large_counts_are_most_spread_of_all():
    """Largest entropy: no other distribution with that mean and variance has more."""
    changes, probability = key_table(100, 3, 2.0, 1)
    entropy = -(probability * np.log(probability)).sum()
    random = np.random.default_rng(0)
    basis = np.stack([np.ones(7), changes, changes.astype(float) ** 2])
    for _ in range(50):
        direction = random.normal(size=7)
        direction -= basis.T @ np.linalg.lstsq(basis.T, direction, rcond=None)[0]
        other = probability + 1e-3 * direction / np.abs(direction).max()
        assert -(other * np.log(other)).sum() <= entropy + 1e-12


@given(st.integers(0, 25), st.floats(0, 1, exclude_max=True))
def test_the_range_of_a_cell_key_holds(count, chance):
    published = apply_key(count, 8, 5.0, 3, chance)
    low, high = keyed_range(published, 8, 5.0, 3)
    assert low <= count <= high


def test_the_key_alone_tells_the_chance():
    assert uniform(KEY, ("a", "b")) == uniform(KEY, ("a", "b"))
    assert uniform(KEY, ("a", "b")) != uniform(KEY + b"x", ("a", "b"))
    assert uniform(KEY, ("a", "b")) != uniform(KEY, ("ab", ""))
    draws = [uniform(KEY, (str(i),)) for i in range(2000)]
    assert 0.47 < np.mean(draws) < 0.53


def brute_ranges(low, high, sums, least, most):
    """Try every whole table."""
    space = [range(a, b + 1) for a, b in zip(low, high, strict=True)]
    agreeing = [
        t
        for t in itertools.product(*space)
        if all(lo <= np.dot(row, t) <= hi for row, lo, hi in zip(sums, least, most, strict=True))
    ]
    return agreeing and [Range(min(c), max(c)) for c in zip(*agreeing, strict=True)]


@given(st.data())
def test_ranges_of_two_way_tables_equal_brute_force(data):
    true = np.array(data.draw(st.lists(st.integers(0, 3), min_size=4, max_size=4)))
    spread = data.draw(st.lists(st.integers(0, 2), min_size=4, max_size=4))
    low, high = np.maximum(true - spread, 0), true + np.array(spread)
    sums = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
    slack = np.array(data.draw(st.lists(st.integers(0, 1), min_size=4, max_size=4)))
    least, most = sums @ true - slack, sums @ true + slack
    found = ranges(low, high, sums=sums, least=least, most=most)
    assert found == brute_ranges(low.tolist(), high.tolist(), sums, least, most)


def test_figures_that_contradict_one_another_are_refused():
    with pytest.raises(DataError, match="No table agrees"):
        ranges([0, 0], [1, 1], sums=[[1, 1]], least=[3], most=[3])


def hidden(table, places):
    """Return what the margins of a two-way table let follow of the cells that are hidden."""
    cells, (rows, columns) = np.ravel(table), np.shape(table)
    sums = np.vstack(
        [np.kron(np.eye(rows), np.ones(columns)), np.kron(np.ones(rows), np.eye(columns))]
    )
    low, high = cells.copy(), cells.copy()
    low[places], high[places] = 0, cells.sum()
    return ranges(low, high, sums=sums, least=sums @ cells, most=sums @ cells, cells=places)


def test_primary_suppression_alone_is_derived_and_the_published_oracle_is_not():
    """GaussSuppression's table [2 0 5; 3 4 6] with margins: maxN 1 hides the 0.

    Columns are Spain, Portugal, Iceland; rows young and old. Hidden alone, the cell follows from its
    margins. With (young, Iceland), (old, Iceland) and (old, Portugal) hidden as well it does not.
    """
    table = [[2, 0, 5], [3, 4, 6]]
    assert hidden(table, [1]) == [Range(0, 0)]
    pattern = hidden(table, [1, 2, 4, 5])
    assert all(r.values > 1 for r in pattern)
    assert [(r.low, r.high) for r in pattern] == [(0, 4), (1, 5), (0, 4), (6, 10)]


def test_patterns_of_sdctable_hide_what_its_primary_cell_alone_does_not():
    """The test problem of sdcTable: regions A to D by gender, the two women of A are sensitive.

    Its methods OPT, HITAS and HYPERCUBE hide cells 5, 6, 11 and 12 of the table with its margins (A
    and C, both genders), GAUSS hides 5, 6, 14 and 15 (A and D): tests/testthat/test-protectTable.r.
    """
    men_and_women = [[18, 2], [14, 19], [12, 10], [11, 14]]
    assert hidden(men_and_women, [1]) == [Range(2, 2)]
    for pattern in ([0, 1, 4, 5], [0, 1, 6, 7]):
        assert all(r.values > 1 for r in hidden(men_and_women, pattern))


def test_a_cell_of_sdctable_follows_though_each_line_hides_two():
    """The second one (R/test_problems.R): w by b is 236 - 189 = 47; x by b hides it as well."""
    table = [[30, 47, 64, 89], [90, 124, 5, 31], [92, 100, 59, 85], [800, 991, 651, 685]]
    places = [0, 1, 2, 4, 6, 9, 11, 13, 15]
    exact = {
        place: r for place, r in zip(places, hidden(table, places), strict=True) if r.values == 1
    }
    assert exact == {1: Range(47, 47)}
    assert all(r.values > 1 for r in hidden(table, [*places, 5]))


def test_small_cells_lose_their_name_and_keep_their_rows(policy):
    summary = aegis.summarize(make_table(300, canary=True), policy)
    for attribute in summary.attributes.values():
        cells = cells_of(attribute)
        large = without_small(cells, 12)
        assert (large.joint.sum(axis=1) >= 12).all()
        assert large.joint.sum() == cells.joint.sum()
        assert (large.of_value >= 0).all()
        assert CANARY not in [s for c in large.candidates for s in c.labels]


@given(rows=st.integers(20, 300), seed=st.integers(0, 50), threshold=st.integers(2, 60))
def test_small_cells_join_as_one_by_one(policy, rows, seed, threshold):
    """All at once equals: the smallest cell joins its most similar one, again and again."""
    for attribute in aegis.summarize(make_table(rows, seed), policy).attributes.values():
        one_by_one = cells_of(attribute)
        at_once = without_small(one_by_one, threshold)
        while one_by_one.count > 1 and one_by_one.joint.sum(axis=1).min() < threshold:
            one_by_one = join_similar(one_by_one, int(one_by_one.joint.sum(axis=1).argmin()))
        if one_by_one.joint.sum() < threshold:
            assert at_once.count == 0
            continue
        assert np.array_equal(at_once.joint, one_by_one.joint)
        assert np.array_equal(at_once.of_value, one_by_one.of_value)
        assert [c.labels for c in at_once.candidates] == [c.labels for c in one_by_one.candidates]
        for left, right in zip(at_once.candidates, one_by_one.candidates, strict=True):
            assert np.array_equal(left.groups, right.groups)


@pytest.mark.parametrize("method", ["rounding", "cell-keys"])
def test_protected_counts_let_no_small_cell_follow(policy, method):
    table = make_table(1500, canary=True)
    made = protect(table, policy, level="counts", key=KEY, method=method, verdicts=36)
    assert made.level is ProtectionLevel.COUNTS
    assert not [d for d in derivable_cells(made) if d.range.high < 10]
    text = dumps(made)
    assert CANARY not in text
    assert dumps(loads(text)) == text
    again = protect(table, policy, level="counts", key=KEY, method=method, verdicts=36)
    assert dumps(again) == text
    other = protect(table, policy, level="counts", key=KEY + b"!", method=method)
    assert any(
        (a.table.shape != b.table.shape or (a.table != b.table).any())
        for a, b in zip(made.attributes.values(), other.attributes.values(), strict=True)
    )


def alike(one, other):
    """Whether two JSON values are the same, but for the digits that a file leaves out."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float):
        return one == pytest.approx(other, rel=1e-3, abs=1e-5)
    return one == other


def test_all_answers_tell_no_more_than_the_file(policy):
    """Whatever is asked, and however often: who holds the file alone computes the same.

    So that all answers together pin down no small cell that the audit of the file does not.
    """
    made = protect(make_table(1500, canary=True), policy, level="counts", key=KEY)
    answers = []
    for held in (made, loads(dumps(made))):
        every = [
            held.configuration(str(choice), choice)
            for choice in itertools.product(
                *(range(len(a.candidates)) for a in held.attributes.values())
            )
        ]
        told = [
            rank_protected(held, every).to_dict(),
            search_protected(held, top=36).to_dict(),
            search_protected(held, front="k=5,20").front.to_dict(),
            [reconstruct_protected(held, name).to_dict() for name in held.attributes],
            audit_leak(held).to_dict(),
        ]
        for advice in told[:2]:
            advice["timings"] = {}
            if advice["search"] is not None:
                advice["search"]["seconds"] = 0
        answers.append(told)
    assert alike(*answers)
    assert CANARY not in json.dumps(answers)
    assert "987654" not in json.dumps(answers)
    assert not [d for d in derivable_cells(made) if d.range.high < 10]
    assert audit_leak(made).keeps_level


def test_verdicts_are_those_of_the_exact_counts(policy):
    table = make_table(1500)
    made = protect(table, policy, level="counts", key=KEY, verdicts=36)
    summary = aegis.summarize(table, policy)
    from aegis.advisor import PrivacyPlan

    plan = PrivacyPlan(summary, policy.privacy)
    names = list(summary.attributes)
    for verdict in made.verdicts:
        choice = {
            n: summary.attributes[n].candidates[i]
            for n, i in zip(names, verdict.choice, strict=True)
        }
        assert verdict.admissible == plan.check(choice).admissible
    ranked = rank_protected(made)
    known = [r.admissible for r in ranked.ranking]
    assert known == sorted(known, reverse=True)
    found = search_protected(made)
    assert found.optimal
    assert found.ranking[0].admissible


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs a secret key"),
        ({"key": b"short"}, "has 5 bytes"),
        ({"key": KEY, "threshold": 1}, "threshold is 1"),
        ({"key": KEY, "threshold": 10_000}, "table has 200 rows"),
        ({"key": KEY, "method": "magic"}, "Unknown method"),
        ({"key": KEY, "epsilon": 1}, "Level counts takes no epsilon"),
        ({"key": KEY, "variance": -1, "method": "cell-keys"}, "variance of cell keys is -1"),
        ({"key": KEY, "step": 1}, "step of the perturbation is 1"),
        ({"key": KEY, "threshold": "5"}, "threshold is '5', of type str"),
        ({"key": KEY, "threshold": 2.5}, "threshold is 2.5"),
        ({"key": KEY, "threshold": float("nan")}, "threshold is nan"),
        ({"key": KEY, "threshold": None}, "threshold is None"),
        ({"key": KEY, "threshold": [5]}, r"threshold is \[5\]"),
        ({"key": KEY, "step": "5"}, "step is '5'"),
        ({"key": KEY, "step": 2.5}, "step is 2.5"),
        ({"key": KEY, "step": 10**5000}, "a number of thousands of digits"),
        ({"key": KEY, "variance": "1"}, "variance is '1'"),
        ({"key": KEY, "variance": float("inf")}, "variance of cell keys is inf"),
        ({"key": 5}, "key is 5, of type int"),
    ],
)
def test_bad_requests_are_refused(policy, options, message):
    with pytest.raises(PolicyError, match=message):
        protect(make_table(200), policy, level="counts", **options)


@pytest.mark.parametrize("least", [0, 1, 10])
def test_large_counts_share_one_table_of_changes(least):
    """Each count had its own, which took a third of the work of level counts."""
    for count in (8 + least + 1, 1000):
        own = _key_table.__wrapped__(count, 8, 5.0, least)
        assert all(map(np.array_equal, own, key_table(count, 8, 5.0, least)))
    assert key_table(1000, 8, 5.0, least) is key_table(2000, 8, 5.0, least)
