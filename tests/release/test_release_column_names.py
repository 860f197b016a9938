"""Columns whose names are words of the engine's functions: health surveys have one called `self`."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest

import aegis
from aegis.release import release_sql

NAMES = ("self", "exprs", "table", "value", "n", "p", "name")


@pytest.mark.parametrize("person", [None, "who"])
def test_any_name_is_only_a_name(tmp_path: Path, person: str | None) -> None:
    random = np.random.default_rng(1)
    data = {name: random.choice(["a", "b", "=c"], 120) for name in NAMES}
    table = pa.table(data | {"who": [f"p{v}" for v in range(120)], "y": random.integers(0, 2, 120)})
    roles = {name: {"role": "feature"} for name in NAMES}
    masks = ["identity", "suppress"]
    roles |= {name: {"role": "quasi-identifier", "masks": masks} for name in NAMES[:2]}
    policy = aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            **({} if person is None else {"person": person}),
            "privacy": {"k": 3, "suppression": 0.2},
            "attributes": roles,
        }
    )
    study = aegis.Study(table, policy)
    advice = study.search()
    release = study.apply(advice, tmp_path / "out.csv", safe_csv=True)
    assert release.audit.passed
    assert set(pc.read_csv(tmp_path / "out.csv").column_names) == {*NAMES, "y"}
    assert advice.best is not None
    query = release_sql(table, policy, advice.best.configuration, dialect="duckdb", name="t")
    connection = duckdb.connect()
    connection.register("t", table)
    assert len(connection.execute(query.sql).fetchall()) == release.released_rows
