"""What a label-aware optimum is worth: ours against the optima of ARX's four metrics.

Adult as ARX uses it (30,162 rows, its hierarchies), eight quasi-identifiers, k = 5, at most 0, 2
and 5 % of the rows suppressed. Every release masks all rows and removes those in classes below
five. Models are trained on the released rows of a seeded, stratified 70 % of the table and tested
on the other 30 % under the same masks: on all of them (`all`: the same people for every release)
and on those that the release keeps (`released`).

    python experiments/arx_optima.py [--splits 10] [--models lr,rf,gbdt]

Goes on where it was stopped: finished trainings are in results/arx_optima.csv.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

import numpy as np

from aegis import search
from aegis.advisor import Choice, Scorer
from aegis.arrays import Flags
from aegis.measures import MEASURES
from aegis.papers.evaluation.coding import CodedTable, Labels, code_table
from aegis.papers.evaluation.training import MODELS, Task, fit, make_splits, measure
from aegis.policy import Configuration, Policy, load_policy
from aegis.privacy import ClassTable
from aegis.sources import open_table
from aegis.summary import Summary, summarize
from aegis.summary.frequency import PersonCells, combine
from common import RESULTS, data, paired, save_chart, write_json

ATTRIBUTES = [
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
]
LIMITS = {0: 0.0, 2: 0.02, 5: 0.05}
ARX = {
    "ARX loss": {0: "04023221", 2: "03012112", 5: "03001112"},
    "ARX discernibility": {0: "11123221", 2: "00123221", 5: "00123221"},
    "ARX NU entropy": {0: "12113221", 2: "00113221", 5: "00112221"},
    "ARX classification": {0: "14110222", 2: "12112220", 5: "12112220"},
}
"""Optimal levels that ARX 3.9.2 finds, by metric and suppression limit in percent."""
OBJECTIVES = ("adjusted-pillai", "held-out-auc", "class-entropy", "mi", "cmim")
TEST_SHARE = 0.3
OURS = "Aegis adjusted-pillai"
NAME = "arx_optima"


def policy_for(limit: float) -> Policy:
    """Return the policy: every level of every hierarchy is a candidate."""
    files = {a: str(data("arx_adult", f"adult_hierarchy_{a}.csv")) for a in ATTRIBUTES}
    attributes = {a: {"role": "quasi-identifier", "hierarchy": files[a]} for a in ATTRIBUTES}
    return load_policy(
        {
            "version": 1,
            "label": "salary-class",
            "privacy": {"k": 5, "suppression": limit},
            "attributes": attributes,
        }
    )


def by_levels(summary: Summary, levels: str) -> Configuration:
    """Return the configuration with these hierarchy levels."""
    masks = {
        name: next(
            c.mask
            for c in summary.attributes[name].candidates
            if getattr(c.mask, "level", 0) == int(level)
        )
        for name, level in zip(ATTRIBUTES, levels, strict=True)
    }
    return Configuration(levels, masks)


def levels_of(configuration: Configuration) -> str:
    """Return a configuration's hierarchy levels."""
    return "".join(str(getattr(configuration.masks[a], "level", 0)) for a in ATTRIBUTES)


def releases(source: Any) -> Iterator[tuple[int, str, str]]:
    """Yield the suppression limit, the name and the levels of every release to compare."""
    for percent, limit in LIMITS.items():
        for name, levels in ARX.items():
            yield percent, name, levels[percent]
        for objective in OBJECTIVES:
            advice = search(source, policy_for(limit), objective=objective, explain_best=False)
            best = advice.require_best()
            print(percent, objective, levels_of(best.configuration), best.score, advice.search)
            yield percent, f"Aegis {objective}", levels_of(best.configuration)


def finished() -> list[dict[str, str]]:
    """Return the trainings that an earlier run finished."""
    path = RESULTS / f"{NAME}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def trained(
    levels: str, choice: Choice, tables: Mapping[str, Any], models: list[str], splits: int
) -> Iterator[dict[str, Any]]:
    """Train what is missing of one release; yield one record per model, split and test set."""
    rows, policy = tables["rows"], tables["policy"]
    design, kept = rows.design(choice), released(rows, choice, policy)
    divided = make_splits(rows.label, count=splits, test_share=TEST_SHARE, seed=0)
    for model in models:
        for split in divided:
            if (levels, model, str(split.number)) in tables["done"]:
                continue
            task = Task(
                levels,
                design,
                rows.label,
                len(rows.classes),
                MODELS.get(model),
                split.number,
                split.train[kept[split.train]],
                split.test,
                split.number,
            )
            model_fitted = fit(task)
            for tested, chosen in (("all", split.test), ("released", split.test[kept[split.test]])):
                yield {
                    "levels": levels,
                    "model": model,
                    "split": split.number,
                    "tested": tested,
                    "train_rows": len(task.train),
                    "test_rows": len(chosen),
                    "converged": model_fitted.converged,
                    **measure(model_fitted.predict(chosen)),
                }


def compare(records: list[dict[str, str]], listed: list[tuple[int, str, str]]) -> list[dict]:
    """Return ours minus each other release: mean difference in points with intervals."""
    found = []
    keys = sorted({(r["model"], r["tested"]) for r in records})
    for metric in ("accuracy", "roc_auc"):
        for model, tested in keys:
            values: dict[str, dict[str, float]] = {}
            for r in records:
                if (r["model"], r["tested"]) == (model, tested):
                    values.setdefault(r["levels"], {})[r["split"]] = 100 * float(r[metric])
            for percent, group in groupby(listed, key=lambda entry: entry[0]):
                names = {name: levels for _, name, levels in group}
                ours = values[names[OURS]]
                for name, levels in names.items():
                    other = values[levels]
                    found.append(
                        {
                            "metric": metric,
                            "model": model,
                            "tested": tested,
                            "suppression": percent,
                            "release": name,
                            "levels": levels,
                            "value": float(np.mean(list(other.values()))),
                            "ours_minus_it": paired(
                                (ours[s] - other[s] for s in ours), test_share=TEST_SHARE
                            ),
                        }
                    )
    return found


def released(rows: CodedTable, choice: Choice, policy: Policy) -> Flags:
    """Return, for each row, whether the release of a configuration keeps it, shape (n,).

    All rows in classes that fail the policy's rule are suppressed, even if there are more than the
    rule allows.
    """
    rule = policy.privacy
    names = [a.name for a in policy.quasi_identifiers]
    ids = combine((shown(rows, name, choice)[0] for name in names), rows.rows)
    sensitive = {name: shown(rows, name, choice) for name in rule.sensitive}
    ones = np.ones(rows.rows, dtype=np.int64)
    if rows.persons is None:
        classes = ClassTable.from_cells(ids, ones, sensitive)
    else:
        behind = PersonCells.of_pairs(np.arange(rows.rows), rows.persons, rows.rows)
        classes = behind.classes(ids, ones, sensitive)
    return np.isin(ids, classes.kept_ids(rule.check(classes).kept_classes))


def shown(rows: CodedTable, name: str, choice: Choice) -> tuple[Labels, tuple[str, ...]]:
    """Return each row's code of the masked value of an attribute, and the text of each code."""
    if name in rows.codes:
        candidate = choice[name]
        return candidate.groups[rows.codes[name]].astype(np.int64), candidate.labels
    label = np.where(rows.label < 0, len(rows.classes), rows.label)
    own = choice.get(name)
    if own is None:
        return label, (*rows.classes, "null")
    return own.groups[label].astype(np.int64), own.labels


def main(argv: list[str] | None = None) -> None:
    """Search, train what is missing, compare, and write figures and plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--models", default="lr,rf,gbdt")
    arguments = parser.parse_args(argv)
    models = arguments.models.split(",")
    source = open_table(str(data("arx_adult", "adult.csv")))
    policy = policy_for(0.05)
    summary = summarize(source, policy)
    scorer = Scorer(summary)
    listed = list(releases(source))
    records: list[dict[str, Any]] = list(finished())
    tables = {
        "rows": code_table(source, summary, policy),
        "policy": policy,
        "done": {
            (r["levels"], r["model"], r["split"]) for r in records if r["tested"] == "released"
        },
    }
    facts = {}
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"{NAME}.csv").open("a", newline="") as file:
        for levels in dict.fromkeys(levels for _, _, levels in listed):
            choice = scorer.choose(by_levels(summary, levels))
            facts[levels] = {
                "suppressed_rows": int((~released(tables["rows"], choice, policy)).sum()),
                **{m: scorer.value(choice, MEASURES.get(m)) for m in OBJECTIVES if m in MEASURES},
            }
            for record in trained(levels, choice, tables, models, arguments.splits):
                writer = csv.DictWriter(file, list(record), lineterminator="\n")
                if not records:
                    writer.writeheader()
                records.append({k: str(v) for k, v in record.items()})
                writer.writerow(record)
                file.flush()
            print("trained", levels, facts[levels], flush=True)
    wanted = {levels for _, _, levels in listed}
    used = [
        r
        for r in records
        if r["levels"] in wanted and r["model"] in models and int(r["split"]) < arguments.splits
    ]
    compared = compare(used, listed)
    write_json(
        NAME,
        {
            "splits": arguments.splits,
            "releases": [
                {"suppression": p, "release": n, "levels": v, **facts[v]} for p, n, v in listed
            ],
            "comparisons": compared,
        },
    )
    draw(compared)


def draw(compared: list[dict]) -> None:
    """Draw the differences with their wide intervals."""
    import altair

    titles = {"accuracy": "Accuracy", "roc_auc": "ROC AUC"}
    rows = [
        {
            "release": c["release"],
            "model": c["model"],
            "metric": titles[c["metric"]],
            "limit": f"{c['suppression']} % suppressed",
            **c["ours_minus_it"],
        }
        for c in compared
        if c["tested"] == "all" and c["release"].startswith("ARX")
    ]
    title = "Ours minus it, points"
    base = altair.Chart().encode(
        y=altair.Y("release:N", title=None),
        yOffset="model:N",
        color=altair.Color("model:N", title="Model"),
    )
    layers = altair.layer(
        altair.Chart().mark_rule(color="grey").encode(x=altair.datum(0)),
        base.mark_rule().encode(x=altair.X("wide_low:Q", title=title), x2="wide_high:Q"),
        base.mark_point(filled=True, size=30).encode(x="mean:Q"),
    ).properties(width=320, height=130)
    save_chart(
        NAME,
        layers.facet(
            row=altair.Row("limit:N", title=None),
            column=altair.Column("metric:N", title=None),
            data=altair.Data(values=rows),
        ).resolve_scale(x="independent"),
    )


if __name__ == "__main__":
    main()
