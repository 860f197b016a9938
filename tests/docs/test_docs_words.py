"""Plain words: habits that make a sentence hard to read stay rare, and known bad sentences stay out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HABITS = {
    "headless what": r"(?:^|(?<=[.!?]\s)|\n)(?:What|Whoever|Whatever)\s(?![^.!?\n]{0,160}\?)",
    "tells": r"\btells?\b",
    "stands": r"\bstands?\b",
    "is held against": r"\bheld against\b",
    "goes by": r"\b(?:go|goes|went) by\b",
    "asks for": r"\basks? for\b",
    "beside": r"\bbeside\b",
    "alike": r"\balike\b",
    "anew": r"\banew\b",
    "of its own": r"\bof (?:its|their|one's) own\b",
    "the house": r"\bthe house\b",
    "told apart": r"\btold apart\b|\bcannot be told from\b",
}
"""Habits as regular expressions; each has a plainer word (CONTRIBUTING.md, Words)."""
LEVELS: dict[str, dict[str, float]] = {}
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md", "docs/*/*.md")
"""Everything that people read in the repository."""
GENERATED = ("docs/reference/cli.md", "docs/reference/python.md", "docs/reference/json.md")
"""Pages that are written from the source, and counted there."""
BAD_SENTENCES = ("of what the attributes tell, against",)
"""Parts of sixty sentences that readers had to read twice; none may come back."""


def prose(text: str) -> str:
    """Return a page without code, links and generated parts, one paragraph a line."""
    text = re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "x", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return re.sub(r"\n(?!\n|[-*|#\d])", " ", text)


def pages() -> Iterator[tuple[str, str]]:
    """Yield the pages by name."""
    for pattern in PAGES:
        for path in sorted(ROOT.glob(pattern)):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def sources() -> Iterator[tuple[str, str]]:
    """Yield the sentences of the source: docstrings, helps, outputs and errors."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        texts = (
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
        )
        yield path.relative_to(ROOT).as_posix(), "\n\n".join(texts)


def templates() -> Iterator[tuple[str, str]]:
    """Yield the words of the pages that the report and the service show."""
    for pattern in ("*.j2", "*.html"):
        for path in sorted((ROOT / "src").rglob(pattern)):
            if path.name != "style.css.j2":
                text = path.read_text(encoding="utf-8")
                yield (
                    path.relative_to(ROOT).as_posix(),
                    re.sub(r"<[^>]*>|\{[%{#].*?[%}#]\}", " ", text),
                )


KINDS = {"pages": pages, "sources": sources, "templates": templates}


@cache
def texts(kind: str) -> tuple[tuple[str, str], ...]:
    """Return the prose of a kind by file."""
    return tuple((name, prose(text)) for name, text in KINDS[kind]() if name not in GENERATED)


def per_ten_thousand(kind: str, habit: str) -> float:
    """Return how often a habit occurs, in 10,000 words of a kind."""
    found = sum(len(re.findall(HABITS[habit], text)) for _, text in texts(kind))
    return 10_000 * found / sum(len(text.split()) for _, text in texts(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_habits_stay_rare(kind):
    counts = {habit: round(per_ten_thousand(kind, habit), 2) for habit in HABITS}
    above = {habit: n for habit, n in counts.items() if n > LEVELS[kind][habit]}
    where = {
        habit: [name for name, text in texts(kind) if re.search(HABITS[habit], text)][:8]
        for habit in above
    }
    assert not above, where


def test_pages_speak_to_you():
    for name in ("README.md", *map(str, Path("docs").glob("tutorials/*.md")), "docs/faq.md"):
        text = prose((ROOT / name).read_text(encoding="utf-8"))
        addressed = len(re.findall(r"\b[Yy]ours?\b|\b[Yy]ou\b", text))
        assert 10_000 * addressed / len(text.split()) >= 80, name


@pytest.mark.parametrize("bad", BAD_SENTENCES)
def test_bad_sentences_stay_out(bad):
    kept = [
        name
        for kind in KINDS
        for name, text in texts(kind)
        if bad.lower() in re.sub(r"\s+", " ", text.replace('"\n', "")).lower()
    ]
    assert kept == []


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "docs/quick-start.md",
        "docs/index.md",
        "docs/tutorial.md",
        "docs/faq.md",
        "docs/limits.md",
        "docs/glossary.md",
        "docs/init.md",
        *(f"docs/tutorials/{page.name}" for page in (ROOT / "docs/tutorials").glob("*.md")),
    ],
)
def test_a_page_for_people_has_at_most_1500_words(name):
    assert len((ROOT / name).read_text(encoding="utf-8").split()) <= 1500
