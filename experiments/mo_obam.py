"""The tables of MO-OBAM (Wei et al.) on German credit and Adult, beside the published figures.

Risk and information loss of the raw table, k-anonymity by microaggregation, (k,l)-member and
MO-OBAM for k = 5, 10, 15, 20; the grid over the number of clusters and lambda; models trained on
each release over repeated splits, tested against the original. Finished trainings are kept in the
store, so that a run that was stopped, or one of fewer splits, is gone on with.

    python experiments/mo_obam.py [--data German,Adult] [--splits 20] [--models dt,lr,nb,nn,rf,svm]
                                  [--store FILE] [--part risk,grid,models]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import stats

from aegis import evaluate
from aegis.anonymizers import ANONYMIZERS, Recipe, encode_for, information_loss
from aegis.masks import Identity
from aegis.papers.evaluation import MODELS, Evaluation, Model
from aegis.policy import Configuration, Policy
from aegis.records.obam.method import front
from aegis.words import json_fields
from common import save_chart, write_csv, write_json
from records import ROLES, adult, german, policy_of, released_classes, risks

LABEL = {"German": "class", "Adult": "income"}
CLUSTERS = {"German": 30, "Adult": 100}
"""Number of clusters of the published MO-OBAM figures at k = 5."""
NOT_TRAINED_ON = {"German": (), "Adult": ("fnlwgt",)}
"""fnlwgt is a weight of the survey: one-hot, its 26,741 values would be 98 % of the features."""
ADDED_MODELS = (
    Model("dt", "Decision tree", "sklearn.tree:DecisionTreeClassifier"),
    Model(
        "nn",
        "Multilayer perceptron (two hidden layers of 100, Adam, 20 epochs at most)",
        "sklearn.neural_network:MLPClassifier",
        settings={"hidden_layer_sizes": (100, 100), "max_iter": 20},
    ),
)
GRID = {"German": (10, 20, 30, 50, 100), "Adult": (25, 50, 100, 200)}
PUBLISHED: dict[tuple[str, str], dict[str, float]] = {
    ("German", "raw"): {
        "clusters": 310,
        "at_risk_0.05": 959,
        "at_risk_0.075": 828,
        "at_risk_0.1": 698,
        "homogeneous": 275,
    },
    ("German", "mdav"): {
        "clusters": 149,
        "il": 0.0166,
        "at_risk_0.05": 940,
        "at_risk_0.075": 790,
        "at_risk_0.1": 570,
        "homogeneous": 50,
    },
    ("German", "kl-member"): {
        "clusters": 191,
        "il": 0.0061,
        "at_risk_0.05": 899,
        "at_risk_0.075": 778,
        "at_risk_0.1": 532,
        "homogeneous": 0,
    },
    ("German", "mo-obam"): {
        "clusters": 30,
        "il": 0.0147,
        "at_risk_0.05": 148,
        "at_risk_0.075": 63,
        "at_risk_0.1": 29,
        "homogeneous": 10,
    },
    ("Adult", "raw"): {
        "clusters": 1900,
        "at_risk_0.05": 6506,
        "at_risk_0.075": 4906,
        "at_risk_0.1": 3910,
        "homogeneous": 634,
    },
    ("Adult", "mdav"): {
        "clusters": 1232,
        "il": 0.0010,
        "at_risk_0.05": 5925,
        "at_risk_0.075": 4590,
        "at_risk_0.1": 3050,
        "homogeneous": 5,
    },
    ("Adult", "kl-member"): {
        "clusters": 1066,
        "il": 0.0006,
        "at_risk_0.05": 5077,
        "at_risk_0.075": 3680,
        "at_risk_0.1": 2280,
        "homogeneous": 0,
    },
    ("Adult", "mo-obam"): {
        "clusters": 100,
        "il": 0.0116,
        "at_risk_0.05": 103,
        "at_risk_0.075": 69,
        "at_risk_0.1": 47,
        "homogeneous": 3,
    },
}
"""What the paper reports at k = 5; its k-anonymity stands beside our microaggregation."""
PUBLISHED_BEYOND: dict[tuple[str, str, int], dict[str, float]] = {
    key: dict(
        zip(("clusters", "il", "at_risk_0.05", "at_risk_0.075", "at_risk_0.1"), one, strict=True)
    )
    for key, one in {
        ("German", "mdav", 10): (90, 0.0255, 810, 810, 0),
        ("German", "kl-member", 10): (101, 0.0106, 860, 860, 0),
        ("German", "mo-obam", 10): (30, 0.0153, 118, 71, 22),
        ("German", "mdav", 15): (63, 0.0408, 885, 0, 0),
        ("German", "kl-member", 15): (67, 0.0141, 820, 10, 0),
        ("German", "mo-obam", 15): (30, 0.0153, 106, 40, 40),
        ("German", "mdav", 20): (49, 0.0545, 0, 0, 0),
        ("German", "kl-member", 20): (51, 0.0164, 0, 0, 0),
        ("German", "mo-obam", 20): (30, 0.0148, 125, 57, 31),
        ("Adult", "mdav", 10): (930, 0.0022, 5080, 5080, 0),
        ("Adult", "kl-member", 10): (895, 0.0013, 4770, 4770, 0),
        ("Adult", "mo-obam", 10): (100, 0.0116, 103, 69, 47),
        ("Adult", "mdav", 15): (774, 0.0034, 4167, 0, 0),
        ("Adult", "kl-member", 15): (779, 0.0019, 4084, 0, 0),
        ("Adult", "mo-obam", 15): (100, 0.0116, 103, 69, 47),
        ("Adult", "mdav", 20): (673, 0.0045, 0, 0, 0),
        ("Adult", "kl-member", 20): (733, 0.0025, 0, 0, 0),
        ("Adult", "mo-obam", 20): (100, 0.0116, 103, 69, 47),
    }.items()
}
"""Tables IV(a) and V(a) beyond k = 5."""
PUBLISHED_F1 = {
    "German": {
        "dt": 0.7702,
        "lr": 0.8124,
        "nb": 0.7938,
        "mlp": 0.7109,
        "rf": 0.8381,
        "svm": 0.8266,
    },
    "Adult": {"dt": 0.6203, "lr": 0.4052, "nb": 0.4183, "nn": 0.3475, "rf": 0.6787, "svm": 0.2757},
}
"""F1 of models trained on the original; the paper does not name the class that it is of."""
METHODS: dict[str, dict[str, Any]] = {
    "mdav": {},
    "kl-member": {"l": 2},
    "mo-obam": {"weight": 1e-4, "scaled": False},
}


def options_of(name: str, method: str, k: int) -> dict[str, Any]:
    """Return the options of one row of the tables."""
    clusters = {"clusters": CLUSTERS[name]} if method == "mo-obam" else {}
    starts = {"starts": 1} if method == "mo-obam" and name == "Adult" else {}
    return {"k": k, **METHODS[method], **clusters, **starts}


def risk(name: str, table: pa.Table) -> list[dict[str, Any]]:
    """Return risk and loss of the raw table and of each method for growing k."""
    policy = policy_of(name, table, LABEL[name])
    records = encode_for(table, policy)
    sensitive = ROLES[name][1]
    _, raw = records.combinations
    rows: list[dict[str, Any]] = [
        {
            "data": name,
            "method": "raw",
            "k": 1,
            "il": 0.0,
            "il_rounded": 0.0,
            "il_scaled": 0.0,
            "penalty": 0.0,
            "seconds": 0.0,
            **risks(raw, table, sensitive),
        }
    ]
    for k in (5, 10, 15, 20):
        for method in METHODS:
            anonymizer = ANONYMIZERS.get(method)
            options = anonymizer.configure(**options_of(name, method, k))
            grouped = anonymizer.group(records, options)
            rows.append(
                {
                    "data": name,
                    "method": method,
                    "k": k,
                    "il": grouped.loss.unscaled,
                    "il_rounded": information_loss(
                        records, grouped.groups, k, rounded=True
                    ).unscaled,
                    "il_scaled": grouped.loss.scaled,
                    "penalty": grouped.loss.penalty,
                    "seconds": grouped.seconds,
                    **risks(grouped.groups.of, table, sensitive),
                    **{
                        f"shown_{figure}": value
                        for figure, value in risks(
                            released_classes(records, grouped.groups), table, sensitive
                        ).items()
                    },
                }
            )
            print(rows[-1])
    for row in rows:
        for figure, value in PUBLISHED.get((name, row["method"]), {}).items():
            row[f"published_{figure}"] = value if row["k"] in (1, 5) else ""
        for figure, value in PUBLISHED_BEYOND.get((name, row["method"], row["k"]), {}).items():
            row[f"published_{figure}"] = value
    names = dict.fromkeys(figure for row in rows for figure in row)
    return [{figure: row.get(figure, "") for figure in names} for row in rows]


def grid(name: str, table: pa.Table) -> list[dict[str, Any]]:
    """Return the grid of Figure 2: loss and least entropies by clusters and lambda."""
    records = encode_for(table, policy_of(name, table, LABEL[name]))
    options = ANONYMIZERS.get("mo-obam").configure(k=5, scaled=False, starts=1)
    points = front(records, options, GRID[name])
    return [
        {"data": name, **{key: value for key, value in one.to_dict().items() if key != "entropies"}}
        for one in points
    ]


def models(
    name: str, table: pa.Table, chosen: list[str], splits: int, store: str | None
) -> dict[str, Any]:
    """Return F1, accuracy and AUC on the original and on each release, with Mann-Whitney U."""
    for model in ADDED_MODELS:
        if model.name not in MODELS:
            MODELS.register(model)
    table = table.drop_columns(list(NOT_TRAINED_ON[name]))
    policy = policy_of(name, table, LABEL[name], k=5)
    recipes = [Recipe(method, options_of(name, method, 5)) for method in METHODS]
    found = evaluate(
        table,
        policy,
        configurations=_original(policy),
        models=chosen,
        metric="f1",
        splits=splits,
        comparators=(),
        methods=recipes,
        seed=1,
        store=store,
    )
    wanted = ("accuracy", "f1", "roc_auc")
    return {
        "splits": splits,
        "left_out": list(NOT_TRAINED_ON[name]),
        "not_converged": {
            model: sum(not one.converged for one in found.trainings if one.model == model)
            for model in chosen
        },
        "scores": [json_fields(one) for one in found.scores if one.metric in wanted],
        "against_original": [
            json_fields(one)
            for one in found.against_original
            if one.metric in wanted and one.configuration in found.releases
        ],
        "f1_of_the_commoner_class": commoner(found, chosen),
        "published_f1_of_the_original": PUBLISHED_F1[name],
        "importance_shift": dict(found.importance_shift),
        "label_measure": {
            ranked.name: {"score": ranked.score, "kept": ranked.utility_kept}
            for ranked in found.advice.ranking
        },
    }


def commoner(found: Evaluation, chosen: list[str]) -> list[dict[str, Any]]:
    """Return the F1 of the more frequent of two classes, and how it differs from the original's.

    It follows from accuracy and the F1 of the rarer class: with w the share of wrong predictions,
    the share of rows of the rarer class that are found is f w / (2 (1 - f)).
    """
    values: dict[tuple[str, str], list[float]] = {}
    for one in found.trainings:
        accuracy, rarer = one.metrics["accuracy"] or 0.0, one.metrics["f1"] or 0.0
        wrong = 1 - accuracy
        right = accuracy - (rarer * wrong / (2 * (1 - rarer)) if rarer < 1 else accuracy)
        f1 = 2 * right / (2 * right + wrong) if rarer < 1 else 1.0
        values.setdefault((one.configuration, one.model), []).append(f1)
    return [
        {
            "configuration": name,
            "model": model,
            "value": float(np.mean(values[name, model])),
            "difference": float(np.mean(values[name, model]) - np.mean(values["original", model])),
            "p": float(stats.mannwhitneyu(values[name, model], values["original", model]).pvalue),
        }
        for name in ("original", *METHODS)
        for model in chosen
    ]


def _original(policy: Policy) -> dict[str, Configuration]:
    masks = dict.fromkeys((one.name for one in policy.features), Identity())
    return {"original": Configuration("original", masks)}


def draw(rows: list[dict[str, Any]]) -> None:
    """Draw information loss against entropy, one panel per data set."""
    import altair

    chart = (
        altair.Chart(altair.Data(values=rows))
        .mark_line(point=True)
        .encode(
            x=altair.X("information_loss:Q", title="Information loss (IL)"),
            y=altair.Y("entropy:Q", title="Least entropy, summed (bits)"),
            color=altair.Color("clusters:O", title="Clusters"),
            order="weight:Q",
            tooltip=["clusters:O", "weight:Q"],
        )
        .properties(width=320, height=240)
        .facet("data:N")
        .resolve_scale(x="independent", y="independent", color="independent")
    )
    save_chart("mo_obam_grid", chart)


def main(argv: list[str] | None = None) -> None:
    """Run the parts asked for and write their figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="German,Adult")
    parser.add_argument("--part", default="risk,grid,models")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--models", default="dt,lr,nb,nn,rf,svm")
    parser.add_argument("--store")
    parser.add_argument("--suffix", default="", help="of the file of trained models")
    arguments = parser.parse_args(argv)
    tables = {"German": german, "Adult": adult}
    parts = arguments.part.split(",")
    chosen = {name: tables[name]() for name in arguments.data.split(",")}
    started = time.perf_counter()
    if "risk" in parts:
        write_csv("mo_obam_risk", _even([row for n, t in chosen.items() for row in risk(n, t)]))
    if "grid" in parts:
        points = [row for n, t in chosen.items() for row in grid(n, t)]
        write_csv("mo_obam_grid", points)
        draw(points)
    if "models" in parts:
        for name, table in chosen.items():
            found = models(
                name, table, arguments.models.split(","), arguments.splits, arguments.store
            )
            write_json(f"mo_obam_models_{name}{arguments.suffix}", found)
    print(f"{time.perf_counter() - started:.0f} s")


def _even(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = dict.fromkeys(figure for row in rows for figure in row)
    return [{name: row.get(name, "") for name in names} for row in rows]


if __name__ == "__main__":
    main()
