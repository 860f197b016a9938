"""Print the result of a search on one screen: the best masks, their effect on each column, and
cautions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING

from aegis.cli.output import heading, line, pairs
from aegis.present import IN_WORDS, Finding
from aegis.present.finding import DROPPED, UNCHANGED
from aegis.words import counted, cut, percent, predicted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aegis.advisor import Advice, Ranked
    from aegis.policy import Policy

LINES, WIDTH = 25, 80
"""Number of lines of the page, and of characters per line; --explain prints what does not fit."""
TAIL = 7
"""Number of lines below the page, for the written files and the next step."""
FEWEST_MASKS = 2
"""Smallest number of lines for masks."""
LONGEST = 110
"""A caution of at most this many characters is printed in full."""
SHORTEST = 25
"""A clause of at least this many characters can be understood by itself."""


@dataclass(frozen=True)
class ShortPage:
    """A page of at most `LINES` lines: the table, the rule, the best configuration and its proof
    (`head`), the mask of every column, and as many of the first cautions as fit.
    """

    head: tuple[str, ...]
    masks: tuple[tuple[str, str], ...]
    cautions: tuple[str, ...]

    @classmethod
    def of(cls, advice: Advice, best: Ranked, origin: str, policy: Policy) -> ShortPage:
        """Return the page on an advice."""
        head = _head(advice, best, origin, policy)
        cautions = short_cautions(advice.warnings)
        free_lines = LINES - TAIL - sum(map(_height, head)) - 1 - (2 if cautions else 0)
        words = Finding.of(advice, best)
        listed = [(cut(name), mask + alone(lost)) for name, mask, lost in words.changed]
        named = [(IN_WORDS[DROPPED], words.dropped), (IN_WORDS[UNCHANGED], words.unchanged)]
        reserved = sum(map(_height, cautions[:1])) + sum(bool(names) for _, names in named)
        room = max(free_lines - reserved, FEWEST_MASKS)
        if len(listed) > room:
            listed, others = listed[: room - 1], words.changed[room - 1 :]
            named.insert(0, ("also masked", tuple(name for name, _, _ in others)))
        width = WIDTH - 2 - max(len(name) for name, _ in [*listed, *named])
        masks = (*listed, *((title, _cut(names, width)) for title, names in named if names))
        return cls(head, masks, tuple(_fitting(cautions, free_lines - len(masks))))

    def parts(self) -> Iterator[RenderableType]:
        """Yield the parts to print: table, rule, best configuration with its proof, and masks."""
        table, rule, title, *rest = self.head
        yield line(table)
        yield line(rule)
        yield heading(title)
        yield from map(line, rest)
        yield pairs(self.masks)


def _head(advice: Advice, best: Ranked, origin: str, policy: Policy) -> tuple[str, ...]:
    label = predicted(advice.summary)
    words, several = Finding.of(advice, best), "s" * bool(advice.labels)
    weights, more = advice.summary.get("weights"), ""
    if weights is not None:
        worth = counted(round(weights["effective_rows"]), "row")
        more = f"; weights {weights['column']} (worth {worth} of equal weight)"
    return (
        f"{origin}: {advice.labelled_words}; {f'label{several} {label}' if label else 'no label'}{more}",
        f"Rule: {policy.privacy}",
        words.title,
        words.released,
        words.figure,
        words.proof,
    )


def _height(text: str) -> int:
    """Return the number of lines that a text needs on a page that is `WIDTH` characters wide."""
    return max(1, len(wrap(text, WIDTH - 2)))


def _cut(names: Sequence[str], width: int) -> str:
    """Return as many names as fit in a line of `width` characters, then the number of others."""
    names = [cut(name) for name in names]
    listed, text = len(names), ", ".join(names)
    while len(text) > width and listed > 1:
        listed -= 1
        text = f"{', '.join(names[:listed])} and {len(names) - listed:,} more"
    return text


def _fitting(cautions: Sequence[str], lines: int) -> Iterator[str]:
    """Yield the first cautions, as many as fit in this many lines but at least one."""
    for number, text in enumerate(cautions):
        lines -= _height(text)
        if number and lines < 0:
            return
        yield text


def alone(lost: float | None) -> str:
    """Return a note that masking only one column costs `lost` percent of utility, if this is not
    little.
    """
    return "" if lost is None or lost < 0.05 else f"  (alone costs {percent(lost)})"


def short_cautions(warnings: Sequence[str]) -> list[str]:
    """Return the cautions. Each long caution is cut to its first clause."""
    return [_first_clause(text) for text in warnings]


def _first_clause(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    for mark in (": ", ". "):
        ends = [position for position in range(len(text)) if text.startswith(mark, position)]
        for clause in (text[:end] for end in ends if end >= SHORTEST):
            if clause.count("(") == clause.count(")"):  # names in brackets may contain the mark
                return clause
    return text
