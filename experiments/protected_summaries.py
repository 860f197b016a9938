"""How well does a protected summary rank?

For each data set: 50 random configurations, and the 50 best admissible of 1,500 (near ties), scored by
exact counts and from protected summaries. Spearman's correlation with the exact score, and what the
choice of the protected ranking loses, in percent of the best. Beside it, how well two halves of the
rows agree, scored by exact counts: how far the ranking repeats. Adult has its example policy, FARS the one
that `aegis.init_policy` proposes; the others, for which it proposes no mask, have those of the AEGIS paper.

    python experiments/protected_summaries.py --draws 3 --sets adult
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import spearmanr

import aegis
from aegis.advisor import PrivacyPlan, Scorer, generate
from aegis.measures import FALLBACK_MEASURE, get
from aegis.policy import Configuration, Policy
from aegis.safe.protect import CellMethod, Noise, Perturbation, ProtectedScorer, ProtectedSummary
from aegis.safe.protect.counts import protect_counts
from aegis.safe.protect.derive.cells import derivable_cells
from aegis.safe.protect.noise import protect_with_noise
from aegis.sources import Source, open_table
from common import ADULT, RESULTS, ROOT, data, write_csv
from paper_sets import prepare

HELD_OUT = "held-out-target-coded"
SEARCHED_MEASURE = "adjusted-pillai"
MEASURES = (FALLBACK_MEASURE, SEARCHED_MEASURE, "target-coded", HELD_OUT)
HALVES = 3
"""Times that the rows are split into two halves."""
COUNT = 50
"""Configurations of each set."""
EPSILONS = (0.5, 1.0, 2.0, 4.0)
DELTA = 1e-6
RULE = {"k": 5, "suppression": 0.02}
FEWER_DRAWS = 3
"""Draws of level counts, and of noise with label tables or codes forced beside what the rule picks."""
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


def protections(draws: int) -> Iterator[tuple[str, str, int]]:
    """Yield protection, which estimator is asked for, and draw."""
    for draw in range(draws):
        for epsilon in EPSILONS:
            yield f"noise {epsilon:g}", "rule", draw
    for draw in range(min(draws, FEWER_DRAWS)):
        for epsilon in EPSILONS:
            for asked in ("tables", "codes"):
                yield f"noise {epsilon:g}", asked, draw
    for draw in range(min(draws, FEWER_DRAWS)):
        for method in CellMethod:
            yield f"counts {method}", "rule", draw


def protected_by(own: Prepared, protection: str, asked: str, draw: int) -> ProtectedSummary:
    """Return the summary under one protection, as `aegis protect` makes it."""
    level, detail = protection.split(" ", 1)
    if level == "counts":
        key = f"not secret, for experiments: {draw}".encode()
        asked = Perturbation(key, CellMethod(detail))
        return protect_counts(own.summary, asked, own.policy, source=own.source)
    most = {"rule": {}, "tables": {"most_error": 0.0}, "codes": {"most_error": math.inf}}[asked]
    noise = Noise(float(detail), DELTA, public=frozenset(own.summary.attributes), **most)
    return protect_with_noise(own.summary, noise, own.policy, source=own.source)


def halves(
    own: Prepared, listed: Mapping[str, Sequence[Configuration]], draw: int
) -> dict[str, list[np.ndarray]]:
    """Return the default measure of the configurations on two random halves of the rows."""
    table = own.source.table.to_pyarrow()
    order = np.random.default_rng(draw).permutation(table.num_rows)
    scores: dict[str, list[np.ndarray]] = {kind: [] for kind in listed}
    for half in np.array_split(order, 2):
        rows = open_table(table.take(pa.array(np.sort(half))))
        scorer = Scorer(aegis.summarize(rows, own.policy, exact=True))
        for kind, given in listed.items():
            # Masks that learn are fitted to the half.
            declared = [
                Configuration(
                    c.name,
                    {
                        n: own.summary.attributes[n].candidate(m).declared
                        for n, m in c.masks.items()
                    },
                )
                for c in given
            ]
            measure = get(FALLBACK_MEASURE)
            scores[kind].append(
                np.array([scorer.value(scorer.choose(c), measure) for c in declared])
            )
    return scores


def measured(name: str, draws: int, known: set[tuple[str, ...]]) -> Iterator[list[dict[str, Any]]]:
    """Yield, per protection and draw that is not known yet, a row for each set and exact measure."""
    own = prepared(name)
    scorer = Scorer(own.summary)
    listed = {"random": generate(own.summary, COUNT, seed=1), "near ties": own.near_ties(COUNT)}
    exact = {
        (kind, measure): np.array([scorer.value(scorer.choose(c), get(measure)) for c in given])
        for kind, given in listed.items()
        for measure in MEASURES
        if len(given) > 2
    }

    def rows(
        protection: str,
        asked: str,
        draw: int,
        estimator: str,
        estimated: dict[str, np.ndarray],
        derived: int | None = None,
    ) -> list[dict[str, Any]]:
        found = []
        for (kind, measure), values in exact.items():
            rank, loss = compared(values, estimated[kind])
            found.append(
                {
                    "data": name,
                    "protection": protection,
                    "asked": asked,
                    "draw": draw,
                    "estimator": estimator,
                    "configurations": kind,
                    "count": len(values),
                    "measure": measure,
                    "spearman": round(rank, 4),
                    "loss_percent": round(loss, 4),
                    "derivable_cells": derived,
                }
            )
        return found

    kinds = {kind for kind, _ in exact}
    for asked, of in (("exact", "target-coded"), ("held out", HELD_OUT)):
        if ("none", asked, "0") not in known:
            yield rows("none", asked, 0, "codes", {k: exact[k, of] for k in kinds})
    for draw in range(HALVES):
        if ("none", "halves", str(draw)) not in known:
            yield [
                {
                    **{"data": name, "protection": "none", "asked": "halves", "draw": draw},
                    **{"estimator": "exact", "configurations": kind, "count": len(one)},
                    "measure": FALLBACK_MEASURE,
                    "spearman": round(float(spearmanr(one, other).statistic), 4),
                    "loss_percent": round(compared(one, other)[1], 4),
                    "derivable_cells": None,
                }
                for kind, (one, other) in halves(own, listed, draw).items()
            ]
    for protection, asked, draw in protections(draws):
        if (protection, asked, str(draw)) in known:
            continue
        made = protected_by(own, protection, asked, draw)
        protected = ProtectedScorer(made)
        estimated = {
            kind: np.array([protected.score(made.choose(c)) for c in given])
            for kind, given in listed.items()
        }
        derived = None
        if protection.startswith("counts"):
            derived = len([d for d in derivable_cells(made) if d.range.high < 10])
        yield rows(protection, asked, draw, protected.estimator, estimated, derived)


def printed(rows: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    """Yield means over draws, one line each."""
    names = ("data", "protection", "asked", "configurations", "measure")
    for key in dict.fromkeys(tuple(r[n] for n in names) for r in rows):
        same = [r for r in rows if tuple(r[n] for n in names) == key]
        rank = np.mean([float(r["spearman"]) for r in same])
        loss = np.mean([float(r["loss_percent"]) for r in same])
        used = "/".join(sorted({r["estimator"] for r in same}))
        yield f"{' '.join(key)} ({used}) {rank:.3f} {loss:.2f} %"


def main(argv: list[str] | None = None) -> None:
    """Measure the sets that are asked for; what a result file holds already is not measured again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--sets", default=",".join(SETS))
    arguments = parser.parse_args(argv)
    for name in arguments.sets.split(","):
        path = RESULTS / f"protected_summaries_{name}.csv"
        rows: list[Mapping[str, Any]] = []
        if path.exists():
            with path.open(newline="") as file:
                rows = list(csv.DictReader(file))
        known = {(r["protection"], r["asked"], r["draw"]) for r in rows}
        for more in measured(name, arguments.draws, known):
            rows += more
            write_csv(path.stem, rows)
        print(*printed(rows), sep="\n", flush=True)


if __name__ == "__main__":
    main()
