"""What a search found, on one screen: the best, what it does to each column, what to beware of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aegis.words import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aegis.advisor import Advice, Ranked
    from aegis.policy import Policy

UNCHANGED, DROPPED = "identity", "suppress"
MOST_MASKS = 12
"""Masks that the page lists; --explain lists all."""
LONGEST = 110
"""Characters up to which a caution is printed whole."""
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
        return f"{rows - best.suppressed_rows:,} of {rows:,} rows are released"
    if best.admissible:
        return "The owner of the table states that it meets the rule"
    return "Nobody has said yet whether it meets the rule"


def short_page(
    advice: Advice, best: Ranked, origin: str, policy: Policy
) -> Iterator[RenderableType]:
    """Yield the table and the rule, the best configuration, its figure and its masks."""
    from aegis.cli.tables import heading, line, pairs

    label, rows = advice.summary["label"], advice.summary["rows"]
    words = ShortWords.of(advice, best)
    yield line(f"{origin}: {counted(rows, 'row')}; {f'label {label}' if label else 'no label'}")
    yield line(f"Rule: {policy.privacy}")
    yield heading(words.title)
    yield line(words.figure)
    yield line(words.released)
    yield line(words.searched)
    yield pairs(_masks(words))


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


def _masks(words: ShortWords) -> Iterator[tuple[str, str]]:
    """Yield what happens to each column: those that change, one a line, then the others by name."""
    for name, mask, lost in words.changed[:MOST_MASKS]:
        yield name, mask + alone(lost)
    if len(words.changed) > MOST_MASKS:
        yield "", f"{len(words.changed) - MOST_MASKS:,} more: --explain lists all"
    for title, names in (("left out", words.dropped), ("unchanged", words.unchanged)):
        if names:
            yield title, ", ".join(names)


def alone(lost: float | None) -> str:
    """Say what masking this column alone would cost, where that shows."""
    from aegis.words import percent

    return "" if lost is None or lost < 0.05 else f"  (alone costs {percent(lost)})"


def short_cautions(warnings: Sequence[str]) -> list[str]:
    """Return what to beware of: a long caution as its first clause."""
    return [_first_clause(text) for text in warnings]


def _first_clause(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    clause, colon, _ = text.partition(": ")
    if colon and len(clause) >= SHORTEST:
        return clause
    return text.partition(". ")[0]
