"""What a search found, on one screen: the best, what it does to each column, what to beware of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING

from aegis.words import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aegis.advisor import Advice, Ranked
    from aegis.policy import Policy

UNCHANGED, DROPPED = "identity", "suppress"
LINES, WIDTH = 25, 80
"""Lines and characters of the page; --explain prints the rest."""
TAIL = 7
"""Lines below the page: the files that were written, and the next step."""
FEWEST_MASKS = 2
"""Lines of masks at least."""
LONGEST = 110
"""Characters up to which a caution is printed whole."""
_BRACKETED = re.compile(r" \([^()]*\)")
SHORTEST = 25
"""Characters from which a clause says something by itself."""


@dataclass(frozen=True)
class ShortWords:
    """What terminal and workbench say of the best that a search found, in the same words.

    Attributes
    ----------
    title, figure
        The configuration with what it keeps, and its figure with the one that it is compared with.
    released
        How many rows are released.
    searched
        Among how many combinations, and what is proven.
    changed
        Columns whose values change: name, mask, percent that it costs alone (None where that is not known).
    dropped, unchanged
        Columns that are left out, and that stay as they are.
    """

    title: str
    figure: str
    released: str
    searched: str
    changed: tuple[tuple[str, str, float | None], ...]
    dropped: tuple[str, ...]
    unchanged: tuple[str, ...]

    @classmethod
    def of(cls, advice: Advice, best: Ranked) -> ShortWords:
        """Return the words for the best of an advice."""
        from aegis.words import percent

        figure, masks = advice.stated_utility(best), best.shown
        what = "predictive value" if advice.summary["label"] else "association among the columns"
        if advice.by_chance:
            share_words = f", in a table whose {what} may be chance"
        else:
            share = figure.utility_kept
            share_words = "" if share is None else f" keeps {percent(share)} of the {what}"
        rows = advice.summary["rows"]
        return cls(
            title=f"{best.name}{share_words}",
            figure=f"{advice.headline or figure.detail[:1].upper() + figure.detail[1:]}.",
            released=f"{released_words(best, rows)}.",
            searched=_searched(advice),
            changed=tuple(
                (name, mask, advice.share_lost(name) if advice.lost_alone else None)
                for name, mask in masks.items()
                if mask not in (UNCHANGED, DROPPED)
            ),
            dropped=tuple(name for name in masks if masks[name] == DROPPED),
            unchanged=tuple(name for name in masks if masks[name] == UNCHANGED),
        )


def released_words(best: Ranked, rows: int) -> str:
    """Say how many rows are released, or what is said of the rule by whoever has the rows."""
    if best.suppressed_rows is not None:
        return f"It releases {rows - best.suppressed_rows:,} of {rows:,} rows"
    if best.admissible:
        return "The owner of the table states that it meets the rule"
    return "Nobody has said yet whether it meets the rule"


@dataclass(frozen=True)
class ShortPage:
    """A page of at most `LINES` lines: each column is named, and the cautions that fit are shown.

    Attributes
    ----------
    head
        The table, the rule, the best configuration and what is proven of it.
    masks
        What happens to each column.
    cautions
        What to beware of, the first of them.
    """

    head: tuple[str, ...]
    masks: tuple[tuple[str, str], ...]
    cautions: tuple[str, ...]

    @classmethod
    def of(cls, advice: Advice, best: Ranked, origin: str, policy: Policy) -> ShortPage:
        """Return the page of an advice: what the head leaves is shared by masks and cautions."""
        head = _head(advice, best, origin, policy)
        cautions = short_cautions(advice.warnings)
        left = LINES - TAIL - sum(map(_height, head)) - 1 - (2 if cautions else 0)
        words = ShortWords.of(advice, best)
        listed = [(name, mask + alone(lost)) for name, mask, lost in words.changed]
        named = [("left out", words.dropped), ("unchanged", words.unchanged)]
        reserved = sum(map(_height, cautions[:1])) + sum(bool(names) for _, names in named)
        room = max(left - reserved, FEWEST_MASKS)
        if len(listed) > room:
            listed, others = listed[: room - 1], words.changed[room - 1 :]
            named.insert(0, ("also masked", tuple(name for name, _, _ in others)))
        width = WIDTH - 2 - max(len(name) for name, _ in [*listed, *named])
        masks = (*listed, *((title, _cut(names, width)) for title, names in named if names))
        return cls(head, masks, tuple(_fitting(cautions, left - len(masks))))

    def parts(self) -> Iterator[RenderableType]:
        """Yield what is printed above the cautions."""
        from aegis.cli.tables import heading, line, pairs

        table, rule, title, *rest = self.head
        yield line(table)
        yield line(rule)
        yield heading(title)
        yield from map(line, rest)
        yield pairs(self.masks)


def _head(advice: Advice, best: Ranked, origin: str, policy: Policy) -> tuple[str, ...]:
    label, rows = advice.summary["label"], advice.summary["rows"]
    words = ShortWords.of(advice, best)
    said = released_words(best, rows)
    released = said[:1].lower() + said[1:]
    return (
        f"{origin}: {counted(rows, 'row')}; {f'label {label}' if label else 'no label'}",
        f"Rule: {policy.privacy}",
        f"{words.title}; {released}",
        words.figure,
        words.searched,
    )


def _height(text: str) -> int:
    """Return how many lines a text takes on the page."""
    return max(1, len(wrap(text, WIDTH - 2)))


def _cut(names: Sequence[str], width: int) -> str:
    """Return names in one line: as many as fit, and how many more there are."""
    shown, text = len(names), ", ".join(names)
    while len(text) > width and shown > 1:
        shown -= 1
        text = f"{', '.join(names[:shown])} and {len(names) - shown:,} more"
    return text


def _fitting(cautions: Sequence[str], lines: int) -> Iterator[str]:
    """Yield the cautions that fit into so many lines, in their order; the first in any case."""
    for number, text in enumerate(cautions):
        lines -= _height(text)
        if number and lines < 0:
            return
        yield text


def _searched(advice: Advice) -> str:
    """Say among how many combinations the best was searched, and what is proven of it."""
    search = advice.search
    among = counted(advice.combinations, "combination")
    if search is not None and advice.combinations == 1:
        return "The policy allows no other combination of masks."
    if search is not None and search.preferred:
        return f"Of {among} of masks, some score higher, by so little that it counts as equal."
    if advice.optimal:
        return f"None of the {among} of masks does better: proven."
    return f"It is the best that was found among {among} of masks; better ones may exist."


def alone(lost: float | None) -> str:
    """Say what masking this column alone would cost, where that shows."""
    from aegis.words import percent

    return "" if lost is None or lost < 0.05 else f"  (alone costs {percent(lost)})"


def short_cautions(warnings: Sequence[str]) -> list[str]:
    """Return what to beware of: a long caution as its first clause, without what is in brackets."""
    return [_first_clause(text) for text in warnings]


def _first_clause(text: str) -> str:
    if len(text) > LONGEST:
        text = _BRACKETED.sub("", text)
    if len(text) <= LONGEST:
        return text
    clause, colon, _ = text.partition(": ")
    if colon and len(clause) >= SHORTEST:
        return clause
    return text.partition(". ")[0]
