"""Small parts of a search against plain Python: its gap, its exchanges, its care, what it may rule out."""

from __future__ import annotations

import math
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_support import RULES
from aegis.advisor.search.branch import BranchAndBound, RowsRemoved, gap
from aegis.advisor.search.feasibility import InEngine
from aegis.advisor.search.neighbours import exchanges, others
from aegis.advisor.search.problem import Box, Clock, Problem, members
from aegis.arrays import distinct_keys
from aegis.files import SILENT
from aegis.privacy import PrivacyRule
from search_support import fresh, rule_of, rules


def leaves(problem: Problem, box: Box) -> list[Box]:
    """Return every configuration of a box."""
    return [tuple(1 << c for c in one) for one in product(*map(members, box))]


def halves(problem: Problem) -> list[Box]:
    """Return the whole space, and the boxes that leave one variable two of its candidates or one."""
    root = problem.root
    boxes = [root]
    for index, domain in enumerate(root):
        inside = list(members(domain))
        for first, second in zip(inside, inside[1:] + inside[:1], strict=True):
            smaller = (1 << first) | (1 << second)
            boxes.append((*root[:index], smaller, *root[index + 1 :]))
            boxes.append((*root[:index], 1 << first, *root[index + 1 :]))
    return boxes


@pytest.mark.parametrize(
    ("best", "bound", "stated"),
    [
        (2.0, 3.0, 0.5),
        (-4.0, -3.0, 0.25),
        (0.5, 0.5, 0.0),
        (0.5, 0.4, 0.0),
        (0.0, 1.0, 1e12),
        (-math.inf, 1.0, math.inf),
        (1.0, math.inf, math.inf),
    ],
)
def test_the_gap_is_relative_to_the_best(best: float, bound: float, stated: float) -> None:
    assert gap(best, bound) == pytest.approx(stated)


@given(
    st.lists(
        st.tuples(st.sampled_from([-0.75, -0.5, -0.125, 0.0, 0.25, 0.5]), st.integers(0, 2)),
        max_size=7,
    )
)
def test_exchanges_are_all_pairs_of_two_attributes_that_gain_together(
    drawn: list[tuple[float, int]],
) -> None:
    moves = sorted((-gain, index, number) for number, (gain, index) in enumerate(drawn))
    wanted = [
        (one[0] + other[0], one[1:], other[1:])
        for one in moves
        for other in moves
        if one[0] < 0 <= other[0] and one[1] != other[1] and one[0] + other[0] < 0
    ]
    exchanged = exchanges(moves)
    assert sorted(exchanged) == sorted((first, second) for _, first, second in wanted)
    falls = {(first, second): fall for fall, first, second in wanted}
    assert [falls[pair] for pair in exchanged] == sorted(falls.values())


def test_queries_rule_out_only_boxes_without_an_admissible_configuration() -> None:
    variant = "protected attribute with masks"
    struck = 0
    for rule in rules():
        if rule.monotone and all(c.model.local for c in rule.criteria) and rule.suppression:
            continue  # as without suppression
        searcher = fresh(variant, "nu-entropy", rule)
        feasibility = InEngine(searcher.problem, searcher.plan, Clock(None))
        good = {b for b in leaves(searcher.problem, searcher.problem.root) if feasibility.admits(b)}
        for box in halves(searcher.problem)[::2]:
            narrowed = feasibility.narrow(box)
            assert narrowed in (None, box)
            if narrowed is None:
                struck += 1
                assert not good & set(leaves(searcher.problem, box)), str(rule)
    assert struck > 20


def test_rows_that_a_box_removes_are_at_most_those_of_any_configuration_in_it() -> None:
    for rule in (rule_of(RULES[0], 0.0), rule_of(RULES[-1], 0.12), PrivacyRule()):
        searcher = fresh("plain", "nu-entropy", rule)
        removed = RowsRemoved(searcher.problem, searcher.plan)
        for box in halves(searcher.problem)[::3]:
            inside = leaves(searcher.problem, box)[::7]
            assert removed.bound(box) >= max(map(removed.bound, inside))


def test_without_a_table_of_frequencies_no_row_is_surely_removed() -> None:
    rule = rule_of(RULES[0], 0.0)
    searcher = fresh("plain", "nu-entropy", rule)
    unknown: Any = SimpleNamespace(summary=SimpleNamespace(frequency=None))
    assert RowsRemoved(unknown, searcher.plan).bound(searcher.problem.root) == 0


def search_of(objective: str, rule: PrivacyRule, step: Any) -> BranchAndBound:
    searcher = fresh("plain", objective, rule)
    return BranchAndBound(
        searcher.problem,
        searcher.objective,
        searcher.feasibility(rule),
        top=1,
        clock=Clock(None),
        step=step,
    )


def test_who_follows_a_search_may_end_it() -> None:
    class LeftError(Exception):
        pass

    class Leaving:
        def advance(self, amount: float = 1) -> None:
            if amount == 0:
                raise LeftError

        def note(self, text: str) -> None:
            pass

    with pytest.raises(LeftError):
        search_of("nu-entropy", rule_of(RULES[0], 0.0), Leaving()).run()


@pytest.mark.parametrize(("rarely", "expected"), [(4, [1, 3, 7]), (2, [1, 3, 5, 7])])
def test_dives_become_rarer_while_they_improve_nothing(
    rarely: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aegis.advisor.search.branch._DIVE_EVERY", 1)
    monkeypatch.setattr("aegis.advisor.search.branch._RARELY", rarely)
    with SILENT.step("") as step:
        search = search_of("nu-entropy", rule_of(RULES[0], 0.0), step)
        at: list[int] = []
        monkeypatch.setattr(search, "_dive", lambda _: at.append(search.outcome.nodes))
        monkeypatch.setattr(search.objective, "excludes", lambda *_: False)
        monkeypatch.setattr(search, "_threshold", lambda: -math.inf)
        search.run()
    assert at[: len(expected)] == expected


def changes(search: BranchAndBound, box: Box) -> dict[tuple[int, int], Box]:
    """Return the admissible and inadmissible configurations that differ in one mask."""
    return {
        (index, candidate): (*box[:index], 1 << candidate, *box[index + 1 :])
        for index, domain in enumerate(search.problem.root)
        for candidate in members(domain)
        if 1 << candidate != box[index]
    }


def test_no_change_of_one_mask_betters_the_end_of_a_local_search() -> None:
    with SILENT.step("") as step:
        search = search_of("nu-entropy", PrivacyRule(), step)
        value = search.objective.bound
        bettered = 0
        for box in leaves(search.problem, search.problem.root)[::5]:
            best = max(map(value, changes(search, box).values()))
            end = search._local.improved(box, others)
            assert value(end) >= max(best, value(box)) - 1e-9
            assert value(end) >= max(map(value, changes(search, end).values())) - 1e-9
            bettered += value(end) > value(box) + 1e-9
        assert bettered > 5


def test_exchanges_of_two_masks_better_what_changes_of_one_mask_cannot() -> None:
    with SILENT.step("") as step:
        search = search_of("nu-entropy", rule_of(RULES[0], 0.2), step)
        value, admits = search.objective.bound, search.feasibility.admits
        exchanged = 0
        for box in filter(admits, leaves(search.problem, search.problem.root)[::3]):
            one = search._local.improved(box, others)
            end = search._local.improved(box, others, pairs=True)
            assert admits(end)
            assert value(end) >= value(one) - 1e-9
            assert not any(
                admits(other) and value(other) > value(end) + 1e-9
                for other in changes(search, end).values()
            )
            exchanged += value(end) > value(one) + 1e-9
        assert exchanged


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.booleans())
def test_distinct_keys_are_the_same_in_order_and_out_of_order(keys: list[int], ordered: bool):
    listed = np.array(sorted(keys) if ordered else keys)
    _, first, place = np.unique(listed, return_index=True, return_inverse=True)
    for own, known in zip(distinct_keys(listed)[:2], (first, place), strict=True):
        assert own.tolist() == known.tolist()
