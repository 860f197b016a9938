"""Does the expected AUC choose better? Public sets that took no part in choosing any measure.

For each table of `public_sets.py` 24 configurations drawn as in the AEGIS paper; logistic regression
and naive Bayes on six splits, boosting and a forest on four; AUC. Choosers: measures,
the losses of other tools that are sums over attributes, and a logistic regression trained on 2,000
rows of each masked table (three folds). Reported by set, chooser and model: rank correlation, and
points lost free of luck: the best of one half of the splits and the chosen configuration, both on
the other half. The calibration compares what the measure says with what logistic regression reached.

    AEGIS_RDATASETS=FOLDER python experiments/selection_public.py [--data NAME,...] [--stores FOLDER] [--suffix _x]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from aegis.advisor import Choice, Scorer
from aegis.arx.losses.separable import height
from aegis.measures import MEASURES
from aegis.papers.evaluation.coding import CodedTable, code_table
from aegis.papers.evaluation.evaluate import run_task, tasks
from aegis.papers.evaluation.result import spearman
from aegis.papers.evaluation.training import MODELS, Store, make_splits
from aegis.policy import load_policy
from aegis.sources import open_table
from aegis.summary import Summary, summarize
from common import save_chart, write_csv, write_json
from paper_masks import paper_configurations, paper_policy
from public_sets import CONFIRMATION, FURTHER, RESERVE

NAME = "selection_public"
RUNS = ((("lr", "nb"), 6), (("gbdt-60", "rf-50"), 4))
COUNT, SEED, SAMPLE = 24, 1, 2_000
SCORE = "held-out-auc"
SHOWN = (
    SCORE,
    "held-out-pillai",
    "held-out-pillai-values",
    "adjusted-pillai",
    "target-coded",
    "cmim",
    "adjusted-mi",
    "g3",
)
UNMASKED = "unmasked"

for _like, _name, _title, _settings in (
    ("gbdt", "gbdt-60", "Gradient boosting of sixty trees", {"max_iter": 60}),
    ("rf", "rf-50", "Random forest of fifty trees", {"n_estimators": 50}),
):
    _model = MODELS.get(_like)
    MODELS.register(
        replace(_model, name=_name, title=_title, settings={**_model.settings, **_settings})
    )


def prepared(name: str) -> tuple[Summary, CodedTable, dict[str, Choice]]:
    """Return a set with the configurations that are judged, the unmasked table among them."""
    chosen = {**CONFIRMATION, **RESERVE, **FURTHER}[name]
    return prepared_table(chosen.open(), chosen.label)


def prepared_table(table: Any, label: str) -> tuple[Summary, CodedTable, dict[str, Choice]]:
    """Return a table with the configurations that are judged, the unmasked table among them."""
    source = open_table(table)
    scored = [column for column in source.columns if column != label]
    attributes = {column: {"role": "feature"} for column in scored}
    policy = paper_policy(
        source,
        load_policy({"version": 1, "label": label, "privacy": {}, "attributes": attributes}),
    )
    summary = summarize(source, policy)
    scorer = Scorer(summary)
    listed = paper_configurations(summary, COUNT, seed=SEED)
    choices = {one.name: scorer.choose(one) for one in listed}
    rows = code_table(source, summary, policy, seed=SEED)
    return summary, rows, {**choices, UNMASKED: scorer.unmasked}


def trained(
    rows: CodedTable,
    choices: Mapping[str, Choice],
    path: Path | None,
    runs: Sequence[tuple[Sequence[str], int]] = RUNS,
) -> dict[str, dict[str, list[float]]]:
    """Return the AUC by model and configuration, one entry per split; train what is not stored."""
    by_model: dict[str, dict[str, list[float]]] = {}
    for model, metrics in metrics_of(rows, choices, path, runs).items():
        by_model[model] = {name: [_auc(m) for m in listed] for name, listed in metrics.items()}
    return by_model


def _auc(metrics: Mapping[str, Any]) -> float:
    auc = metrics["roc_auc"]
    return float("nan") if auc is None else float(auc)


def metrics_of(
    rows: CodedTable,
    choices: Mapping[str, Choice],
    path: Path | None,
    runs: Sequence[tuple[Sequence[str], int]] = RUNS,
) -> dict[str, dict[str, list[Any]]]:
    """Return the metrics by model and configuration, one entry per split; train what is not stored."""
    store = Store(path)
    by_model: dict[str, dict[str, list[Any]]] = {}
    for names, count in runs:
        models = [MODELS.get(name) for name in names]
        splits = make_splits(rows.label, count=count, test_share=0.3, seed=SEED)
        for task in tasks(rows, choices, models, splits, SEED):
            training = store.get(task)
            if training is None:
                key, training = run_task(task)
                store.add(key, training)
            own = by_model.setdefault(training.model, {}).setdefault(training.configuration, [])
            own.append(training.metrics)
    store.close()
    return by_model


def choosers(summary: Summary, rows: CodedTable, choices: Mapping[str, Choice]) -> dict[str, Any]:
    """Return the score of every configuration by chooser, higher is better, and seconds."""
    scorer = Scorer(summary)
    scores: dict[str, dict[str, float]] = {}
    seconds: dict[str, float] = {}

    def run(chooser: str, score: Any) -> None:
        started = time.process_time()
        scores[chooser] = {name: score(choice) for name, choice in choices.items()}
        seconds[chooser] = time.process_time() - started

    for measure in map(MEASURES.get, SHOWN):
        sign = measure.direction.sign
        run(measure.name, lambda c, m=measure, s=sign: s * scorer.value(c, m))
    run("height", lambda c: -sum(height(a, c[a.name]) for a in summary.attributes.values()))
    run("proxy, 2,000 rows", lambda c: proxy(rows, c))
    return {"scores": scores, "seconds": seconds}


def proxy(rows: CodedTable, choice: Choice) -> float:
    """Return the AUC of a logistic regression on 2,000 rows of a masked table, three folds."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold

    random = np.random.default_rng(SEED)
    known = np.flatnonzero(rows.label >= 0)
    drawn = np.sort(random.choice(known, min(SAMPLE, len(known)), replace=False))
    features, label = rows.design(choice).one_hot(drawn), rows.label[drawn]
    found = []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=SEED).split(features, label):
        model = LogisticRegression(max_iter=200).fit(features[train], label[train])
        said = model.predict_proba(features[test])
        said = said[:, 1] if said.shape[1] == 2 else said
        found.append(roc_auc_score(label[test], said, multi_class="ovr"))
    return float(np.mean(found))


def judged(
    name: str, scores: Mapping[str, Mapping[str, float]], of: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return one row per chooser and model."""
    rows = []
    for model, values in of.items():
        names = [one for one in values if one != UNMASKED]
        auc = np.array([values[one] for one in names])
        halves = auc[:, ::2].mean(axis=1), auc[:, 1::2].mean(axis=1)
        for chooser, own in scores.items():
            said = np.array([own[one] for one in names])
            pick = int(said.argmax())
            lost = [b[a.argmax()] - b[pick] for a, b in (halves, halves[::-1])]
            rows.append(
                {
                    "data": name,
                    "chooser": chooser,
                    "model": model,
                    "spearman": spearman(said, auc.mean(axis=1)),
                    "points_lost": 100 * float(np.mean(lost)),
                    "ceiling": spearman(*halves),
                }
            )
    return rows


def calibration(
    name: str, scores: Mapping[str, float], of: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return what was expected and what logistic regression reached, by configuration."""
    return [
        {"data": name, "configuration": one, "expected": scores[one], "trained": float(np.mean(v))}
        for one, v in of.items()
    ]


def main(argv: list[str] | None = None) -> None:
    """Train, compare, and write figures and plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=",".join(CONFIRMATION))
    parser.add_argument("--stores", type=Path, help="folder of finished trainings")
    parser.add_argument("--suffix", default="", help="of the result files, such as _further")
    given = parser.parse_args(argv)
    stem = NAME + given.suffix
    rows: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    seconds: dict[str, dict[str, float]] = {}
    for name in given.data.split(","):
        summary, coded, choices = prepared(name)
        path = None if given.stores is None else given.stores / f"store_{name}.jsonl"
        values = trained(coded, choices, path)
        told = choosers(summary, coded, choices)
        rows += judged(name, told["scores"], values)
        pairs += calibration(name, told["scores"][SCORE], values["lr"])
        seconds[name] = told["seconds"]
        print(name, flush=True)
        write_csv(stem, rows)
        write_csv(f"{stem}_calibration", pairs)
        write_json(stem, {"means": means(rows), "calibration": errors(pairs), "seconds": seconds})
    draw(stem, pairs)


def means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the mean over sets of each chooser, over the models but naive Bayes, and of that."""
    found = []
    for chooser in dict.fromkeys(row["chooser"] for row in rows):
        for models in ("lr", "gbdt-60", "rf-50"), ("nb",):
            own = [r for r in rows if r["chooser"] == chooser and r["model"] in models]
            known = [0.0 if r["spearman"] is None else r["spearman"] for r in own]
            found.append(
                {
                    "chooser": chooser,
                    "models": " ".join(models),
                    "spearman": float(np.mean(known)),
                    "points_lost": float(np.mean([r["points_lost"] for r in own])),
                }
            )
    return found


def errors(pairs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return median and largest distance of expected from trained AUC, by set and over all."""
    found = []
    for name in (*dict.fromkeys(pair["data"] for pair in pairs), "all"):
        own = [p for p in pairs if name in (p["data"], "all")]
        apart = np.array([p["expected"] - p["trained"] for p in own])
        found.append(
            {
                "data": name,
                "median": float(np.median(np.abs(apart))),
                "largest": float(np.abs(apart).max()),
                "mean": float(apart.mean()),
            }
        )
    return found


def draw(stem: str, pairs: list[dict[str, Any]]) -> None:
    """Draw what was expected against what logistic regression reached."""
    import altair

    axis = altair.Scale(domain=[0.45, 0.9])
    points = (
        altair.Chart(altair.Data(values=pairs))
        .mark_point(filled=True, size=25)
        .encode(
            x=altair.X("expected:Q", title=f"expected AUC ({SCORE})", scale=axis),
            y=altair.Y("trained:Q", title="AUC of logistic regression", scale=axis),
            color=altair.Color("data:N", title="Data"),
        )
    )
    line = altair.Chart(altair.Data(values=[{"x": 0.45}, {"x": 0.9}])).mark_line(color="gray")
    diagonal = line.encode(x=altair.X("x:Q", scale=axis), y=altair.Y("x:Q", scale=axis))
    save_chart(stem, (diagonal + points).properties(width=420, height=420))


if __name__ == "__main__":
    main()
