"""Figure 9 as the AEGIS paper designs it: does the estimate change with what it is given?

The change of the estimated deviation (mean over 50 configurations of the paper's generator, under
mutual information, chi-square and g3) against that of the full data set when

- only 25, 50 or 75 % of the attributes are there (a-c),
- the mean is over the first 20, 30 or 40 of the configurations only (d-f),
- only 25, 50 or 75 % of the rows are there (g-i; summarised anew, masks with edges of their own).

Three estimates: the published one before its randomised rounding, the same after it, and the true
deviation, which an estimate would have to follow. Beside them, by rows, the default score of Aegis:
how far it moves, how the ranking correlates with that of all rows, and what its favourite loses.

    python experiments/figure_9_as_designed.py [--data AQ,AQ-paper,IN,HCI,HCI-paper]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from aegis.advisor import Scorer
from aegis.measures import FALLBACK_MEASURE, MEASURES
from aegis.papers.evaluation.result import spearman
from common import add_csv, write_json
from mask_estimates import MEASURED, MaskEstimates
from paper_sets import prepare

NAME = "figure_9_as_designed"
COUNT = 50
SHARES = (0.25, 0.5, 0.75)
CONFIGURATIONS = (20, 30, 40)
WHAT = ("before", "rounded", "true")


def changes(
    full: dict[Any, list[float]], part: dict[Any, list[float]], **facts: Any
) -> list[dict[str, Any]]:
    """Return one row per measure: |mean of the part - mean of the full| of each estimate."""
    return [
        {
            **facts,
            "measure": name,
            **{
                what: abs(float(np.mean(part[what, name]) - np.mean(full[what, name])))
                for what in WHAT
            },
        }
        for name in MEASURED
    ]


def listed(choices: Any, *, names: Any = None, known: MaskEstimates) -> Any:
    """Return the deviations of all configurations by estimate and measure."""
    found = [known.deviations(choice, names) for choice in choices]
    return {key: [one[key] for one in found] for key in found[0]}


def of_data(name: str, histogram: bool) -> list[dict[str, Any]]:
    """Return the changes on one data set, in one of the paper's settings."""
    prepared = prepare(name)
    scorer = Scorer(prepared.summary)
    known = MaskEstimates(scorer, histogram=histogram)
    choices = [scorer.choose(one) for one in prepared.configurations(COUNT, seed=1)]
    full = listed(choices, known=known)
    facts = {"data": name, "known": "histogram" if histogram else "nothing"}
    rows = []
    order = np.random.default_rng(1).permutation(list(prepared.summary.attributes))
    for share in SHARES:
        names = set(order[: max(1, round(share * len(order)))].tolist())
        part = listed(choices, names=names, known=known)
        rows += changes(full, part, **facts, parameter="attributes", value=share)
    for count in CONFIGURATIONS:
        part = {key: values[:count] for key, values in full.items()}
        rows += changes(full, part, **facts, parameter="configurations", value=count)
    for share in SHARES:
        fewer = prepare(name, rows=round(share * prepared.table.num_rows))
        own = Scorer(fewer.summary)
        picked = [own.choose(one) for one in fewer.configurations(COUNT, seed=1)]
        part = listed(picked, known=MaskEstimates(own, histogram=histogram))
        rows += changes(full, part, **facts, parameter="rows", value=share)
    return rows


def scores(name: str) -> list[dict[str, Any]]:
    """Return how the default score and its ranking move with the rows."""
    measure = MEASURES.get(FALLBACK_MEASURE)

    def scored(rows: int | None) -> list[float]:
        prepared = prepare(name, rows=rows)
        scorer = Scorer(prepared.summary)
        drawn = prepared.configurations(COUNT, seed=1)
        return [scorer.value(scorer.choose(one), measure) for one in drawn]

    full = scored(None)
    size = prepare(name).table.num_rows
    rows = []
    for share in SHARES:
        part = scored(round(share * size))
        rows.append(
            {
                "data": name,
                "share": share,
                "mean_change": float(np.abs(np.subtract(part, full)).mean()),
                "spearman": spearman(part, full),
                "favourite_loses": max(full) - full[int(np.argmax(part))],
                "best": max(full),
            }
        )
    return rows


def main(argv: list[str] | None = None) -> None:
    """Vary, measure and write; data sets done before are kept."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="AQ,AQ-paper,IN,HCI,HCI-paper")
    given = parser.parse_args(argv)
    for name in given.data.split(","):
        rows = add_csv(NAME, [row for known in (True, False) for row in of_data(name, known)])
        ranked = add_csv(f"{NAME}_ranking", scores(name))
        print(*ranked[-len(SHARES) :], *largest(rows), sep="\n", flush=True)
        write_json(NAME, {"count": COUNT, "largest": largest(rows)})


def largest(rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Return the largest change of each estimate by data set, parameter and measure."""
    keys = dict.fromkeys((row["data"], row["parameter"], row["measure"]) for row in rows)
    return [
        {
            **dict(zip(("data", "parameter", "measure"), key, strict=True)),
            **{
                what: max(
                    float(row[what])
                    for row in rows
                    if (row["data"], row["parameter"], row["measure"]) == key
                )
                for what in WHAT
            },
        }
        for key in keys
    ]


if __name__ == "__main__":
    main()
