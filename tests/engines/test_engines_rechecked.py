"""Releases in PostgreSQL and on Spark, rechecked from their rows by pandas alone."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import aegis
from aegis.errors import AegisError
from aegis.sources import open_table

sys.path.insert(0, str(Path(__file__).parents[2]))
checker = importlib.import_module("tests.fuzz.checker")
releases = importlib.import_module("tests.fuzz.releases")

pytestmark = pytest.mark.filterwarnings("ignore")
SEEDS = range(40)
LEAST = 3
"""Releases that are made at least of so many tables; the others meet no rule."""


ON_SPARK = 5
"""Cases that are tried there: three releases and two refusals."""


def cases() -> list[tuple[pa.Table, dict[str, Any], Any, Any]]:
    found = []
    for seed in SEEDS:
        table, policy, chosen = releases.case(Random(f"engine {seed}"))
        rules = aegis.load_policy(policy)
        spec = {"version": 1, **policy, "configurations": {"one": chosen}}
        configuration = aegis.load_policy(spec).configurations["one"]
        found.append((table, policy, rules, configuration))
    return found


def recheck(frame: Any, table: pa.Table, policy: dict[str, Any]) -> list[str]:
    attributes = policy["attributes"]
    found: list[str] = checker.problems(
        frame,
        quasi=[n for n, a in attributes.items() if a["role"] == "quasi-identifier"],
        rule=policy["privacy"],
        rows_before=table.num_rows,
        identifiers={"name": table.column("name").to_pylist()},
        tree=releases.TREE,
    )
    return found


def test_in_postgres(postgres: Any) -> None:
    """Cases become tables and views by turns."""
    connection = ibis.connect(postgres.url)
    made: Counter[str] = Counter()
    for number, (table, policy, rules, configuration) in enumerate(cases()):
        form = ("table", "view")[number % 2]
        name = f"fuzzed_{number}"
        connection.create_table(name, table, overwrite=True)
        people = open_table(postgres.url, name=name)
        into = f"released_{form}_{number}"
        try:
            release = aegis.apply(people, rules, configuration, into=into, form=form)
        except AegisError:
            assert into not in connection.list_tables()
        else:
            frame = checker.read_database(
                postgres.url.replace("postgres://", "postgresql://"), into
            )
            assert len(frame) == release.released_rows
            assert recheck(frame, table, policy) == [], number
            made[form] += 1
        finally:
            people.backend.disconnect()
    connection.disconnect()
    assert min(made["table"], made["view"]) >= LEAST


def test_on_spark(spark: Any, tmp_path: Path) -> None:
    made = 0
    for number, (table, policy, rules, configuration) in enumerate(cases()[:ON_SPARK]):
        pq.write_table(table, tmp_path / f"t{number}.parquet")
        people = open_table(str(tmp_path / f"t{number}.parquet"), engine=spark)
        target = tmp_path / "out" / f"m{number}"
        target.parent.mkdir(exist_ok=True)
        try:
            release = aegis.apply(people, rules, configuration, output=target)
        except AegisError:
            assert not list(target.parent.glob(f"m{number}*"))
        else:
            frame = pq.read_table(target).to_pandas()
            assert len(frame) == release.released_rows
            assert recheck(frame, table, policy) == [], number
            made += 1
    assert made >= LEAST


def test_a_release_that_breaks_its_rule_is_found() -> None:
    table, policy, _, _ = cases()[0]
    quasi = [n for n, a in policy["attributes"].items() if a["role"] == "quasi-identifier"]
    policy["privacy"] = {"k": 2}
    frame = table.select([*quasi, "s", "y"]).to_pandas()
    assert recheck(frame.drop_duplicates(quasi), table, policy)
