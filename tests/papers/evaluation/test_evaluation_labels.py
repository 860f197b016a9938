"""Models trained for each of several labels are those of a table with this label alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import aegis
from aegis.cli.main import app
from aegis.errors import PolicyError
from aegis.policy import load_policy


def table() -> pa.Table:
    draw = np.random.default_rng(1)
    a, b = draw.integers(0, 6, 200), draw.integers(0, 3, 200)
    return pa.table(
        {
            "a": a,
            "b": ["uvw"[i] for i in b],
            "y": ["rs"[i] for i in (a + draw.integers(0, 4, 200) > 5).astype(int)],
            "n": np.round(a + b + draw.normal(0, 1, 200), 2),
        }
    )


def test_each_label_is_evaluated_as_if_it_were_alone() -> None:
    attributes = {
        "a": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
        "b": {"role": "feature", "masks": ["identity"]},
    }
    keys = {"version": 1, "privacy": {"k": 60}, "attributes": attributes}
    several = load_policy({**keys, "labels": ["y", {"column": "n", "kind": "number"}]})
    study = aegis.Study(table(), several)
    evaluations = study.evaluate(generate_count=2, models=("lr", "nb"), comparators=())
    assert list(evaluations) == ["y", "n"]
    assert [e.metric for e in evaluations.values()] == ["accuracy", "r2"]
    assert [e.models for e in evaluations.values()] == [("lr", "nb"), ("lr",)]
    alone = load_policy({**keys, "label": "y"})
    single = aegis.Study(table(), alone).evaluate(
        generate_count=2, models=("lr", "nb"), comparators=()
    )
    for model in ("lr", "nb"):
        assert evaluations["y"].means(model) == single.means(model)
    verdicts = [
        {ranked.name: ranked.admissible for ranked in e.advice.ranking}
        for e in (*evaluations.values(), single)
    ]
    assert verdicts[0] == verdicts[1] == verdicts[2]
    assert set(verdicts[0].values()) == {True, False}
    with pytest.raises(PolicyError, match="works with one label"):
        study.evaluate(generate_count=2, models=("lr",), methods=("mondrian",))


def test_the_command_shows_each_label(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(table(), tmp_path / "t.parquet")
    (tmp_path / "p.yaml").write_text(
        "version: 1\nlabels: [y, {column: n, kind: number}]\n"
        "attributes: {a: {role: quasi-identifier}, b: {role: feature}}\n"
    )
    given = [
        "evaluate",
        str(tmp_path / "t.parquet"),
        "-p",
        str(tmp_path / "p.yaml"),
        *("--models", "lr", "--generate", "2", "--no-comparators", "--format", "json", "-q"),
    ]
    app(given, standalone_mode=False)
    document = json.loads(capsys.readouterr().out)
    assert list(document["labels"]) == ["y", "n"]
    assert document["labels"]["n"]["metric"] == "r2"
