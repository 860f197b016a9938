"""Print the tables of docs/anonymizers.md on MO-OBAM from the summaries of the results.

python experiments/mo_obam_tables.py
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

SUMMARIES = Path(__file__).parent / "summaries"
METHODS = {
    "raw": "raw",
    "mo-obam": "MO-OBAM",
    "kl-member": "(k,l)-member, l = 2",
    "mdav": "k-anonymity / MDAV",
}
MODELS = {
    "dt": "decision tree",
    "lr": "logistic",
    "nb": "naive Bayes",
    "mlp": "neural network",
    "nn": "neural network",
    "rf": "random forest",
    "svm": "linear SVM",
}
SOURCES = {"published": "published", "program": "authors' program", "ours": "ours"}
AT_RISK = ("at_risk_0.05", "at_risk_0.075", "at_risk_0.1")


def _read(name: str) -> list[dict[str, str]]:
    with (SUMMARIES / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def _line(*cells: str) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def _loss(text: str) -> str:
    return f"{float(text):.4f}".lstrip("0") if text else ""


def risk_table() -> list[str]:
    """Return the rows of published figures and ours: classes of equal released values."""
    lines = []
    for row in _read("mo_obam_risk"):
        raw, title = row["method"] == "raw", METHODS[row["method"]]
        shown = "" if raw else "shown_"
        losses = f"{_loss(row['published_il'])} / {_loss(row['il_rounded'])}"
        classes = f"{row['published_clusters']} / {row[f'{shown}clusters']}"
        if not raw and row["clusters"] != row["shown_clusters"]:
            classes += f" ({row['clusters']})"
        counts = [
            f"{row[f'published_{n}'] or '-'} / {row[f'{shown}{n}']}"
            for n in (*AT_RISK, "homogeneous")
        ]
        name = f"{row['data']}, {title}" + ("" if raw else f", k = {row['k']}")
        lines.append(_line(name, classes, "" if raw else losses, *counts))
    return lines


def peer_table() -> list[str]:
    """Return the rows of published figures, the authors' program and ours for growing k."""
    return [
        _line(row["data"], row["k"], SOURCES[row["source"]], row["clusters"], row["below_k"])
        + _line(
            *(_loss(row[figure]) for figure in ("il", "il_rounded", "il_means", "il_scaled")),
            *(row[figure] for figure in (*AT_RISK, "homogeneous")),
        )[1:]
        for row in _read("mo_obam_peer")
        if row["n_c"] in ("30", "100")
    ]


def grid_table() -> list[str]:
    """Return the rows of other numbers of clusters: the program, ours for k = 5 and for 20."""
    rows = {(row["n_c"], row["k"], row["source"]): row for row in _read("mo_obam_peer")}
    counts = dict.fromkeys(row[0] for row in rows if row[0] not in ("30", "100"))
    figures = ("il", *AT_RISK, "homogeneous")
    return [
        _line(
            "German",
            n_c,
            *(
                " / ".join(
                    _loss(rows[n_c, *one][figure]) if figure == "il" else rows[n_c, *one][figure]
                    for one in (("5", "program"), ("5", "ours"), ("20", "ours"))
                )
                for figure in figures
            ),
        )
        for n_c in counts
    ]


def model_table() -> list[str]:
    """Return the rows of trained models: F1 of the original, and what each method changes."""
    lines = []
    for name in ("German", "Adult"):
        found: dict[str, str] = {}
        for path in sorted(SUMMARIES.glob(f"mo_obam_models_{name}*.json")):
            found |= _models(name, json.loads(path.read_text()))
        lines += [found[model] for model in MODELS if model in found]
    return lines


def _models(name: str, content: dict[str, Any]) -> dict[str, str]:
    original = {
        one["model"]: one["value"]
        for one in content["scores"]
        if one["configuration"] == "original" and one["metric"] == "f1"
    }
    commoner = {
        one["model"]: one["value"]
        for one in content["f1_of_the_commoner_class"]
        if one["configuration"] == "original"
    }
    changes = {
        (one["model"], one["configuration"]): f"{_change(one['difference'])} ({_chance(one['p'])})"
        for one in content["against_original"]
        if one["metric"] == "f1"
    }
    published = content["published_f1_of_the_original"]
    return {
        model: _line(
            name,
            MODELS[model],
            str(content["splits"]),
            *(_share(values[model]) for values in (published, commoner, original)),
            *(changes[model, method] for method in ("mo-obam", "mdav", "kl-member")),
        )
        for model in original
    }


def _share(value: float) -> str:
    return f"{value:.3f}".lstrip("0")


def _change(value: float) -> str:
    return f"{value:+.3f}".replace("0.", ".", 1) if abs(value) >= 0.0005 else ".000"


def _chance(p: float) -> str:
    if p < 0.0005:
        return "<.001"
    if p >= 0.995:
        return "1.0"
    return f"{p:.{3 if p < 0.01 else 2}f}".lstrip("0")


def main() -> None:
    """Print all tables."""
    for table in (risk_table(), peer_table(), grid_table(), model_table()):
        print("\n".join(table), end="\n\n")


if __name__ == "__main__":
    main()
