"""What a search found, on one screen: the best, what it does to each column, what to beware of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


def short_page(
    advice: Advice, best: Ranked, origin: str, policy: Policy
) -> Iterator[RenderableType]:
    """Yield the table and the rule, the best configuration, its figure and its masks."""
    from aegis.cli.tables import heading, line, pairs, percent

    summary, figure = advice.summary, advice.stated_utility(best)
    label = summary["label"]
    yield line(
        f"{origin}: {counted(summary['rows'], 'row')}; {f'label {label}' if label else 'no label'}"
    )
    yield line(f"Rule: {policy.privacy}")
    kept_share = figure.utility_kept
    what = "predictive value" if label else "association among the columns"
    if advice.by_chance:
        kept_words = f", in a table whose {what} may be chance"
    else:
        kept_words = "" if kept_share is None else f" keeps {percent(kept_share)} of the {what}"
    yield heading(f"{best.name}{kept_words}")
    rows = summary["rows"]
    yield line(f"{advice.headline or figure.detail[:1].upper() + figure.detail[1:]}.")
    yield line(f"{rows - best.suppressed_rows:,} of {rows:,} rows are released.")
    yield line(_searched(advice))
    yield pairs(_masks(advice, best))


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


def _masks(advice: Advice, best: Ranked) -> Iterator[tuple[str, str]]:
    """Yield what happens to each column: those that change, one a line, then the others by name."""
    masks = best.shown
    changed = [name for name, mask in masks.items() if mask not in (UNCHANGED, DROPPED)]
    for name in changed[:MOST_MASKS]:
        lost = advice.share_lost(name) if advice.lost_alone else None
        yield name, masks[name] + _alone(lost)
    if len(changed) > MOST_MASKS:
        yield "", f"{len(changed) - MOST_MASKS:,} more: --explain lists all"
    for title, mask in (("left out", DROPPED), ("unchanged", UNCHANGED)):
        names = [name for name in masks if masks[name] == mask]
        if names:
            yield title, ", ".join(names)


def _alone(lost: float | None) -> str:
    """Say what masking this column alone would cost, where that shows."""
    from aegis.cli.tables import percent

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
