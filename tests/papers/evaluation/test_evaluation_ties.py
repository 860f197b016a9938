"""The experiment on ties runs, on a small table."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa

from experiment_modules import FOLDER, experiment


def test_what_ties_cost_is_measured_on_fresh_rows(monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(FOLDER)])
    random = np.random.default_rng(2)
    age, job = random.integers(20, 60, 240), random.choice(["a", "b", "c"], 240)
    label = np.where(random.random(240) < 0.2 + 0.5 * (age > 40), "yes", "no")
    table = pa.table({"age": age, "job": job, "ill": label})
    rows = experiment("ties").compared("small", table, "ill", ks=(3,), margins=(0.0, 0.02))
    assert [row["margin"] for row in rows] == [0.0, 0.02]
    assert rows[0]["score"] >= rows[1]["score"] >= rows[0]["score"] - 0.02
    assert rows[0]["masking"] >= rows[1]["masking"]
    assert all(0.4 < row[model] < 1 for row in rows for model in ("lr", "gbdt"))
