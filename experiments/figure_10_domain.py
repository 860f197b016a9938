"""Figure 10: how far generalisation and the size of the domain matter.

- Generalisation: every numeric attribute of AQ, IN and HCI cut into 2 to 50 buckets of equal width:
  the median distance from the true joint of the paper's one-mask estimate (histogram known or not)
  and of the smooth one, and the mutual information that the buckets keep.
- Domain: an attribute of 12 to 12,000 values and two classes (a seeded sample of two overlapping
  bells, 20 rows a value) in 20 buckets: the distance, and the time of the paper's estimate. The
  paper names about 120 s for its whole experiment at 1,200 values and two classes.

    python experiments/figure_10_domain.py [--data AQ,IN,HCI]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.measures import MEASURES, Contingency
from aegis.papers.reconstruction import Evidence, MaskedJoint, Settings, reconstruct
from aegis.papers.reconstruction.evidence import aggregate
from common import save_chart, write_csv, write_json
from paper_sets import prepare

NAME = "figure_10_domain"
BUCKETS = (2, 3, 5, 10, 20, 50)
DOMAINS = (12, 120, 1200, 12_000)
PUBLISHED = Settings(tolerance=1e-6, max_sweeps=1000)
LINES = ("paper, nothing known", "paper, histogram known", "smooth, histogram known")

Floats = npt.NDArray[np.float64]


def buckets(numbers: Floats, count: int) -> npt.NDArray[np.int64]:
    """Return the bucket of equal width of each value; null apart."""
    known = np.isfinite(numbers)
    low, high = numbers[known].min(), numbers[known].max()
    share = (numbers[known] - low) / max(high - low, 1e-300)
    codes = np.full(len(numbers), count, dtype=np.int64)
    codes[known] = np.minimum((share * count).astype(np.int64), count - 1)
    _, dense = np.unique(codes, return_inverse=True)
    return dense.astype(np.int64)


def compare(truth: Floats, codes: npt.NDArray[np.int64], ordered: Any) -> dict[str, float]:
    """Return the distance of the three estimates from the truth, and the seconds of the paper's."""
    joint = aggregate(codes, truth, int(codes.max()) + 1)
    masked = (MaskedJoint("equal width", codes, joint),)
    found: dict[str, float] = {}
    for line, method in zip(LINES, ("ipf", "ipf", "smooth"), strict=True):
        known = truth.sum(axis=1) if "histogram" in line else None
        evidence = Evidence(*truth.shape, masked, known, ordered=ordered)
        started = time.perf_counter()
        result = reconstruct(evidence, method, settings=PUBLISHED, truth=truth)
        found[f"seconds, {line}"] = time.perf_counter() - started
        assert result.total_variation is not None
        found[line] = result.total_variation
    information = MEASURES.get("mi")
    found["kept"] = information(Contingency.of(joint.astype(np.int64)))
    found["whole"] = information(Contingency.of(truth.astype(np.int64)))
    return found


def generalisation(name: str) -> list[dict[str, Any]]:
    """Return one row per numeric attribute and number of buckets."""
    rows = []
    for attribute in prepare(name).summary.attributes.values():
        numbers = attribute.numbers
        if numbers is None or np.isfinite(numbers).sum() < 3:
            continue
        for count in BUCKETS:
            found = compare(
                attribute.joint.astype(np.float64), buckets(numbers, count), np.isfinite(numbers)
            )
            rows.append({"data": name, "attribute": attribute.name, "buckets": count, **found})
    return rows


def domains() -> list[dict[str, Any]]:
    """Return one row per size of the domain."""
    rows = []
    for size in DOMAINS:
        generator = np.random.default_rng(size)
        place = np.arange(size) / size
        shares = np.stack([np.exp(-0.5 * ((place - c) / 0.15) ** 2) for c in (0.35, 0.6)], axis=1)
        truth = generator.poisson(shares / shares.sum() * 20 * size).astype(np.float64)
        codes = np.minimum((place * 20).astype(np.int64), 19)
        _, codes = np.unique(codes, return_inverse=True)
        found = compare(truth, codes.astype(np.int64), np.ones(size, dtype=bool))
        rows.append({"values": size, "classes": 2, **found})
    return rows


def medians(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the medians over attributes."""
    found = []
    for key in dict.fromkeys((row["data"], row["buckets"]) for row in rows):
        own = [row for row in rows if (row["data"], row["buckets"]) == key]
        kept = [row["kept"] / row["whole"] for row in own if row["whole"] > 1e-9]
        found.append(
            {
                "data": key[0],
                "buckets": key[1],
                **{line: float(np.median([row[line] for row in own])) for line in LINES},
                "information_kept": float(np.median(kept)),
            }
        )
    return found


def main(argv: list[str] | None = None) -> None:
    """Vary, measure, and write figures and plot."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="AQ,IN,HCI")
    given = parser.parse_args(argv)
    rows = [row for name in given.data.split(",") for row in generalisation(name)]
    middle, sizes = medians(rows), domains()
    for row in (*middle, *sizes):
        print(row, flush=True)
    write_csv(NAME, rows)
    write_json(NAME, {"generalisation": middle, "domain": sizes})
    draw(middle, sizes)


def draw(middle: list[dict[str, Any]], sizes: list[dict[str, Any]]) -> None:
    """Draw distances over buckets, and seconds over the size of the domain."""
    import altair

    colour = altair.Color("line:N", title=None, sort=list(LINES))
    values = [
        {"data": r["data"], "x": r["buckets"], "line": line, "y": r[line]}
        for r in middle
        for line in LINES
    ]
    charts = [
        altair.Chart(altair.Data(values=[v for v in values if v["data"] == name]))
        .mark_line(point=True)
        .encode(
            x=altair.X(
                "x:Q",
                title="Buckets",
                scale=altair.Scale(type="log"),
                axis=altair.Axis(values=list(BUCKETS)),
            ),
            y=altair.Y("y:Q", title="Median distance", scale=altair.Scale(domain=[0, 1])),
            color=colour,
        )
        .properties(width=170, height=170, title=name)
        for name in dict.fromkeys(v["data"] for v in values)
    ]
    spent = [
        {"x": r["values"], "line": line, "y": 1000 * r[f"seconds, {line}"]}
        for r in sizes
        for line in LINES
    ]
    charts.append(
        altair.Chart(altair.Data(values=spent))
        .mark_line(point=True)
        .encode(
            x=altair.X(
                "x:Q",
                title="Values of the attribute",
                scale=altair.Scale(type="log"),
                axis=altair.Axis(values=list(DOMAINS)),
            ),
            y=altair.Y(
                "y:Q",
                title="Milliseconds (log)",
                scale=altair.Scale(type="log"),
                axis=altair.Axis(values=[0.1, 1, 10, 100, 1000]),
            ),
            color=colour,
        )
        .properties(width=170, height=170, title="Time, two classes")
    )
    save_chart(NAME, altair.hconcat(*charts))


if __name__ == "__main__":
    main()
