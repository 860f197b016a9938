from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys

import pyarrow.parquet
import pytest
from evaluation_support import make_policy, make_table

from aegis.cli.main import run
from aegis.policy import dump_policy


@pytest.fixture
def files(tmp_path):
    table, policy = tmp_path / "table.parquet", tmp_path / "policy.yaml"
    pyarrow.parquet.write_table(make_table(), table)
    policy.write_text(dump_policy(make_policy()))
    return [str(table), "--policy", str(policy), "--generate", "3", "--models", "lr,nb"]


def test_the_table_shows_configurations_and_agreement(files, capsys):
    assert run(["evaluate", *files, "--splits", "2", "--generate", "4"]) == 0
    shown = capsys.readouterr().out
    for words in (
        "accuracy by configuration",
        "(unmasked)",
        "adjusted-pillai",
        "(two halves)",
        "points",
    ):
        assert words in shown
    assert "(two halves): the most" in shown
    assert run(["evaluate", *files, "--splits", "1", "--generate", "4"]) == 0
    assert "two halves" not in capsys.readouterr().out


def test_other_metrics_and_configurations_that_fail_the_rule_are_pointed_out(
    files, capsys, tmp_path
):
    strict = make_policy(measure="held-out-auc", privacy={"k": 60})
    (tmp_path / "policy.yaml").write_text(dump_policy(strict))
    assert run(["evaluate", *files, "--splits", "1"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "The advice states held-out-auc (AUC), and the models were tested by accuracy." in shown
    assert "--metric roc_auc compares the same one." in shown
    assert re.search(r"[123] of 3 configurations fails? the rule, and must not be released", shown)
    assert run(["evaluate", *files, "--splits", "1", "--metric", "roc_auc"]) == 0
    assert "two different metrics" not in " ".join(capsys.readouterr().out.split())


def test_json_is_the_whole_result(files, capsys, tmp_path):
    store, report = tmp_path / "store.jsonl", tmp_path / "report.html"
    extra = ["--store", str(store), "--report", str(report), "--format", "json"]
    assert run(["evaluate", *files, *extra]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["models"] == ["lr", "nb"]
    assert len(data["trainings"]) == (3 + 1) * 2
    assert data["reused"] == 0
    page = report.read_text()
    assert "Checked by trained models" in page
    assert 'id="privacy"' in page
    assert "Before masking" in page
    assert "mascara" in data["measures"]
    again = ["--store", str(store), "--no-comparators", "--format", "json"]
    assert run(["evaluate", *files, *again]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["reused"] == 8
    assert "mascara" not in data["measures"]


def test_csv_has_one_row_per_training(files, capsys):
    assert run(["evaluate", *files, "--format", "csv", "--metric", "f1"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 8
    assert 0 <= float(rows[0]["accuracy"]) <= 1


def test_bad_input_is_one_clear_error(files, capsys, tmp_path):
    assert run(["evaluate", *files[:-1], "lr,forest"]) == 2
    assert "Unknown model 'forest'" in capsys.readouterr().err
    summary = str(tmp_path / "summary.aegis")
    assert run(["summarize", *files[:3], "-o", summary]) == 0
    assert run(["evaluate", summary, *files[1:]]) == 2
    assert "holds no rows" in capsys.readouterr().err
    other = tmp_path / "notes.txt"
    other.write_text("not a store\n")
    assert run(["evaluate", *files, "--store", str(other)]) == 2
    assert "not a finished training" in capsys.readouterr().err


def test_importing_evaluation_imports_no_extra():
    code = (
        "import sys, aegis.papers.evaluation, aegis.papers.commands.evaluate\n"
        "bad = {'sklearn', 'pandas', 'altair', 'polars', 'joblib'} & set(sys.modules)\n"
        "sys.exit(', '.join(bad) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
