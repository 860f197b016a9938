"""Render advice from a protected summary as one HTML file that needs nothing but itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from aegis._version import __version__
from aegis.report.palette import DARK, HEAT_BOUNDS, LIGHT
from aegis.report.svg import FONT
from aegis.report.words import clean, lines, measured, percent
from aegis.safe.report.section import leak_section, templates

if TYPE_CHECKING:
    from aegis.safe.protect import LeakAudit, ProtectedAdvice

SHOWN = 20
"""Configurations that the report lists."""
RULE = {True: "meets it", False: "breaks it", None: "not said"}


def render_protected(
    advice: ProtectedAdvice,
    *,
    title: str = "Advice from a protected summary",
    audit: LeakAudit | None = None,
) -> str:
    """Return the report on a ranking from a protected summary; the same one gives the same bytes.

    `audit` says what the summary gives away; without it that section is left out.
    """
    style = {"light": LIGHT, "dark": DARK, "font": FONT, "bounds": HEAT_BOUNDS}
    template = templates().get_template("protected.html.j2")
    return template.render(_context(advice, title, audit) | {"style": style})


def _context(advice: ProtectedAdvice, title: str, audit: LeakAudit | None) -> dict[str, Any]:
    best, protection = advice.best, advice.summary["protection"]
    figures = [("Level", str(protection["level"]), _promise(protection))]
    if best is not None:
        figures += [
            ("Score", measured(best.score), f"± {measured(best.stderr)}"),
            ("Kept", percent(best.utility_kept), "of what all masks together show"),
            ("Rule", RULE[best.admissible], "as the owner of the data said"),
        ]
    masks = {} if best is None else best.configuration.spec()
    text = yaml.safe_dump(masks, sort_keys=False, allow_unicode=True)
    return {
        "title": clean(title, limit=120),
        "label": clean(str(advice.summary["label"])),
        "rows": f"about {advice.summary['rows']:,.0f} labelled rows",
        "best": None if best is None else clean(best.name),
        "masks": [] if best is None else [(clean(a), clean(m)) for a, m in best.declared.items()],
        "figures": figures,
        "warnings": [clean(text, limit=600) for text in advice.warnings],
        "ranking": [
            {
                "rank": place,
                "name": clean(ranked.name),
                "score": measured(ranked.score),
                "stderr": measured(ranked.stderr),
                "kept": percent(ranked.utility_kept),
                "tied": bool(ranked.tied_with_best),
                "rule": RULE[ranked.admissible],
            }
            for place, ranked in enumerate(advice.ranking[:SHOWN], start=1)
        ],
        "more": max(len(advice.ranking) - SHOWN, 0),
        "what_if": [
            {
                "attribute": clean(change.attribute),
                "mask": clean(change.mask),
                "change": measured(change.change),
                "stderr": measured(change.stderr),
                "tied": change.tied,
            }
            for change in advice.what_if
        ],
        "leak": None if audit is None else leak_section(audit.to_dict()),
        "rounds": [
            (clean(r["name"]), measured(r["sensitivity"]), measured(r["sigma"]), measured(r["rho"]))
            for r in protection["rounds"]
        ],
        "yaml": {"text": lines(text), "cut": False, "characters": f"{len(text):,}"},
        "version": __version__,
    }


def _promise(protection: dict[str, Any]) -> str:
    if protection["epsilon"] is None:
        return f"{protection['method']}, threshold {protection['threshold']}; no formal promise"
    return f"epsilon {protection['epsilon']:g} at delta {protection['delta']:g}, per {protection['unit']}"
