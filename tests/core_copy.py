"""A copy of the package from which wings are taken out, as if their folders had never been there.

`python -m tests.core_copy tests/masks tests/policy` runs tests in a copy without any wing; without folders
it runs all tests that name neither a wing nor what one adds.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
WINGS = ("arx", "papers", "records", "safe", "service")
"""Folders below `src/aegis` that the core does without. The service stands on what may leave the house."""


def copy_core(folder: Path, without: Collection[str] = WINGS) -> dict[str, str]:
    """Copy the package into a folder, without some wings; return the environment that runs it.

    What the wings register goes with them: the copy has a description of its own, which stands before that
    of the installed package.
    """
    package = folder / "aegis"
    shutil.copytree(ROOT / "src" / "aegis", package)  # with what is compiled: times stay the same
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


KINDS = ("anonymizers", "objectives", "estimates", "commands", "questions")
"""What wings add that tests ask for by name."""
UNMISTAKABLE = ("mdav", "mondrian")
"""Names that mean nothing else, as those with a hyphen: they count wherever they stand."""
COMMON_WORDS = ("raw", "height", "loss", "sampling", "estimate", "catalog", "agent", "import")
"""Names of these that mean other things in most tests: they count where they are asked for."""


@cache
def _asking() -> re.Pattern[str]:
    """Return the pattern of a test that asks for what a wing adds."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {name for kind in KINDS for name in project["entry-points"][f"aegis.{kind}"]}
    plain = "|".join(re.escape(name) for name in sorted(names.difference(COMMON_WORDS)))
    common = "|".join(COMMON_WORDS)
    sure = "|".join(
        re.escape(name) for name in sorted(names) if "-" in name or name in UNMISTAKABLE
    )
    verbs = "|".join(project["entry-points"]["aegis.commands"])
    return re.compile(
        rf"""["']({plain})["'(]|\.({plain})\("""
        rf"""|(?<![\w-])({sure})(?![\w-])"""
        rf"""|["']?\b(objective|estimate)["']?(=|:\s*)["']({common})["'(]"""
        rf"""|(shell|run|aegis)\(\[?["']({common})["']"""
        rf"""|\baegis ({verbs})\b|\.(protected|published|deid|ledger)\b"""
        r"""|--(estimate|evaluate|recipe)\b"""
    )


def asks_wings(text: str) -> bool:
    """Whether the text of a test, or of its parameters, asks for what a wing adds.

    >>> asks_wings("search(table, policy, objective='height')"), asks_wings("{'height': 180}")
    (True, False)
    >>> asks_wings("shell('advise', 't.csv', '--with', 'mdav,k-member')")
    True
    """
    return bool(_asking().search(text))


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out the tests that ask for what a wing adds, when this module is pytest's plug-in."""
    asking = []
    for item in items:
        text = inspect.getsource(item.function) if hasattr(item, "function") else ""
        marked = item.get_closest_marker("wings") is not None
        if marked or asks_wings(" ".join([text, *_parameters(item)])):
            asking.append(item)
    config.hook.pytest_deselected(items=asking)
    items[:] = [item for item in items if item not in asking]


def _parameters(item: Any) -> Iterator[str]:
    """Yield the texts of a test's parameters, with the names they stand under."""
    for name, value in getattr(getattr(item, "callspec", None), "params", {}).items():
        yield from _texts(name, value)


def _texts(name: str, value: Any) -> Iterator[str]:
    """Yield the texts in a value. Numbers stay away: Python does not print the longest of them.

    >>> list(_texts("words", ("advise", {"objective": "height", "seed": 10**5000})))
    ["words='advise'", "'objective'", "objective='height'", "'seed'"]
    """
    if isinstance(value, str):
        yield f"{name}={value!r}"
    elif isinstance(value, tuple):
        for item in value:
            yield from _texts(name, item)
    elif isinstance(value, dict):
        for key, below in value.items():
            yield repr(str(key))
            yield from _texts(str(key), below)


APART = (
    *("docs", "fuzz", "mutants", "plugin", "test_architecture.py", "test_circles.py"),
    *("test_limits.py", "test_packaging.py", "test_wings.py"),
)
"""Tests of the whole, and of the source in place of the copy."""


def main(folders: Sequence[str]) -> int:
    """Run the core's own tests in a copy; return pytest's exit code."""
    ignored = [
        f"--ignore={path}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if names_a_wing(path)
    ]
    apart = [f"--ignore={ROOT / 'tests' / name}" for name in (*WINGS, *APART)]
    with tempfile.TemporaryDirectory() as place:
        environment = copy_core(Path(place))
        plugins = (
            "-n",
            "auto",
            "--dist",
            "loadfile",
            "-p",
            "no:cacheprovider",
            "-p",
            "tests.core_copy",
        )
        words = [sys.executable, "-m", "pytest", *plugins, *apart, *ignored]
        done = subprocess.run([*words, *(folders or ["tests"])], cwd=ROOT, env=environment)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
