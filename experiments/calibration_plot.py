"""Draw what was expected against what logistic regression reached, from the figures of thirteen tables.

    python experiments/calibration_plot.py

Reads `results/shape_of_scores.csv` (325 configurations) and trains nothing. Left the expected AUC of
normal scores, right the one with the shape that label tables tell. Writes `docs/images/calibration.png`
and prints, by panel, the median distance, the largest one and the share within 0.03.
"""

from __future__ import annotations

import csv
from typing import Any

import numpy as np

from common import ROOT, result

PANELS = {
    "normal held-out-auc": "normal scores",
    "held-out-auc": "with the shape of scores (held-out-auc)",
}
"""Columns of the results, and what their panels are called."""
AIM = 0.03
"""Distance at worst that is aimed at."""
TABLES = {
    "attrition": "staff who left",
    "bank": "bank marketing",
    "census": "census",
    "chile": "Chile, 4 classes",
    "churn": "contracts ended",
    "court": "court records",
    "crashes": "crashes",
    "credit": "credit",
    "insurance": "health insurance",
    "lending": "loans",
    "mortgage": "mortgages",
    "remote": "remote work",
    "stroke": "strokes",
}
LOW, HIGH = 0.45, 1.0


def points() -> list[dict[str, Any]]:
    """Return one row per configuration and panel."""
    with result("shape_of_scores.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        {
            "table": TABLES[row["data"]],
            "panel": title,
            "expected": float(row[column]),
            "trained": float(row["trained"]),
        }
        for column, title in PANELS.items()
        for row in rows
    ]


def panel(title: str, rows: list[dict[str, Any]]) -> Any:
    """Return one panel: the points, the diagonal, and lines at the distance aimed at."""
    import altair

    scale = altair.Scale(domain=[LOW, HIGH], nice=False)
    order = altair.Scale(domain=list(TABLES.values()), scheme="tableau20")
    drawn = (
        altair.Chart(altair.Data(values=rows))
        .mark_point(filled=True, size=32, opacity=0.8)
        .encode(
            x=altair.X("expected:Q", title="expected AUC", scale=scale),
            y=altair.Y("trained:Q", title="AUC that logistic regression reached", scale=scale),
            color=altair.Color("table:N", title="table", scale=order),
        )
    )
    lines = [_line(shift, scale) for shift in (-AIM, 0.0, AIM)]
    return altair.layer(*lines, drawn).properties(width=400, height=400, title=title)


def _line(shift: float, scale: Any) -> Any:
    """Return the line of what is reached where it is expected plus a shift."""
    import altair

    ends = [
        {"x": max(LOW, LOW - shift), "y": max(LOW, LOW + shift)},
        {"x": min(HIGH, HIGH - shift), "y": min(HIGH, HIGH + shift)},
    ]
    dash = [1, 0] if shift == 0 else [4, 4]
    return (
        altair.Chart(altair.Data(values=ends))
        .mark_line(color="gray", strokeDash=dash, strokeWidth=1)
        .encode(x=altair.X("x:Q", scale=scale), y=altair.Y("y:Q", scale=scale))
    )


def main() -> None:
    """Draw both panels and print how far they are off."""
    import altair

    rows = points()
    panels = []
    for title in PANELS.values():
        own = [row for row in rows if row["panel"] == title]
        apart = np.abs([row["expected"] - row["trained"] for row in own])
        within = (apart <= AIM).mean()
        print(
            f"{title}: {len(own)} configurations, median {np.median(apart):.4f}, largest"
            f" {apart.max():.4f}, {within:.1%} within {AIM}"
        )
        panels.append(panel(title, own))
    altair.hconcat(*panels).save(ROOT / "docs" / "images" / "calibration.png", scale_factor=1.5)


if __name__ == "__main__":
    main()
