"""A rule that counts people of the population, where each row stands for as many as its weight says."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import aegis
from aegis.advisor import Scorer
from aegis.advisor.plan import plan_of
from aegis.errors import AegisError, DataError, PolicyError
from aegis.measures import MEASURES
from aegis.sources import open_table
from aegis.summary import summarize
from people_support import masks_of_people, write_people

TOWNS = {"Ulm": "south", "Rom": "south", "Kiel": "north", "Oslo": "north"}
Row = tuple[int, str | None]


def survey(folder: Path, seed: int, rows: int = 40) -> tuple[Path, list[Row], list[float]]:
    draw = random.Random(seed)
    people = [(draw.randrange(20, 40), draw.choice([*TOWNS, None])) for _ in range(rows)]
    weights = [draw.choice((0.0, 0.25, 1.0, 1.5, 2.75, 12.1)) for _ in range(rows)]
    labels = ["a" if i % 3 else "b" for i in range(rows)]
    return write_people(folder / "survey.csv", people, y=labels, w=weights), people, weights


def policy_of(rule: dict[str, Any], **more: Any) -> Any:
    return aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "weight": "w",
            "privacy": rule,
            "attributes": masks_of_people(TOWNS),
            **more,
        }
    )


def shown(row: Row, age: int, town: int) -> tuple[Any, Any]:
    """Return what a row shows under masks that are coarser and coarser."""
    part = None if row[1] is None else TOWNS[row[1]]
    return row[0] // (1, 5, 10, 1000)[age], (row[1], part, part and "*")[town]


def people_in_all(people: list[Row], weights: list[float], i: int, j: int) -> dict[Any, float]:
    """Return the people of each class: each row stands for at least itself."""
    crowds: dict[Any, float] = defaultdict(float)
    for row, weight in zip(people, weights, strict=True):
        crowds[shown(row, i, j)] += max(weight, 1.0)
    return crowds


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    "rule",
    [
        {"k_map": 9},
        {"k_map": 30, "suppression": 0.2},
        {"max_risk": {"kind": "journalist", "threshold": 0.05}, "suppression": 0.1},
        {"max_risk": {"kind": "marketer", "threshold": 0.3}, "suppression": 0.1},
        {"k": 2, "delta_presence": {"maximum": 0.8}, "suppression": 0.1},
    ],
)
def test_the_best_of_a_search_is_that_of_adding_weights(
    tmp_path: Path, seed: int, rule: dict[str, Any]
) -> None:
    path, people, weights = survey(tmp_path, seed)
    policy = policy_of(rule)
    summary = summarize(path, policy)
    plan = plan_of(summary, policy, open_table(path))
    age, town = summary.attributes["age"], summary.attributes["town"]
    scorer, scores = Scorer(summary), []
    for i, j in product(range(4), range(3)):
        choice = {"age": age.candidates[i], "town": town.candidates[j]}
        table = plan.classes(choice)
        assert table.population is not None
        crowds = people_in_all(people, weights, i, j)
        sizes = Counter(shown(row, i, j) for row in people)
        counted = sorted(zip(table.sizes.tolist(), table.population.tolist(), strict=True))
        expected = sorted((n, crowds[key]) for key, n in sizes.items())
        assert counted == [(n, pytest.approx(crowd)) for n, crowd in expected]
        assert table.absent == 0
        if plan.check(choice).admissible:
            scores.append(scorer.score(choice, MEASURES.get("adjusted-pillai")).score)
    found = aegis.search(path, policy, measure="adjusted-pillai", prefer="score")
    assert (found.best is not None) == bool(scores)
    if found.best is not None:
        assert found.best.score == pytest.approx(max(scores), abs=1e-12)


def test_people_are_those_that_sdcmicro_estimates(tmp_path: Path) -> None:
    """tests/testthat/test_freqCalc.R of sdcMicro 5.8: Fk of eight records with three keys."""
    keys = {
        "a": [2, 3, 2, 2, 3, 3, 1, 2],
        "b": [3, 3, 3, 3, 3, 3, 4, 3],
        "c": [1, 3, 1, 2, 1, 1, 1, 1],
    }
    weights = [18.0, 45.5, 39.0, 17.0, 92.0, 8.0, 123.5, 51.0]
    table = pa.table({**keys, "w": weights, "y": list("abababab")})
    masks = {name: {"role": "quasi-identifier", "masks": ["identity", "suppress"]} for name in keys}
    for least, left_out in ((17, 0), (18, 1), (45, 1), (46, 2), (100, 2), (101, 4), (109, 7)):
        policy = policy_of({"k_map": least, "suppression": 0.99}, attributes=masks)
        plan = plan_of(summarize(table, policy), policy, open_table(table))
        choice = {a.name: a.candidates[0] for a in plan.summary.all_attributes}
        assert plan.check(choice).suppressed_rows == left_out


def test_a_release_keeps_to_the_weights(tmp_path: Path) -> None:
    path, people, weights = survey(tmp_path, 5)
    policy = policy_of({"k_map": 30, "suppression": 0.4})
    best = aegis.search(path, policy).require_best()
    output, stated = tmp_path / "out.csv", tmp_path / "c.json"
    release = aegis.apply(path, policy, best.configuration, output=output, certificate=stated)
    assert release.audit.passed
    i = [str(m) for m in policy.attributes["age"].masks].index(str(best.configuration.masks["age"]))
    j = int(getattr(best.configuration.masks["town"], "level", 0))
    crowds = people_in_all(people, weights, i, j)
    left = [crowds[shown(row, i, j)] for row in people if crowds[shown(row, i, j)] >= 30]
    assert release.released_rows == len(left)
    assert release.audit.report.journalist.maximum == pytest.approx(1 / min(left))

    assert "aegis_weight" not in stated.read_text()  # a release has no such column to warn of
    alone = aegis.check_certificate(output, stated)
    assert alone.passed
    assert any("--original, for the weights" in what for what in alone.unchecked)
    beside = aegis.check_certificate(output, stated, policy=policy, original=path)
    assert beside.passed
    assert not any("population" in what for what in beside.unchecked)
    document = json.loads(stated.read_text())
    document["privacy"]["risk"]["journalist"]["maximum"] /= 2
    told = aegis.check_certificate(output, document, policy=policy, original=path)
    assert "privacy.risk.journalist.maximum" in [m.what for m in told.mismatches]


def test_an_audit_of_the_table_counts_by_its_weights(tmp_path: Path) -> None:
    path, people, weights = survey(tmp_path, 6)
    audit = aegis.audit(path, policy=policy_of({"k_map": 2}))
    smallest = min(people_in_all(people, weights, 0, 0).values())
    assert audit.passed == (smallest >= 2)
    assert audit.report.journalist.maximum == pytest.approx(1 / smallest)


def bundle(path: Path, policy: Any) -> None:
    aegis.advise(aegis.summarize(path, policy), policy)


def advised(path: Path, policy: Any) -> None:
    aegis.advise(path, policy)


@pytest.mark.parametrize(
    ("work", "more", "scale", "kind", "says"),
    [
        (advised, {}, 0.01, PolicyError, "they are relative weights"),
        (advised, {"person": "who"}, 1.0, PolicyError, "counts persons"),
        (bundle, {}, 1.0, DataError, "sums by class"),
    ],
)
def test_what_weights_cannot_count_is_refused(
    tmp_path: Path,
    work: Callable[[Path, Any], None],
    more: dict[str, Any],
    scale: float,
    kind: type[AegisError],
    says: str,
) -> None:
    _, people, weights = survey(tmp_path, 7)
    labels = ["a" if i % 3 else "b" for i in range(len(people))]
    path = write_people(
        tmp_path / "t.csv",
        people,
        y=labels,
        w=[scale * (w + 1) for w in weights],
        who=[i // 2 for i in range(len(people))],
    )
    with pytest.raises(kind, match=says):
        work(path, policy_of({"k_map": 3}, **more))


def test_weights_that_compare_rows_leave_a_rule_without_population_as_it_is(tmp_path: Path) -> None:
    _, people, _ = survey(tmp_path, 8)
    labels = ["a" if i % 3 else "b" for i in range(len(people))]
    path = write_people(tmp_path / "t.csv", people, y=labels, w=[0.5] * len(people))
    rule = {"max_risk": {"kind": "marketer", "threshold": 0.5}, "suppression": 0.2}
    policy = policy_of(rule)
    plain = replace(policy, weight=None)
    with_weights, without = (aegis.search(path, p) for p in (policy, plain))
    assert with_weights.require_best().suppressed_rows == without.require_best().suppressed_rows


@pytest.mark.parametrize("named", [True, False])
def test_the_closest_is_listed_where_nobody_has_enough_people(tmp_path: Path, named: bool) -> None:
    path, people, _ = survey(tmp_path, 10)
    more = {"population": str(write_people(tmp_path / "all.csv", people * 2))} if named else {}
    advice = aegis.search(path, policy_of({"k_map": 200}, **more))
    assert advice.best is None
    assert advice.closest is not None
    assert advice.closest.suppressed_rows == len(people)


def test_unmasked_classes_are_those_of_the_finest_candidate(tmp_path: Path) -> None:
    """No candidate shows ages: privacy before masking is that of the finest ranges, in people too."""
    path, people, weights = survey(tmp_path, 9)
    attributes = masks_of_people(TOWNS)
    attributes["age"]["masks"] = [{"bucketize": {"width": 5}}, {"bucketize": {"width": 10}}]
    everybody = write_people(tmp_path / "all.csv", people * 3)
    named = policy_of(
        {"k_map": 2, "suppression": 0.9}, attributes=attributes, population=str(everybody)
    )
    weighted = policy_of({"k_map": 2, "suppression": 0.9}, attributes=attributes)
    for policy, crowds in (
        (named, {key: 3 * n for key, n in Counter(shown(row, 1, 0) for row in people).items()}),
        (weighted, people_in_all(people, weights, 1, 0)),
    ):
        privacy = aegis.advise(path, policy).privacy
        assert privacy is not None
        assert privacy.before.journalist.maximum == pytest.approx(1 / min(crowds.values()))


def test_a_weight_is_no_column_that_gives_others_away(tmp_path: Path) -> None:
    """Rows with one weight share one town: a release without weights gives no town away."""
    towns = ["a", "b", "c", "d"] * 20
    lines = [
        f"{50 + 10 * 'abcd'.index(town)},{town},{i % 3},{i % 2}" for i, town in enumerate(towns)
    ]
    path = tmp_path / "survey.csv"
    path.write_text("w,town,age,y\n" + "\n".join(lines) + "\n")
    masks = {"town": ["suppress"], "age": ["identity"]}
    attributes = {n: {"role": "quasi-identifier", "masks": m} for n, m in masks.items()}
    policy = aegis.load_policy(
        {"version": 1, "label": "y", "weight": "w", "privacy": {"k": 2}, "attributes": attributes}
    )
    best = aegis.search(path, policy).require_best()
    release = aegis.apply(path, policy, best.configuration, output=tmp_path / "out.csv")
    assert release.audit.outside is not None
    assert release.audit.outside.implied == ()
