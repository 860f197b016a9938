"""Distinguishing games on `protect()`: who sees one of two neighbouring outputs guesses which table it was.

Each game has two tables that differ in one row, and somebody who looks at everything that level noise
publishes beside counts: classes, cuts, kinds, names, their order. Under (epsilon, delta)-differential privacy they are right in at most
e^epsilon / (1 + e^epsilon) + delta of all cases.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

import aegis
from aegis.errors import AegisError
from aegis.masks import Mask, evaluate
from aegis.policy import Policy, load_policy
from aegis.safe.protect import ProtectedSummary, cells, protect

from .inputs import Failure

EPSILON, DELTA = 0.5, 1e-6
ROWS = 1500
CANARY = "AA-canary"
MASKS: dict[str, Any] = {
    "age": {
        "role": "quasi-identifier",
        "masks": [{"bucketize": {"width": 10}}, {"quantiles": {"count": 3}}, "suppress"],
    },
    "city": {
        "role": "quasi-identifier",
        "masks": ["identity", {"keep_frequent": {"count": 2}}, "suppress"],
    },
    "hours": {"role": "feature", "masks": ["identity", "suppress"]},
}


@dataclass(frozen=True)
class Game:
    """Two tables that differ in one row, and how they are protected."""

    label: Any
    change: dict[str, Any]
    public: tuple[str, ...] = ()
    attributes: dict[str, dict[str, Any]] | None = None
    unseen: str = "error"

    @cached_property
    def policy(self) -> Policy:
        """What is declared."""
        entries = {n: MASKS[n] | (self.attributes or {}).get(n, {}) for n in MASKS}
        return load_policy(
            {"version": 1, "label": self.label, "unseen": self.unseen, "attributes": entries}
        )


DECLARED = {"column": "y", "classes": ["no", "yes"]}
CUT = {"column": "amount", "cuts": [100, 1000]}
NUMBER = {"column": "amount", "kind": "number", "bounds": [0, 1000]}
GAMES = {
    "a class of one row": Game("y", {"y": "only one"}),
    "a class that is not declared": Game(DECLARED, {"y": "only one"}, unseen="suppress"),
    "a label beyond all others": Game(CUT, {"amount": 98_765.4}),
    "a number beyond its bounds": Game(NUMBER, {"amount": 98_765.4}),
    "a text among numbers to predict": Game(NUMBER, {"amount": "n/a"}),
    "a fraction among integers": Game("y", {"hours": 30.5}),
    "a text among integers": Game("y", {"hours": "n/a"}),
    "a fraction where cuts are learnt": Game("y", {"age": 20.5}),
    "a name of one row": Game(DECLARED, {"city": CANARY}),
    "a name that is not declared": Game(
        DECLARED,
        {"city": CANARY},
        attributes={"city": {"values": ["aa", "bb", "cc", "dd"]}},
        unseen="suppress",
    ),
    "a declared name of one row": Game(
        DECLARED, {"city": "ee"}, attributes={"city": {"values": ["aa", "bb", "cc", "dd", "ee"]}}
    ),
    "the greatest value": Game(DECLARED, {"age": 987_654}),
    "the least value": Game(DECLARED, {"age": -987_654}),
    "a null": Game(DECLARED, {"hours": None}),
    "one row less": Game(DECLARED, {}),
}


def rows() -> list[dict[str, Any]]:
    """Return the rows that both tables of a game share."""
    random = np.random.default_rng(11)
    made = []
    for _ in range(ROWS):
        age, city = int(random.integers(18, 70)), str(random.choice(["aa", "bb", "cc", "dd"]))
        likely = 0.2 + 0.4 * (age > 45) + 0.3 * (city == "aa")
        made.append(
            {
                "age": age,
                "city": city,
                "hours": int(random.integers(2, 6)) * 10,
                "y": "yes" if random.random() < likely else "no",
                "amount": float(round(random.lognormal(6, 1.2), 2)),
            }
        )
    return made


Subject = aegis.Summary | pa.Table


def tables(game: Game) -> tuple[Subject, Subject]:
    """Return summaries of the two tables of a game, or the tables where their rows are rounded."""
    shared = rows()
    more = [*shared, {**shared[-1], **game.change}]
    return summarised(game, shared), summarised(game, more)


def summarised(game: Game, listed: list[dict[str, Any]]) -> Subject:
    """Return the summary of rows; a column becomes text or number where one value asks for it."""
    columns: dict[str, pa.Array] = {}
    for name in listed[0]:
        values = [row[name] for row in listed]
        for goal in (str, float):
            if any(isinstance(v, goal) for v in values):
                values = [None if v is None else goal(v) for v in values]
                break
        columns[name] = pa.array(values)
    table = pa.table(columns)
    return table if game.policy.label.is_number else aegis.summarize(table, game.policy)


def published(made: ProtectedSummary) -> frozenset[str]:
    """Return all that is published beside counts, each thing as a text."""
    seen = [f"class {name}" for name in made.classes]
    seen += [f"classes {made.classes}", f"moments {made.moments is not None}"]
    for attribute in made.attributes.values():
        seen.append(f"{attribute.name} is {attribute.kind}")
        for candidate in attribute.candidates:
            what = f"{attribute.name} {candidate.declared}"
            seen += [f"{what}: {candidate.mask.spec()}", f"{what} shows {candidate.labels}"]
            seen += [f"{what} shows the group {group}" for group in candidate.labels]
    protection = made.protection
    seen += [f"{r.name} {r.sensitivity}" for r in protection.rounds if "moments" not in r.name]
    seen += [f"{d.what} {d.column} {d.source}" for d in getattr(protection, "domains", None) or ()]
    return frozenset(seen)


def draw(game: Game, summary: Subject) -> frozenset[str]:
    """Return what is published of a table, or the refusal."""
    try:
        made = protect(summary, game.policy, epsilon=EPSILON, delta=DELTA, public=game.public)
    except AegisError as error:
        return frozenset([f"refused: {error.message}"])
    return published(made)


@contextmanager
def masked_once() -> Iterator[None]:
    """Ask the engine once how masks show values: the answer is the same in all draws of a game."""
    known: dict[str, Any] = {}

    def once(masks: Sequence[Mask], values: pa.Array) -> Any:
        key = f"{[mask.spec() for mask in masks]!r} {values.type} {values.to_pylist()!r}"
        if key not in known:
            known[key] = evaluate(masks, values)
        return known[key]

    with patch.object(cells, "evaluate", once):
        yield


def play(
    name: str, pairs: int, drawn: Callable[[Game, Any], frozenset[str]] = draw
) -> tuple[float, float]:
    """Return the share of right guesses, and what it may be at most, chance included.

    A third of the draws says which published thing occurs most unequally; the rest is guessed by it.

    Parameters
    ----------
    name
        The game.
    pairs
        Draws from either table.
    drawn
        What is seen of a table.
    """
    game = GAMES[name]
    with masked_once():
        seen = [[drawn(game, summary) for _ in range(pairs)] for summary in tables(game)]
    learnt = max(1, pairs // 3)
    counts = [Counter(thing for one in outputs[:learnt] for thing in one) for outputs in seen]
    every = sorted(counts[0].keys() | counts[1].keys())
    sign = max(every, key=lambda thing: abs(counts[1][thing] - counts[0][thing]))
    says_more = counts[1][sign] > counts[0][sign]
    right = sum(
        ((sign in one) == says_more) == bool(own)
        for own, outputs in enumerate(seen)
        for one in outputs[learnt:]
    )
    guesses = 2 * (pairs - learnt)
    bound = math.exp(EPSILON) / (1 + math.exp(EPSILON)) + DELTA
    return right / guesses, bound + 3 * math.sqrt(0.25 / guesses)


def failures(pairs: int) -> Iterator[Failure]:
    """Play every game, print how it ends, and yield those that are won."""
    for name in GAMES:
        won, most = play(name, pairs)
        print(f"  {name}: {100 * won:.1f} % right, at most {100 * most:.1f} %", flush=True)
        if won > most:
            yield Failure(f"game:{name}", f"won {won:.3f} of {pairs} pairs", "")
