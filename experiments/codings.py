"""Which coding of numbers predicts which model? Variants of the held-out trace, without training.

Reads what `selection_quality.py` wrote of every configuration. For each data set, model and variant
of the score: the rank correlation with what the model reached, mean over the sets of 50
configurations (`confirmed`: over the sets that had no part in the choice). The variants:

- `values`, `default`: `held-out-pillai-values` and `held-out-pillai`.
- `uncharged`: the default without what values cost that share a level.
- `thresholds`: its second part alone; `half each`: the two parts in equal shares.
- `weaker`, `weakest`: thresholds at ten times and at once the penalties of values.
- `ranges Q`: at most Q ranges of a number in place of 32.
- `equal mass`: ranges that are quantiles of the rows, frequent values or not.
- `synergy W`: W times the largest corrected I(A,B;Y) - I(A;Y) - I(B;Y) on top.

    python experiments/codings.py [--data AQ,IN,HCI,German]
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from aegis.advisor import Choice, Scorer
from aegis.measures import MEASURES, PENALTIES, Cooccurrence, Need, OrderedCounts, held_out_traces
from aegis.measures.catalog import attribute_information
from aegis.measures.held_out import mean_reached, thresholds, value_traces
from aegis.papers.evaluation.coding import code_table
from aegis.papers.evaluation.result import spearman
from aegis.summary import AttributeSummary, Candidate, summarize
from aegis.summary.attributes import neighbours, pool
from common import result, write_csv
from paper_masks import paper_configurations
from selection_quality import COUNT, NAME, SETS, prepared

RANGES = (16, 32, 64, 128)
WEIGHTS = (0.3, 1.0)
Cut = Callable[[Any, int], Any]


class Scores:
    """Scores the configurations of one data set under every variant."""

    def __init__(self, name: str) -> None:
        source, policy = prepared(name)
        self.summary = summarize(source, policy)
        self.scorer = Scorer(self.summary)
        self.rows = code_table(source, self.summary, policy)
        self.classes = self._indicators(self.rows.label.astype(np.int64))
        self.attributes = list(self.summary.attributes.values())
        self._seen: dict[Any, Any] = {}

    def of(self, choice: Choice) -> dict[str, float]:
        """Return the score of a configuration under every variant."""
        counts = self.scorer.cooccurrence(choice, [Need.PAIRS])
        charged, uncharged = (
            mean_reached(value_traces(counts) + lost) for lost in (counts.losses, 0 * counts.losses)
        )
        ordered = self._stepped(counts.in_order, counts)

        def codings(values: float, steps: float) -> float:
            return (2 * values + steps) / 3

        found = {
            "values": self.scorer.value(choice, MEASURES.get("held-out-pillai-values")),
            "default": self.scorer.value(choice, MEASURES.get("held-out-pillai")),
            "uncharged": codings(uncharged, ordered),
            "thresholds": ordered,
            "half each": (charged + ordered) / 2,
            "weaker": codings(charged, self._stepped(counts.in_order, counts, 10)),
            "weakest": codings(charged, self._stepped(counts.in_order, counts, 1)),
        }
        for size in RANGES:
            found[f"ranges {size}"] = codings(
                charged, self._stepped(self._ranges(choice, size, neighbours), counts)
            )
        found["equal mass"] = codings(
            charged, self._stepped(self._ranges(choice, 32, quantiles), counts)
        )
        synergy = self._synergy(counts)
        for weight in WEIGHTS:
            found[f"synergy {weight:g}"] = found["default"] + weight * synergy
        return found

    def _stepped(self, ordered: OrderedCounts, counts: Cooccurrence, times: float = 100) -> float:
        coded = thresholds(ordered)
        penalties = [times * penalty for penalty in PENALTIES]
        traces = held_out_traces(coded.total, coded.joint, counts.class_totals, counts.n, penalties)
        return mean_reached(traces)

    def _ranges(self, choice: Choice, size: int, cut: Cut) -> OrderedCounts:
        """Return counts where numbers with more values are cut into ranges."""
        shown = [(a, choice[a.name]) for a in self.attributes]
        blocks = [[self._block(one, two, size, cut) for two in shown] for one in shown]
        joint = np.concatenate(
            [(self._levels(*one, size, cut).T @ self.classes).toarray() for one in shown]
        )
        offsets = np.cumsum([0, *(len(row[0]) for row in blocks)])
        return OrderedCounts(np.block(blocks), joint, offsets, [a.kind.ordered for a, _ in shown])

    def _block(
        self,
        one: tuple[AttributeSummary, Candidate],
        two: tuple[AttributeSummary, Candidate],
        size: int,
        cut: Cut,
    ) -> Any:
        key = (one[0].name, one[1], two[0].name, two[1], size, cut)
        if key not in self._seen:
            product = (self._levels(*one, size, cut).T @ self._levels(*two, size, cut)).toarray()
            self._seen[key] = product
        return self._seen[key]

    def _levels(
        self, attribute: AttributeSummary, candidate: Candidate, size: int, cut: Cut
    ) -> Any:
        key = (attribute.name, candidate, size, cut)
        if key not in self._seen:
            if attribute.kind.ordered:
                rows = np.bincount(candidate.groups, weights=attribute.counts)
                level = cut(rows, size)[candidate.groups]
            else:
                level = pool(candidate.groups, attribute.counts, self.summary.max_levels)
            self._seen[key] = self._indicators(level[self.rows.codes[attribute.name]])
        return self._seen[key]

    def _indicators(self, codes: Any) -> Any:
        ones = np.ones(len(codes))
        return sparse.csr_array((ones, (np.arange(len(codes)), codes)))

    def _synergy(self, counts: Cooccurrence) -> float:
        """Return the largest synergy of a pair of attributes that are not suppressed."""
        alone = attribute_information(counts)
        sizes = np.diff(counts.offsets)
        told = counts.pairs
        pairs = [(i, j) for j in range(len(alone)) for i in range(j) if min(sizes[i], sizes[j]) > 1]
        if told is None or not pairs:
            return 0.0
        return float(max(told[i, j] - alone[i] - alone[j] for i, j in pairs))


def quantiles(rows: Any, size: int) -> Any:
    """Return which of `size` equal parts of the rows holds the middle of each value."""
    middle = np.cumsum(rows) - rows / 2
    level = np.clip(np.floor(size * middle / rows.sum()), 0, size - 1)
    own = np.arange(len(rows)) if len(rows) <= size else level
    return np.unique(own, return_inverse=True)[1]


def trained(name: str, suffix: str) -> dict[int, dict[str, dict[str, float]]]:
    """Return what each model reached on each configuration, by seed."""
    found: dict[int, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    with result(f"{NAME}_{name}{suffix}_configurations.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            value = float(row[SETS[name].metric])
            found[int(row["seed"])][row["model"]][row["configuration"]] = value
    return found


def compared(
    name: str, sets: str, found: Mapping[int, Any], scored: Mapping[int, Any]
) -> list[dict[str, Any]]:
    """Return the mean correlation of each variant with each model, and over them.

    Forests on ranks stand beside forests, and count in no mean.
    """
    by: dict[tuple[str, str], list[float]] = defaultdict(list)
    for seed, models in found.items():
        for model, reach in models.items():
            for variant in next(iter(scored[seed].values())):
                scores = [scored[seed][one][variant] for one in reach]
                by[variant, model].append(spearman(scores, list(reach.values())) or 0.0)
    rows = []
    for variant in dict.fromkeys(variant for variant, _ in by):
        means = {model: float(np.mean(v)) for (own, model), v in by.items() if own == variant}
        mean = float(np.mean([one for model, one in means.items() if model != "rf-ranks"]))
        rows.append({"data": name, "sets": sets, "variant": variant, "mean": mean, **means})
    return rows


def main(argv: list[str] | None = None) -> None:
    """Compare, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="AQ,IN,German,HCI")
    arguments = parser.parse_args(argv)
    rows: list[dict[str, Any]] = []
    for name in arguments.data.split(","):
        scores = Scores(name)
        for sets, suffix in (("chosen on", ""), ("confirmed", "_confirmed")):
            found = trained(name, suffix)
            scored = {
                seed: {
                    one.name: scores.of(scores.scorer.choose(one))
                    for one in paper_configurations(scores.summary, COUNT, seed=seed)
                }
                for seed in found
            }
            rows += compared(name, sets, found, scored)
            print(*rows[-14:], sep="\n", flush=True)
    models = list(dict.fromkeys(key for row in rows for key in row))
    write_csv("codings", [{model: row.get(model) for model in models} for row in rows])


if __name__ == "__main__":
    main()
