"""Print the tables of docs/paper.md from the summaries of the results.

python experiments/paper_tables.py
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from statistics import mean, quantiles
from typing import Any

SUMMARIES = Path(__file__).parent / "summaries"
MODELS = {
    "lr": "logistic regression",
    "svm": "linear SVM",
    "sgd": "SGD",
    "nb": "naive Bayes",
    "gbdt": "boosting",
    "rf": "random forest",
}
MEASURES = ("mi", "chi2", "g3")
ESTIMATES = ("aegis+1d", "aegis-1d", "sampling")
DEFAULT = "held-out-pillai"
SETTINGS = ("AEGIS+1D", "AEGIS-1D", "SAMPLING")
PARAMETERS = {
    "attributes": "attributes, 25 to 100 %",
    "configurations": "configurations, 20 to 50",
    "rows": "rows, 25 to 100 %",
}


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _means(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((SUMMARIES / f"{name}.json").read_text())["means"]
    return found


def _rows(name: str) -> list[dict[str, str]]:
    with (SUMMARIES / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _bold(values: Iterable[float]) -> list[str]:
    """Return percents, the largest in bold."""
    shown = [_percent(value) for value in values]
    return [f"**{one}**" if one == max(shown, key=float) else one for one in shown]


def accuracy_table() -> list[str]:
    """Return the rows of figure 1: accuracy over 50 configurations of AQ by model, set 1."""
    files = ("selection_quality_AQ_configurations", "selection_quality_AQ_nb_configurations")
    rows = [row for name in files for row in _rows(name) if row["seed"] == "1"]
    lines = []
    for model in MODELS:
        reached = [float(row["accuracy"]) for row in rows if row["model"] == model]
        first, middle, third = quantiles(reached, n=4, method="inclusive")
        figures = (min(reached), first, middle, third, max(reached))
        lines.append(_line(MODELS[model], str(len(reached)), *map(_percent, figures)))
    return lines


def chosen_table(suffix: str = "") -> list[str]:
    """Return the rows of figures 5d-f by measure: what each favourite reaches."""
    means = _means(f"figure_5_accuracy{suffix}")
    scores = [f"{one}:{measure}" for one in ESTIMATES for measure in MEASURES]
    lines = []
    for data, model in dict.fromkeys((row["data"], row["model"]) for row in means):
        own = {row["score"]: row for row in means if (row["data"], row["model"]) == (data, model)}
        best = _percent(next(iter(own.values()))["best_of_all"])
        reached = _bold(own[score]["reached"] for score in (*scores, "mascara", DEFAULT))
        lines.append(_line(f"{data}, {MODELS[model]}", best, *reached))
    return lines


def forest_table() -> list[str]:
    """Return the rows of figures 5e-f for the forest: one split on IN, two on HCI, three sets."""
    lines = []
    for data, metric in (("IN", "accuracy"), ("HCI", "roc_auc")):
        trained = [
            r for r in _rows(f"selection_quality_{data}_configurations") if r["model"] == "rf"
        ]
        sets = dict.fromkeys(row["seed"] for row in trained)
        best = mean(max(float(r[metric]) for r in trained if r["seed"] == one) for one in sets)
        judged = [row for row in _rows(f"selection_quality_{data}") if row["model"] == "rf"]
        scores = [f"{one}:{measure}" for one in ESTIMATES for measure in MEASURES]
        reached = _bold(
            best - mean(float(r["points_lost"]) for r in judged if r["measure"] == score) / 100
            for score in (*scores, "mascara", DEFAULT)
        )
        lines.append(_line(f"{data}, {MODELS['rf']}", _percent(best), *reached))
    return lines


def histogram_table(suffix: str = "") -> list[str]:
    """Return the rows of figures 8b-d: points that the histogram gains, by model and measure."""
    means = _means(f"figure_5_accuracy{suffix}")
    reached = {(row["data"], row["model"], row["score"]): row["reached"] for row in means}
    return [
        _line(
            f"{data}, {MODELS[model]}",
            *(
                f"{100 * (reached[data, model, f'aegis+1d:{m}'] - reached[data, model, f'aegis-1d:{m}']):+.1f}"
                for m in MEASURES
            ),
        )
        for data, model in dict.fromkeys((row["data"], row["model"]) for row in means)
    ]


def time_table() -> list[str]:
    """Return the rows of figures 5a-c and 8a by measure: processor seconds."""
    rows = _rows("figure_8a_time")
    lines = []
    for data in dict.fromkeys(row["data"] for row in rows):
        own = {(row["setting"], row["measure"]): row for row in rows if row["data"] == data}
        summary = f"{float(next(iter(own.values()))['summary_seconds']):.2f}"
        cells = (
            " / ".join(f"{float(own[setting, m]['estimate_seconds']):.2f}" for m in MEASURES)
            for setting in SETTINGS
        )
        lines.append(_line(data, summary, *cells))
    return lines


def choosing_table(suffix: str = "_paper") -> list[str]:
    """Return the rows of figures 5a-c: processor seconds to choose, and as multiples of Aegis."""
    rows = _rows(f"figure_5_time{suffix}")
    data = list(dict.fromkeys(row["data"] for row in rows))
    own = {(row["way"], row["data"]): row for row in rows}
    lines = []
    for way in dict.fromkeys(row["way"] for row in rows):
        cells = []
        for name in data:
            row = own.get((way, name))
            if row is None:
                cells.append("not run")
                continue
            seconds, times = float(row["processor_seconds"]), float(row["times_aegis"])
            multiple = f"{times:.2g}" if times < 100 else f"{times:.0f}"
            cells.append(f"{seconds:.3g} ({multiple})")
        lines.append(_line(way, *cells))
    return lines


def distance_table() -> list[str]:
    """Return the rows of figure 7 by configuration: medians of the three readings."""
    found = json.loads((SUMMARIES / "figure_7_configurations.json").read_text())["quartiles"]
    return [
        _line(
            row["data"],
            row["estimate"],
            *(f"{row[reading][1]:.2f}" for reading in ("mean", "mean of masked", "largest")),
        )
        for row in found
    ]


def change_table() -> list[str]:
    """Return the rows of figure 9 as designed: the largest change of each estimate, by measure."""
    found = json.loads((SUMMARIES / "figure_9_as_designed.json").read_text())["largest"]
    largest = {(row["data"], row["parameter"], row["measure"]): row for row in found}
    return [
        _line(
            data,
            PARAMETERS[parameter],
            *(
                " / ".join(f"{largest[data, parameter, m][what]:.0e}" for m in MEASURES)
                for what in ("before", "rounded", "true")
            ),
        )
        for data, parameter in dict.fromkeys((row["data"], row["parameter"]) for row in found)
    ]


def ranking_table() -> list[str]:
    """Return how the default score and its ranking move with the rows."""
    return [
        _line(
            row["data"],
            f"{100 * float(row['share']):.0f} %",
            f"{float(row['mean_change']):.3f}",
            f"{float(row['spearman']):.3f}",
            f"{float(row['favourite_loses']):.3f} of {float(row['best']):.3f}",
        )
        for row in _rows("figure_9_as_designed_ranking")
    ]


def network_table(suffix: str = "") -> list[str]:
    """Return the rows of figure 6a: what each favourite reaches with the multilayer perceptron."""
    means = [row for row in _means(f"figure_6a_mlp{suffix}") if row["model"] == "mlp"]
    scores = [f"{one}:{measure}" for one in ESTIMATES for measure in MEASURES]
    lines = []
    for data in dict.fromkeys(row["data"] for row in means):
        own = {row["score"]: row for row in means if row["data"] == data}
        first = next(iter(own.values()))
        reached = _bold(own[score]["reached"] for score in (*scores, "mascara", DEFAULT))
        lines.append(
            _line(data, *(_percent(first[w]) for w in ("best_of_all", "mean_of_all")), *reached)
        )
    return lines


def anonymous_table(suffix: str = "_forest") -> list[str]:
    """Return the rows of figure 6b with the unmasked table; by default of the paper's two models."""
    means = _means(f"figure_6b_k_anonymous{suffix}")
    scores = [f"{one}:{measure}" for one in ESTIMATES[:2] for measure in MEASURES]
    lines = []
    for data, model in dict.fromkeys((row["data"], row["model"]) for row in means):
        own = {row["score"]: row for row in means if (row["data"], row["model"]) == (data, model)}
        first = next(iter(own.values()))
        reached = _bold(own[score]["reached"] for score in (*scores, "mascara", DEFAULT))
        lines.append(
            _line(
                f"{data}, {MODELS[model]}",
                *(_percent(first[what]) for what in ("unmasked", "best_of_all", "mean_of_all")),
                *reached,
            )
        )
    return lines


def main() -> None:
    """Print all tables."""
    for table in (
        accuracy_table(),
        chosen_table(),
        forest_table(),
        chosen_table("_paper"),
        histogram_table(),
        histogram_table("_paper"),
        time_table(),
        choosing_table(),
        anonymous_table(),
        anonymous_table("_forest_paper"),
        anonymous_table("_paper"),
        network_table(),
        network_table("_paper"),
        network_table("_hci_paper"),
        distance_table(),
        change_table(),
        ranking_table(),
    ):
        print("\n".join(table), end="\n\n")


if __name__ == "__main__":
    main()
