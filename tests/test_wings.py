"""The core works without its wings: their folders are taken out of a copy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

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


def ran(environment: dict[str, str], *words: str, cwd: Path = ROOT) -> Any:
    return subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_module_of_the_core_is_imported_without_wings(core: dict[str, str]) -> None:
    done = ran(core, "-c", IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    place, count = done.stdout.split()
    assert place.startswith(core["PYTHONPATH"])
    assert int(count) > 300


def test_the_core_does_the_main_job_without_wings(core: dict[str, str], tmp_path: Path) -> None:
    policy = ROOT / "examples" / "adult" / "policy.yaml"
    table = ROOT / "data" / "adult.parquet"
    best, report, masked = (tmp_path / n for n in ("best.yaml", "r.html", "masked.parquet"))
    for words in (
        ("advise", table, "-p", policy, "--generate", "5", "-o", best, "--report", report),
        ("apply", table, "-p", policy, "-c", best, "-o", masked),
        ("audit", masked, "-p", policy),
    ):
        done = ran(core, "-m", "aegis", *map(str, words))
        assert done.returncode == 0, done.stderr
    assert 'id="leak"' not in report.read_text(encoding="utf-8")


@pytest.mark.parametrize("verb", ["protect", "leak", "ledger", "serve", "agent", "catalog"])
def test_what_a_wing_adds_is_not_there_without_it(core: dict[str, str], verb: str) -> None:
    done = ran(core, "-m", "aegis", verb)
    assert done.returncode == 2
    assert verb in done.stderr


def test_a_study_says_what_no_package_answers(core: dict[str, str]) -> None:
    asked = (
        "import aegis; aegis.Study('data/adult.parquet', 'examples/adult/policy.yaml').protect()"
    )
    done = ran(core, "-c", asked)
    assert "No installed package answers Study.protect" in done.stderr


def test_a_wing_that_is_broken_is_named_and_the_rest_works(tmp_path: Path) -> None:
    core = copy_core(tmp_path, without=["service"])
    (tmp_path / "aegis" / "safe" / "commands" / "__init__.py").write_text("raise OSError('lost')\n")
    listed = ran(core, "-m", "aegis", "--help")
    assert listed.returncode == 0
    assert "advise" in listed.stdout
    assert listed.stderr.count("OSError: lost") == 3  # protect, leak, ledger
    done = ran(core, "-m", "aegis", "leak", "pyproject.toml")
    assert done.returncode == 2
    assert "adds a command (aegis.safe.commands.leak) that cannot be loaded" in said(done)
    refused = ran(core, "-m", "aegis", "audit", "t.protected")
    assert refused.returncode == 2
    assert "adds a summary format (aegis.safe.commands.protected)" in said(refused)


def said(done: Any) -> str:
    return " ".join(done.stderr.split())


def test_each_wing_is_a_folder() -> None:
    assert all((ROOT / "src" / "aegis" / wing / "__init__.py").exists() for wing in WINGS)
