"""The sections on the uncertainty of the ranking (standard errors, ties) and on the guarantee of
noise (epsilon).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aegis.report.words import clean, measured, plural

if TYPE_CHECKING:
    from aegis.advisor.advice import Advice
    from aegis.advisor.ranked import Ranked

NAMED_TIES = 6
"""Runners-up that the recommendation names."""


def score_text(ranked: Ranked) -> str:
    """Return the score as text, with its standard error if there is one."""
    score = measured(ranked.score)
    return score if ranked.stderr is None else f"{score} ± {measured(ranked.stderr)}"


def against_best(ranked: Ranked, *, first: bool) -> str:
    """Return, as text, whether the score differs significantly from the best one; a dash if the two
    were not compared.
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
        "compared": plural(len(compared), "runner-up", "runners-up"),
        "any_compared": bool(compared),
        "ties": ties[:NAMED_TIES],
        "more": max(0, len(ties) - NAMED_TIES),
    }


def noise_section(subject: Ranked | None) -> dict[str, Any] | None:
    """Return the section on the guarantee of a configuration's noise masks; None if it has none."""
    account = None if subject is None else subject.differential_privacy
    if account is None:
        return None
    return {
        "epsilon": f"{account.epsilon:g}",
        "delta": f"{account.delta:g}" if account.delta else None,
        "covers": account.covers_release,
        "lines": [
            {
                "attribute": clean(loss.attribute, limit=120),
                "mechanism": clean(loss.mechanism, limit=80) or "–",
                "epsilon": f"{loss.epsilon:g}",
                "delta": f"{loss.delta:g}",
                "sensitivity": "–" if loss.sensitivity is None else f"{loss.sensitivity:g}",
            }
            for loss in account.losses
        ],
        "exact": [clean(name, limit=120) for name in account.exact],
        "notes": [clean(note, limit=400) for note in account.notes],
    }
