"""A copy of the package from which wings are taken out, as if their folders had never been there.

`python -m tests.core_copy tests/masks tests/policy` runs tests in a copy without any wing; without folders
it runs all tests that name no wing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
WINGS = ("arx", "papers", "records", "safe", "service")
"""Folders below `src/aegis` that the core does without. The service stands on what may leave the house."""


def copy_core(folder: Path, without: Collection[str] = WINGS) -> dict[str, str]:
    """Copy the package into a folder, without some wings; return the environment that runs it.

    What the wings register goes with them: the copy has a description of its own, which stands before that
    of the installed package.
    """
    package = folder / "aegis"
    shutil.copytree(
        ROOT / "src" / "aegis", package, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
    )
    for wing in without:
        shutil.rmtree(package / wing)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    description = folder / f"aegis_advisor-{project['version']}.dist-info"
    description.mkdir()
    (description / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, points in project["entry-points"].items():
        lines.append(f"[{group}]")
        lines += [
            f"{name} = {value}"
            for name, value in points.items()
            if not any(value.startswith(f"aegis.{wing}.") for wing in without)
        ]
    (description / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "80"}


def names_a_wing(path: Path) -> bool:
    """Whether a file of tests imports or names a wing, and is so none of the core's."""
    wings = "|".join(WINGS)
    return bool(re.search(rf"aegis\.({wings})\b", path.read_text(encoding="utf-8")))


def main(folders: Sequence[str]) -> int:
    """Run the core's own tests in a copy; return pytest's exit code."""
    ignored = [
        f"--ignore={path}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if names_a_wing(path)
    ]
    apart = [f"--ignore={ROOT / 'tests' / name}" for name in (*WINGS, "docs", "mutants", "fuzz")]
    with tempfile.TemporaryDirectory() as place:
        environment = copy_core(Path(place))
        words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *apart, *ignored]
        done = subprocess.run([*words, *(folders or ["tests"])], cwd=ROOT, env=environment)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
