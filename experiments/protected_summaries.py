"""How well does a protected summary rank?

For each data set: 50 random configurations, and the 50 best admissible of 1,500 (near ties), scored by
exact counts and from protected summaries. Spearman's correlation with the exact score, and what the
choice of the protected ranking loses, in percent of the best. Adult has its example policy, FARS the one
that `aegis.init_policy` proposes; the others, for which it proposes no mask, have those of the AEGIS paper.

    python experiments/protected_summaries.py --draws 10 --sets adult
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import spearmanr

import aegis
from aegis.advisor import PrivacyPlan, Scorer, generate
from aegis.measures import DEFAULT_MEASURE, SEARCHED_MEASURE, get
from aegis.policy import Configuration, Policy
from aegis.protect import Method, Noise, Perturbation, ProtectedScorer, ProtectedSummary
from aegis.protect.counts import protect_counts
from aegis.protect.derive import derivable_cells
from aegis.protect.noise import protect_with_noise
from aegis.sources import Source, open_table
from common import ADULT, ROOT, data, write_csv
from paper_sets import prepare

MEASURES = (DEFAULT_MEASURE, SEARCHED_MEASURE, "target-coded")
EPSILONS = (0.5, 1.0, 2.0, 4.0)
DELTA = 1e-6
RULE = {"k": 5, "suppression": 0.02}
FORCED_DRAWS = 5
"""Draws in which label tables or codes are forced, beside what the rule picks."""
PAPER = {"air_quality": "AQ", "hotel": "HCI", "german": "German"}
SETS = ("adult", "air_quality", "fars", "hotel", "german")


@dataclass(frozen=True, eq=False)
class Prepared:
    """A data set with its policy, summarised on all rows, and how to draw configurations."""

    source: Source
    policy: Policy
    summary: aegis.Summary

    def near_ties(self, count: int) -> list[Configuration]:
        """Return the best admissible of 1,500 configurations, by the measure that is searched."""
        scorer = Scorer(self.summary)
        plan = PrivacyPlan(self.summary, self.policy.privacy)
        drawn = generate(self.summary, 1500, seed=2)
        admissible = [c for c in drawn if plan.check(scorer.choose(c)).admissible]
        admissible.sort(key=lambda c: -scorer.value(scorer.choose(c), get(SEARCHED_MEASURE)))
        return admissible[:count]


def prepared(name: str) -> Prepared:
    """Read a data set and summarise it."""
    if name in PAPER:
        made = prepare(PAPER[name], privacy=RULE)
        source = open_table(made.table)
        return Prepared(source, made.policy, aegis.summarize(source, made.policy, exact=True))
    if name == "adult":
        source = open_table(ADULT)
        policy = aegis.load_policy(ROOT / "examples" / "adult" / "policy.yaml")
    else:
        source = open_table(data("fars", "fars_subset.csv"))
        policy = aegis.init_policy(source, label="iinjury").policy
    return Prepared(source, policy, aegis.summarize(source, policy, exact=True))


def compared(exact: np.ndarray, estimated: np.ndarray) -> tuple[float, float]:
    """Return Spearman's correlation, and the loss of the choice in percent of the best."""
    best = float(exact.max())
    loss = 100 * (best - float(exact[int(estimated.argmax())])) / best if best > 0 else 0.0
    return float(spearmanr(exact, estimated).statistic), loss


def protections(
    summary: aegis.Summary, source: Source, draws: int
) -> Iterator[tuple[str, str, int, ProtectedSummary]]:
    """Yield protection, which estimator was asked for, draw, and the protected summary."""
    public = frozenset(summary.attributes)
    for epsilon in EPSILONS:
        for asked, most_error in (("rule", None), ("tables", 0.0), ("codes", math.inf)):
            for draw in range(draws if asked == "rule" else min(draws, FORCED_DRAWS)):
                forced = {} if most_error is None else {"most_error": most_error}
                noise = Noise(epsilon, DELTA, public=public, **forced)
                made = protect_with_noise(summary, noise, source=source)
                yield f"noise {epsilon:g}", asked, draw, made
    for method in Method:
        for draw in range(draws):
            key = f"not secret, for experiments: {draw}".encode()
            made = protect_counts(summary, Perturbation(key, method), source=source)
            yield f"counts {method}", "rule", draw, made


def measured(name: str, draws: int) -> Iterator[dict[str, Any]]:
    """Yield one row per protection, estimator, draw, set of configurations and exact measure."""
    own = prepared(name)
    scorer = Scorer(own.summary)
    asked = {"random": generate(own.summary, 50, seed=1), "near ties": own.near_ties(50)}
    exact = {
        (kind, measure): np.array([scorer.value(scorer.choose(c), get(measure)) for c in listed])
        for kind, listed in asked.items()
        for measure in MEASURES
        if len(listed) > 2
    }
    for (kind, measure), values in exact.items():
        if measure != "target-coded":
            rank, loss = compared(values, exact[kind, "target-coded"])
            yield _row(name, "none", "exact", 0, "codes", kind, len(values), measure, rank, loss)
    for protection, estimator, draw, made in protections(own.summary, own.source, draws):
        protected = ProtectedScorer(made)
        derived = len([d for d in derivable_cells(made) if d.range.high < 10])
        for kind, listed in asked.items():
            estimated = np.array([protected.score(made.choose(c)) for c in listed])
            for measure in MEASURES:
                if (kind, measure) in exact:
                    rank, loss = compared(exact[kind, measure], estimated)
                    yield _row(
                        *(name, protection, estimator, draw, protected.estimator, kind),
                        *(len(listed), measure, rank, loss, derived),
                    )


def _row(
    name: str,
    protection: str,
    asked: str,
    draw: int,
    estimator: str,
    kind: str,
    count: int,
    measure: str,
    rank: float,
    loss: float,
    derived: int | None = None,
) -> dict[str, Any]:
    return {
        "data": name,
        "protection": protection,
        "asked": asked,
        "draw": draw,
        "estimator": estimator,
        "configurations": kind,
        "count": count,
        "measure": measure,
        "spearman": round(rank, 4),
        "loss_percent": round(loss, 4),
        "derivable_cells": derived,
    }


def printed(rows: Sequence[dict[str, Any]]) -> Iterable[str]:
    """Yield means over draws, one line each."""
    names = ("data", "protection", "asked", "configurations", "measure")
    for key in dict.fromkeys(tuple(r[n] for n in names) for r in rows):
        same = [r for r in rows if tuple(r[n] for n in names) == key]
        rank = np.mean([r["spearman"] for r in same])
        loss = np.mean([r["loss_percent"] for r in same])
        used = "/".join(sorted({r["estimator"] for r in same}))
        yield f"{' '.join(key)} ({used}) {rank:.3f} {loss:.2f} %"


def main() -> None:
    """Measure the sets that are asked for and print means over draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--sets", default=",".join(SETS))
    arguments = parser.parse_args()
    for name in arguments.sets.split(","):
        rows = list(measured(name, arguments.draws))
        write_csv(f"protected_summaries_{name}", rows)
        print(*printed(rows), sep="\n", flush=True)


if __name__ == "__main__":
    main()
