"""Searches under one or two criteria, with suppression, of rows and of persons, against plain Python.

Nothing of Aegis decides here what meets the rule: classes are sets of rows and of persons, and every
combination of masks is tried.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis import search
from aegis.policy import Policy, load_policy

Visit = dict[str, Any]

AGES = {
    "identity": lambda v: v,
    "bucketize(width=2)": lambda v: v // 2,
    "bucketize(width=4)": lambda v: v // 4,
    "suppress": lambda _: "*",
}
TOWNS = {"identity": lambda v: v, "blur(keep=1)": lambda v: v[0], "suppress": lambda _: "*"}
PAYS = {"identity": lambda v: v, "suppress": lambda _: "*"}
MASKS = {
    "age": ["identity", {"bucketize": {"width": 2}}, {"bucketize": {"width": 4}}, "suppress"],
    "town": ["identity", {"blur": {"keep": 1}}, "suppress"],
    "pay": ["identity", "suppress"],
}


def visits(seed: int, count: int) -> list[Visit]:
    """Return visits of persons, who may age and move between two of them."""
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        person = int(random.integers(0, count // 2))
        rows.append(
            {
                "person": person,
                "age": int(20 + person % 8 + random.integers(0, 2)),
                "town": str(random.choice(["a1", "a2", "b1"])),
                "pay": int(random.integers(0, 2)),
                "ill": str(random.choice(["flu", "cold", "rash"], p=[0.6, 0.25, 0.15])),
                "y": str(random.choice(["yes", "no"])),
            }
        )
    return rows


def policy_of(
    k: int, diversity: int | None, share: float, persons: bool, coarsest: bool = True
) -> Policy:
    """Return the policy; without `coarsest` no mask hides every town."""
    attributes = {
        name: {"role": "quasi-identifier", "masks": masks} for name, masks in MASKS.items()
    }
    if not coarsest:
        attributes["town"]["masks"] = MASKS["town"][:2]
    privacy: dict[str, Any] = {"k": k, "suppression": share}
    if diversity is not None:
        privacy["l_diversity"] = {"attribute": "ill", "kind": "distinct", "l": diversity}
    key = {} if persons else {"person": {"role": "identifier"}}
    data = {
        "version": 1,
        "label": "y",
        "privacy": privacy,
        "attributes": attributes | key | {"ill": {"role": "sensitive"}},
    }
    return load_policy(data | ({"person": "person"} if persons else {}))


def bits_lost(column: list[Any], shown: list[Any]) -> float:
    both, groups = Counter(zip(column, shown, strict=True)), Counter(shown)
    return sum(
        -math.log2(both[value, group] / groups[group])
        for value, group in zip(column, shown, strict=True)
    )


def bits_suppressed(shown: list[Any]) -> float:
    """Return what hiding the shown values of the suppressed rows loses beyond their masks."""
    return sum(-n * math.log2(n / len(shown)) for n in Counter(shown).values())


def costs(
    rows: list[Visit], k: int, diversity: int | None, share: float, persons: bool
) -> list[float]:
    """Return the entropy that masks and suppression of each admissible combination lose, sorted."""
    admissible = []
    for age, town, pay in product(AGES.values(), TOWNS.values(), PAYS.values()):
        shown = {
            "age": [age(row["age"]) for row in rows],
            "town": [town(row["town"]) for row in rows],
            "pay": [pay(row["pay"]) for row in rows],
        }
        classes = defaultdict(list)
        for place, key in enumerate(zip(*shown.values(), strict=True)):
            classes[key].append(place)
        gone = []
        for members in classes.values():
            having: dict[str, set[int]] = defaultdict(set)
            for i in members:
                having[rows[i]["ill"]].add(rows[i]["person"] if persons else i)
            everyone = set().union(*having.values())
            # A value that everyone has is certain, whatever else some have.
            certain = any(holders == everyone for holders in having.values())
            alike = diversity is not None and (certain or len(having) < diversity)
            if len(everyone) < k or alike:
                gone += members
        lost = len({rows[i]["person"] for i in gone}) if persons else len(gone)
        everybody = len({row["person"] for row in rows}) if persons else len(rows)
        if lost < everybody and lost <= share * everybody:
            loss = 0.0
            for name, column in (*shown.items(), ("ill", [row["ill"] for row in rows])):
                loss += bits_lost([row[name] for row in rows], column)
                loss += bits_suppressed([column[i] for i in gone])
            admissible.append(loss)
    return sorted(admissible)


@pytest.mark.parametrize("persons", [False, True], ids=["rows", "persons"])
@settings(max_examples=5)
@given(
    seed=st.integers(0, 10_000),
    count=st.sampled_from([24, 60]),
    k=st.integers(2, 6),
    diversity=st.sampled_from([None, 2, 3]),
    share=st.sampled_from([0.0, 0.1, 0.3, 0.6]),
)
def test_the_best_under_one_or_two_criteria_is_that_of_plain_python(
    persons: bool, seed: int, count: int, k: int, diversity: int | None, share: float
) -> None:
    rows = visits(seed, count)
    wanted = costs(rows, k, diversity, share, persons)
    table = pa.Table.from_pylist(rows)
    policy = policy_of(k, diversity, share, persons)
    advice = search(table, policy, measure="adjusted-pillai", objective="nu-entropy", top=3)
    found = [entry.objective for entry in advice.ranking if entry.admissible]
    assert found == pytest.approx(wanted[: max(1, len(found))], rel=1e-9, abs=1e-9)
    assert advice.optimal == bool(wanted)


def travels(seed: int, persons: int) -> list[Visit]:
    """Return persons of one visit each in one town, and a traveller who is alone in many towns."""
    random = np.random.default_rng(seed)
    home = [{"person": i, "age": 20, "town": "a1", "pay": 0} for i in range(persons)]
    away = [{"person": -1, "age": 20, "town": f"{t}1", "pay": 0} for t in "bcdefghi"]
    draws = zip(
        random.permutation(persons + 8) % 3, random.integers(0, 2, persons + 8), strict=True
    )
    values = [{"ill": ("flu", "cold", "rash")[ill], "y": ("yes", "no")[y]} for ill, y in draws]
    return [row | value for row, value in zip(home + away, values, strict=True)]


@pytest.mark.parametrize("diversity", [None, 2], ids=["k", "k and diversity"])
@settings(max_examples=4)
@given(seed=st.integers(0, 10_000), count=st.integers(18, 30), k=st.integers(2, 6))
def test_one_person_of_many_rows_is_one_person_to_suppress(
    diversity: int | None, seed: int, count: int, k: int
) -> None:
    """A rule that counted rows would find no admissible mask, because no mask hides every town."""
    rows = travels(seed, count)
    advice = search(
        pa.Table.from_pylist(rows),
        policy_of(k, diversity, 0.1, persons=True, coarsest=False),
        measure="adjusted-pillai",
        objective="nu-entropy",
        top=3,
    )
    assert advice.ranking[0].admissible
    assert advice.optimal
