"""Figures 5a-c and 8a by measure: processor time of the published procedure, one measure at a time.

For AQ, IN and HCI and each of mutual information, chi-square and g3: summarise the table, then per
configuration IPF from uniform (at most 1,000 sweeps, tolerance 1e-6), randomised rounding and that
one measure, every configuration afresh; with the histogram (AEGIS+1D), without (AEGIS-1D), and
SAMPLING. The time of the summary is the same for all and stands apart.

    python experiments/figure_8a_time.py [--data AQ,AQ-paper,IN,HCI,HCI-paper]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from aegis.advisor import Scorer
from aegis.measures import MEASURES
from aegis.papers.evaluation import Reconstructed
from aegis.summary import summarize
from common import add_csv
from paper_sets import PUBLISHED_MEASURES, prepare

NAME = "figure_8a_time"
COUNT = 50
SETTINGS: dict[str, dict[str, bool]] = {
    "AEGIS+1D": {"histogram": True},
    "AEGIS-1D": {"histogram": False},
    "SAMPLING": {"histogram": False, "sampled": True},
}


def times(name: str) -> list[dict[str, Any]]:
    """Return processor seconds by setting and measure."""
    prepared = prepare(name)
    started = time.process_time()
    summary = summarize(prepared.table, prepared.policy, seed=1)
    summarising = time.process_time() - started
    scorer = Scorer(summary)
    choices = [scorer.choose(one) for one in prepared.configurations(COUNT, seed=1)]
    rows = []
    for setting, options in SETTINGS.items():
        for measure in PUBLISHED_MEASURES:
            started = time.process_time()
            for number, choice in enumerate(choices):
                # A new estimator each time: the published procedure keeps nothing between them.
                Reconstructed(**options).deviation(
                    scorer, choice, [MEASURES.get(measure)], seed=number
                )
            rows.append(
                {
                    "data": name,
                    "setting": setting,
                    "measure": measure,
                    "summary_seconds": round(summarising, 3),
                    "estimate_seconds": round(time.process_time() - started, 3),
                }
            )
            print(rows[-1], flush=True)
    return rows


def main(argv: list[str] | None = None) -> None:
    """Measure and write; data sets measured before are kept."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="AQ,AQ-paper,IN,HCI,HCI-paper")
    names = parser.parse_args(argv).data.split(",")
    prepare(names[0])  # the first call loads what the others use
    for name in names:
        add_csv(NAME, times(name))


if __name__ == "__main__":
    main()
