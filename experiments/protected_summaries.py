"""How well does a protected summary rank?

For each data set: 50 random configurations, and the 50 best admissible of 1,500 (near ties), scored by
exact counts and from protected summaries. Spearman's correlation with the exact score, and what the
choice of the protected ranking loses, in percent of the best. Policies but Adult's are proposed by
`aegis.init_policy`.

    python experiments/protected_summaries.py --draws 10 --sets adult
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

import aegis
from aegis.advisor import PrivacyPlan, Scorer, generate
from aegis.measures import get
from aegis.protect import Noise, Perturbation, ProtectedScorer, ProtectedSummary
from aegis.protect.counts import protect_counts
from aegis.protect.derive import derivable_cells
from aegis.protect.noise import protect_with_noise
from aegis.sources import open_table
from common import ADULT, ROOT, data, german, write_csv

MEASURES = ("pillai", "pillai-codings", "target-coded")
EPSILONS = (0.5, 1.0, 2.0, 4.0)
DELTA = 1e-6


def sets() -> dict[str, tuple[Any, str]]:
    """Return how to load each data set, and its label."""
    return {
        "adult": (lambda: ADULT, "income"),
        "german": (german, "class"),
        "air_quality": (lambda: _only_csv("air_quality"), "Air Quality"),
        "fars": (lambda: _only_csv("fars"), "iinjury"),
    }


def _only_csv(folder: str) -> Path:
    return next(p for p in sorted(data(folder).glob("*.csv")) if "hierarchy" not in p.name)


def policy_of(name: str, table: Any, label: str) -> aegis.Policy:
    """Return Adult's example policy, or the proposed one."""
    if name == "adult":
        return aegis.load_policy(ROOT / "examples" / "adult" / "policy.yaml")
    return aegis.init_policy(table, label=label).policy


def compared(exact: np.ndarray, found: np.ndarray) -> tuple[float, float]:
    """Return Spearman's correlation, and the loss of the choice in percent of the best."""
    best = float(exact.max())
    loss = 100 * (best - float(exact[int(found.argmax())])) / best if best > 0 else 0.0
    return float(spearmanr(exact, found).statistic), loss


def protections(
    summary: aegis.Summary, source: Any, draws: int
) -> Iterator[tuple[str, int, ProtectedSummary]]:
    """Yield protected summaries: by noise for each epsilon and draw, and by counts."""
    for epsilon in EPSILONS:
        for draw in range(draws):
            asked = Noise(epsilon, DELTA, public=frozenset(summary.attributes))
            yield f"noise {epsilon:g}", draw, protect_with_noise(summary, asked, source=source)
    for method in ("rounding", "cell-keys"):
        for draw in range(min(draws, 3)):
            key = f"not secret, for experiments: {draw}".encode()
            made = protect_counts(summary, Perturbation(key, method), source=source)
            yield f"counts {method}", draw, made


def measured(name: str, draws: int) -> Iterator[dict[str, Any]]:
    """Yield one row per data set, protection, draw, set of configurations and exact measure."""
    load, label = sets()[name]
    table = load()
    policy = policy_of(name, table, label)
    source = open_table(table)
    summary = aegis.summarize(source, policy)
    scorer, plan = Scorer(summary), PrivacyPlan(summary, policy.privacy)
    few = generate(summary, 50, seed=1)
    many = generate(summary, 1500, seed=2)
    admissible = [c for c in many if plan.check(scorer.choose(c)).admissible]
    admissible.sort(key=lambda c: -scorer.value(scorer.choose(c), get("pillai")))
    asked = {"random": few, "near ties": admissible[:50]}
    exact = {
        (kind, measure): np.array([scorer.value(scorer.choose(c), get(measure)) for c in listed])
        for kind, listed in asked.items()
        for measure in MEASURES
        if len(listed) > 2
    }
    for (kind, measure), values in exact.items():
        if measure != "target-coded":
            rank, loss = compared(values, exact[kind, "target-coded"])
            yield _row(name, "none", 0, kind, measure, rank, loss, None, None)
    for protection, draw, made in protections(summary, source, draws):
        protected = ProtectedScorer(made)
        derived = len([d for d in derivable_cells(made) if d.range.high < 10])
        for kind, listed in asked.items():
            found = np.array([protected.score(made.choose(c)) for c in listed])
            for measure in MEASURES:
                if (kind, measure) in exact:
                    rank, loss = compared(exact[kind, measure], found)
                    yield _row(
                        *(name, protection, draw, kind, measure, rank, loss),
                        *(protected.estimator, derived),
                    )


def _row(
    name: str,
    protection: str,
    draw: int,
    kind: str,
    measure: str,
    rank: float,
    loss: float,
    estimator: str | None,
    derived: int | None,
) -> dict[str, Any]:
    return {
        "data": name,
        "protection": protection,
        "draw": draw,
        "configurations": kind,
        "measure": measure,
        "spearman": round(rank, 4),
        "loss_percent": round(loss, 4),
        "estimator": estimator,
        "derivable_cells": derived,
    }


def main() -> None:
    """Measure the sets that are asked for and print means over draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--sets", default=",".join(sets()))
    arguments = parser.parse_args()
    for name in arguments.sets.split(","):
        rows = list(measured(name, arguments.draws))
        write_csv(f"protected_summaries_{name}", rows)
        keys = dict.fromkeys((r["protection"], r["configurations"], r["measure"]) for r in rows)
        for key in keys:
            same = [r for r in rows if (r["protection"], r["configurations"], r["measure"]) == key]
            rank = np.mean([r["spearman"] for r in same])
            loss = np.mean([r["loss_percent"] for r in same])
            print(name, *key, same[0]["estimator"], f"{rank:.3f} {loss:.2f} %", flush=True)


if __name__ == "__main__":
    main()
