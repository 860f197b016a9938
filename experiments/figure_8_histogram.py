"""Figure 8: what it is worth to know the histogram.

AQ, IN and HCI, 50 configurations of the paper's generator. The absolute deviation (mean over
attributes of |MI of the original - MI of the masked attribute|) that is estimated when the
histograms are known, and when nothing is:

- the published procedure, AEGIS+1D and AEGIS-1D, rounding included;
- Aegis, from all masks of an attribute together (`estimate_pud`), with the interval that holds
  whatever the raw joint is.

Reported: the mean error against the true deviation, how often the interval holds it and how wide
it is, and the rank correlation with the truth. The ranking of the default measure needs neither
(Theorem 2), so it stands beside as the one that does not change.

    python experiments/figure_8_histogram.py [--data AQ,IN,HCI] [--count 50]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from aegis.advisor import Scorer
from aegis.measures import FALLBACK_MEASURE, MEASURES
from aegis.papers.estimates.deviation import estimate_pud
from aegis.papers.evaluation import Reconstructed
from aegis.papers.evaluation.result import spearman
from common import save_chart, write_csv, write_json
from paper_sets import prepare

NAME = "figure_8_histogram"
PUBLISHED = {"histogram": "AEGIS+1D", "nothing": "AEGIS-1D"}
SETTINGS = {"histogram": "histogram known", "nothing": "nothing known"}


def estimates(name: str, count: int) -> list[dict[str, Any]]:
    """Return one row per configuration and setting: true, published and our estimate."""
    prepared = prepare(name)
    scorer, measure = Scorer(prepared.summary), MEASURES.get("mi")
    listed = prepared.configurations(count, seed=1)
    choices = {one.name: scorer.choose(one) for one in listed}
    true = {key: scorer.score(choice, measure).pud for key, choice in choices.items()}
    rows = []
    for know, title in SETTINGS.items():
        published = Reconstructed(histogram=know == "histogram")
        ours = estimate_pud(prepared.summary, listed, measure="mi", know=know)
        for number, one in enumerate(ours):
            assert one.interval is not None
            key = one.configuration
            rounded = published.deviation(scorer, choices[key], [measure], seed=number)["mi"]
            rows.append(
                {
                    "data": name,
                    "known": title,
                    "configuration": key,
                    "true": true[key],
                    "published": rounded,
                    "aegis": one.pud,
                    "low": one.interval[0],
                    "high": one.interval[1],
                    "score": scorer.value(choices[key], MEASURES.get(FALLBACK_MEASURE)),
                }
            )
    return rows


def summary_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the errors and correlations per data set and setting."""
    found = []
    for name, known in dict.fromkeys((row["data"], row["known"]) for row in rows):
        own = [row for row in rows if (row["data"], row["known"]) == (name, known)]
        column = {key: np.array([row[key] for row in own]) for key in own[0] if key in FIGURES}
        true = column["true"]
        inside = (column["low"] <= true + 1e-9) & (true <= column["high"] + 1e-9)
        found.append(
            {
                "data": name,
                "known": known,
                "mean_true": float(true.mean()),
                **{
                    f"error_{key}": float(np.abs(column[key] - true).mean())
                    for key in ("published", "aegis")
                },
                **{
                    f"spearman_{key}": spearman(column[key].tolist(), true.tolist())
                    for key in ("published", "aegis")
                },
                "spearman_default_score": spearman((-column["score"]).tolist(), true.tolist()),
                "interval_holds": float(inside.mean()),
                "interval_width": float((column["high"] - column["low"]).mean()),
            }
        )
    return found


FIGURES = ("true", "published", "aegis", "low", "high", "score")


def main(argv: list[str] | None = None) -> None:
    """Estimate, compare, and write figures and plot."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="AQ,IN,HCI")
    parser.add_argument("--count", type=int, default=50)
    given = parser.parse_args(argv)
    rows: list[dict[str, Any]] = []
    for name in given.data.split(","):
        rows += estimates(name, given.count)
        print(summary_of([row for row in rows if row["data"] == name]), flush=True)
    write_csv(NAME, rows)
    write_json(NAME, {"count": given.count, "summary": summary_of(rows)})
    draw(rows)


def draw(rows: list[dict[str, Any]]) -> None:
    """Draw estimated against true deviations; the diagonal is a perfect estimate."""
    import altair

    values = [
        {
            "data": row["data"],
            "true": row["true"],
            "who": what,
            "known": row["known"],
            "value": row[key],
        }
        for row in rows
        for key, what in (("published", "published procedure"), ("aegis", "Aegis, all masks"))
    ]
    charts = []
    for name in dict.fromkeys(row["data"] for row in rows):
        own = [value for value in values if value["data"] == name]
        most = max(value["true"] for value in own)
        ends = [{"true": 0, "value": 0}, {"true": most, "value": most}]
        line = altair.Chart(altair.Data(values=ends)).mark_line(color="#999999", strokeDash=[4, 3])
        points = altair.Chart(altair.Data(values=own)).mark_point(size=40, opacity=0.9)
        layers = altair.layer(
            line.encode(x="true:Q", y="value:Q"),
            points.encode(
                x=altair.X("true:Q", title="True deviation of MI, bits"),
                y=altair.Y("value:Q", title="Estimated, bits"),
                color=altair.Color("who:N", title=None, legend=altair.Legend(orient="bottom")),
                shape=altair.Shape("known:N", title=None, legend=altair.Legend(orient="bottom")),
            ),
        )
        charts.append(layers.properties(width=230, height=200, title=name))
    save_chart(NAME, altair.hconcat(*charts))


if __name__ == "__main__":
    main()
