"""Render what a file gives away as one HTML file that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aegis
from aegis.report.palette import DARK, HEAT_BOUNDS, LIGHT
from aegis.report.render import environment
from aegis.report.svg import FONT
from aegis.report.words import clean, count


def render_leak(figures: Mapping[str, Any], name: str) -> str:
    """Return the report on an audit, given as its JSON form; the same one gives the same bytes."""
    style = {"light": LIGHT, "dark": DARK, "font": FONT, "bounds": HEAT_BOUNDS}
    context = {
        "title": "What the file gives away",
        "name": clean(name),
        "held": figures.get("held", figures.get("clean")),
        "subject": clean(str(figures.get("subject", figures.get("kind", "")))),
        "cell_parts": [
            (clean(p["part"]), count(p["cells"]), count(p["small"]), count(p["alone"]))
            for p in figures.get("parts", ())
        ],
        "attributes": [
            (
                clean(a["attribute"]),
                *(_told(a[k]) for k in ("named", "rare", "disclosed", "derivable")),
            )
            for a in figures.get("attributes", ())
        ],
        "findings": [
            clean(text, limit=600)
            for text in (
                *figures.get("shortfalls", ()),
                *figures.get("findings", ()),
                *(text for one in figures.get("with", ()) for text in one["findings"]),
            )
        ],
        "version": aegis.__version__,
    }
    return environment().get_template("leak.html.j2").render(context | {"style": style})


def _told(value: int | None) -> str:
    return "not told" if value is None else count(value)
