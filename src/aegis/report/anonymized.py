"""Write the report on a record-level release, as one HTML file without external resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from aegis.report import charts
from aegis.report.render import draw_twice, environment, histogram_drawing
from aegis.report.sections import LOSSES, options_text, privacy_section
from aegis.report.words import clean, count, lines, measured, percent, rows, share

if TYPE_CHECKING:
    from aegis.privacy import PrivacyReport
    from aegis.release import AnonymizedRelease


def render_anonymized(
    release: AnonymizedRelease,
    *,
    before: PrivacyReport | None,
    title: str = "Record-level release",
) -> str:
    """Return the report on a record-level release as HTML. If the method compared several settings
    (MO-OBAM), the report also shows its Pareto front.

    The page loads no external resources. The same release gives the same bytes, except for the
    seconds that the grouping took.

    Parameters
    ----------
    release
        The checked release.
    before
        Privacy of the unmasked table. If None, the report lacks these figures.
    title
        The report's heading as plain text.
    """
    context = _context(release, before, title)
    drawings = {"histogram": histogram_drawing(context["privacy"])}
    if release.front:
        points = [
            {"loss": point.information_loss, "entropy": point.entropy, "efficient": point.efficient}
            for point in release.front
        ]
        drawings["tradeoff"] = draw_twice(
            "tradeoff",
            "Information loss against diversity",
            "One point per setting; the table below it holds the same figures.",
            lambda width: charts.tradeoff_chart(points, width),
        )
    template = environment().get_template("anonymized.html.j2")
    return template.render(context | {"drawings": drawings})


def _context(
    release: AnonymizedRelease, before: PrivacyReport | None, title: str
) -> dict[str, Any]:
    grouped, audit = release.grouped, release.audit
    utility = release.utility
    figures = [
        ("Smallest class", count(audit.report.k), f"{count(before.k)} before" if before else ""),
        ("Groups", count(len(grouped.groups)), f"k = {grouped.options.k} asked for"),
        (
            "Rows suppressed",
            share(release.suppressed_rows, release.rows),
            f"{count(release.suppressed_rows)} of {rows(release.rows)}",
        ),
        ("IL, scaled", measured(grouped.loss.scaled), "0: nothing lost; 1: one group"),
    ]
    if utility is not None:
        figures.append(("Utility kept", percent(utility.utility_kept), utility.basis))
    criteria = audit.rule.criteria if audit.rule else ()
    recipe = yaml.safe_dump(release.recipe.to_dict(), sort_keys=False, allow_unicode=True)
    return {
        "title": clean(title, limit=120),
        "rows": rows(release.rows),
        "method": clean(release.recipe.method),
        "summary": clean(release.recipe.anonymizer.summary),
        "reference": clean(release.recipe.anonymizer.reference),
        "options": options_text(release.recipe),
        "criteria": [clean(str(criterion)) for criterion in criteria],
        "claims": release.claims,
        "figures": figures,
        "losses": LOSSES,
        "loss": grouped.loss,
        "notes": list(release.notes),
        "privacy": privacy_section(before, audit.report, admissible=True),
        "tradeoff": release.front,
        "recipe": {"text": lines(recipe), "cut": False, "characters": count(len(recipe))},
        "seconds": f"{grouped.seconds:.2f}",
    }
