"""Every command does what its help says, on a small table."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import shutil
from functools import cache
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet
import pytest
import typer
import yaml
from cli_support import plain

import aegis
from aegis.cli.main import ABOUT, COMMANDS, app
from aegis.files import TABLE_FORMATS
from aegis.measures import MEASURES
from aegis.policy import load_configurations, load_policy
from aegis.privacy import MODELS, PrivacyRule
from aegis.release import audit
from aegis.report.page import BROWSERS

ABOUT_EXAMPLES = [line.strip() for line in ABOUT.splitlines() if line.startswith("  aegis ")]
OUTPUTS = ("-o", "--report", "--certificate")
# These serve or work until they are stopped, or call a remote service: their options are parsed.
UNRUN = {"serve", "agent", "worker", *(name for name in COMMANDS if name.startswith("catalog "))}
RUN_EXAMPLES = [
    one for name, module in COMMANDS.items() if name not in UNRUN for one in module.EXAMPLES
]
UNRUN_EXAMPLES = [
    (name, one) for name in sorted(UNRUN & set(COMMANDS)) for one in COMMANDS[name].EXAMPLES
]


def words_of(example: str) -> list[str]:
    """Return the words after `aegis`, what a shell would redirect left out."""
    words = shlex.split(example)
    words = words[words.index("aegis") + 1 :]  # before it, what is set in the environment
    return words[: words.index(">")] if ">" in words else words


def smaller(words: list[str]) -> list[str]:
    """Return the words with less work to do: the table is small, and so is the patience."""
    if words[0] != "evaluate":
        few = ["clusters=4", "--option", "starts=1"]
        return [own for word in words for own in (few if word == "clusters=30" else [word])]
    few = {"--generate": "2", "--splits": "2", "--jobs": "1", "--models": "lr"}
    shrunk = [few.get(before, word) for before, word in pairwise(["", *words])]
    return shrunk if "--models" in words else [*shrunk, "--models", "lr"]


@cache
def whole():
    """Return the command `aegis` with all its verbs: making it takes longer than asking it."""
    return typer.main.get_command(app)


@pytest.mark.parametrize(("name", "example"), UNRUN_EXAMPLES)
def test_options_of_examples_that_cannot_run_are_known(name, example, monkeypatch):
    monkeypatch.setenv("AEGIS_TOKEN", "token")
    monkeypatch.setenv("AEGIS_PASSWORD", "long enough a password")
    monkeypatch.setenv("AEGIS_NEW_PASSWORD", "another long password")
    command, words = whole(), words_of(example)
    for part in name.split():
        assert words.pop(0) == part
        command = command.commands[part]
    assert command.make_context(name, words).params


@pytest.mark.parametrize("example", RUN_EXAMPLES)
def test_examples_of_help_run(example, shell, folder):
    words = smaller(words_of(example))
    if words[:2] == ["report", "certificate.json"]:
        (folder / "released.json").rename(folder / "certificate.json")
    # What an audit is given by the same names it reads.
    made = [Path(b) for a, b in pairwise(words) if a in OUTPUTS and words[0] != "audit"]
    if "masked.parquet" in words and "masked.parquet" not in map(str, made):
        apply = ("apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml")
        certified = ["-o", "masked.parquet", "--certificate", "certificate.json"]
        if "--verify-key" in words:
            certified += ["--sign", "hospital.key"]
        assert shell(*apply, *certified).code == 0
    if "--force" not in words:
        for path in made:
            path.unlink(missing_ok=True)
        if words[0] == "keygen":
            for ending in (".key", ".pub"):
                (folder / f"{words[1]}{ending}").unlink()
    # Raw rows fail the audit; without a browser no PDF is printed.
    raw = words[:2] == ["audit", "table.csv"] and "policy.yaml" in words
    printed = not any(word.endswith(".pdf") for word in words) or any(map(shutil.which, BROWSERS))
    expected = 1 if raw else 0 if printed else 2
    result = shell(*words)
    assert result.code == expected, result.err
    assert result.out if printed else "needs an installed Chromium" in result.err
    assert all(path.stat().st_size if printed else not path.exists() for path in made)


def test_examples_of_the_overview_run_in_order(shell, folder):
    for name in ("policy.yaml", "best.yaml"):
        (folder / name).unlink()
    assert len(ABOUT_EXAMPLES) == 4
    for example in ABOUT_EXAMPLES:
        result = shell(*words_of(example))
        assert result.code == 0, (example, result.err)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_teaches(name, shell):
    result = shell(*name.split(), "--help")
    assert result.code == 0
    text = " ".join(result.out.split())
    for word in ("Examples:", *COMMANDS[name].EXAMPLES[0].split()):
        assert word in text
    paragraphs = re.split(r"\n\s*\n", result.out.partition("Examples:")[0].strip())
    assert len(paragraphs) >= 3, "the usage, the purpose in a line, and what you give and get"
    assert " In: " not in text
    assert " Out: " not in text
    assert len(COMMANDS[name].EXAMPLES) >= 2


def test_version_and_bare_command(shell):
    assert shell("--version").out == f"aegis {aegis.__version__}\n"
    bare = shell()
    assert bare.code == 0
    assert all(name.split()[0] in bare.out for name in COMMANDS)


def test_init_prints_what_it_would_write(shell, folder):
    printed = shell("init", "table.csv", "--label", "income")
    written = shell("init", "table.csv", "--label", "income", "-o", "first.yaml")
    assert printed.code == written.code == 0
    assert "--policy policy.yaml\n" in printed.out
    assert printed.out.replace("--policy policy.yaml", "--policy first.yaml") == (
        (folder / "first.yaml").read_text()
    )
    assert load_policy("first.yaml").label.column == "income"
    assert "aegis advise table.csv --policy first.yaml" in written.out


def test_advise_ranks_and_writes_the_best(shell, folder):
    result = shell("advise", "table.csv", "-p", "policy.yaml", "-o", "b.yaml", "--report", "r.html")
    assert result.code == 0
    data = json.loads(
        shell("advise", "table.csv", "-p", "policy.yaml", "-f", "json", "--top", "0").out
    )
    ranking = data["ranking"]
    assert data["best"] == ranking[0]["name"]
    # Scores that differ by rounding alone are ties, whose order says which masks least.
    order = [(not r["admissible"], -round(r["score"], 12)) for r in ranking]
    assert order == sorted(order)
    [best] = load_configurations("b.yaml", load_policy("policy.yaml")).values()
    assert best.spec() == ranking[0]["masks"]
    page = (folder / "r.html").read_text()
    assert page.startswith("<!DOCTYPE html>") or page.lstrip().lower().startswith("<!doctype html>")
    assert "b.yaml" in result.out
    assert "r.html" in result.out


def test_advice_from_a_summary_equals_that_from_its_table(shell):
    words = ("-p", "policy.yaml", "-f", "json", "--top", "0", "--generate", "20")
    direct = json.loads(shell("advise", "table.csv", *words).out)
    bundled = json.loads(shell("advise", "table.aegis", *words).out)
    for data in (direct, bundled):
        del data["timings"], data["summary"], data["warnings"]
    # Which rows are alone over all columns is known of a table only.
    assert direct.pop("uncovered")["near_keys"] == bundled.pop("uncovered")["near_keys"]
    # A summary says under which rule its owner made it.
    assert direct.pop("owner_rule") is None
    assert bundled.pop("owner_rule")["privacy"] == {"k": 5, "suppression": 0.05}
    # The rows of a release are measured where the table is at hand.
    for data in (direct, bundled):
        del data["utility"], data["expected"], data["headline"]
        for entry in data["ranking"]:
            del entry["utility"]
    assert direct == bundled


def test_top_limits_every_format(shell):
    words = ("advise", "table.csv", "-p", "policy.yaml", "--generate", "12")
    for top, expected in ((3, 3), (0, 12), (40, 12)):
        data = json.loads(shell(*words, "--top", str(top), "-f", "json").out)
        rows = list(csv.DictReader(io.StringIO(shell(*words, "--top", str(top), "-f", "csv").out)))
        assert len(data["ranking"]) == len(rows) == expected
        for entry, row in zip(data["ranking"], rows, strict=True):
            assert float(row["score"]) == entry["score"]
            assert row["admissible"] == str(entry["admissible"]).lower()
            assert int(row["suppressed_rows"]) == entry["suppressed_rows"]
            assert float(row["change:age"]) == entry["attributes"]["age"]["change"]
            assert set(row) >= {f"mask:{name}" for name in entry["masks"]}


def test_generated_configurations_follow_the_seed(shell):
    words = ("advise", "table.csv", "-p", "policy.yaml", "--generate", "4", "-f", "csv", "--seed")
    assert shell(*words, "1").out == shell(*words, "1").out != shell(*words, "2").out


def test_measure_and_configurations_can_be_chosen(shell):
    words = (
        "advise",
        "table.csv",
        "-p",
        "policy.yaml",
        "--configurations",
        "all.yaml",
        "-f",
        "json",
    )
    data = json.loads(shell(*words, "--measure", "mi").out)
    assert data["measure"] == "mi"
    assert {r["name"] for r in data["ranking"]} == {"fine", "coarse"}


def test_search_proves_what_exhaustive_ranking_finds(shell):
    words = ("advise", "table.csv", "-p", "policy.yaml", "-f", "json", "--measure", "pillai-plain")
    every = json.loads(shell(*words, "--generate", "100").out)
    found = json.loads(shell(*words, "--search").out)
    assert every["optimal"]
    assert found["optimal"]
    assert found["ranking"][0]["score"] == pytest.approx(every["ranking"][0]["score"], abs=1e-10)
    page = shell("advise", "table.csv", "-p", "policy.yaml", "--search", "--front", "k=2,5").out
    assert "Search" in page
    assert "The best configuration by k" in page


def test_apply_writes_a_table_that_an_audit_passes(shell, folder):
    result = shell(
        "apply",
        "table.csv",
        "-p",
        "policy.yaml",
        "-c",
        "best.yaml",
        "-o",
        "masked.parquet",
        "--certificate",
        "c.json",
    )
    assert result.code == 0
    found = audit(folder / "masked.parquet", policy=load_policy("policy.yaml"))
    assert found.passed
    assert f"{found.report.rows} of 240 rows" in result.out
    assert "masked.parquet" in result.out
    assert "name" not in pyarrow.parquet.read_schema("masked.parquet").names
    assert json.loads((folder / "c.json").read_text())["output"]["rows"] == found.report.rows
    words = ("apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml", "-o", "alone.csv")
    measured = "not measured: --certificate FILE measures and states it"
    assert measured in plain(shell(*words).out)
    assert measured not in plain(result.out)
    assert shell("audit", "masked.parquet", "-p", "policy.yaml").code == 0


def test_apply_chooses_by_name(shell, folder):
    words = ("apply", "table.csv", "-p", "policy.yaml", "-c", "all.yaml", "-f", "json")
    data = json.loads(shell(*words, "--name", "coarse", "-o", "out.csv").out)
    assert data["configuration"]["zip"] == "suppress"
    assert data["files"] == [{"path": "out.csv", "bytes": (folder / "out.csv").stat().st_size}]


@pytest.mark.parametrize("suffix", TABLE_FORMATS)
def test_apply_writes_every_format(suffix, shell, folder):
    result = shell(
        "apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml", "-o", f"out{suffix}", "-q"
    )
    assert (result.code, result.out, result.err) == (0, "", "")
    assert (folder / f"out{suffix}").stat().st_size > 0


def test_audit_holds_a_table_against_k(shell):
    words = ("audit", "table.csv", "--quasi-identifiers", "sex")
    assert shell(*words).code == 0
    assert shell(*words, "--k", "120").code == 0
    failed = shell(*words, "--k", "121", "-f", "json")
    assert failed.code == 1
    data = json.loads(failed.out)
    assert data["k"] == 120
    assert data["passed"] is False
    assert data["violations"]
    assert failed.err == ""


def test_audit_takes_columns_in_one_option_or_several(shell):
    one = shell(
        "audit",
        "table.csv",
        "--quasi-identifiers",
        "age, sex",
        "--sensitive",
        "diagnosis",
        "-f",
        "json",
    )
    two = shell(
        "audit",
        "table.csv",
        "--quasi-identifiers",
        "age",
        "--quasi-identifiers",
        "sex",
        "--sensitive",
        "diagnosis",
        "-f",
        "json",
    )
    assert one.out == two.out
    assert json.loads(one.out)["quasi_identifiers"] == ["age", "sex"]


def test_audit_as_csv_names_figures_by_pointer(shell):
    words = ("audit", "table.csv", "--quasi-identifiers", "sex", "--sensitive", "diagnosis")
    data = json.loads(shell(*words, "-f", "json").out)
    rows = dict(csv.reader(io.StringIO(shell(*words, "-f", "csv").out)))
    assert rows.pop("figure") == "value"
    assert int(rows["/k"]) == data["k"]
    assert (
        float(rows["/l_diversity/diagnosis/entropy"]) == data["l_diversity"]["diagnosis"]["entropy"]
    )
    assert rows["/passed"] == ""


def test_summarize_writes_what_advise_reads(shell, folder):
    result = shell("summarize", "table.csv", "-p", "policy.yaml", "-o", "s.aegis", "-f", "json")
    assert result.code == 0
    assert json.loads(result.out)["rows"] == 240
    rows = csv.DictReader(
        io.StringIO(
            shell(
                "summarize",
                "table.csv",
                "-p",
                "policy.yaml",
                "-o",
                "s.aegis",
                "--force",
                "-f",
                "csv",
            ).out
        )
    )
    assert {row["attribute"] for row in rows} == {"age", "sex", "zip", "diagnosis"}
    assert shell("report", "s.aegis", "-p", "policy.yaml", "-o", "r.html").code == 0
    assert "<html" in (folder / "r.html").read_text()


def test_lists_hold_every_registered_name(shell):
    for command, registry in (("measures", MEASURES), ("privacy-models", MODELS)):
        entries = json.loads(shell(command, "-f", "json").out)["entries"]
        assert tuple(entry["name"] for entry in entries) == registry.names()
        table = shell(command).out
        assert all(name in table for name in registry.names())
        rows = list(csv.DictReader(io.StringIO(shell(command, "-f", "csv").out)))
        assert [row["name"] for row in rows] == list(registry.names())


def test_examples_of_privacy_models_are_rules(shell):
    for model in MODELS:
        [entry] = json.loads(shell("privacy-models", model.name, "-f", "json").out)["entries"]
        rule = PrivacyRule.parse(yaml.safe_load(entry["example"])["privacy"])
        assert [one.model.name for one in rule.criteria] == [model.name]


def test_one_entry_is_explained_in_full(shell):
    shown = shell("masks", "bucketize").out
    assert "width" in shown
    assert "masks: [{bucketize: {width: 10}}]" in shown
    assert "trace" in shell("measures", "pillai-plain").out
    assert "privacy: {k: 5}" in shell("privacy-models", "k").out
    assert shell("measures", "mi", "-f", "csv").out.startswith("name,")
