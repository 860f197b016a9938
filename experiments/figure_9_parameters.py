"""Figure 9: what the parameters of the procedure do.

- Sweeps and tolerance of IPF: the distance from the truth, the residual and the seconds of the
  paper's one-mask estimate and of all evidence (which needs more than one sweep), on AQ and IN.
- The share of test rows: what the favourite of each score reaches with logistic regression, on AQ.
- The number of random seeds: how far the published score of one configuration moves when only the
  seed of its randomised rounding changes, beside how far it moves between configurations.

    python experiments/figure_9_parameters.py
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from aegis import evaluate
from aegis.advisor import Scorer
from aegis.measures import FALLBACK_MEASURE, MEASURES
from aegis.papers.estimates.deviation import evidence_of
from aegis.papers.evaluation import Reconstructed
from aegis.papers.reconstruction import Evidence, Settings, reconstruct
from common import save_chart, write_csv, write_json
from paper_sets import TITLES, prepare
from paper_sets import outcomes as outcomes_of

NAME = "figure_9_parameters"
SWEEPS = (1, 2, 5, 10, 100, 1000)
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-6, 1e-8)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5)
ROUNDINGS = 20
PLACED = 50
"""Configurations that are trained at each share of test rows."""
FITTED = ("AQ", "IN")


def fitting(name: str) -> list[dict[str, Any]]:
    """Return one row per setting of IPF: medians over masks (one mask) or attributes (all)."""
    attributes = list(prepare(name).summary.attributes.values())
    settings = [("sweeps", n, Settings(tolerance=1e-12, max_sweeps=n)) for n in SWEEPS]
    settings += [("tolerance", t, Settings(tolerance=t, max_sweeps=1000)) for t in TOLERANCES]
    rows = []
    for parameter, value, setting in settings:
        cases: dict[str, list[tuple[Evidence, Any]]] = {"one mask": [], "all evidence": []}
        for attribute in attributes:
            evidence = evidence_of(attribute, "histogram")
            cases["all evidence"].append((evidence, attribute.joint))
            cases["one mask"] += [
                (evidence.only(mask.name), attribute.joint) for mask in evidence.masked
            ]
        for what, listed in cases.items():
            distances, residuals, started = [], [], time.perf_counter()
            for evidence, truth in listed:
                found = reconstruct(evidence, "ipf", settings=setting, truth=truth)
                distances.append(found.total_variation)
                residuals.append(found.residual / truth.sum())
            rows.append(
                {
                    "part": "ipf",
                    "data": name,
                    "what": what,
                    "parameter": parameter,
                    "value": value,
                    "distance": float(np.median(np.array(distances, dtype=float))),
                    "residual": float(np.max(residuals)),
                    "seconds": (time.perf_counter() - started) / len(listed),
                }
            )
    return rows


def splitting(store: str | None) -> list[dict[str, Any]]:
    """Return what favourites reach on AQ at different shares of test rows."""
    prepared = prepare("AQ")
    rows = []
    for share in SHARES:
        found = evaluate(
            prepared.table,
            prepared.policy,
            configurations=prepared.configurations(PLACED, seed=1),
            models=["lr"],
            splits=3,
            test_share=share,
            unmasked=False,
            seed=1,
            store=store,
        )
        rows += [
            {**row, "part": "split", "value": share}
            for row in outcomes_of(found, data="AQ")
            if row["score"] in (FALLBACK_MEASURE, "aegis+1d:mi", "aegis-1d:mi", "sampling:mi")
        ]
    return rows


def rounding(name: str) -> list[dict[str, Any]]:
    """Return the spread of the published score over roundings, and over configurations."""
    prepared = prepare(name)
    scorer, measure = Scorer(prepared.summary), MEASURES.get("mi")
    choices = [scorer.choose(one) for one in prepared.configurations(10, seed=1)]
    rows = []
    for known in (True, False):
        estimator = Reconstructed(histogram=known)
        scores = np.array(
            [
                [
                    estimator.deviation(scorer, choice, [measure], seed=1000 * number + draw)["mi"]
                    for draw in range(ROUNDINGS)
                ]
                for number, choice in enumerate(choices)
            ]
        )
        true = np.array([scorer.score(choice, measure).pud for choice in choices])
        rows.append(
            {
                "part": "rounding",
                "data": name,
                "known": "histogram" if known else "nothing",
                "mean_score": float(scores.mean()),
                "over_roundings": float(scores.std(axis=1, ddof=1).mean()),
                "over_configurations": float(scores.mean(axis=1).std(ddof=1)),
                "true_over_configurations": float(true.std(ddof=1)),
                "true_mean": float(true.mean()),
            }
        )
    return rows


def main(argv: list[str] | None = None) -> None:
    """Vary, measure, and write figures and plot."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", help="finished trainings; the run goes on where it was stopped")
    given = parser.parse_args(argv)
    fitted = [row for name in FITTED for row in fitting(name)]
    rounded = [row for name in FITTED for row in rounding(name)]
    split = splitting(given.store)
    for row in (*fitted, *rounded, *split):
        print(row, flush=True)
    write_csv(NAME, fitted)
    write_json(NAME, {"ipf": fitted, "rounding": rounded, "split": split})
    draw(fitted, split)


def draw(fitted: list[dict[str, Any]], split: list[dict[str, Any]]) -> None:
    """Draw distances over sweeps and tolerance, and accuracies over the share of test rows."""
    import altair

    charts = []
    for parameter in ("sweeps", "tolerance"):
        own = [
            {**row, "line": f"{row['data']}, {row['what']}"}
            for row in fitted
            if row["parameter"] == parameter
        ]
        charts.append(
            altair.Chart(altair.Data(values=own))
            .mark_line(point=True)
            .encode(
                x=altair.X(
                    "value:Q",
                    title=f"IPF: {parameter}",
                    scale=altair.Scale(type="log"),
                    axis=altair.Axis(
                        format="~g" if parameter == "sweeps" else "e",
                        values=list(SWEEPS if parameter == "sweeps" else TOLERANCES),
                    ),
                ),
                y=altair.Y("distance:Q", title="Median distance", scale=altair.Scale(domainMin=0)),
                color=altair.Color("line:N", title=None),
            )
            .properties(width=220, height=180)
        )
    values = [{**row, "line": TITLES[row["score"]], "y": row["reached"]} for row in split]
    values += [
        {**row, "line": "best of 50", "y": row["best_of_all"]}
        for row in split
        if row["score"] == FALLBACK_MEASURE
    ]
    charts.append(
        altair.Chart(altair.Data(values=values))
        .mark_line(point=True)
        .encode(
            x=altair.X("value:Q", title="Share of test rows", axis=altair.Axis(format="%")),
            y=altair.Y("y:Q", title="Accuracy, AQ, LR", scale=altair.Scale(zero=False)),
            color=altair.Color("line:N", title=None),
        )
        .properties(width=220, height=180)
    )
    save_chart(NAME, altair.hconcat(*charts).resolve_scale(color="independent"))


if __name__ == "__main__":
    main()
