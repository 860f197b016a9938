"""Would a search see rare classes better by Pillai's trace of rows that are weighted by class?

The trace of a population in which each row of class y counts w_y is bounded as the plain one is, so
that it could be searched exactly. Weights are (rows / rows of the class) ** e: none at e = 0, all
classes alike at e = 1. The adjusted form takes the rows for the number of equal rows that tell as
much (Kish, Survey Sampling, 1965, section 11.7). The tables, configurations and trained models are
those of `selection_public.py`.

    AEGIS_RDATASETS=FOLDER python experiments/balanced_trace.py --stores FOLDER
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.advisor import Choice, Scorer
from aegis.advisor.encodings import stacked_grouping
from aegis.measures import MEASURES, pillai_trace
from aegis.summary import PairCounts
from common import write_csv, write_json
from public_sets import CONFIRMATION
from selection_public import judged, means, prepared, trained

NAME = "balanced_trace"
EXPONENTS = (0.25, 0.5, 0.75, 1.0)
BESIDE = ("adjusted-pillai", "held-out-pillai", "held-out-auc")


class Balanced:
    """The adjusted trace of rows that are weighted by class.

    Parameters
    ----------
    pairs
        Co-occurrence counts between atoms.
    exponent
        e of the weights.
    """

    def __init__(self, pairs: PairCounts, exponent: float) -> None:
        rows = pairs.atom_counts[0].sum(axis=0).astype(np.float64)
        weights = np.where(rows > 0, np.maximum(rows, 1.0) ** -exponent, 0.0)
        weights *= rows.sum() / (weights * rows).sum()
        self._rows = rows.sum()
        self._equal_rows = rows.sum() ** 2 / (weights**2 * rows).sum()
        self._classes = int((rows > 0).sum())
        self._names = pairs.names
        self._weighted = _weighted(pairs, weights)

    def __call__(self, choice: Choice) -> float:
        """Return the score of a configuration."""
        grouping, offsets = stacked_grouping([choice[name].levels for name in self._names])
        total = (grouping.T @ self._weighted.total) @ grouping
        total = total.toarray() if hasattr(total, "toarray") else total
        joint = grouping.T @ self._weighted.stacked_joint
        fit = pillai_trace(total, joint, self._rows, offsets)
        freedom, limit = self._equal_rows - fit.rank - 1, self._classes - 1
        if freedom <= 0:
            return 0.0
        return fit.trace - (1 - fit.trace / limit) * fit.rank * limit / freedom


def _weighted(pairs: PairCounts, weights: npt.NDArray[np.float64]) -> PairCounts:
    count = {
        pair: rows * weights[pairs.index[pair] % pairs.classes]
        for pair, rows in pairs.count.items()
    }
    atom_counts = tuple(joint * weights for joint in pairs.atom_counts)
    return replace(pairs, atom_counts=atom_counts, count=count, folds=None)


def main(argv: list[str] | None = None) -> None:
    """Score, compare, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=",".join(CONFIRMATION))
    parser.add_argument("--stores", type=Path, help="folder of finished trainings")
    given = parser.parse_args(argv)
    rows: list[dict[str, Any]] = []
    for name in given.data.split(","):
        summary, coded, choices = prepared(name)
        path = None if given.stores is None else given.stores / f"store_{name}.jsonl"
        values = trained(coded, choices, path)
        scorer = Scorer(summary)
        scores = {
            measure: {n: scorer.value(c, MEASURES.get(measure)) for n, c in choices.items()}
            for measure in BESIDE
        }
        for exponent in EXPONENTS:
            score = Balanced(summary.pairs, exponent)
            scores[f"balanced, e = {exponent}"] = {n: score(c) for n, c in choices.items()}
        rows += judged(name, scores, values)
        print(name, flush=True)
    write_csv(NAME, rows)
    write_json(NAME, {"means": means(rows)})


if __name__ == "__main__":
    main()
