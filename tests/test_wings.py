"""The core works without its wings: their folders are taken out of a copy."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core_copy import ROOT, WINGS, copy_core


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What runs a copy without any wing."""
    return copy_core(tmp_path_factory.mktemp("core"))


@pytest.fixture(scope="module")
def adult(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every eighth row of Adult."""
    path = tmp_path_factory.mktemp("data") / "adult.parquet"
    whole = pq.read_table(ROOT / "data" / "adult.parquet")
    pq.write_table(whole.take(pa.array(range(0, len(whole), 8))), path)
    return path


def ran(environment: dict[str, str], *words: str, given: str | None = None) -> Any:
    return subprocess.run(
        [sys.executable, *words],
        input=given,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


RUN_ALL = """
import contextlib, io, json, sys
from aegis.cli.main import run
told = []
for words in json.load(sys.stdin):
    with contextlib.redirect_stderr(io.StringIO()) as stream, contextlib.redirect_stdout(io.StringIO()):
        told.append((run(words), " ".join(stream.getvalue().split())))
"""
ASK_ALL = """
import aegis
study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
refused = []
for question in (lambda: study.protect(), lambda: study.evaluate(), lambda: study.estimate([]),
                 lambda: study.reconstruct("age")):
    try:
        question()
    except aegis.errors.AegisError as error:
        refused.append(str(error))
"""
IMPORT_ALL = """
import importlib, pkgutil, traceback
names = [m.name for m in pkgutil.walk_packages(aegis.__path__, "aegis.") if not m.name.endswith("__main__")]
broken = {}
for name in names:
    try:
        importlib.import_module(name)
    except Exception:
        broken[name] = traceback.format_exc()
"""
TELL = "\nprint(json.dumps({name: globals().get(name) for name in ('told', 'refused', 'names', 'broken')}"
TELL += " | {'file': sys.modules['aegis'].__file__}))"


def ran_all(
    environment: dict[str, str], words: Sequence[Sequence[object]]
) -> list[tuple[int, str]]:
    """Run commands in one process; return the exit code of each, and what it says of errors, in one line."""
    done = ran(environment, "-c", RUN_ALL + TELL, given=json.dumps(words, default=str))
    assert done.returncode == 0, done.stderr
    told: list[tuple[int, str]] = json.loads(done.stdout)["told"]
    return told


POLICY = ROOT / "examples" / "adult" / "policy.yaml"
VERBS = (
    *("agent", "catalog", "evaluate", "histograms", "import", "leak", "ledger", "protect"),
    *("publish", "reconstruct", "serve", "worker"),
)
UNKNOWN = (
    ("objective", ("--objective", "loss")),
    ("estimate", ("--estimate", "aegis+1d")),
)


@dataclass(frozen=True)
class WithoutWings:
    """What one process says that runs the core alone: a process takes seconds to load it."""

    job: list[tuple[int, str]]
    verbs: list[tuple[int, str]]
    unknown: list[tuple[int, str]]
    refused: list[str]
    names: list[str]
    broken: dict[str, str]
    file: str
    report: str


@pytest.fixture(scope="module")
def alone(
    core: dict[str, str], adult: Path, tmp_path_factory: pytest.TempPathFactory
) -> WithoutWings:
    """The main job, what wings add, the questions of a study, and then every module of the core."""
    folder = tmp_path_factory.mktemp("alone")
    best, report, masked = (folder / n for n in ("best.yaml", "r.html", "masked.parquet"))
    job = (
        ("advise", adult, "-p", POLICY, "--generate", "5", "-o", best, "--report", report),
        ("apply", adult, "-p", POLICY, "-c", best, "-o", masked),
        ("audit", masked, "-p", POLICY),
    )
    unknown = [("advise", adult, "-p", POLICY, *option) for _, option in UNKNOWN]
    words = json.dumps([*job, *((verb,) for verb in VERBS), *unknown], default=str)
    done = ran(core, "-c", RUN_ALL + ASK_ALL + IMPORT_ALL + TELL, given=words)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    told, last = found.pop("told"), len(job) + len(VERBS)
    page = report.read_text(encoding="utf-8")
    return WithoutWings(told[: len(job)], told[len(job) : last], told[last:], report=page, **found)


def test_every_module_of_the_core_is_imported_without_wings(
    core: dict[str, str], alone: WithoutWings
) -> None:
    assert alone.broken == {}
    assert alone.file.startswith(core["PYTHONPATH"])
    assert len(alone.names) > 150


def test_the_core_does_the_main_job_without_wings(alone: WithoutWings) -> None:
    assert [code for code, _ in alone.job] == [0, 0, 0], alone.job
    assert 'id="leak"' not in alone.report


def test_what_a_wing_adds_is_not_there_without_it(alone: WithoutWings) -> None:
    for verb, (code, error) in zip(VERBS, alone.verbs, strict=True):
        assert code == 2
        assert verb in error
    for (kind, (_, value)), (code, error) in zip(UNKNOWN, alone.unknown, strict=True):
        assert code == 2
        assert f"Unknown {kind} '{value}'" in error


def test_a_study_says_what_no_package_answers(alone: WithoutWings) -> None:
    names = ("protect", "evaluate", "estimate", "reconstruct")
    for name, error in zip(names, alone.refused, strict=True):
        assert f"No installed package provides Study.{name}" in error


def test_a_wing_that_is_broken_is_named_and_the_rest_works(tmp_path: Path) -> None:
    core = copy_core(tmp_path, without=["service"])
    (tmp_path / "aegis" / "safe" / "commands" / "__init__.py").write_text("raise OSError('lost')\n")
    listed = ran(core, "-m", "aegis", "--help")
    assert listed.returncode == 0
    assert "advise" in listed.stdout
    assert listed.stderr.count("OSError: lost") == 3  # protect, leak, ledger
    done, refused = ran_all(core, [("leak", "pyproject.toml"), ("audit", "t.protected")])
    assert done[0] == 2
    assert "adds a command (aegis.safe.commands.leak) that cannot be loaded" in done[1]
    assert refused[0] == 2
    assert "adds a summary format (aegis.safe.commands.protected)" in refused[1]


def test_losses_and_estimates_that_are_broken_are_named_and_a_search_goes_on(
    adult: Path, tmp_path: Path
) -> None:
    core = copy_core(tmp_path, without=["service"])
    for folder in ("arx", "papers"):
        (tmp_path / "aegis" / folder / "__init__.py").write_text("raise OSError('lost')\n")
    words = ("advise", adult, "-p", "examples/adult/policy.yaml")
    refused = {
        ("--objective", "loss"): "an objective (aegis.arx.losses.catalog:LOSS)",
        ("--estimate", "raw"): "an estimate (aegis.papers.estimates.cases:RAW)",
    }
    given = [("--time-limit", "0.2"), *refused]
    (code, said), *others = ran_all(core, [(*words, *options) for options in given])
    assert code == 0, said
    assert said.count("adds a search strategy (aegis.arx.search.hitting_set:") == 1
    for kind, (code, said) in zip(refused.values(), others, strict=True):
        assert code == 2
        assert f"adds {kind} that cannot be loaded: OSError: lost. Install" in said


def test_each_wing_is_a_folder() -> None:
    assert all((ROOT / "src" / "aegis" / wing / "__init__.py").exists() for wing in WINGS)
