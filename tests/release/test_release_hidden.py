"""A column that is suppressed is filled, or left out where the policy asks for that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import aegis
from aegis.cli.main import run
from aegis.masks import parse_mask
from aegis.policy import Configuration, dump_configurations, dump_policy, load_policy
from aegis.release import check_certificate, release_sql


def table() -> pa.Table:
    random = np.random.default_rng(5)
    age = random.integers(2, 5, 80) * 10
    return pa.table(
        {
            "age": age,
            "zip": [f"z{v}" for v in random.integers(0, 30, 80)],
            "ill": random.choice(["flu", "cold"], 80),
            "who": [f"p{v}" for v in range(80)],
            "y": (age + random.normal(0, 5, 80) > 30).astype(int),
        }
    )


def policy(**changes: Any) -> aegis.Policy:
    return load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 5},
            "attributes": {
                "age": {"role": "quasi-identifier"},
                "zip": {"role": "quasi-identifier"},
                "ill": {"role": "sensitive", "masks": ["identity", "suppress"]},
            },
        }
        | changes
    )


def masks(**changed: str) -> Configuration:
    named = {"age": "identity", "zip": "suppress", "ill": "identity"} | changed
    return Configuration("mine", {name: parse_mask(mask) for name, mask in named.items()})


@pytest.mark.parametrize("person", [None, "who"])
def test_it_is_in_no_file_and_all_figures_stay(tmp_path: Path, person: str | None) -> None:
    pq.write_table(table(), tmp_path / "t.parquet")
    figures = {}
    for how in ("fill", "leave-out"):
        declared = policy(suppressed_columns=how, person=person)
        assert (
            load_policy(json.loads(json.dumps(aegis.policy.policy_mapping(declared)))) == declared
        )
        output, certificate = tmp_path / f"{how}.parquet", tmp_path / f"{how}.json"
        release = aegis.apply(
            tmp_path / "t.parquet", declared, masks(), output=output, certificate=certificate
        )
        shown = pq.read_table(output)
        assert ("zip" in shown.column_names) == (how == "fill")
        assert ("zip" in release.dropped) == (how == "leave-out")
        assert release.audit.passed
        assert check_certificate(output, certificate, policy=declared).passed
        figures[how] = (release.audit.report.k, release.released_rows, release.utility.to_dict())
    assert figures["fill"] == figures["leave-out"]
    assert figures["fill"][2]["kept"] > 50


def test_what_the_rule_protects_stays() -> None:
    rule = {"k": 5, "t_closeness": {"attribute": "ill", "distance": "equal", "t": 0.5}}
    declared = policy(suppressed_columns="leave-out", privacy=rule)
    release = aegis.apply(table(), declared, masks(ill="suppress"))
    assert set(release.to_arrow().column_names) == {"age", "ill", "y"}


def test_something_is_always_left() -> None:
    declared = policy(suppressed_columns="leave-out", label=None)
    release = aegis.apply(table(), declared, masks(age="suppress", ill="suppress"))
    assert set(release.to_arrow().column_names) == {"age", "zip", "ill"}


def test_sql_leaves_it_out_too() -> None:
    t = table()
    query = release_sql(
        t, policy(suppressed_columns="leave-out"), masks(), dialect="duckdb", name="t"
    )
    connection = duckdb.connect()
    connection.register("t", t)
    found = connection.execute(query.sql).to_arrow_table()
    assert "zip" not in found.schema.names
    assert set(query.columns) == set(found.schema.names)
    assert "age" in found.schema.names


def test_the_option_goes_before_the_policy(tmp_path: Path, capsys: Any) -> None:
    pq.write_table(table(), tmp_path / "t.parquet")
    (tmp_path / "p.yaml").write_text(dump_policy(policy()))
    (tmp_path / "c.yaml").write_text(dump_configurations({"mine": masks()}))
    words = [
        "apply",
        str(tmp_path / "t.parquet"),
        "-p",
        str(tmp_path / "p.yaml"),
        "-c",
        str(tmp_path / "c.yaml"),
        "-o",
        str(tmp_path / "o.csv"),
    ]
    assert run([*words, "--suppressed-columns", "leave-out"]) == 0
    assert "zip" not in (tmp_path / "o.csv").read_text().splitlines()[0]
    assert run([*words, "--force", "--suppressed-columns", "drop"]) == 2
    assert "leave-out" in capsys.readouterr().err
