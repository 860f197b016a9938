"""Record-level releases of persons with several rows: held against rows, by plain Python."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import aegis
from aegis.anonymizers import read_records
from aegis.anonymizers.run import middle_of_each
from aegis.errors import NoAdmissibleConfiguration, PolicyError
from aegis.policy import Policy, load_policy
from aegis.release import writing
from aegis.sources import open_table


def visits(people: int = 60) -> pa.Table:
    random = np.random.default_rng(8)
    who = random.integers(0, people, 200)
    age = 20 + who % 40 + random.integers(0, 3, 200)
    return pa.table(
        {
            "who": [f"p{v}" for v in who],
            "age": age,
            "sex": ["fm"[v % 2] for v in who],
            "ill": random.choice(["flu", "cold", "rash"], 200),
            "y": (age > 40).astype(int),
        }
    )


def policy(**privacy: Any) -> Policy:
    return load_policy(
        {
            "version": 1,
            "label": "y",
            "person": "who",
            "privacy": {"k": 4} | privacy,
            "attributes": {
                "age": {"role": "quasi-identifier"},
                "sex": {"role": "quasi-identifier"},
                "ill": {"role": "sensitive"},
            },
        }
    )


@pytest.mark.parametrize("method", ["mondrian", "mdav"])
@pytest.mark.parametrize("style", ["centroid", "generalised"])
def test_a_person_is_in_one_group_of_at_least_k_persons(
    method: str, style: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In the order of the table, which a release by persons does not keep, rows can be compared.
    monkeypatch.setattr(writing, "_sorted_by_values", lambda rows: rows)
    table = visits()
    release = aegis.anonymize(
        table,
        policy(),
        method,
        style=style,
        output=tmp_path / "out.parquet",
        certificate=tmp_path / "out.json",
    )
    shown = pq.read_table(tmp_path / "out.parquet")
    assert "who" not in shown.column_names
    assert shown.num_rows == table.num_rows
    behind, seen = defaultdict(set), defaultdict(set)
    for raw, row in zip(table.to_pylist(), shown.to_pylist(), strict=True):
        behind[row["age"], row["sex"]].add(raw["who"])
        seen[raw["who"]].add((row["age"], row["sex"]))
    assert {len(classes) for classes in seen.values()} == {1}
    smallest = min(map(len, behind.values()))
    assert smallest >= 4
    assert (release.audit.report.k, release.audit.person) == (smallest, "who")
    people = len(set(table["who"].to_pylist()))
    assert (release.persons, release.suppressed_persons) == (people, 0)
    said = json.loads((tmp_path / "out.json").read_text())
    assert (said["persons"], said["suppressed_persons"]) == (people, 0)


def test_the_middle_of_a_person_is_a_value_that_the_person_has() -> None:
    table = visits()
    read = read_records(open_table(table), policy())
    assert read.persons is not None
    middle = middle_of_each(read.records, read.persons)
    own = defaultdict(list)
    for row in table.to_pylist():
        own[row["who"]].append(row["age"])
    wanted = [sorted(ages)[(len(ages) - 1) // 2] for _, ages in sorted(own.items())]
    [age] = [a for a in middle.attributes if a.name == "age"]
    assert [age.domain[code] for code in age.codes] == wanted


def test_the_limit_is_a_share_of_persons() -> None:
    rule = {"l_diversity": {"attribute": "ill", "kind": "distinct", "l": 3}}
    loose = aegis.anonymize(visits(), policy(suppression=0.9, **rule), "mondrian")
    assert loose.suppressed_persons is not None
    assert loose.persons is not None
    share = loose.suppressed_persons / loose.persons
    assert 0 < share < 0.9
    aegis.anonymize(visits(), policy(suppression=share + 1e-9, **rule), "mondrian")
    with pytest.raises(NoAdmissibleConfiguration):
        aegis.anonymize(visits(), policy(suppression=share - 1e-3, **rule), "mondrian")


def test_advice_ranks_it_beside_masks_and_evaluate_trains_on_it() -> None:
    study = aegis.Study(visits(), policy())
    advice = study.rank(generate_count=2, methods=["mondrian"])
    [ranked] = [one for one in advice.ranking if one.method is not None]
    assert ranked.admissible
    assert ranked.method.report.k >= 4
    found = study.evaluate(models=["nb"], splits=1, generate_count=1, methods=["mondrian"])
    assert {one.configuration for one in found.trainings} >= {"mondrian"}


def test_methods_without_groups_are_refused() -> None:
    with pytest.raises(PolicyError, match="releases values record by record"):
        aegis.anonymize(visits(), policy(), "hybrid")
