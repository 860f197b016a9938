"""Print the tables of docs/experiments.md on how well measures choose, from the summaries of the results.

python experiments/selection_tables.py
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean

SUMMARIES = Path(__file__).parent / "summaries"
SETS = ("AQ", "IN", "German", "HCI")
MODELS = {
    "lr": "logistic regression",
    "svm": "linear SVM",
    "sgd": "SGD",
    "rf": "forest",
    "rf-ranks": "forest on ranks",
    "gbdt": "boosting",
}
MEASURES = {
    "held-out-pillai": "Pillai's trace, held out, two codings (default)",
    "held-out-pillai-values": "Pillai's trace, held out, values only",
    "adjusted-pillai": "Pillai's trace, adjusted",
    "cmim": "CMIM",
    "rfi": "reliable fraction of information, mean",
    "adjusted-mi": "mutual information, corrected, mean",
    "held-out-g3": "g3 held out, mean",
    "mascara": "MASCARA's estimator",
    "sampling:mi": "sampling, MI",
    "aegis+1d:mi": "published procedure +1D, MI",
    "aegis-1d:mi": "published procedure -1D, MI",
    "aegis-1d:g3": "published procedure -1D, g3",
}
VARIANTS = {
    "values": "values only",
    "default": "**two codings, charged (default)**",
    "uncharged": "without the charge for pooled values",
    "thresholds": "thresholds alone",
    "half each": "values and thresholds in equal shares",
    "weaker": "thresholds at 10 times the penalties of values, in place of 100",
    "weakest": "thresholds at the penalties of values",
    "ranges 16": "16 ranges in place of 32",
    "ranges 64": "64 ranges",
    "ranges 128": "128 ranges",
    "equal mass": "32 ranges of equal mass, frequent values not apart",
    "synergy 0.3": "and 0.3 of the largest synergy of a pair",
    "synergy 1": "and 1.0 of it",
}
Rows = list[dict[str, str]]


def _read(name: str) -> Rows:
    with (SUMMARIES / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _mean(rows: Rows, column: str, **chosen: str) -> float:
    """Return the mean over sets of configurations."""
    return mean(
        float(row[column]) for row in rows if all(row[key] == chosen[key] for key in chosen)
    )


def _models(rows: Rows) -> list[str]:
    return [model for model in MODELS if any(row["model"] == model for row in rows)]


def selection_table(name: str) -> list[str]:
    """Return the rows of one data set: correlation and points lost by measure and model."""
    rows = _read(f"selection_quality_{name}")
    models = _models(rows)
    lines = [_line(["score", *(MODELS[model] for model in models)])]
    for measure, title in MEASURES.items():
        cells = (_cell(rows, measure, model) for model in models)
        lines.append(_line([title, *cells]))
    return [*lines, _line(["*ceiling*", *(_ceiling(rows, model) for model in models)])]


def _ceiling(rows: Rows, model: str) -> str:
    known = [row for row in rows if row["ceiling"]]  # one split has no halves
    if not any(row["model"] == model for row in known):
        return "-"
    return f"{_mean(known, 'ceiling', model=model):.2f}"


def _cell(rows: Rows, measure: str, model: str) -> str:
    found = (
        _mean(rows, column, measure=measure, model=model) for column in ("spearman", "points_lost")
    )
    return "{:.2f} ({:.1f})".format(*found)


def mean_table() -> list[str]:
    """Return the rows of means over models, on the sets of the choice and on others."""
    lines = []
    for suffix in ("", "_confirmed"):
        for name in SETS:
            rows = _read(f"selection_quality_{name}{suffix}")
            sets = len({row["seed"] for row in rows})
            forest = "rf" in _models(rows)
            title = f"{name}{'' if forest else ' without forest'}, {sets} set{'s' * (sets > 1)}"
            lines.append(_line([f"{title}, {_splits(rows[0]['splits'])}", *_means(rows)]))
    return lines


def _splits(count: str) -> str:
    return f"{count} split{'s' * (count != '1')}"


def _means(rows: Rows) -> Iterable[str]:
    for measure in ("held-out-pillai", "held-out-pillai-values", "adjusted-pillai", "cmim"):
        models = [model for model in _models(rows) if model != "rf-ranks"]
        of = [_mean(rows, "spearman", measure=measure, model=m) for m in models]
        lost = [_mean(rows, "points_lost", measure=measure, model=m) for m in models]
        yield f"{mean(of):.3f} ({mean(lost):.1f})"


def penalty_table() -> list[str]:
    """Return the rows of single penalties, the best of each model in bold."""
    rows = _read("penalties")
    columns = [column for column in rows[0] if column not in ("data", "model", "sets")]
    return [
        _line([f"{row['data']}, {MODELS[row['model']]}", *_bold([row[c] for c in columns])])
        for row in sorted(rows, key=lambda row: (row["data"], list(MODELS).index(row["model"])))
        if row["data"] != "AQ"
    ]


def _bold(cells: Sequence[str]) -> list[str]:
    shown = [f"{float(cell):.2f}" for cell in cells]
    return [f"**{cell}**" if cell == max(shown, key=float) else cell for cell in shown]


def coding_table() -> list[str]:
    """Return the rows of variants of the default, on the sets of the choice and on others."""
    found = {(row["data"], row["sets"], row["variant"]): row for row in _read("codings")}

    def figures(variant: str) -> Iterable[str]:
        for sets, names in (("chosen on", SETS), ("confirmed", SETS[1:])):
            for name in names:
                row = found[name, sets, variant]
                yield f"{float(row['mean']):.3f}"
            yield f"{float(row['gbdt']):.2f}"  # of the last, which is HCI

    return [_line([title, *figures(variant)]) for variant, title in VARIANTS.items()]


def main() -> None:
    """Print all tables."""
    tables = [*map(selection_table, SETS), mean_table(), penalty_table(), coding_table()]
    for table in tables:
        print("\n".join(table), end="\n\n")


if __name__ == "__main__":
    main()
