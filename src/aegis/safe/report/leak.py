"""Render an audit of what a file reveals as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aegis.report.words import clean
from aegis.safe.report.section import leak_section, templates


def render_leak(figures: Mapping[str, Any], name: str) -> str:
    """Return the report on an audit from its JSON form; equal audits give equal bytes."""
    context = {
        "title": "What the file gives away",
        "name": clean(name),
        "leak": leak_section(figures),
    }
    return templates().get_template("leak.html.j2").render(context)
