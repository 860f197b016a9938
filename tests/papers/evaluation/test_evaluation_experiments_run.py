"""Scripts of the experiments compute what they are there to compute, with tiny parameters."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiment_modules import FOLDER, experiment


def test_variants_of_codings_read_what_pairs_tell(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shared_data.is_dir()
    monkeypatch.syspath_prepend(FOLDER)
    codings = experiment("codings")
    scores = codings.Scores("German")
    for configuration in codings.paper_configurations(scores.summary, 2, seed=1):
        found = scores.of(scores.scorer.choose(configuration))
        assert found["synergy 1"] != found["default"]


def test_theorem_1_finds_a_deviation_of_zero_before_rounding(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shared_data.is_dir()
    monkeypatch.syspath_prepend(FOLDER)
    theorem = experiment("theorem_1")
    written = {}
    monkeypatch.setattr(theorem, "write_csv", lambda name, rows: None)
    monkeypatch.setattr(theorem, "write_json", lambda name, facts: written.update(facts))
    monkeypatch.setattr(theorem, "draw", lambda rows: None)
    monkeypatch.setattr(sys, "argv", ["theorem_1.py", "--count", "2"])
    theorem.main()
    assert written["count"] == 2
    exact = [facts for name, facts in written["estimates"].items() if "before" in name]
    assert exact
    assert all(facts["largest"] < 1e-9 for facts in exact)


def test_measured_numbers_are_compared_with_trained_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    numbers = experiment("measured_numbers")
    random = np.random.default_rng(0)
    balance = random.lognormal(size=400)
    told = np.where(balance + 0.3 * random.normal(size=400) > 1, "Yes", "No")
    table = pd.DataFrame(
        {"default": told, "balance": balance, "student": random.choice(["a", "b"], 400)}
    )
    table.to_csv(tmp_path / "Default.csv", index=False)
    rows = numbers.compared("Default", numbers.read(tmp_path, "Default", 400, 0), 1, seed=1)
    first = rows[0]
    assert len(rows) == 2
    assert first["now"] == pytest.approx(max(first["lr"], first["gbdt"]), abs=0.03)
    assert first["former"] < first["now"] - 0.05  # of 400 names most share a level
    assert first["now"] == max(first["expected_lr"], first["expected_gbdt"])
    assert "off by" in numbers.said(rows)


def test_stated_errors_are_compared_with_fresh_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    errors = experiment("stated_errors")
    random = np.random.default_rng(1)
    balance = random.normal(size=700)
    told = np.where(balance + random.normal(size=700) > 0, "Yes", "No")
    pd.DataFrame({"default": told, "balance": balance}).to_csv(
        tmp_path / "Default.csv", index=False
    )
    written = []
    monkeypatch.setattr(errors, "write_csv", lambda name, rows: written.extend(rows))
    errors.main([str(tmp_path), "Default", "--rows", "200", "--draws", "3"])
    assert [row["draw"] for row in written] == [0, 1, 2]
    assert all(abs(row["stated"] - row["reached"]) < 3 * row["error"] for row in written)
    assert "draws   3" in capsys.readouterr().out
