"""The generated pages of the reference are those that the code writes today."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def generator() -> object:
    spec = importlib.util.spec_from_file_location("aegis_docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NAMES = ["anonymizers.md", "masks.md", "measures.md", "privacy-models.md", "policy.md", "python.md"]


@pytest.mark.parametrize("name", NAMES)
def test_page_is_fresh(name: str) -> None:
    pages = generator().PAGES  # type: ignore[attr-defined]
    assert set(pages) == set(NAMES)
    stored = (DOCS / "reference" / name).read_text(encoding="utf-8")
    assert stored == pages[name](), "run `make docs`"


def test_defaults_are_written_as_a_policy_or_a_command_writes_them() -> None:
    """No None, False, tuple or record of Python."""
    wrong = []
    for page in sorted(Path("docs/reference").glob("*.md")):
        place = None
        for line in page.read_text().splitlines():
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if "default" in cells:
                place = cells.index("default")
            elif not cells:
                place = None
            elif place is not None and re.search(
                r"None|True|False|``|\(|\{\}|\[\]|=", cells[place]
            ):
                wrong.append((page.name, cells))
    assert wrong == []


def test_signatures_hold_no_object_of_python() -> None:
    assert "=<" not in (DOCS / "reference" / "python.md").read_text(encoding="utf-8")


NAMED = re.compile(r"`(aegis(?:\.\w+)+)\b(?!\.toml)")
PAGES_WITH_NAMES = sorted(
    [DOCS.parent / "README.md", *(p for p in DOCS.rglob("*.md") if p.parent.name != "decisions")]
)
"""Decisions are dated: they name what there was."""


def resolved(name: str) -> object:
    """Return the module, or what a module holds, of a dotted name."""
    module, _, own = name.rpartition(".")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return getattr(resolved(module), own)


@pytest.mark.parametrize("page", PAGES_WITH_NAMES, ids=lambda p: str(p.relative_to(DOCS.parent)))
def test_what_a_page_names_can_be_imported(page: Path) -> None:
    for name in set(NAMED.findall(page.read_text(encoding="utf-8"))) - {"aegis.toml"}:
        resolved(name)


def test_properties_are_described_without_the_markup_of_their_docstrings() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/python.md").read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if re.search(r"\w -{4,} >>>", line)] == []


def test_pages_link_to_nothing_that_the_site_lacks() -> None:
    links = {
        f"{page.relative_to(DOCS)}: {link}"
        for page in DOCS.rglob("*.md")
        for link in re.findall(r"\]\(([^)\s#]+)", page.read_text(encoding="utf-8"))
        if "://" not in link and not (page.parent / link).resolve().is_relative_to(DOCS.resolve())
    }
    assert links == set(), "name the path as code"
