"""The best of an advice in plain words: how much it keeps, how it masks each column, what is
proven.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aegis.words import counted, percent

if TYPE_CHECKING:
    from aegis.advisor import Advice, Ranked
    from aegis.advisor.figures import SearchFigures

UNCHANGED, DROPPED = "identity", "suppress"


@dataclass(frozen=True)
class Finding:
    """Statements on the best of an advice, the same on every screen.

    Attributes
    ----------
    title, figure
        The configuration with what it keeps, and its figure with the one that it is compared with.
    released
        How many rows are released, in classes of how many at least.
    proof
        Among how many combinations or configurations it is the best, and what is proven.
    changed
        Columns whose values change: name, mask, percent that it costs alone (None if that is not known).
    dropped, unchanged
        Columns that are left out, and that stay as they are.
    """

    title: str
    figure: str
    released: str
    proof: str
    changed: tuple[tuple[str, str, float | None], ...]
    dropped: tuple[str, ...]
    unchanged: tuple[str, ...]

    @classmethod
    def of(cls, advice: Advice, best: Ranked) -> Finding:
        """Return the words for one entry of an advice, its best."""
        figure, masks = advice.stated_utility(best), best.shown
        return cls(
            title=f"{best.name}{_share(advice, figure.utility_kept)}",
            figure=f"{advice.headline or figure.detail[:1].upper() + figure.detail[1:]}.",
            released=f"{_released(best, advice.summary['rows'])}.",
            proof=_proof(advice),
            changed=tuple(
                (name, mask, advice.share_lost(name) if advice.lost_alone else None)
                for name, mask in masks.items()
                if mask not in (UNCHANGED, DROPPED)
            ),
            dropped=tuple(name for name in masks if masks[name] == DROPPED),
            unchanged=tuple(name for name in masks if masks[name] == UNCHANGED),
        )


def ranked_words(advice: Advice) -> str:
    """Return the ranked items in words, for example "20 configurations and 1 record-level
    release".
    """
    releases = sum(ranked.method is not None for ranked in advice.ranking)
    masks = counted(len(advice.ranking) - releases, advice.ranked_things)
    return f"{masks} and {counted(releases, 'record-level release')}" if releases else masks


def _share(advice: Advice, percentage: float | None) -> str:
    what = "predictive value" if advice.summary["label"] else "association among the columns"
    if advice.by_chance:
        return f", in a table whose {what} may be chance"
    return "" if percentage is None else f" keeps {percent(percentage)} of the {what}"


def _released(best: Ranked, rows: int) -> str:
    """Say how many rows are released, or what is said of the rule by whoever has the rows."""
    if best.suppressed_rows is not None:
        said = f"It releases {rows - best.suppressed_rows:,} of {rows:,} rows"
        smallest = best.smallest_class
        return f"{said}, each in a class of at least {smallest:,}" if smallest else said
    if best.admissible:
        return "The owner of the table states that it meets the rule"
    return "Nobody has said yet whether it meets the rule"


def _proof(advice: Advice) -> str:
    """Say among how many it is the best, and what is proven of it."""
    search = advice.search
    among = f"{counted(advice.combinations, 'combination')} of masks"
    if search is not None and advice.combinations == 1:
        return "The policy allows no other combination of masks."
    if search is not None and search.preferred:
        return f"Of {among}, some score higher, by so little that it counts as equal."
    if advice.optimal:
        return f"None of the {among} does better{_objective(advice)}: proven."
    if search is not None:
        return f"It is the best that was found among {among}; {_possible(search)}."
    if not advice.verdicts_known:
        return f"It is the best of {ranked_words(advice)} that were ranked, of {among}."
    best = f"It is the best of {advice.admissible_count:,} that meet the rule"
    if advice.masked_tables:
        return f"{best}, among {ranked_words(advice)}."
    return f"{best}, among {ranked_words(advice)} that were ranked; there are {among}."


def _objective(advice: Advice) -> str:
    """Return by what a search is proven, where that is not the measure of the advice."""
    search = advice.search
    same = search is None or search.objective == advice.measure
    return "" if same or search is None else f" by {search.objective}"


def _possible(search: SearchFigures) -> str:
    """Say how much better another combination may be."""
    if search.gap is None or search.bound is None:
        return "better ones may exist"
    possible = percent(100 * search.gap)
    return f"{f'at most {possible}'.replace('at most <', 'less than')} better is possible"
