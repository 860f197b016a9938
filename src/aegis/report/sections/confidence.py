"""Make the section on the uncertainty of the ranking: standard errors and ties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aegis.report.words import clean, measured
from aegis.words import counted

if TYPE_CHECKING:
    from aegis.advisor.advice import Advice
    from aegis.advisor.ranked import Ranked

NAMED_TIES = 6
"""Number of runners-up that the recommendation names."""


def score_text(ranked: Ranked) -> str:
    """Return the score as text, with its standard error if there is one."""
    score = measured(ranked.score)
    return score if ranked.stderr is None else f"{score} ± {measured(ranked.stderr)}"


def against_best(ranked: Ranked, *, first: bool) -> str:
    """Return a text that says whether the score of an entry differs significantly from the best
    score. Return a dash if the two were not compared, and "best" for the `first` entry.
    """
    if first:
        return "best"
    if ranked.tied_with_best is None:
        return "–"
    return "cannot be distinguished" if ranked.tied_with_best else "behind"


def confidence_section(advice: Advice) -> dict[str, Any] | None:
    """Return the section on the uncertainty of the recommendation; None if no standard error was
    computed.
    """
    best = advice.best
    if best is None or best.stderr is None:
        return None
    others = [r for r in advice.ranking if r is not best]
    compared = [r for r in others if r.tied_with_best is not None]
    ties = [clean(r.name, limit=60) for r in compared if r.tied_with_best]
    return {
        "score": measured(best.score),
        "stderr": measured(best.stderr),
        "compared": counted(len(compared), "runner-up", "runners-up"),
        "any_compared": bool(compared),
        "ties": ties[:NAMED_TIES],
        "more": max(0, len(ties) - NAMED_TIES),
    }
