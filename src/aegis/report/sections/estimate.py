"""The sections on estimated scores, by configuration and by attribute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aegis.report.words import clean, measured

if TYPE_CHECKING:
    from aegis.advisor.advice import Advice

NAME_LIMIT = 120
TOP = 20
"""Configurations that are listed."""


def changes_section(advice: Advice) -> list[dict[str, Any]]:
    """Return the section on the estimated effect of other masks on the best configuration; empty if
    scores are exact.
    """
    changes = () if advice.estimated is None else advice.estimated.changes
    return [
        {
            "attribute": clean(change.attribute, limit=NAME_LIMIT),
            "mask": clean(change.mask, limit=NAME_LIMIT),
            "change": measured(change.change),
            "stderr": measured(change.stderr),
            "tied": change.tied,
        }
        for change in changes
    ]


def _between(ends: tuple[float, float] | None) -> str:
    return "–" if ends is None else f"{measured(ends[0])} to {measured(ends[1])}"


def estimates_section(advice: Advice) -> dict[str, Any] | None:
    """Return the section with the estimates of the first configurations, and of the attributes of
    the best one.

    None if no estimate was requested.
    """
    told = [(r.name, r.estimate) for r in advice.ranking if r.estimate is not None]
    if not told:
        return None
    name, first = told[0]
    return {
        "measure": first.measure,
        "case": first.case or first.method,
        "shown": min(len(told), TOP),
        "total": len(told),
        "lines": [
            {
                "name": clean(own, limit=NAME_LIMIT),
                "pud": measured(estimate.pud),
                "between": _between(estimate.interval),
            }
            for own, estimate in told[:TOP]
        ],
        "name": clean(name, limit=NAME_LIMIT),
        "attributes": [
            {
                "name": clean(attribute, limit=NAME_LIMIT),
                "masked": measured(estimate.masked),
                "raw": measured(estimate.estimate),
                "deviation": measured(estimate.deviation),
                "between": _between(estimate.interval),
                "known": str(estimate.information or first.information),
                "method": estimate.method or first.method,
            }
            for attribute, estimate in first.attributes.items()
        ],
    }
