"""A protected number to predict: does the rounding to two bounds, with noise, rank masks as exact R2 does?

    python experiments/protected_numbers.py FOLDER [NAME ...] [--draws 5] [--configurations 50]

FOLDER holds the tables of `numbers_to_predict.py` as CSV files. Of each, random configurations are ranked by
exact held-out R2 on all rows, and by protected summaries: each draw rounds the rows again and adds new
noise. "rounded" is the same without noise: what rounding alone costs.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.stats import spearmanr

import aegis
from aegis.advisor import Scorer, generate
from aegis.measures import get
from aegis.policy import Policy, load_policy
from aegis.safe.protect import Noise, ProtectedScorer
from aegis.safe.protect.model import with_rounded_label
from aegis.safe.protect.noise import protect_with_noise
from aegis.sources import Source, open_table
from common import write_csv
from numbers_to_predict import read

BOUNDS = {
    "adult": [10, 70],
    "CPSSW8": [0, 50],
    "SLID": [0, 50],
    "Star": [400, 620],
    "Wages": [5, 8],
    "Wage": [4, 5.5],
}
"""Declared bounds of the number, chosen before the measurement from what the number means."""
EPSILONS = (1.0, 4.0)
DELTA = 1e-6
STEPS = 16
"""The finest ranges divide a column into about so many."""


def masks(own: pd.Series[Any]) -> list[Any]:
    """Return the candidate masks of a column, none of which learns from the table."""
    if not pd.api.types.is_numeric_dtype(own):
        return ["identity", "suppress"]
    exact = (float(own.max()) - float(own.min())) / STEPS
    width = float(f"{exact:.0e}") or 1.0
    if pd.api.types.is_integer_dtype(own):
        width = max(round(width), 1)
    ranges = [{"bucketize": {"width": width * times}} for times in (1, 2, 4, 8)]
    return [*ranges, "suppress"]


def declared(name: str, table: pd.DataFrame) -> Policy:
    """Return the policy, in which each column is a quasi-identifier."""
    return load_policy(
        {
            "version": 1,
            "label": {"column": "y", "kind": "number", "bounds": BOUNDS[name]},
            "privacy": {"k": 5},
            "attributes": {
                column: {"role": "quasi-identifier", "masks": masks(table[column])}
                for column in table
                if column != "y"
            },
        }
    )


def scores(source: Source, policy: Policy, epsilon: float | None) -> Scorer | ProtectedScorer:
    """Return a scorer of the rounded table, protected by noise if `epsilon` is given."""
    rounded, classes = with_rounded_label(source, policy)
    summary = aegis.summarize(rounded, classes, exact=True)
    if epsilon is None:
        return Scorer(summary)
    noise = Noise(epsilon, DELTA, public=frozenset(summary.attributes))
    return ProtectedScorer(protect_with_noise(summary, noise, classes, source=rounded))


def compared(
    name: str, table: pd.DataFrame, draws: int, configurations: int
) -> Iterator[dict[str, Any]]:
    """Yield Spearman's correlation and the points of R2 lost, by protection and draw."""
    source, policy = open_table(pa.Table.from_pandas(table, preserve_index=False)), None
    policy = declared(name, table)
    summary = aegis.summarize(source, policy, exact=True)
    listed, exact = generate(summary, configurations, seed=1), Scorer(summary)
    r2 = np.array([exact.value(exact.choose(c), get("held-out-r2")) for c in listed])
    for epsilon in (None, *EPSILONS):
        for draw in range(draws):
            scorer = scores(source, policy, epsilon)
            if isinstance(scorer, Scorer):
                measure = get("held-out-target-coded")
                own = np.array([scorer.value(scorer.choose(c), measure) for c in listed])
            else:
                own = np.array([scorer.score(scorer.summary.choose(c)) for c in listed])
            rank = float(spearmanr(r2, own).statistic)
            yield {
                "data": name,
                "rows": len(table),
                "unmasked": exact.value(exact.unmasked, get("held-out-r2")),
                "protection": "rounded" if epsilon is None else f"epsilon {epsilon:g}",
                "draw": draw,
                "spearman": 0.0 if math.isnan(rank) else rank,
                "lost": 100 * float(r2.max() - r2[int(own.argmax())]),
            }


def main(argv: list[str] | None = None) -> None:
    """Measure the tables that are asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", choices=[*BOUNDS, []])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--configurations", type=int, default=50)
    given = parser.parse_args(argv)
    every: list[dict[str, Any]] = []
    for name in given.names or BOUNDS:
        table = read(given.folder, name, given.rows, 0)
        every += compared(name, table, given.draws, given.configurations)
        for protection in ("rounded", *(f"epsilon {e:g}" for e in EPSILONS)):
            own = [r for r in every if (r["data"], r["protection"]) == (name, protection)]
            rank, lost = (float(np.mean([r[key] for r in own])) for key in ("spearman", "lost"))
            least = min(r["spearman"] for r in own)
            print(
                f"{name:8s} {len(table):6d} {protection:10s} Spearman {rank:.2f} (least {least:.2f}), "
                f"{lost:.2f} points lost",
                flush=True,
            )
    write_csv("protected_numbers", every)


if __name__ == "__main__":
    main()
