"""Each thing of the tutorial takes no more lines of Python than of shell."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
WIDTH = 100


def steps() -> list[tuple[list[str], list[str]]]:
    """Return the lines of each command and of the Python that stands below it, imports left out."""
    blocks = [(m[1], m[2].splitlines()) for m in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]
    return [
        (shell, [line for line in below if line and not line.startswith(("import ", "from "))])
        for (first, shell), (second, below) in pairwise(blocks)
        if (first, second) == ("bash", "python")
    ]


def test_every_command_has_its_python() -> None:
    languages = [m[1] for m in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]
    pairs = pairwise([*languages, ""])
    assert len(steps()) == languages.count("bash") == 6
    assert all(below == "python" for language, below in pairs if language == "bash")


def test_python_takes_no_more_lines_than_the_shell() -> None:
    opened = 0
    for shell, python in steps():
        assert max(map(len, [*shell, *python])) <= WIDTH
        studies = [line for line in python if line.startswith("study = aegis.Study(")]
        opened += len(studies)
        assert len(python) - len(studies) <= len(shell), python
    assert opened == 1
    assert sum(len(python) for _, python in steps()) <= sum(len(shell) for shell, _ in steps())
