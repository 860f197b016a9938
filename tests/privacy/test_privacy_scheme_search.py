"""The search for masks with differential privacy: chances, sensitivities, and the guarantee itself."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.privacy.scheme_search import (
    SCHEME_SCORES,
    Scheme,
    SchemeCells,
    chooser,
    draw_scheme,
    probabilities,
)

HEIGHTS = (2, 1, 1)
VALUES = 4
GROUPS = (
    (np.arange(4), np.array([0, 0, 1, 1]), np.zeros(4, dtype=np.int64)),
    (np.arange(4), np.zeros(4, dtype=np.int64)),
    (np.arange(4), np.array([0, 1, 1, 1])),
)
SHARES = (
    (np.full(4, 0.2), np.array([0.4, 0.4, 0.6, 0.6]), np.ones(4)),
    (np.full(4, 0.25), np.ones(4)),
    (np.full(4, 0.1), np.array([0.1, 0.9, 0.9, 0.9])),
)
HIDDEN = ((False, False, True), (False, True), (False, False))
SCHEMES = list(product(*(range(height + 1) for height in HEIGHTS)))
Row = tuple[int, int, int]
rows = st.lists(st.tuples(*[st.integers(0, VALUES - 1)] * 3), max_size=14)


def cells_of(given: Sequence[Row], least: int, beyond: int = 0) -> SchemeCells:
    columns = np.array(given, dtype=np.int64).reshape(-1, 3).T
    return SchemeCells(
        tuple(columns),
        np.ones(columns.shape[1], dtype=np.int64),
        GROUPS,
        SHARES,
        HIDDEN,
        least,
        beyond,
        targets=(0, 1),
    )


def by_rows(name: str, given: Sequence[Row], scheme: Scheme, least: int) -> float:
    """Return a score from the rows, before it is divided."""
    shown = [tuple(int(GROUPS[j][g][r[j]]) for j, g in enumerate(scheme)) for r in given]
    kept = [shown.count(one) >= least for one in shown]
    charges = []
    for place, (row, stays) in enumerate(zip(given, kept, strict=True)):
        mean = {
            "precision": sum(g / h for g, h in zip(scheme, HEIGHTS, strict=True)) / 3,
            "loss": sum(SHARES[j][g][row[j]] for j, g in enumerate(scheme)) / 3,
            "discernibility": shown.count(shown[place]) / len(given),
            "nu-entropy": sum(
                1
                if HIDDEN[j][g]
                else sum(s[j] == shown[place][j] and k for s, k in zip(shown, kept, strict=True))
                / len(given)
                for j, g in enumerate(scheme)
            )
            / 3,
        }.get(name, 0.0)
        charges.append(mean if stays else 1.0)
    if name == "classes":
        return len({s for s, k in zip(shown, kept, strict=True) if k}) + (not all(kept))
    if name == "classification":
        return sum(guessed(j, scheme, shown, kept) for j in (0, 1)) / 2
    return -sum(charges)


def guessed(target: int, scheme: Scheme, shown: list[tuple[int, ...]], kept: list[bool]) -> float:
    """Return the kept rows with the most frequent target among those that show the same beside it."""
    counts: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for one, stays in zip(shown, kept, strict=True):
        if stays:
            counts[one[:target] + one[target + 1 :]][one[target]] += 1
    most = sum(max(values.values()) for values in counts.values())
    return most * (1 - scheme[target] / HEIGHTS[target])


@pytest.mark.parametrize("name", list(SCHEME_SCORES))
@settings(max_examples=24, deadline=None)
@given(given_rows=rows, another=st.tuples(*[st.integers(0, 3)] * 3), least=st.integers(1, 5))
def test_one_record_changes_a_score_by_at_most_one(
    name: str, given_rows: list[Row], another: Row, least: int
) -> None:
    score = SCHEME_SCORES[name]
    less, more = cells_of(given_rows, least), cells_of([*given_rows, another], least)
    for scheme in SCHEMES:
        assert abs(score.value(less, scheme) - score.value(more, scheme)) <= 1 + 1e-9
        exact = by_rows(name, given_rows, scheme, least)
        assert score.figure_of(less, scheme) == pytest.approx(exact)


@pytest.mark.parametrize("name", ["precision", "loss", "discernibility", "nu-entropy"])
def test_sensitivities_are_not_far_from_what_is_reached(name: str) -> None:
    """A class of ten that becomes large enough changes a score by more than half of what is allowed."""
    finest = (0, 0, 0)
    filler = [(3, 3, 3)] * 400
    less, more = (
        cells_of([*filler, *[(0, 0, 0)] * 9], 10),
        cells_of([*filler, *[(0, 0, 0)] * 10], 10),
    )
    score = SCHEME_SCORES[name]
    assert abs(score.value(less, finest) - score.value(more, finest)) > 0.5


def test_chances_are_those_of_the_exponential_mechanism() -> None:
    chances = probabilities([3.0, -2.0, 0.5], 0.8)
    weights = [math.exp(0.4 * s) for s in (3.0, -2.0, 0.5)]
    assert chances == pytest.approx([w / sum(weights) for w in weights])
    assert probabilities([-1e9, -1e9 + 1], 1.0) == pytest.approx(probabilities([0.0, 1.0], 1.0))
    random = np.random.default_rng(2)
    draw = chooser(random.random)
    drawn = np.bincount([draw([3.0, -2.0, 0.5], 0.8) for _ in range(4000)], minlength=3) / 4000
    assert drawn == pytest.approx(chances, abs=0.03)
    assert chooser(lambda: 1 - 2**-53)([0.0, 0.0], 1.0) == 1
    assert chooser(lambda: 0.0)([0.0, 0.0], 1.0) == 0


Distribution = dict[Scheme, float]


class Replay:
    """Draws what a path says, then always the first, and remembers what else could be drawn."""

    def __init__(self, path: tuple[int, ...]) -> None:
        self.path = path
        self.taken: list[int] = []
        self.others: list[tuple[int, ...]] = []
        self.chance = 1.0

    def __call__(self, scores: Sequence[float], part: float) -> int:
        place = len(self.taken)
        taken = self.path[place] if place < len(self.path) else 0
        if place >= len(self.path):
            self.others += [(*self.taken, n) for n in range(1, len(scores))]
        self.taken.append(taken)
        self.chance *= float(probabilities(scores, part)[taken])
        return taken


def distribution(score: Callable[[Scheme], float], steps: int, epsilon: float) -> Distribution:
    """Return the chance of each scheme, over all that could be drawn."""
    result: Distribution = defaultdict(float)
    open_paths: list[tuple[int, ...]] = [()]
    while open_paths:
        replay = Replay(open_paths.pop())
        drawn = draw_scheme(HEIGHTS[:2], score, replay, steps=steps, epsilon=epsilon)
        result[drawn.scheme] += replay.chance
        open_paths += replay.others
    return result


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1000),
    steps=st.integers(1, 3),
    epsilon=st.sampled_from([0.5, 2.0, 6.0]),
)
def test_no_scheme_becomes_more_likely_than_epsilon_allows(
    seed: int, steps: int, epsilon: float
) -> None:
    """Scores that differ by up to one, as those of neighbouring tables do."""
    random = np.random.default_rng(seed)
    names = list(product(range(3), range(2)))
    one = dict(zip(names, random.uniform(-3, 3, len(names)), strict=True))
    other = {scheme: value + random.choice([-1.0, 1.0]) for scheme, value in one.items()}
    here, there = (distribution(scores.__getitem__, steps, epsilon) for scores in (one, other))
    assert sum(here.values()) == pytest.approx(1)
    assert here.keys() == there.keys()
    for scheme, chance in here.items():
        assert abs(math.log(chance / there[scheme])) <= epsilon + 1e-9


def test_each_draw_spends_an_equal_part_and_the_walk_stays_in_the_lattice() -> None:
    parts: list[float] = []

    def last(scores: Sequence[float], part: float) -> int:
        parts.append(part)
        return len(scores) - 1

    drawn = draw_scheme((1, 1), lambda scheme: -sum(scheme), last, steps=9, epsilon=1.0)
    # Three schemes beside the coarsest are all that there are: three draws, and the last one.
    assert parts == [0.1] * 4
    assert set(drawn.visited) == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert drawn.visited[0] == (1, 1)


def test_the_best_by_its_exact_score_would_tell_more() -> None:
    """What is drawn is drawn to the end: of all schemes visited none is certain."""
    even = distribution(lambda scheme: float(scheme == (0, 0)), 5, 1.0)
    assert len(even) == 6
    assert max(even.values()) < 0.3
