"""Write the notebook for engineers from its page, so that both show the same; `make docs` runs it.

The page's code is executed by the tests, and a test compares the notebook with the page.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorials" / "engineers.md"
NOTEBOOK = ROOT / "examples" / "pipeline" / "engineers.ipynb"
START = 'import os\n\nos.chdir("../..")  # the tables are in data/ of the repository'
"""Cell below the introduction: paths on the page are those of the repository."""
_BLOCK = re.compile(r"```python\n(.*?)```\n?", re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:|#)([^)]*)\)")


def notebook(page: str) -> dict[str, Any]:
    """Return a page as a notebook: its text as cells of text, its Python as cells of code."""
    cells: list[dict[str, Any]] = []
    for place, part in enumerate(_BLOCK.split(page)):
        text = part.strip("\n")
        if text and place % 2:
            cells.append(_cell("code", text))
        elif text:
            cells.append(_cell("markdown", _LINK.sub(r"](../../docs/tutorials/\1)", text)))
    cells.insert(1, _cell("code", START))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def written(page: str) -> str:
    """Return the notebook of a page as its file holds it."""
    return json.dumps(notebook(page), indent=1, ensure_ascii=False) + "\n"


def _cell(kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "cell_type": kind,
        "metadata": {},
        "source": text.splitlines(keepends=True),
    }
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return cell


if __name__ == "__main__":
    NOTEBOOK.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
