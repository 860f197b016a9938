"""Releases of weighted rows: the weight stays here, and the certificate says what is left out of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import aegis
from aegis.errors import PolicyError

ROWS = 120
POLICY = {
    "version": 1,
    "label": "y",
    "weight": "w",
    "privacy": {"k": 5, "suppression": 0.2},
    "attributes": {
        "age": {"role": "quasi-identifier", "masks": [{"bucketize": {"width": 10}}, "suppress"]},
        "town": {"role": "feature"},
    },
}


def table() -> pa.Table:
    draw = np.random.default_rng(0)
    age = draw.integers(20, 60, ROWS)
    columns = {"age": age, "town": draw.choice(list("ab"), ROWS), "y": (age > 38).astype(int)}
    return pa.table({**columns, "w": draw.integers(20, 90, ROWS)})


def test_the_certificate_states_weighted_figures(tmp_path: Path) -> None:
    study = aegis.Study(table(), POLICY)
    advice = study.advise()
    output, certificate = tmp_path / "out.csv", tmp_path / "certificate.json"
    release = study.apply(advice, output, certificate=certificate)
    assert "w" not in aegis.sources.open_table(output).columns
    said = json.loads(certificate.read_text())
    assert said["weight"]["column"] == "w"
    assert said["weight"]["total"] == pytest.approx(float(np.sum(table()["w"].to_numpy())))
    assert 0 < said["weight"]["expected_found"] < ROWS
    assert advice.best.utility is not None
    assert said["utility"]["value"] == pytest.approx(advice.best.utility.value)
    assert release.weight is not None
    checked = aegis.check_certificate(output, certificate)
    assert not checked.mismatches
    assert any("it depends on 'w'" in what for what in checked.unchecked)


def test_methods_that_group_records_refuse_weights() -> None:
    with pytest.raises(PolicyError, match="A record-level method counts each row once"):
        aegis.anonymize(table(), POLICY, "mondrian")
