"""Render the report section on the information that a summary reveals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aegis.report.render import environment
from aegis.report.section import ReportSection
from aegis.report.words import clean, count, measured

if TYPE_CHECKING:
    import jinja2

    from aegis.advisor import Advice
    from aegis.safe.protect import ProtectedSummary
    from aegis.summary import Summary


TITLE = "Only if you pass on a summary file (.aegis)"
"""Title of the section on an unprotected summary; most readers of a report can skip this section.
"""


def templates() -> jinja2.Environment:
    """Return the templates of this package, which extend those of the report."""
    return environment(Path(__file__).parent / "templates")


def summary_section(summary: Summary, advice: Advice) -> ReportSection:  # noqa: ARG001 - of the seam
    """Return the report section on what an exact summary would reveal about rows if it were shared."""
    from aegis.safe.protect import audit_leak

    leak = leak_section(audit_leak(summary).to_dict())
    html = templates().get_template("gives-away.html.j2").render({"leak": leak, "title": TITLE})
    return ReportSection("leak", TITLE, html)


def protected_sections(summary: ProtectedSummary) -> Sequence[ReportSection]:
    """Return the report section on how a summary was protected, and what it still reveals."""
    from aegis.safe.protect import audit_leak

    protection = summary.protection
    html = (
        templates()
        .get_template("protection.html.j2")
        .render(
            level=str(protection.level),
            promise=protection.words(),
            rounds=[
                (clean(r.name), measured(r.sensitivity), measured(r.sigma), measured(r.rho))
                for r in protection.rounds
            ],
            leak=leak_section(audit_leak(summary).to_dict()),
        )
    )
    return (ReportSection("protection", "Protection", html),)


def leak_section(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the JSON form of an audit to the values that templates use."""
    from aegis.safe.protect.documents import document_verdict
    from aegis.safe.protect.leak import part_legend, verdict

    passed, level = figures.get("held", figures.get("clean")), figures.get("demanded")
    return {
        "held": passed,
        "verdict": clean(
            verdict(level, figures.get("exceptions", ""), passed=passed)
            if level
            else document_verdict(figures.get("kind", "file"), passed=bool(passed)),
            limit=600,
        ),
        "legend": part_legend(p["part"] for p in figures.get("parts", ())),
        "subject": clean(str(figures.get("subject", figures.get("kind", "")))),
        "cell_parts": [
            (clean(p["part"]), count(p["cells"]), count(p["small"]), count(p["alone"]))
            for p in figures.get("parts", ())
        ],
        "attributes": [
            (
                clean(a["attribute"]),
                *(
                    "unknown" if a[k] is None else count(a[k])
                    for k in ("named", "rare", "disclosed", "derivable")
                ),
            )
            for a in figures.get("attributes", ())
        ],
        "findings": [
            clean(text, limit=600)
            for text in (
                *figures.get("shortfalls", ()),
                *figures.get("findings", ()),
                *(text for release in figures.get("with", ()) for text in release["findings"]),
            )
        ],
    }


def render_leak(figures: Mapping[str, Any], name: str) -> str:
    """Return the HTML report on the audit `figures` of the file `name`; always the same bytes."""
    context = {
        "title": "What the file gives away",
        "name": clean(name),
        "leak": leak_section(figures),
    }
    return templates().get_template("leak.html.j2").render(context)
