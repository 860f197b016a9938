"""The search that lists and sieves a space: against every configuration of small tables."""

from __future__ import annotations

import itertools
import math
from functools import cache
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor_support import RULES, policy_of, random_rows, table_of
from aegis.advisor import PrivacyPlan
from aegis.advisor.search import Searcher
from aegis.advisor.search.feasibility import InMemory
from aegis.advisor.search.problem import Clock
from aegis.arx.losses.separable import ChargedLoss
from aegis.arx.search import hitting_set, listing
from aegis.arx.search.hitting_set import ListingSearch, pays
from aegis.arx.search.listing import Listing, OpenList, SmallClasses
from aegis.files import SILENT
from aegis.privacy import PrivacyRule
from aegis.summary import Summary, summarize
from search_support import assert_best, rule_of, shared

OBJECTIVES = (
    *("loss", "nu-entropy", "loss(mean=geometric)", "loss(mean=arithmetic, factor=0.2)"),
    *("loss(factor=0.8, weights=policy)", "nu-entropy(mean=geometric, factor=0.9)"),
    *("precision(factor=0)", "log-width(over=quasi-identifiers)", "loss(factor=1)"),
)


@cache
def summary_of(seed: int) -> Summary:
    return summarize(table_of(random_rows(seed)), policy_of())


def searcher_of(seed: int, rule: PrivacyRule, objective: str) -> Searcher:
    summary = summary_of(seed)
    return Searcher(summary, PrivacyPlan(summary, rule), objective, "adjusted-pillai")


def in_memory(searcher: Searcher) -> InMemory:
    feasibility = searcher.feasibility(searcher.plan.rule)
    assert isinstance(feasibility, InMemory)
    return feasibility


@pytest.mark.parametrize(
    "objective", ["loss", "nu-entropy", "loss(mean=geometric)", "precision(factor=0.1)"]
)
def test_the_best_are_those_of_every_configuration(objective: str) -> None:
    with (
        patch.object(hitting_set, "_SMALL", 0),
        patch.object(listing, "_LARGEST", 11),
        patch.object(listing, "_SAMPLE", 5),
    ):
        for variant in ("plain", "protected attribute with masks"):
            for rule in (rule_of(RULES[0], 0.12), rule_of(RULES[0], 0)):
                searcher = shared(variant, objective)
                feasibility = searcher.feasibility(rule)
                assert isinstance(feasibility, InMemory)
                assert pays(searcher.problem, feasibility)
                assert_best(searcher, variant, rule, top=1 if variant == "plain" else 4)


@given(
    seed=st.integers(0, 9),
    k=st.integers(2, 8),
    share=st.sampled_from([0.0, 0.05, 0.2, 0.5]),
    objective=st.sampled_from(OBJECTIVES),
    sizes=st.tuples(st.integers(1, 20), st.integers(1, 60)),
)
@settings(max_examples=8, deadline=None)
def test_a_sieve_finds_what_counting_all_finds(
    seed: int, k: int, share: float, objective: str, sizes: tuple[int, int]
) -> None:
    searcher = searcher_of(seed, rule_of({"k": k}, share), objective)
    feasibility, loss = in_memory(searcher), searcher.objective
    boxes = itertools.product(
        *([1 << c for c in range(len(v.candidates))] for v in searcher.problem.variables)
    )
    values = [loss.bound(box) for box in boxes if feasibility.admits(box)]
    with (
        patch.object(hitting_set, "_SMALL", 0),
        patch.object(hitting_set, "_SHARES", 2),
        patch.object(hitting_set, "_SORTED", 3),
        patch.object(listing, "_LARGEST", sizes[1]),
        patch.object(listing, "_SAMPLE", sizes[0]),
    ):
        outcome, figures = searcher.run(searcher.plan.rule, top=1, time_limit=None)
    assert [value for value, _ in outcome.best] == pytest.approx([max(values)] if values else [])
    assert outcome.complete
    assert figures.optimal == bool(values)


@given(
    seed=st.integers(0, 9),
    share=st.sampled_from([0.05, 0.2, 0.5]),
    objective=st.sampled_from(OBJECTIVES),
    stopped=st.integers(0, 900),
    largest=st.integers(10, 100),
)
@settings(max_examples=15, deadline=None)
def test_a_sieve_that_is_stopped_says_no_more_than_is_true(
    seed: int, share: float, objective: str, stopped: int, largest: int
) -> None:
    searcher = searcher_of(seed, rule_of({"k": 4}, share), objective)
    feasibility, loss = in_memory(searcher), searcher.objective
    assert isinstance(loss, ChargedLoss)
    separable = loss.separable()
    assert separable is not None
    boxes = itertools.product(
        *([1 << c for c in range(len(v.candidates))] for v in searcher.problem.variables)
    )
    values = [loss.bound(box) for box in boxes if feasibility.admits(box)]
    with (
        SILENT.step("") as step,
        patch.object(listing, "_LARGEST", largest),
        patch.object(listing, "_SAMPLE", 9),
    ):
        search = ListingSearch(
            searcher.problem, loss, feasibility, separable, top=1, clock=Clock(None), step=step
        )
        priced = search._priced
        calls = iter(range(stopped))

        def stop_after_some(node: tuple[int, ...]) -> object:
            if next(calls, None) is None:
                search.clock.stop()
            return priced(node)

        with patch.object(search, "_priced", stop_after_some):
            outcome = search.run()
    assert outcome.bound >= max(values, default=-math.inf) - 1e-9
    assert all(
        value == pytest.approx(min(values, key=lambda v: abs(v - value)))
        for value, _ in outcome.best
    )


@given(
    seed=st.integers(0, 9),
    k=st.integers(2, 8),
    objective=st.sampled_from(OBJECTIVES),
    data=st.data(),
)
@settings(max_examples=20, deadline=None)
def test_rows_that_a_coarser_configuration_loses_cost_no_more_in_finer_ones(
    seed: int, k: int, objective: str, data: st.DataObject
) -> None:
    searcher = searcher_of(seed, rule_of({"k": k}, 1.0), objective)
    loss, feasibility = searcher.objective, in_memory(searcher)
    assert isinstance(loss, ChargedLoss)
    separable = loss.separable()
    assert separable is not None
    tally = SmallClasses(searcher.problem, feasibility.cells, k)
    rows = separable.over(feasibility.cells)
    variables = searcher.problem.variables
    inner = tuple(data.draw(st.integers(0, len(v.candidates) - 1)) for v in variables)
    outer = tuple(
        data.draw(st.sampled_from([o for o in range(len(v.candidates)) if v.coarser[c] >> o & 1]))
        for v, c in zip(variables, inner, strict=True)
    )
    exact = -loss.bound(tuple(1 << c for c in inner))
    figures = []
    for node in (outer, inner):
        lost = tally.lost(node, feasibility.frequency.rows)
        assert lost is not None
        parts = rows.parts(lost)
        figures.append(separable.total(sum(float(p[c]) for p, c in zip(parts, inner, strict=True))))
    assert figures[0] <= figures[1] + 1e-9
    assert figures[1] <= exact + 1e-9 * max(1.0, exact)
    if not objective.startswith("nu-entropy") and feasibility.admits(tuple(1 << c for c in inner)):
        assert figures[1] == pytest.approx(exact, abs=1e-9)
    least = sum(float(p[c]) for p, c in zip(separable.least, inner, strict=True))
    assert separable.total(least) <= figures[0] + 1e-9


@given(
    figures=st.lists(
        st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.75, math.inf]), min_size=1, max_size=5),
        min_size=1,
        max_size=5,
    ),
    limit=st.floats(-0.5, 6),
    room=st.integers(1, 40),
    largest=st.integers(1, 300),
    seed=st.integers(0, 99),
)
@settings(max_examples=80, deadline=None)
def test_what_is_left_is_below_the_limit_and_refines_nothing_refused(
    figures: list[list[float]], limit: float, room: int, largest: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    # Whether the bits of the one number are among those of the other: some compare, some do not.
    orders = [
        None
        if random.random() < 0.2
        else np.array([[i & j == i for j in range(len(f))] for i in range(len(f))])
        for f in figures
    ]
    every = list(itertools.product(*(range(len(figure)) for figure in figures)))
    refused = [every[i] for i in random.integers(len(every), size=random.integers(6))]

    def refines(place: tuple[int, ...], node: tuple[int, ...]) -> bool:
        trios = zip(place, node, orders, strict=True)
        return all(order is None or order[i, j] for i, j, order in trios)

    sums = {
        place: sum(figure[c] for figure, c in zip(figures, place, strict=True))
        for place in every
        if not any(refines(place, node) for node in refused)
    }
    expected = sorted(place for place, total in sums.items() if total < limit)
    with (
        patch.object(listing, "_ROOM", room),
        patch.object(listing, "_LARGEST", largest),
        patch.object(listing, "_SAMPLE", largest // 2),
    ):
        space = Listing([np.array(figure) for figure in figures], orders)
        left = space.leftover(refused, limit, random)
        parts = list(space.parts(refused, limit))
    for chosen, chosen_sums in [(left.chosen, left.sums), *parts]:
        assert (np.diff(chosen_sums) >= 0).all()
        assert chosen_sums == pytest.approx([sums[tuple(row)] for row in chosen.tolist()])
    listed = [tuple(row) for chosen, _ in parts for row in chosen.tolist()]
    assert sorted(listed) == expected
    assert left.least <= min([limit, *(sums[place] for place in expected)])
    assert left.complete == (len(expected) <= largest)
    drawn = sorted(tuple(row) for row in left.chosen.tolist())
    assert drawn == expected if left.complete else set(drawn) <= set(expected)


@given(
    count=st.integers(1, 200),
    commands=st.lists(
        st.tuples(st.sampled_from("srof"), st.integers(0, 7), st.integers(0, 8)), max_size=12
    ),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_a_window_knows_what_is_left(
    count: int, commands: list[tuple[str, int, int]], seed: int
) -> None:
    """Candidates of two attributes, each as coarse as its number, and of one that is not compared."""
    random = np.random.default_rng(seed)
    every = np.array(list(itertools.product(range(8), range(9), range(4))), dtype=np.int16)
    chosen = every[random.permutation(len(every))[:count]]
    sums = np.sort(random.random(count))
    order = [np.tri(8, dtype=bool).T, np.tri(9, dtype=bool).T, None]
    window, limit = OpenList(chosen, sums, order), 1.5
    left = {tuple(row): total for row, total in zip(chosen.tolist(), sums.tolist(), strict=True)}
    parts = [np.linspace(0, 1, 8), np.linspace(0.1, 0.8, 9), np.linspace(0, 0.3, 4)]
    for command, a, b in commands:
        within = [row for row in left if row[0] <= a and row[1] <= b]
        bits = window.refining((a, b, 0))
        assert int(np.bitwise_count(bits).sum()) == len(within)
        if command == "s":
            window.strike(bits)
            left = {row: total for row, total in left.items() if row not in within}
        elif command == "r":
            window.raise_to(bits, parts, limit)
            for row in within:
                raised = sum(float(part[c]) for part, c in zip(parts, row, strict=True))
                left[row] = max(left[row], raised)
                if raised >= limit:
                    del left[row]
        elif command == "o":
            window.sort(limit)
        elif (first := window.first()) is not None:
            assert window.least(first) <= min(left.values()) + 1e-12
            window.strike_one(first)
            del left[tuple(window.chosen[first].tolist())]
        assert window.open_count() == len(left)
    assert (window.first() is None) == (not left)
