"""Figure 7 by configuration: box plots over 50 configurations, as the AEGIS paper has them.

The distance of a configuration is not defined in the paper (its section 5.3 defines that of two
distributions), so three readings stand beside each other: the mean over the attributes, the mean
over those that the configuration masks, and the largest. In the published setting the estimate is
rounded at random, so it is taken after rounding. SAMPLING is read in two ways: values are drawn
from those that occur (as everywhere here), or, where the attribute is a number, from the whole
range of the masked value in steps of the file's precision, whether the values occur or not. An
estimate that knows nothing, all cells alike, says how far from the truth a distance can reasonably be.

    python experiments/figure_7_configurations.py [--data AQ,AQ-paper,IN,HCI]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.advisor import Scorer
from aegis.papers.evaluation import Reconstructed
from aegis.papers.reconstruction import total_variation
from aegis.summary import AttributeSummary, Candidate
from common import add_csv, write_json
from paper_sets import prepare

NAME = "figure_7_configurations"
COUNT = 50
ESTIMATES = {
    "AEGIS+1D": Reconstructed(histogram=True),
    "AEGIS-1D": Reconstructed(histogram=False),
    "SAMPLING, values that occur": Reconstructed(histogram=False, sampled=True),
}
RANGES = "SAMPLING, whole range"
UNIFORM = "all cells alike"
"""Knows nothing, not even the label: the farthest that an estimate has a reason to be."""
READINGS = ("mean", "mean of masked", "largest")


def range_draw(
    attribute: AttributeSummary, candidate: Candidate, seed: int
) -> tuple[npt.NDArray[np.float64], float] | None:
    """Return the counts (V, C) that a draw from whole ranges puts on values that occur, and the rest.

    None for an attribute without order. A masked value stands for every step between the smallest
    and the largest value behind it; the step is the smallest difference of two values.
    """
    values = np.array([v for v in attribute.values if v is not None], dtype=object)
    if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
        return None
    ordered = np.array([np.nan if v is None else float(v) for v in attribute.values])
    there = np.flatnonzero(~np.isnan(ordered))
    known = np.sort(ordered[there])
    if len(known) < 2:
        return None
    step = float(np.diff(known).min())
    random = np.random.default_rng(seed)
    drawn = np.zeros(attribute.joint.shape)
    missed = 0.0
    for group in np.unique(candidate.groups):
        inside = np.flatnonzero(candidate.groups == group)
        rows = attribute.joint[inside].sum(axis=0)
        numbers = ordered[inside]
        if np.isnan(numbers).any() or len(inside) == 1:
            drawn[inside[0]] += rows
            continue
        steps = round((numbers.max() - numbers.min()) / step) + 1
        place = np.round((numbers - numbers.min()) / step).astype(np.int64)
        at = dict(zip(place.tolist(), inside.tolist(), strict=True))
        for label, count in enumerate(rows.tolist()):
            for one in random.integers(0, steps, int(count)).tolist():
                if one in at:
                    drawn[at[one], label] += 1
                else:
                    missed += 1
    return drawn, missed


def distance_of_range_draw(attribute: AttributeSummary, candidate: Candidate, seed: int) -> float:
    """Return the distance of the truth from a draw from whole ranges (else from values)."""
    found = range_draw(attribute, candidate, seed)
    if found is None:
        drawn = ESTIMATES["SAMPLING, values that occur"].table(attribute, candidate, seed)
        return total_variation(drawn, attribute.joint)
    drawn, missed = found
    rows = attribute.joint.sum()
    return float((np.abs(drawn - attribute.joint).sum() + missed) / 2 / rows)


def distances(name: str) -> list[dict[str, Any]]:
    """Return one row per configuration and estimate, with the three readings."""
    prepared = prepare(name)
    scorer = Scorer(prepared.summary)
    known: dict[Any, float] = {}

    def distance(estimate: str, attribute: AttributeSummary, candidate: Candidate) -> float:
        key = (estimate, attribute.name, candidate)
        if key not in known:
            if estimate == UNIFORM:
                known[key] = total_variation(np.ones(attribute.joint.shape), attribute.joint)
            elif estimate == RANGES:
                known[key] = distance_of_range_draw(attribute, candidate, len(known))
            else:
                table = ESTIMATES[estimate].table(attribute, candidate, len(known))
                known[key] = total_variation(table, attribute.joint)
        return known[key]

    rows = []
    for one in prepared.configurations(COUNT, seed=1):
        choice = scorer.choose(one)
        for estimate in (*ESTIMATES, RANGES, UNIFORM):
            values, masked = [], []
            for attribute in prepared.summary.attributes.values():
                candidate = choice[attribute.name]
                values.append(distance(estimate, attribute, candidate))
                if candidate.size < len(attribute.values):
                    masked.append(values[-1])
            figures = (np.mean(values), np.mean(masked) if masked else 0.0, max(values))
            rows.append(
                {"data": name, "configuration": one.name, "estimate": estimate}
                | dict(zip(READINGS, map(float, figures), strict=True))
            )
    return rows


def quartiles(rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Return the three quartiles of each reading over the configurations."""
    keys = dict.fromkeys((row["data"], row["estimate"]) for row in rows)
    return [
        {
            "data": data,
            "estimate": estimate,
            **{
                reading: [
                    round(float(q), 3)
                    for q in np.percentile(
                        [
                            float(row[reading])
                            for row in rows
                            if (row["data"], row["estimate"]) == (data, estimate)
                        ],
                        (25, 50, 75),
                    )
                ]
                for reading in READINGS
            },
        }
        for data, estimate in keys
    ]


def main(argv: list[str] | None = None) -> None:
    """Reconstruct, compare and write; data sets done before are kept."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="AQ,AQ-paper,IN,HCI,HCI-paper")
    for name in parser.parse_args(argv).data.split(","):
        rows = add_csv(NAME, distances(name))
        print(*quartiles([row for row in rows if row["data"] == name]), sep="\n", flush=True)
        write_json(NAME, {"count": COUNT, "quartiles": quartiles(rows)})


if __name__ == "__main__":
    main()
