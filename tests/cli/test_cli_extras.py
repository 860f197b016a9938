"""Commands without the extras that they need: the help lists them, and one error says what to install."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

RUN = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from aegis.cli.main import run
sys.exit(run({arguments!r}))
"""
IMPORTED_AS = {"python-multipart": "multipart", "argon2-cffi": "argon2"}


def service_modules() -> set[str]:
    needed = [Requirement(text) for text in requires("aegis-advisor") or []]
    return {
        IMPORTED_AS.get(need.name, need.name.replace("-", "_"))
        for need in needed
        if need.marker is not None and need.marker.evaluate({"extra": "service"})
    }


def without_service(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = RUN.format(missing=service_modules(), arguments=list(arguments))
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_the_help_lists_all_commands_without_the_extra() -> None:
    shown = without_service("--help")
    assert shown.returncode == 0
    assert "cannot be loaded" not in shown.stderr
    assert "catalog" in shown.stdout
    assert "serve" in shown.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve", "--local", "FOLDER"],
        ["catalog", "list", "--url", "http://127.0.0.1:9", "--token", "x"],
        ["worker", "--database", "sqlite:///FOLDER/c.db", "--objects", "FOLDER"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_command_says_which_extra_it_needs(arguments: list[str], tmp_path: Path) -> None:
    shown = without_service(*(word.replace("FOLDER", str(tmp_path)) for word in arguments))
    assert shown.returncode == 2
    assert "pip install 'aegis-advisor[service]'" in " ".join(shown.stderr.split())
    assert "bug" not in shown.stderr
