"""Figure 7: how close reconstructions come to the true joint of an attribute and the label.

AQ, IN, HCI and German credit; every attribute under the paper's masks (2 to 5 buckets of equal
width, 1 to 3 digits erased, suppressed). Total variation distance from the truth of

- the paper's estimate: IPF from one mask, in its two settings (histogram known: AEGIS+1D; nothing
  known: AEGIS-1D), before its rounding;
- SAMPLING: one random draw from the values compatible with one mask;
- smooth, one mask: the same evidence, with a smooth curve where that predicts;
- all evidence: all masks of the attribute together;
- smooth, all evidence: the same with the curve.

Every mask of every attribute counts once. Attributes without order have no smooth curve: they keep
the estimate without it.

    python experiments/figure_7_reconstruction.py [--data AQ,IN,HCI,German]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from aegis.papers.estimates.deviation import evidence_of
from aegis.papers.reconstruction import Evidence, Reconstruction, Settings, reconstruct
from aegis.summary import AttributeSummary
from common import save_chart, write_csv, write_json
from paper_sets import prepare

NAME = "figure_7_reconstruction"
PAPER, SAMPLING = "paper, one mask", "SAMPLING, one mask"
SMOOTH_ONE, ALL, SMOOTH_ALL = "smooth, one mask", "all evidence", "smooth, all evidence"
METHODS = (PAPER, SAMPLING, SMOOTH_ONE, ALL, SMOOTH_ALL)
SETTINGS = {"histogram": "histogram known", "nothing": "nothing known"}


def distances(attribute: AttributeSummary, know: str) -> Iterator[dict[str, Any]]:
    """Yield one row per mask: the distance from the truth of every method."""
    evidence = evidence_of(attribute, know)
    ordered = evidence.ordered is not None and evidence.ordered.sum() >= 3
    spent = dict.fromkeys(METHODS, 0.0)
    truth = attribute.joint

    def distance(method: str, work: Callable[[], Reconstruction]) -> float:
        started = time.perf_counter()
        found = work().against(truth).total_variation
        spent[method] = time.perf_counter() - started
        assert found is not None
        return found

    settings = Settings(tolerance=1e-6, max_sweeps=1000)
    every = distance(ALL, lambda: reconstruct(evidence))
    curve = distance(SMOOTH_ALL, lambda: reconstruct(evidence, "smooth")) if ordered else every
    for number, mask in enumerate(evidence.masked):
        one: Evidence = evidence.only(mask.name)
        paper = distance(PAPER, lambda one=one: reconstruct(one, "ipf", settings=settings))
        drawn = distance(
            SAMPLING,
            lambda one=one, number=number: reconstruct(
                one, "sampling", settings=Settings(seed=number)
            ),
        )
        smooth = (
            distance(SMOOTH_ONE, lambda one=one: reconstruct(one, "smooth")) if ordered else paper
        )
        values = dict(zip(METHODS, (paper, drawn, smooth, every, curve), strict=True))
        yield {
            "known": SETTINGS[know],
            "attribute": attribute.name,
            "ordered": ordered,
            "values": len(attribute.values),
            "mask": mask.name,
            "groups": mask.groups,
            **values,
            **{f"seconds, {method}": seconds for method, seconds in spent.items()},
        }


def summary_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return medians per data set and setting, over all masks and over those that show something."""
    found = []
    for name, known in dict.fromkeys((row["data"], row["known"]) for row in rows):
        own = [row for row in rows if (row["data"], row["known"]) == (name, known)]
        telling = [row for row in own if row["ordered"] and row["groups"] > 1]
        for over, chosen in (("all", own), ("ordered, two groups or more", telling)):
            paper = np.array([row[PAPER] for row in chosen])
            for method in METHODS:
                values = np.array([row[method] for row in chosen])
                found.append(
                    {
                        "data": name,
                        "known": known,
                        "over": over,
                        "method": method,
                        "median": float(np.median(values)),
                        "mean": float(values.mean()),
                        "closer_than_paper": float((values < paper - 1e-9).mean()),
                        "farther_than_paper": float((values > paper + 1e-9).mean()),
                        "masks": len(chosen),
                        "median_seconds": float(
                            np.median([row[f"seconds, {method}"] for row in chosen])
                        ),
                    }
                )
    return found


def main(argv: list[str] | None = None) -> None:
    """Reconstruct, compare, and write figures and plot."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="AQ,IN,HCI,German")
    given = parser.parse_args(argv)
    rows: list[dict[str, Any]] = []
    for name in given.data.split(","):
        for attribute in prepare(name).summary.attributes.values():
            for know in SETTINGS:
                rows += ({"data": name, **row} for row in distances(attribute, know))
        for one in summary_of([row for row in rows if row["data"] == name]):
            print(one, flush=True)
    write_csv(NAME, rows)
    write_json(NAME, {"medians": summary_of(rows)})
    draw(rows)


def draw(rows: list[dict[str, Any]]) -> None:
    """Draw the distances of all masks, by data set and setting."""
    import altair

    values = [
        {"data": row["data"], "known": row["known"], "method": method, "distance": row[method]}
        for row in rows
        for method in METHODS
    ]
    chart = (
        altair.Chart(altair.Data(values=values))
        .mark_boxplot(size=12, outliers={"size": 8}, median={"color": "black"})
        .encode(
            x=altair.X(
                "distance:Q",
                title="Total variation distance",
                scale=altair.Scale(domain=[0, 1]),
            ),
            y=altair.Y("method:N", title=None, sort=list(METHODS)),
            color=altair.Color("method:N", legend=None, sort=list(METHODS)),
        )
        .properties(width=190, height=110)
        .facet(
            column=altair.Column("data:N", title=None, sort=None),
            row=altair.Row("known:N", title=None, sort=None),
        )
    )
    save_chart(NAME, chart)


if __name__ == "__main__":
    main()
