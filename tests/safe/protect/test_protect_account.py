"""The account of level noise, checked where it is assembled.

A recording budget runs the mechanism on a small table and on each of its neighbours, gives both the
same published figures, and compares what is handed to each round. Epsilon and delta are then worked
out again from the rounds and thresholds alone.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

import aegis
from aegis.policy import Configuration, load_policy
from aegis.safe.protect import Unit, dumps, model, protect
from aegis.safe.protect import budget as budget_module
from aegis.safe.protect import noise as noise_module
from aegis.safe.protect.budget import Budget
from aegis.safe.protect.cells import UNNAMED_SHOWN
from aegis.safe.protect.noise import Noise, protect_with_noise
from aegis.sources import open_table

K = 3
LABELS = {"bought": "y", "declared": {"column": "y", "classes": ["no", "yes"]}}
VALUES = {"age": {"values": [20, 30, 40, 50]}, "city": {"values": ["aa", "bb", "cc"]}}
ROWS = [
    (20, "aa", 10, "yes"),
    (20, "aa", 10, "yes"),
    (20, "aa", 20, "no"),
    (40, "bb", 20, "no"),
    (40, "bb", 10, "no"),
    (50, "cc", 30, "yes"),
    (50, "cc", 30, "no"),
    (40, "bb", 20, "yes"),
]
"""Classes of three rows, which one row less makes too small; values that one row has; rare ones."""


def policy_of(label, declared):
    entries = {
        "age": {"role": "quasi-identifier", "masks": [{"bucketize": {"width": 10}}, "suppress"]},
        "city": {
            "role": "quasi-identifier",
            "masks": ["identity", {"keep_frequent": {"count": 1}}, "suppress"],
        },
        "hours": {"role": "feature", "masks": ["identity", {"quantiles": {"count": 2}}]},
    }
    return load_policy(
        {
            "version": 1,
            "label": LABELS[label],
            "privacy": {"k": K, "suppression": 0.5},
            "attributes": {
                n: e | (VALUES.get(n, {}) if declared else {}) for n, e in entries.items()
            },
        }
    )


def table_of(rows):
    names = ("age", "city", "hours", "y")
    return pa.table({n: pa.array([row[i] for row in rows]) for i, n in enumerate(names)})


@dataclass
class Recorded:
    """What was handed to a round, line by line, and what it cost."""

    lines: dict[tuple[int, str], np.ndarray]
    sensitivity: float
    sigma: float
    stated: float


class Recorder(Budget):
    """A budget that publishes what it is told to, and remembers what it was handed.

    `script` holds figures that an earlier run published; without one, figures are made up from what
    each line counts, so that all lines of this run are named.
    """

    script: dict[str, dict[tuple[int, str], np.ndarray]] | None = None
    made: ClassVar[list[Recorder]] = []

    def __init__(self, *args):
        super().__init__(*args)
        self.seen: dict[str, Recorded] = {}
        self.told: dict[str, dict[tuple[int, str], np.ndarray]] = {}
        Recorder.made.append(self)

    def spend(self, name, figures, sensitivity, rho, keys=None):
        used = []
        real = budget_module.discrete_gaussian

        def watched(flat, sigma, distance, cost):
            used.append(sigma)
            return real(flat, sigma, distance, cost)

        budget_module.discrete_gaussian = watched
        try:
            _, sigma = super().spend(name, figures, sensitivity, rho, keys)
        finally:
            budget_module.discrete_gaussian = real
        lines = {
            (i, keys[i][j] if keys else str(j)): np.atleast_1d(line).copy()
            for i, figure in enumerate(figures)
            for j, line in enumerate(figure)
        }
        self.seen[name] = Recorded(lines, self.rounds[-1].sensitivity, used[0], sigma)
        if Recorder.script is None:
            self.told[name] = {key: self.figure(name, *key, line) for key, line in lines.items()}
        else:
            self.told[name] = {
                key: Recorder.script[name].get(key, np.zeros_like(line))
                for key, line in lines.items()
            }
        published = iter(self.told[name].values())
        return [
            np.array([next(published) for _ in f], dtype=np.int64).reshape(f.shape) for f in figures
        ], sigma

    @staticmethod
    def figure(name, place, key, line):
        """Return a made-up figure: clear types, many rows of some cells and few of others."""
        if name == "kinds of columns":
            return line * 10_000
        if name in ("moments of codes", "rows in small classes"):
            return np.zeros_like(line)
        # Few rows have the last values, and mostly the other class: codes are long, and clipped.
        rare = key.startswith(("50", "[50", "cc", "30"))
        tilt = 1 + (np.arange(line.size) + rare) % 2 * 8
        return np.asarray(tilt * (500 if rare else 20_000), dtype=np.int64)


def run(monkeypatch, summary, asked, policy, source, script):
    Recorder.script = script
    monkeypatch.setattr(noise_module, "Budget", Recorder)
    made = protect_with_noise(summary, asked, policy, source=source)
    return Recorder.made.pop(), made


def asked_for(public, moments, verdicts, unit_rows, policy):
    configurations = ()
    if verdicts:
        by_mask = {n: a.masks for n, a in policy.attributes.items()}
        configurations = tuple(
            Configuration(
                str(i), {"age": by_mask["age"][0], "city": c, "hours": by_mask["hours"][0]}
            )
            for i, c in enumerate(by_mask["city"][::2])
        )
    return Noise(
        epsilon=2.0,
        delta=1e-4,
        unit=Unit.PERSONS if unit_rows > 1 else Unit.ROWS,
        rows_per_person=unit_rows,
        public=frozenset(["age", "city", "hours"] if public else []),
        verdicts=configurations,
        most_error=math.inf if moments else -1.0,
    )


def moved(smaller: Recorded, larger: Recorded) -> float:
    """Return the L2 distance between what two runs were handed; a line that lacks counts nothing."""
    total = 0.0
    for key in smaller.lines.keys() | larger.lines.keys():
        zero = np.zeros_like(smaller.lines.get(key, larger.lines.get(key)))
        difference = larger.lines.get(key, zero) - smaller.lines.get(key, zero)
        total += float((difference.astype(float) ** 2).sum())
    return math.sqrt(total)


def without(rows: list[tuple], count: int) -> list[list[tuple]]:
    """Return the tables without some rows, each once: of equal rows it is all one which one goes."""
    places = itertools.combinations(range(len(rows)), count)
    left = ([row for i, row in enumerate(rows) if i not in gone] for gone in places)
    return [list(own) for own in dict.fromkeys(map(tuple, left))]


def neighbours(unit_rows: int, declared: bool, taken: Iterable[str]) -> Iterable[list[tuple]]:
    """Yield the rows without those of one unit; what is `taken` from the table is as it was."""

    def shown(rows):
        attributes = summary_of(rows, declared).attributes
        return [(c.mask, {*c.labels}) for name in taken for c in attributes[name].candidates]

    for rows in without(ROWS, unit_rows):
        if not taken or shown(rows) == shown(ROWS):
            yield rows


CONFIGURATIONS = [
    (label, declared, public, moments, verdicts, unit_rows, with_table)
    for label, declared, public, moments, verdicts, unit_rows, with_table in itertools.product(
        LABELS, (False, True), (False, True), (False, True), (False, True), (1, 2), (False, True)
    )
    # All values of any three options together, not every combination of all.
    if ((label == "bought") + declared + public + verdicts) % 2 == 0
    and (declared + public + moments + unit_rows) % 2 == 0
    and ((label == "bought") + public + moments + with_table) % 2 == 0
]
EXACT = {
    "label classes",
    "kinds of columns",
    "rows per value",
    "label tables",
    "label tables again",
    "rows in small classes",
}
_SUMMARIES: dict[tuple, aegis.Summary] = {}


def summary_of(rows, declared):
    key = (*rows, declared)
    if key not in _SUMMARIES:
        _SUMMARIES[key] = aegis.summarize(table_of(rows), policy_of("bought", declared), exact=True)
    return _SUMMARIES[key]


@pytest.mark.parametrize("options", CONFIGURATIONS, ids=str)
def test_no_neighbour_moves_a_round_further_than_it_states(monkeypatch, options):
    label, declared, public, moments, verdicts, unit_rows, with_table = options
    policy = policy_of(label, declared)
    asked = asked_for(public, moments, verdicts, unit_rows, policy)
    whole = summary_of(ROWS, declared)
    source = open_table(table_of(ROWS)) if with_table else None
    furthest: dict[str, float] = {}
    taken = ["city", "hours"] if declared else ["age", "city", "hours"]
    listed = list(neighbours(unit_rows, declared, taken if public else []))
    assert listed
    for rows in listed[:: 1 if unit_rows == 1 else 4]:
        fewer = open_table(table_of(rows)) if with_table else None
        small, made = run(monkeypatch, summary_of(rows, declared), asked, policy, fewer, None)
        large, again = run(monkeypatch, whole, asked, policy, source, small.told)
        # What was published is the same, so that the next round is handed figures of one kind.
        assert [a.table.tolist() for a in made.attributes.values()] == [
            a.table.tolist() for a in again.attributes.values()
        ]
        assert list(small.seen) == list(large.seen) == [r.name for r in made.protection.rounds]
        for name, first in small.seen.items():
            second = large.seen[name]
            assert first.sensitivity == second.sensitivity
            assert first.sigma == first.stated == second.sigma
            distance = moved(first, second)
            assert distance <= first.sensitivity * (1 + 1e-9), name
            furthest[name] = max(furthest.get(name, 0.0), distance / first.sensitivity)
    if unit_rows == 1:
        for name, share in furthest.items():
            assert share >= (0.999 if name in EXACT else 0.6), name


ODD_ROWS = [
    (20, "aa", 10, "yes"),
    (20, "aa", 10, "yes"),
    (30, "bb", 20, "no"),
    (30, "bb", 20, "no"),
    (30, "bb", 30.5, "no"),
    (None, "aa", 10, "yes"),
    (20, None, None, "no"),
    (30, "bb", 20, None),
    (50, "cc", 10, "only one"),
]
"""A fraction among whole numbers, nulls, a row without a label, a class of one row."""


@pytest.mark.parametrize("with_table", [False, True])
@pytest.mark.parametrize("moments", [False, True])
def test_no_odd_row_moves_a_round_further_than_it_states(monkeypatch, moments, with_table):
    """Also that two neighbours publish the same, kinds and names included, where noise says the same."""
    policy = policy_of("bought", False)
    asked = asked_for(False, moments, True, 1, policy)
    told = open_table(table_of(ODD_ROWS)) if with_table else None
    for rows in without(ODD_ROWS, 1):
        fewer = open_table(table_of(rows)) if with_table else None
        small, made = run(monkeypatch, summary_of(tuple(rows), False), asked, policy, fewer, None)
        large, again = run(
            monkeypatch, summary_of(tuple(ODD_ROWS), False), asked, policy, told, small.told
        )
        assert published(made) == published(again)
        assert list(small.seen) == list(large.seen)
        for name, first in small.seen.items():
            assert first.sensitivity == large.seen[name].sensitivity
            assert moved(first, large.seen[name]) <= first.sensitivity * (1 + 1e-9), name


NUMBERS = [3.0, 8.5, -1e9, 1e9, 10, 0, 5, 7.25]


def run_number(monkeypatch, rows, script, moments):
    """Protect rows whose label is a number, rounded by the same draws for rows of the same place."""
    Recorder.script = script
    monkeypatch.setattr(noise_module, "Budget", Recorder)
    monkeypatch.setattr(model.os, "urandom", bytes)
    label = {"column": "y", "kind": "number", "bounds": [0, 10]}
    policy = replace(
        policy_of("declared", False), label=load_policy({**PLAIN, "label": label}).label
    )
    promise = {"epsilon": 2.0, "delta": 1e-4, "public": ["age", "city", "hours"] if moments else ()}
    made = protect(table_of(rows), policy, **promise)
    return Recorder.made.pop(), made


PLAIN = {"version": 1, "attributes": {"age": {"role": "feature"}}}


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("number", [-1e9, 0, 7.25, 10, 1e9, math.nan, None])
def test_no_number_to_predict_moves_a_round_further_than_it_states(monkeypatch, number, public):
    rows = [(*row[:3], y) for row, y in zip(ROWS, NUMBERS, strict=True)]
    whole = [*rows, (20, "aa", 10, number)]
    small, made = run_number(monkeypatch, rows, None, public)
    large, again = run_number(monkeypatch, whole, small.told, public)
    assert made.classes == again.classes == ("0", "10")
    assert list(small.seen) == list(large.seen)
    for name, first in small.seen.items():
        assert first.sensitivity == large.seen[name].sensitivity
        assert moved(first, large.seen[name]) <= first.sensitivity * (1 + 1e-9), name
    known = number is not None and not math.isnan(number)
    table = moved(small.seen["label tables"], large.seen["label tables"])
    assert (table > 0.999 * small.seen["label tables"].sensitivity) == known


def published(made):
    """Return all that is published but what the budget entered."""
    return json.loads(dumps(made)) | {"digest": None}


def tail(least, alone, sigma, columns):
    """Return at most how likely noise alone lifts `alone` rows to `least`: subgaussian."""
    return math.exp(-((least - alone) ** 2) / (2 * columns * sigma**2))


def least_epsilon(rho, delta):
    """Return the epsilon of rho-zCDP at delta, by trying orders (Canonne, Kamath, Steinke 2020)."""
    orders = 1 + np.exp(np.linspace(-6, 9, 30_001))
    tried = orders * rho + (np.log(1 / delta) - np.log(orders)) / (orders - 1)
    return float((tried + np.log1p(-1 / orders)).min())


@pytest.mark.parametrize("options", CONFIGURATIONS, ids=str)
def test_epsilon_and_delta_follow_from_rounds_and_thresholds(monkeypatch, options):
    label, declared, public, moments, verdicts, unit_rows, _ = options
    policy = policy_of(label, declared)
    asked = asked_for(public, moments, verdicts, unit_rows, policy)
    recorder, made = run(monkeypatch, summary_of(ROWS, declared), asked, policy, None, None)
    said = made.protection
    handed = {name: own.sigma for name, own in recorder.seen.items()}
    rho = sum(r.sensitivity**2 / (2 * handed[r.name] ** 2) for r in said.rounds)
    open_attributes = 1 if declared else 3
    wanted = {}  # round: (columns, tables whose names are bought)
    if label == "bought":
        wanted["label classes"] = (1, 1)
    if not public:
        wanted["rows per value"] = (1, 1 if declared else 2)  # masks of city and hours learn
        wanted["label tables"] = (2, open_attributes)
    assert {t.name for t in said.thresholds} == set(wanted)
    for_names = 0.0
    for threshold in said.thresholds:
        columns, tables = wanted[threshold.name]
        own = tables * unit_rows * tail(threshold.least, unit_rows, handed[threshold.name], columns)
        assert own <= threshold.delta * (1 + 1e-9)
        for_names += own
    assert for_names < said.delta
    spent = least_epsilon(rho, said.delta - for_names)
    assert spent <= said.epsilon * (1 + 1e-6)
    assert spent >= 0.9 * said.epsilon


def test_a_name_is_published_from_its_threshold_on_and_not_below(monkeypatch):
    policy = policy_of("bought", False)
    asked = asked_for(False, False, False, 1, policy)
    summary = summary_of(ROWS, False)
    first, _ = run(monkeypatch, summary, asked, policy, None, None)
    least = {t.name: math.ceil(t.least) for t in first.thresholds}
    named = {**first.told}
    named["label tables"] = {
        key: np.array([least["label tables"] - (key[1].startswith(("bb", "[40"))), 0])
        for key in first.told["label tables"]
    }
    _, made = run(monkeypatch, summary, asked, policy, None, named)
    shown = {n: {*a.candidates[0].labels} - {UNNAMED_SHOWN} for n, a in made.attributes.items()}
    assert shown["city"] == {"aa", "cc"}
    assert shown["age"] == {"[20, 30[", "[50, 60["}
    named["label classes"] = {
        key: np.array([least["label classes"] - (key[1] == "yes")])
        for key in first.told["label classes"]
    }
    with pytest.raises(aegis.errors.PolicyError, match="Fewer than two classes"):
        run(monkeypatch, summary, asked, policy, None, named)
    Recorder.made.clear()


def test_values_that_masks_learn_from_are_those_above_their_threshold(monkeypatch):
    policy = policy_of("declared", False)
    asked = asked_for(False, False, False, 1, policy)
    summary = summary_of(ROWS, False)
    first, _ = run(monkeypatch, summary, asked, policy, None, None)
    [least] = [math.ceil(t.least) for t in first.thresholds if t.name == "rows per value"]
    for lacking, cut in (("30", [20]), ("20", [30])):
        named = {**first.told}
        named["rows per value"] = {
            key: np.array([least - (key[1] == lacking)]) for key in first.told["rows per value"]
        }
        _, made = run(monkeypatch, summary, asked, policy, None, named)
        mask = made.attributes["hours"].candidates[1].mask
        assert list(mask.edges) == cut
