"""Render an audit of what a file reveals as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aegis._version import __version__
from aegis.report.palette import DARK, HEAT_BOUNDS, LIGHT
from aegis.report.svg import FONT
from aegis.report.words import clean
from aegis.safe.report.section import leak_section, templates


def render_leak(figures: Mapping[str, Any], name: str) -> str:
    """Return the report on an audit from its JSON form; equal audits give equal bytes."""
    style = {"light": LIGHT, "dark": DARK, "font": FONT, "bounds": HEAT_BOUNDS}
    context = {
        "title": "What the file gives away",
        "name": clean(name),
        "version": __version__,
        "leak": leak_section(figures),
    }
    return templates().get_template("leak.html.j2").render(context | {"style": style})
