"""A policy's population: classes are counted beside it, in a search and in the release."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pytest

import aegis
from aegis.advisor.plan import plan_of
from aegis.errors import DataError, PolicyError
from aegis.summary import summarize
from people_support import masks_of_people, write_people

AGES = ("low", "high")
TOWNS = {"Ulm": "south", "Rom": "south", "Kiel": "north", "Oslo": "north"}


def people(seed: int, count: int = 60) -> list[tuple[int, str | None]]:
    draw = random.Random(seed)
    towns = [*TOWNS, None] if seed % 2 else [*TOWNS]
    return [(draw.randrange(20, 40), draw.choice(towns)) for _ in range(count)]


def policy_for(folder: Path, rule: dict[str, Any], population: str | None = "all.csv") -> Any:
    written: dict[str, Any] = {
        "version": 1,
        "label": "y",
        "privacy": rule,
        "attributes": masks_of_people(TOWNS),
    }
    if population is not None:
        written["population"] = str(folder / population)
    return aegis.load_policy(written)


@pytest.fixture(params=[1, 2])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, list[Any], list[Any]]:
    everybody = people(request.param)
    sample = everybody[:25]
    write_people(tmp_path / "all.csv", everybody)
    write_people(
        tmp_path / "some.csv", sample, y=["a" if i % 3 else "b" for i in range(len(sample))]
    )
    return tmp_path, everybody, sample


def shown(row: tuple[int, str | None], age: int, town: int) -> tuple[Any, Any]:
    """Return what a row shows under masks that are coarser and coarser."""
    steps = (1, 5, 10, 1000)
    part = None if row[1] is None else TOWNS[row[1]]
    return row[0] // steps[age], (row[1], part, part and "*")[town]


@pytest.mark.parametrize(
    "rule",
    [
        {"k_map": 4},
        {"k_map": 8, "suppression": 0.2},
        {"max_risk": {"kind": "journalist", "threshold": 0.2}, "suppression": 0.1},
        {"max_risk": {"kind": "marketer", "threshold": 0.2}, "suppression": 0.1},
        {"delta_presence": {"maximum": 0.6}, "suppression": 0.1},
        {"delta_presence": {"maximum": 0.7, "minimum": 0.2}},
        {"k": 2, "delta_presence": {"maximum": 0.8}},
        {
            "delta_presence": {"maximum": 0.7, "minimum": 0.2, "reference": "input"},
            "suppression": 0.3,
        },
    ],
)
def test_the_best_of_a_search_is_that_of_counting_rows(
    tables: tuple[Path, list[Any], list[Any]], rule: dict[str, Any]
) -> None:
    folder, everybody, sample = tables
    policy = policy_for(folder, rule)
    summary = summarize(folder / "some.csv", policy)
    plan = plan_of(summary, policy)
    age, town = summary.attributes["age"], summary.attributes["town"]
    costs = []
    for i, j in product(range(4), range(3)):
        choice = {"age": age.candidates[i], "town": town.candidates[j]}
        crowds = Counter(shown(row, i, j) for row in everybody)
        classes = Counter(shown(row, i, j) for row in sample)
        table = plan.classes(choice)
        assert table.population is not None
        pairs = zip(table.sizes.tolist(), table.population.tolist(), strict=True)
        assert sorted(pairs) == sorted((n, crowds[key]) for key, n in classes.items())
        assert table.absent == sum(n for key, n in crowds.items() if key not in classes)
        if plan.check(choice).admissible:
            costs.append(i + j)
    advice = aegis.search(folder / "some.csv", policy, objective="height")
    found = advice.search
    assert found is not None
    assert found.optimal == bool(costs)
    if costs:
        assert found.best == min(costs)


@pytest.mark.parametrize(
    ("rule", "level"),
    [
        ({"k_map": 5}, 1),
        ({"k_map": 12}, 2),
        ({"k_map": 12, "suppression": 0.5}, 2),
        ({"delta_presence": {"maximum": 0.5, "minimum": 0.01}}, 2),
        ({"delta_presence": {"maximum": 0.6}}, 1),
    ],
)
def test_masks_alike_on_the_table_may_differ_on_its_population(
    tmp_path: Path, rule: dict[str, Any], level: int
) -> None:
    """All rows are of the south: `level 1` and `level 2` group them alike, and not the people."""
    everybody = [(30, town) for town in ("Ulm", "Rom", "Ulm", "Rom", "Ulm", "Kiel", "Oslo") * 2]
    sample = [row for row in everybody if row[1] in ("Ulm", "Rom")][:6]
    write_people(tmp_path / "all.csv", everybody)
    write_people(tmp_path / "some.csv", sample, y=["a", "b"] * 3)
    policy = policy_for(tmp_path, rule)
    best = aegis.search(tmp_path / "some.csv", policy, objective="height").require_best()
    assert str(best.configuration.masks["town"]) == f"level({level})"


def test_a_release_keeps_to_the_population(tables: tuple[Path, list[Any], list[Any]]) -> None:
    folder, everybody, _ = tables
    policy = policy_for(folder, {"k_map": 6, "suppression": 0.3})
    best = aegis.search(folder / "some.csv", policy, objective="height").require_best()
    release = aegis.apply(
        folder / "some.csv", policy, best.configuration, output=folder / "out.csv"
    )
    assert release.audit.passed
    assert release.suppressed_rows == best.suppressed_rows
    masks = [str(mask) for mask in policy.attributes["age"].masks]
    i = masks.index(str(best.configuration.masks["age"]))
    j = int(getattr(best.configuration.masks["town"], "level", 0))
    crowds = Counter(shown(row, i, j) for row in everybody)
    assert release.released_rows == sum(
        1 for row in people_of(folder) if crowds[shown(row, i, j)] >= 6
    )


def people_of(folder: Path) -> list[tuple[int, str | None]]:
    table = pc.read_csv(
        folder / "some.csv", convert_options=pc.ConvertOptions(strings_can_be_null=True)
    )
    rows = zip(table["age"].to_pylist(), table["town"].to_pylist(), strict=True)
    return [(age, town or None) for age, town in rows]


def test_bad_populations(tables: tuple[Path, list[Any], list[Any]]) -> None:
    folder, everybody, sample = tables
    write_people(folder / "small.csv", sample[:-1])
    for population, rule, match in (
        ("small.csv", {"k_map": 2}, "population is smaller than the table"),
        ("none.csv", {"k_map": 2}, "none.csv"),
        (None, {"k_map": 2}, "needs the population of the table"),
    ):
        with pytest.raises((DataError, PolicyError), match=match):
            aegis.search(folder / "some.csv", policy_for(folder, rule, population))
    pc.write_csv(pa.table({"age": [age for age, _ in everybody]}), folder / "narrow.csv")
    with pytest.raises(DataError, match="town"):
        aegis.search(folder / "some.csv", policy_for(folder, {"k_map": 2}, "narrow.csv"))
    # A rule that goes by no population does not read it.
    aegis.search(folder / "some.csv", policy_for(folder, {"k": 2}, "none.csv"))


def test_a_search_by_a_loss_refuses_a_population_without_the_unmasked_rows(
    tables: tuple[Path, list[Any], list[Any]],
) -> None:
    """It found the error only when somebody read the privacy figures of its advice."""
    folder, everybody, _ = tables
    rows = [(age, "Rom" if town == "Ulm" else town) for age, town in everybody]
    write_people(folder / "others.csv", rows + [(age, "Ulm") for age in range(40, 60)])
    policy = policy_for(folder, {"k_map": 20}, "others.csv")
    with pytest.raises(DataError, match="population is smaller than the table"):
        aegis.search(folder / "some.csv", policy, objective="loss", explain_best=False)


def test_the_policy_is_written_with_its_population(tmp_path: Path) -> None:
    policy = policy_for(tmp_path, {"k_map": 4})
    assert aegis.load_policy(tmp_path / "p.yaml" if save(policy, tmp_path) else "") == policy


def save(policy: Any, folder: Path) -> bool:
    from aegis.policy import dump_policy

    return bool((folder / "p.yaml").write_text(dump_policy(policy), encoding="utf-8"))
