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
LEVELS: dict[str, dict[str, float]] = {
    "pages": {
        "headless what": 5.0,
        "tells": 4.5,
        "stands": 2.5,
        "is held against": 1.0,
        "goes by": 1.0,
        "asks for": 2.0,
        "beside": 2.5,
        "alike": 3.0,
        "anew": 1.0,
        "of its own": 3.0,
        "the house": 0.5,
        "told apart": 1.0,
    },
    "sources": {
        "headless what": 8.5,
        "tells": 5.5,
        "stands": 3.5,
        "is held against": 1.0,
        "goes by": 1.0,
        "asks for": 3.0,
        "beside": 4.0,
        "alike": 1.5,
        "anew": 1.5,
        "of its own": 4.0,
        "the house": 0.5,
        "told apart": 0.5,
    },
    "templates": {
        "headless what": 9.5,
        "tells": 4.0,
        "stands": 15.0,
        "is held against": 4.0,
        "goes by": 7.0,
        "asks for": 9.5,
        "beside": 17.5,
        "alike": 12.0,
        "anew": 7.0,
        "of its own": 7.0,
        "the house": 4.0,
        "told apart": 4.0,
    },
}
"""Most occurrences of a habit in 10,000 words: lower them when you rewrite sentences, never raise them."""
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md", "docs/*/*.md")
"""Everything that people read in the repository."""
GENERATED = ("docs/reference/cli.md", "docs/reference/python.md", "docs/reference/json.md")
"""Pages that are written from the source, and counted there."""
BAD_SENTENCES = (
    "of what the attributes tell, against",
    "that meet the rule with",
    "the bound is the AUC within reach before classes are counted",
    "that meet the rule of those tried are listed",
    "cannot be told from the best, by chance in the rows",
    "is of this table, and true",
    "does not say what it can show",
    "states level none",
    "it lists every value that occurs, with exact counts",
    "takes for the odds of one of them",
    "Counts err by",
    "from what may leave the house",
    "of a sample, of special uniques, of masked numbers",
    "No masks can mend that",
    "figure of merit that models are expected to reach",
    "what chance makes look better",
    "the advice counts no finer",
    "of masked tables that from the best that any of them shows",
    "little where others tell the same",
    "Nothing is offered here that you may see",
    "It holds what it states",
    "what you ask your agent for is yours to decide",
    "Change it here, too",
    "association among all columns is kept then",
    "holds one against the other",
    "the best of those that explain most",
    "must not be touched again",
    "a command names table and policy each time",
    "as people state amounts",
    "two rows agree at most 1.5 times as often",
    "What has equally many rows",
    "types are given where no two texts",
    "a mask there costs use",
    "a configuration seen as one of all",
    "how much attributes tell of the label",
    "where on a front a rule stands",
    "Drawn rows fit the label a little better",
    "the account counts that as not covered",
    "is as in the part that was followed",
    "It can say k-anonymity",
    "A policy is read on machines of others",
    "Nobody decides on a request of their own",
    "from which others can rank and search but not count",
    "it asks rows that were not fitted to",
    "the better the likelier",
    "A key beside tables",
    "cannot be handed one",
    "that nothing was given out for",
    "How many values each shown value may stand for",
    "gold standard of a set of configurations",
    "Say yes to what stands there",
    "How a measure stands to",
    "What that ends at settles",
    "it is climbed by changes of one mask",
    "is refused by its name; it was called a bug",
    "a better configuration is looked for sooner",
    "Taking age to be left out, the second is weight",
    "groups the values as",
    "Level {{ leak.level }} {{",
)
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
    for name in ("README.md", "docs/faq.md", "docs/quick-start.md"):
        text = prose((ROOT / name).read_text(encoding="utf-8"))
        addressed = len(re.findall(r"\b[Yy]ours?\b|\b[Yy]ou\b", text))
        assert 10_000 * addressed / len(text.split()) >= 80, name


@cache
def lines() -> tuple[tuple[str, str], ...]:
    """Return the prose of all kinds by file, in one line of small letters."""
    return tuple(
        (name, re.sub(r"\s+", " ", text.replace('"\n', "")).lower())
        for kind in KINDS
        for name, text in texts(kind)
    )


@pytest.mark.parametrize("bad", BAD_SENTENCES)
def test_bad_sentences_stay_out(bad):
    assert [name for name, text in lines() if bad.lower() in text] == []


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
        "docs/protection.md",
        "docs/protection-noise.md",
        *(f"docs/how-to/{page.name}" for page in (ROOT / "docs/how-to").glob("*.md")),
        *(f"docs/tutorials/{page.name}" for page in (ROOT / "docs/tutorials").glob("*.md")),
    ],
)
def test_a_page_for_people_has_at_most_1500_words(name):
    assert len((ROOT / name).read_text(encoding="utf-8").split()) <= 1500


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs/decisions").glob("0*.md")), ids=lambda p: p.stem
)
def test_a_decision_has_a_date_and_a_status(path):
    title, _, rest = path.read_text(encoding="utf-8").partition("\n")
    assert re.match(rf"# {path.stem[:4]}: \w", title)
    assert re.match(r"\n20\d\d-\d\d-\d\d\. (In force|Changed|Replaced|Withdrawn|Superseded)", rest)


def test_lists_within_lists_are_indented_by_four() -> None:
    """The site takes an item that is indented less for one of the outer list."""
    flat = [
        f"{name}: {line}"
        for name, text in pages()
        for line in re.sub(r"```.*?```", "", text, flags=re.DOTALL).splitlines()
        if re.match(r" {1,3}([-*]|\d+\.) ", line)
    ]
    assert flat == []
