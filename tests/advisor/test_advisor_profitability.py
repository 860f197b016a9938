"""Profitability: which classes pay their publisher, by rows, in plans, searches, releases and audits."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aegis
from aegis.advisor.plan import plan_of
from aegis.advisor.search import Searcher
from aegis.errors import PolicyError
from aegis.policy import Configuration
from aegis.privacy import ClassTable, PrivacyRule
from aegis.summary import summarize
from people_support import Row, masks_of_people, write_people

TOWNS = {"Ulm": "south", "Rom": "south", "Kiel": "north", "Oslo": "north", "Bonn": "north"}
"""Nobody lives in Bonn: a leaf all the same."""


def people(seed: int, count: int) -> list[Row]:
    draw = random.Random(seed)
    towns = [name for name in TOWNS if name != "Bonn"] + [None] * (seed % 2)
    return [(draw.randrange(20, 40), draw.choice(towns)) for _ in range(count)]


def policy_of(rule: dict[str, Any], population: Path | None = None, **changes: Any) -> Any:
    written: dict[str, Any] = {
        "version": 1,
        "label": "y",
        "privacy": rule,
        "attributes": masks_of_people(TOWNS) | changes,
    }
    if population is not None:
        written["population"] = str(population)
    return aegis.load_policy(written)


def shown(row: Row, age: int, town: int) -> tuple[Any, Any]:
    """Return what a row shows under masks that are coarser and coarser."""
    part = None if row[1] is None else TOWNS[row[1]]
    return row[0] // (1, 5, 10, 1000)[age], (row[1], part, part and "*")[town]


def hidden(rows: list[Row], row: Row, age: int, town: int) -> float:
    """Return the share of its bits that a row does not show: leaves of town, values of age."""
    ages = {r[0] for r in rows}
    nulls = any(r[1] is None for r in rows)
    alike = len({a for a in ages if shown((a, None), age, 0)[0] == shown(row, age, 0)[0]})
    group = shown(row, 0, town)[1]
    leaves = 1 if row[1] is None else sum(shown((0, t), 0, town)[1] == group for t in TOWNS)
    whole = math.log2(len(ages)) + math.log2(len(TOWNS) + nulls)
    return math.log2(alike * leaves) / whole


def paying(
    rows: list[Row], everybody: list[Row] | None, stakes: dict[str, float], age: int, town: int
) -> list[bool]:
    """Return of each row whether it pays its publisher."""
    crowd = Counter(shown(row, age, town) for row in (everybody or rows))
    result = []
    for row in rows:
        n = crowd[shown(row, age, town)]
        lost = stakes["loss"] / n if stakes["gain"] > stakes["cost"] * n else 0.0
        worth = stakes["benefit"] * (1 - hidden(rows, row, age, town))
        result.append(worth - lost > 1e-9 * stakes["benefit"])
    return result


STAKES = {"benefit": 10.0, "loss": 12.0, "gain": 9.0, "cost": 3.0}
HIGH = STAKES | {"loss": 40.0, "gain": 30.0}


@pytest.mark.wings
@pytest.mark.parametrize("attacker", ["prosecutor", "journalist"])
@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    loss=st.sampled_from([4, 12, 40]),
    cost=st.sampled_from([0, 1, 3, 10]),
    share=st.sampled_from([0.0, 0.1, 0.4]),
)
def test_plan_and_search_equal_brute_force(
    tmp_path_factory: pytest.TempPathFactory,
    attacker: str,
    seed: int,
    loss: int,
    cost: int,
    share: float,
) -> None:
    folder = tmp_path_factory.mktemp("profit")
    everybody = people(seed, 50)
    rows = everybody[:24]
    table = write_people(folder / "some.csv", rows, y=["a" if i % 3 else "b" for i in range(24)])
    crowd = write_people(folder / "all.csv", everybody) if attacker == "journalist" else None
    stakes = STAKES | {"loss": loss, "cost": cost}
    policy = policy_of(
        {"profitability": {"attacker": attacker, **stakes}, "suppression": share}, crowd
    )
    summary = summarize(table, policy)
    plan = plan_of(summary, policy)
    age, town = summary.attributes["age"], summary.attributes["town"]
    costs = []
    for i, j in product(range(4), range(3)):
        pays = paying(rows, everybody if crowd else None, stakes, i, j)
        verdict = plan.check({"age": age.candidates[i], "town": town.candidates[j]})
        assert verdict.suppressed_rows == pays.count(False)
        met = any(pays) and pays.count(False) <= math.floor(share * 24 + 1e-9)
        assert verdict.admissible == met
        if met:
            costs.append(i + j)
    found = Searcher(summary, plan, "height", "adjusted-pillai").run(
        policy.privacy, top=1, time_limit=None
    )[1]
    assert found.best == (min(costs) if costs else None)


def by_hand(policy: Any) -> Configuration:
    """Return ages by five years, and towns by their part of the country."""
    masks = {n: policy.attributes[n].masks[1] for n in ("age", "town")}
    assert str(masks["town"]) == "level(1)"
    return Configuration("by hand", masks)


def test_only_rows_that_pay_are_released_and_an_audit_says_so(tmp_path: Path) -> None:
    rows = people(4, 60)
    table = write_people(tmp_path / "t.csv", rows, y=["a" if i % 3 else "b" for i in range(60)])
    policy = policy_of({"profitability": HIGH, "suppression": 0.9})
    pays = paying(rows, None, HIGH, 1, 1)
    assert 0 < pays.count(False) < 54
    configuration = by_hand(policy)
    release = aegis.apply(table, policy, configuration, output=tmp_path / "r.csv")
    assert release.suppressed_rows == pays.count(False)
    # Age has no hierarchy: a masked table does not say how many ages an interval stands for.
    with pytest.raises(PolicyError, match="'age' has no hierarchy"):
        aegis.audit(tmp_path / "r.csv", policy=policy)


def test_an_audit_goes_by_the_hierarchies(tmp_path: Path) -> None:
    rule = {"profitability": {"benefit": 10, "loss": 12, "gain": 9, "cost": 3}}
    attributes = {"age": {"role": "feature"}}
    policy = policy_of(rule, **attributes)
    table = pa.table({"town": ["south"] * 2 + ["north"] * 4, "y": ["a", "b"] * 3})
    # South hides log 2 of log 5 and loses 12 / 2; north log 3, and nobody attacks four.
    fails = 10 * (1 - math.log(2) / math.log(5)) - 6 <= 0
    audit = aegis.audit(table, policy=policy)
    assert bool(audit.violations) == fails
    assert "2 rows" in audit.violations[0]
    pc.write_csv(table, tmp_path / "t.csv")
    # At level 2 nothing is shown, and nothing pays.
    nothing = table.set_column(0, "town", pa.array(["*"] * 6))
    assert "6 rows" in aegis.audit(nothing, policy=policy).violations[0]
    with pytest.raises(PolicyError, match="No level of the hierarchy"):
        aegis.audit(table.set_column(0, "town", pa.array(["?"] * 6)), policy=policy)


def test_a_class_pays_or_not() -> None:
    table = ClassTable(np.array([1, 5, 6, 7]), hidden=np.array([0.0, 0.5, 0.5, 1.0]))
    rule = PrivacyRule.parse(
        {"profitability": {"benefit": 1200, "loss": 3000, "gain": 120, "cost": 20}}
    )
    # 1200 - 3000; 600 - 600; 600, as nobody attacks six for 120 / 6 = 20; nothing.
    assert rule.criteria[0].failing(table).tolist() == [True, True, False, True]
    assert rule.criteria[0].figures(table).tolist() == [3000.0, 1200.0, 600.0, 1200.0]
    assert not rule.monotone


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"benefit": 0}, "'benefit' of profitability"),
        ({"loss": None}, "lacks 'loss'"),
        ({"gian": 3}, "Did you mean 'gain'"),
        ({"attacker": "marketer"}, "Unknown attacker of profitability"),
    ],
)
def test_bad_stakes(changes: dict[str, Any], match: str) -> None:
    given = {k: v for k, v in (STAKES | changes).items() if v is not None}
    with pytest.raises(PolicyError, match=match):
        PrivacyRule.parse({"profitability": given})


def test_noise_has_no_leaves() -> None:
    table = pa.table({"age": [1, 2, 3, 4] * 9, "town": ["Ulm", "Rom"] * 18, "y": ["a", "b"] * 18})
    noise = {
        "role": "quasi-identifier",
        "masks": ["identity", {"randomised_response": {"keep": 0.7}}],
    }
    policy = policy_of({"profitability": STAKES, "suppression": 0.5}, age=noise)
    with pytest.raises(PolicyError, match="draws its values at random"):
        aegis.search(table, policy, objective="height")


def test_a_journalist_needs_a_population() -> None:
    table = pa.table({"age": [1, 2] * 18, "town": ["Ulm", "Rom"] * 18, "y": ["a", "b"] * 18})
    policy = policy_of({"profitability": STAKES | {"attacker": "journalist"}})
    with pytest.raises(PolicyError, match="needs the population"):
        aegis.search(table, policy, objective="height")


def test_a_certificate_says_what_cannot_be_checked(tmp_path: Path) -> None:
    rows = people(4, 60)
    table = write_people(tmp_path / "t.csv", rows, y=["a" if i % 3 else "b" for i in range(60)])
    policy = policy_of({"profitability": HIGH, "suppression": 0.9})
    configuration = by_hand(policy)
    aegis.apply(
        table, policy, configuration, output=tmp_path / "r.csv", certificate=tmp_path / "c.json"
    )
    said = json.loads((tmp_path / "c.json").read_text())
    assert said["privacy"]["rule"]["profitability"]["benefit"] == 10
    checked = aegis.check_certificate(tmp_path / "r.csv", tmp_path / "c.json", policy=policy)
    assert not checked.mismatches
    assert any("hierarchy of every quasi-identifier" in text for text in checked.unchecked)
