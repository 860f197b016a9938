"""Print the tables of docs/anonymizers.md on trained models and Figure 2 of MO-OBAM's paper.

python experiments/mo_obam_f1_tables.py
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

SUMMARIES = Path(__file__).parent / "summaries"
MODELS = ("dt", "lr", "nb", "nn", "rf", "svm")
PUBLISHED: dict[str, tuple[float, ...]] = {
    "German, original, k = 1": (0.7702, 0.8124, 0.7938, 0.7109, 0.8381, 0.8266),
    "German, MO-OBAM, 30, k = 5": (0.7708, 0.8079, 0.7901, 0.721, 0.8396, 0.8273),
    "German, MO-OBAM, 4, k = 5": (0.7701, 0.8123, 0.791, 0.7153, 0.8382, 0.8239),
    "German, MO-OBAM, 30, k = 10": (0.7683, 0.8049, 0.7928, 0.7208, 0.84, 0.8244),
    "German, MO-OBAM, 4, k = 10": (0.7714, 0.8077, 0.7863, 0.7148, 0.8398, 0.8251),
    "German, MO-OBAM, 30, k = 15": (0.769, 0.8038, 0.796, 0.7156, 0.8341, 0.8245),
    "German, MO-OBAM, 4, k = 15": (0.7698, 0.809, 0.7923, 0.7218, 0.8387, 0.8241),
    "German, MO-OBAM, 30, k = 20": (0.7699, 0.8073, 0.7939, 0.7239, 0.8373, 0.8265),
    "German, MO-OBAM, 4, k = 20": (0.7696, 0.8057, 0.7878, 0.7189, 0.8351, 0.8264),
    "Adult, original, k = 1": (0.6203, 0.4052, 0.4183, 0.3475, 0.6787, 0.2757),
    "Adult, MO-OBAM, 100, k = 5": (0.6202, 0.4077, 0.4192, 0.3481, 0.6684, 0.2729),
    "Adult, MO-OBAM, 4, k = 5": (0.6186, 0.4014, 0.4193, 0.3566, 0.66, 0.2727),
    "Adult, MO-OBAM, 100, k = 10": (0.6203, 0.4076, 0.419, 0.3495, 0.6695, 0.2746),
    "Adult, MO-OBAM, 4, k = 10": (0.6194, 0.4022, 0.4189, 0.3492, 0.6607, 0.2743),
    "Adult, MO-OBAM, 100, k = 15": (0.6203, 0.4052, 0.419, 0.3477, 0.6674, 0.2741),
    "Adult, MO-OBAM, 4, k = 15": (0.618, 0.4011, 0.4196, 0.353, 0.6608, 0.2741),
    "Adult, MO-OBAM, 100, k = 20": (0.6203, 0.4073, 0.4197, 0.3478, 0.6688, 0.2746),
    "Adult, MO-OBAM, 4, k = 20": (0.6183, 0.4002, 0.4182, 0.3504, 0.6603, 0.2746),
    "German, k-anonymity, k = 5": (0.769, 0.8156, 0.7934, 0.7147, 0.8412, 0.8252),
    "German, (k,l)-member, k = 5": (0.7704, 0.8121, 0.795, 0.7227, 0.839, 0.8235),
    "German, k-anonymity, k = 10": (0.7707, 0.8129, 0.7903, 0.7047, 0.8428, 0.8252),
    "German, (k,l)-member, k = 10": (0.77, 0.8094, 0.7972, 0.717, 0.8376, 0.8244),
    "German, k-anonymity, k = 15": (0.7719, 0.8146, 0.7912, 0.7086, 0.8381, 0.8257),
    "German, (k,l)-member, k = 15": (0.7693, 0.8085, 0.7938, 0.7167, 0.8373, 0.8284),
    "German, k-anonymity, k = 20": (0.7703, 0.8123, 0.7916, 0.7108, 0.8361, 0.8262),
    "German, (k,l)-member, k = 20": (0.7659, 0.8072, 0.7943, 0.7172, 0.8384, 0.8256),
}
"""Tables VII(a), VII(b) and VIII(a), lines 442 to 466 and 484 to 505 of the text; VIII(b) and IX are
lost in it. In the order of `MODELS`."""
SIGNIFICANT = 0.05
FIGURES = ("at_risk_0.05", "at_risk_0.075", "at_risk_0.1", "homogeneous")


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _share(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}".lstrip("0")


def _found() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((SUMMARIES / "mo_obam_f1.json").read_text())
    return content


def f1_table() -> list[str]:
    """Return the rows of F1, published / ours; in bold where ours differs from the original's."""
    means = {(row["release"], row["model"]): row for row in _found()["means"]}
    lines = []
    for release, published in PUBLISHED.items():
        cells = []
        for model, value in zip(MODELS, published, strict=True):
            own = means.get((release, model))
            shown = "-" if own is None else _share(own["f1"])
            if own is not None and own["p"] < SIGNIFICANT:
                shown = f"**{shown}**"
            cells.append(f"{_share(value)} / {shown}")
        lines.append(_line(release.removesuffix(", k = 1"), *cells))
    return lines


def four_clusters_table() -> list[str]:
    """Return the rows of loss and risk at n_C = 4 with lambda = 1."""
    return [
        _line(
            release,
            str(entry["clusters"]),
            _share(entry["il"], 4),
            *(str(entry[figure]) for figure in FIGURES),
        )
        for release, entry in _found()["releases"].items()
        if "MO-OBAM, 4" in release
    ]


def grid_table() -> list[str]:
    """Return the rows of Figure 2: loss, records at risk and homogeneous ones over n_C and lambda."""
    with (SUMMARIES / "mo_obam_figure_2.csv").open(newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: int(row["n_c"]))
    weights = list(dict.fromkeys(row["lambda"] for row in rows))
    lines = []
    for clusters in dict.fromkeys(row["n_c"] for row in rows):
        own = {row["lambda"]: row for row in rows if row["n_c"] == clusters}
        cells = (
            f"{_share(float(own[w]['il']), 4)} / {own[w]['at_risk_0.05']} / {own[w]['homogeneous']}"
            for w in weights
        )
        lines.append(_line(clusters, *cells))
    return lines


def main() -> None:
    """Print all tables."""
    for table in (f1_table(), four_clusters_table(), grid_table()):
        print("\n".join(table), end="\n\n")


if __name__ == "__main__":
    main()
