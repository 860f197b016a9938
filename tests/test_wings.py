"""The core works without its wings: their folders are taken out of a copy."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core_copy import ROOT, WINGS, copy_core

IMPORT_ALL = """
import importlib, pkgutil, aegis
names = [m.name for m in pkgutil.walk_packages(aegis.__path__, "aegis.") if not m.name.endswith("__main__")]
for name in names:
    importlib.import_module(name)
print(aegis.__file__, len(names))
"""


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
print(json.dumps(told))
"""


def ran_all(
    environment: dict[str, str], words: Sequence[Sequence[object]]
) -> list[tuple[int, str]]:
    """Run commands in one process; return the exit code of each, and what it says of errors, in one line."""
    done = ran(environment, "-c", RUN_ALL, given=json.dumps(words, default=str))
    assert done.returncode == 0, done.stderr
    told: list[tuple[int, str]] = json.loads(done.stdout)
    return told


def test_every_module_of_the_core_is_imported_without_wings(core: dict[str, str]) -> None:
    done = ran(core, "-c", IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    place, count = done.stdout.split()
    assert place.startswith(core["PYTHONPATH"])
    assert int(count) > 150


def test_the_core_does_the_main_job_without_wings(
    core: dict[str, str], adult: Path, tmp_path: Path
) -> None:
    policy = ROOT / "examples" / "adult" / "policy.yaml"
    best, report, masked = (tmp_path / n for n in ("best.yaml", "r.html", "masked.parquet"))
    words = (
        ("advise", adult, "-p", policy, "--generate", "5", "-o", best, "--report", report),
        ("apply", adult, "-p", policy, "-c", best, "-o", masked),
        ("audit", masked, "-p", policy),
    )
    told = ran_all(core, words)
    assert [code for code, _ in told] == [0, 0, 0], told
    assert 'id="leak"' not in report.read_text(encoding="utf-8")


VERBS = (
    *("agent", "catalog", "evaluate", "histograms", "import", "leak", "ledger", "protect"),
    *("publish", "reconstruct", "serve", "worker"),
)


UNKNOWN = (
    ("objective", ("--objective", "loss")),
    ("estimate", ("--estimate", "aegis+1d")),
)


def test_what_a_wing_adds_is_not_there_without_it(core: dict[str, str]) -> None:
    advise = ("advise", "data/adult.parquet", "-p", "examples/adult/policy.yaml")
    words = [*((verb,) for verb in VERBS), *((*advise, *option) for _, option in UNKNOWN)]
    told = ran_all(core, words)
    assert [code for code, _ in told] == [2] * len(words)
    assert all(verb in error for verb, (_, error) in zip(VERBS, told, strict=False))
    for (kind, (_, value)), (_, error) in zip(UNKNOWN, told[len(VERBS) :], strict=True):
        assert f"Unknown {kind} '{value}'" in error


ASK_ALL = """
import aegis
study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
for question in (lambda: study.protect(), lambda: study.evaluate(), lambda: study.estimate([]),
                 lambda: study.reconstruct("age")):
    try:
        question()
    except aegis.errors.AegisError as error:
        print(error)
"""


def test_a_study_says_what_no_package_answers(core: dict[str, str]) -> None:
    done = ran(core, "-c", ASK_ALL)
    assert done.returncode == 0, done.stderr
    for name in ("protect", "evaluate", "estimate", "reconstruct"):
        assert f"No installed package provides Study.{name}" in done.stdout


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
