"""How should a record-level release be scored, to be ranked beside masks as one-hot models would?

The releases of `records_or_masks.py`, scored in several ways, against the models that were trained
on them there (its results are read, nothing is trained): the measure as it is, which pools what
is beyond 127 levels of a column; the same with 512 levels; the same charged for all levels, pooled
or not; the trace on held-out rows, with 128 and with 512 levels.

    python experiments/record_scores.py [--data Adult,German,AQ]
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
from scipy import stats

from aegis import search
from aegis.advisor import Scorer
from aegis.advisor.plan import as_it_is
from aegis.anonymizers import anonymize_records, read_records
from aegis.masking import fit_masks, masked_table
from aegis.measures import MEASURES, fit_pillai
from aegis.policy import Policy
from aegis.sources import open_table
from aegis.summary import summarize
from common import result, write_json
from records_or_masks import METHODS, alike, problem

LEVELS = (128, 512)


def releases(name: str) -> tuple[Policy, dict[str, pa.Table]]:
    """Return the policy and the tables: searched masks, and every record-level release."""
    table, policy = problem(name)
    source = open_table(table)
    found = search(source, policy, top=1, explain_best=False, time_limit=120).require_best()
    chosen = replace(found.configuration, name="masks")
    masks = {policy.label.column: None, **chosen.masks}
    tables = {
        "masks": source.collect(masked_table(source, fit_masks(source, masks, policy.shared_rows)))
    }
    read = read_records(source, alike(policy, chosen))
    for recipe in METHODS[name]:
        tables[recipe.name] = anonymize_records(read, recipe).data
    return policy, tables


def scores(policy: Policy, table: pa.Table) -> dict[str, float]:
    """Return the score of one table under every rule."""
    found = {}
    for levels in LEVELS:
        source = open_table(table)
        summary = summarize(source, as_it_is(policy), seed=1, max_levels=levels)
        scorer = Scorer(summary)
        counts = scorer.cooccurrence(scorer.unmasked)
        found[f"pillai, {levels} levels"] = fit_pillai(counts).adjusted
        held_out = MEASURES.get("held-out-pillai-values")
        found[f"held out, {levels} levels"] = scorer.value(scorer.unmasked, held_out)
        if levels == LEVELS[0]:
            sizes = [len(one.values) for one in summary.attributes.values()]
            pooled = sum(max(0, size - levels) for size in sizes)
            found["pillai, all levels charged"] = charged(
                fit_pillai(counts).trace,
                fit_pillai(counts).rank + pooled,
                counts.joint.shape[1],
                counts.n,
            )
    return found


def charged(trace: float, rank: int, classes: int, rows: float) -> float:
    """Return the adjusted trace, with a degree of freedom for every level there is."""
    limit = classes - 1
    return trace - (1 - trace / limit) * rank * limit / (rows - rank - 1)


def judge(scored: dict[str, dict[str, float]], trained: list[dict[str, Any]]) -> dict[str, Any]:
    """Return, per rule, its choice, and per model the rank correlation and the regret."""
    names = list(scored)
    value = {(one["configuration"], one["model"]): one["value"] for one in trained}
    models = list(dict.fromkeys(one["model"] for one in trained))
    judged = {}
    for rule in scored[names[0]]:
        said = [scored[name][rule] for name in names]
        choice = max(names, key=lambda name, rule=rule: scored[name][rule])
        judged[rule] = {
            "choice": choice,
            "models": {
                model: {
                    "spearman": stats.spearmanr(said, [value[n, model] for n in names]).statistic,
                    "regret": max(value[n, model] for n in names) - value[choice, model],
                }
                for model in models
            },
        }
    return judged


def main(argv: list[str] | None = None) -> None:
    """Score on each data set and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="Adult,German,AQ")
    earlier = json.loads(result("records_or_masks.json").read_text())
    results = {}
    for name in parser.parse_args(argv).data.split(","):
        policy, tables = releases(name)
        scored = {release: scores(policy, table) for release, table in tables.items()}
        results[name] = {"scores": scored, "rules": judge(scored, earlier[name]["trained"])}
        for rule, said in results[name]["rules"].items():
            figures = {
                model: f"{one['spearman']:+.2f} / {one['regret']:.4f}"
                for model, one in said["models"].items()
            }
            print(name, rule, said["choice"], figures, flush=True)
    write_json("record_scores", results)


if __name__ == "__main__":
    main()
