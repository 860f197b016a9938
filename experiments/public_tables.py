"""Print the tables of docs/experiments.md on public tables, from the summaries of the results.

python experiments/public_tables.py
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from statistics import mean, stdev

SUMMARIES = Path(__file__).parent / "summaries"
PROXY, DEFAULT, RULE = "proxy, 2,000 rows", "held-out-pillai", "trace within a standard error"
MODELS = {"lr": "logistic regression", "gbdt-60": "boosting", "rf-50": "forest"}
CHOOSERS = {
    "held-out-auc": "expected AUC",
    RULE: "expected AUC, ties by the trace (the rule to be confirmed)",
    "mean of scaled scores": "mean of both, scaled",
    DEFAULT: "default (two codings)",
    "adjusted-pillai": "adjusted trace (searched)",
    PROXY: "logistic regression on 2,000 rows",
    "cmim": "CMIM",
    "adjusted-mi": "mutual information, corrected",
    "g3": "g3",
    "loss": "ARX's loss",
    "nu-entropy": "ARX's NU entropy",
    "discernibility": "ARX's discernibility",
    "classification": "ARX's classification metric",
}
TABLES = {
    "bank-calls": "calls of a bank",
    "telco": "telephone contracts",
    "thyroid": "thyroid",
    "resumes": "answers to applications",
    "email": "unwanted mail",
    "chains": "free light chains, deaths",
    "benefits": "unemployment benefits",
    "disability": "disability",
    "juice": "orange juice bought",
    "election": "British vote",
    "cats": "cats adopted",
    "smokers": "smokers",
    "prison": "back in prison",
    "tumours": "tumours that came back",
    "breast": "breast cancer, deaths",
    "parks": "price for a park",
    "cancelled": "cancelled bookings",
    "bans": "smoking at work",
    "suicide": "suicide attempts",
    "rain": "rain tomorrow",
    "pension": "pension plan at work",
    "census": "census",
    "court": "court records",
    "credit": "credit",
    "chile": "vote in Chile",
    "crashes": "deaths in crashes",
    "attrition": "staff who left",
    "stroke": "stroke",
    "insurance": "health insurance",
    "churn": "telephone contracts ended",
    "mortgage": "mortgage refused",
    "remote": "remote work",
}
SHOWN = ("held-out-auc", RULE, DEFAULT, "adjusted-pillai")
COMPARED = {
    (RULE, DEFAULT): "the rule less the default",
    ("held-out-auc", DEFAULT): "expected AUC less the default",
    (RULE, PROXY): "the rule less logistic regression on 2,000 rows",
    ("held-out-auc", PROXY): "expected AUC less logistic regression on 2,000 rows",
}
"""Choosers that are held against each other by model."""
RELEASES = {
    "trace": "default",
    "expected AUC": "expected AUC",
    "loss": "loss",
    "NU entropy": "NU entropy",
    "discernibility": "discernibility",
    "classification": "classification",
    "mondrian": "Mondrian",
    "mdav": "MDAV",
    "k-member": "k-member",
}
KIND_CHOOSERS = ("held-out-auc", RULE, DEFAULT)
EARLIER, NEW = "shape_of_scores_choosers", "confirmation"
KINDS = {
    "rare": (
        (EARLIER, "crashes", "deaths in crashes, 5 %"),
        (EARLIER, "stroke", "strokes, 5 %"),
        (EARLIER, "census", "census, 6 %"),
        (EARLIER, "lending", "loans, 6 %"),
        (NEW, "thyroid", "thyroid, 6 %"),
        (NEW, "resumes", "answers to applications, 8 %"),
        (NEW, "email", "unwanted mail, 9 %"),
        (EARLIER, "remote", "remote work, 10 %"),
        (NEW, "bank-calls", "calls of a bank, 12 %"),
        (EARLIER, "mortgage", "mortgage refused, 12 %"),
    ),
    "classes": (
        (EARLIER, "chile", "vote in Chile, 4 classes"),
        (NEW, "election", "British vote, 3 classes"),
        (NEW, "parks", "price for a park, 3 classes"),
    ),
    "tiny": (
        (EARLIER, "attrition", "staff who left, 1,470 rows"),
        (NEW, "election", "British vote, 1,525 rows"),
        (NEW, "smokers", "smokers, 1,691 rows"),
        (NEW, "prison", "back in prison, 1,445 rows"),
        (NEW, "juice", "orange juice bought, 1,070 rows"),
        (NEW, "rain", "rain tomorrow, 1,000 rows"),
        (NEW, "cancelled", "cancelled bookings, 1,000 rows"),
    ),
    "keys": (
        (EARLIER, "court", "court records, 7,214 rows, near-keys among them"),
        (EARLIER, "credit", "credit, amounts that hardly repeat"),
        (NEW, "cancelled", "cancelled bookings, agent and company"),
    ),
}
"""Tables of a kind: the result that holds them, their name there, and what they are."""
Rows = list[dict[str, str]]


def _read(name: str) -> Rows:
    with (SUMMARIES / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def _figures(rows: Rows, chooser: str) -> str:
    own = [r for r in rows if r["chooser"] == chooser and r["model"] != "nb"]
    if not own:
        return "-"
    correlation, lost = (
        mean(float(r[column] or 0) for r in own) for column in ("spearman", "points_lost")
    )
    return f"{correlation:.3f} ({lost:.2f})"


def _classes(row: dict[str, str]) -> str:
    rare = f"{100 * float(row['rarest']):.0f} %"
    return rare if row["classes"] == "2" else f"{row['classes']} classes"


def confirmation_table() -> list[str]:
    """Return a row for each table that took no part: correlation and points lost by chooser."""
    rows = _read("confirmation")
    lines = []
    for name, title in TABLES.items():
        own = [r for r in rows if r["data"] == name]
        if own:
            cells = [_figures(own, chooser) for chooser in (*SHOWN, PROXY)]
            title = f"{title}, {_classes(own[0])}{_alone(own)}"
            lines.append(_line([title, *cells, _ceiling(own)]))
    return lines


def again_table() -> list[str]:
    """Return a row for each table that was ranked again by a later version of the scores, and their means:
    the expected AUC then and now, the former default now, a proxy, and what halves of the splits agree.
    """
    former, now = _read("confirmation"), _read("confirmation_again")
    names = list(dict.fromkeys(row["data"] for row in now))
    lines = []
    for title, ours in [(TABLES[n], [n]) for n in names] + [("**mean**", names)]:
        then, own = ([r for r in rows if r["data"] in ours] for rows in (former, now))
        scores = [_figures(own, chooser) for chooser in ("held-out-auc", DEFAULT, PROXY)]
        lines.append(_line([title, _figures(then, "held-out-auc"), *scores, _ceiling(own)]))
    return lines


def _told(models: str, reference: str) -> dict[str, dict[str, float]]:
    told = json.loads((SUMMARIES / "confirmation.json").read_text())
    return {
        one["chooser"]: one
        for one in told["means"]
        if (one["models"], one["reference"]) == (models, reference)
    }


def chooser_table(models: str) -> list[str]:
    """Return a row for each chooser: means over tables and models, and its gain over the default."""
    told = _told(models, DEFAULT)
    lines = []
    for chooser, title in CHOOSERS.items():
        one = told[chooser]
        own = [f"{one['spearman']:.3f}", f"{one['points_lost']:.2f}"]
        gains = ["", "", ""] if chooser == DEFAULT else _gains(one)
        lines.append(_line([title, *own, *gains]))
    return lines


def _gains(one: dict[str, float]) -> list[str]:
    return [
        "{spearman_gain:+.3f} ({spearman_error:.3f})".format(**one),
        "{spearman_more} / {spearman_less}".format(**one),
        "{points_lost_gain:+.2f} ({points_lost_error:.2f})".format(**one),
    ]


def model_table() -> list[str]:
    """Return a row for each comparison and model: correlation and points lost of one less the other."""
    lines = []
    for chooser, reference in COMPARED:
        for models, title in {" ".join(MODELS): "the three", **MODELS, "nb": "naive Bayes"}.items():
            one = _told(models, reference)[chooser]
            titles = [COMPARED[chooser, reference], title]
            lines.append(_line([*titles, *_gains(one)]))
    return lines


def rare_table() -> list[str]:
    """Return the correlations on the calls of a bank by model, and the ceiling."""
    rows = [r for r in _read("confirmation") if r["data"] == "bank-calls"]
    by = {(r["chooser"], r["model"]): r for r in rows}
    models = (*MODELS, "nb")
    lines = []
    for chooser in ("held-out-auc", "held-out-pillai", "adjusted-pillai", PROXY, "loss"):
        cells = [f"{float(by[chooser, m]['spearman']):.2f}" for m in models]
        lines.append(_line([CHOOSERS[chooser], *cells]))
    cells = [f"{float(by['held-out-auc', m]['ceiling']):.2f}" for m in models]
    return [*lines, _line(["*two halves of the splits*", *cells])]


def kind_table(kind: str) -> list[str]:
    """Return a row for each table of a kind: correlation and points lost by chooser, and the ceiling."""
    lines = []
    for source, name, title in KINDS[kind]:
        own = [r for r in _read(source) if r["data"] == name]
        if not own:
            continue
        cells = [_figures(own, chooser) for chooser in KIND_CHOOSERS]
        lines.append(_line([title + _alone(own), *cells, _ceiling(own)]))
    return lines


def _alone(rows: Rows) -> str:
    """Return what to say of a table that only one of the three models was trained on."""
    models = {r["model"] for r in rows} & set(MODELS)
    return "" if len(models) > 1 else f" ({MODELS[models.pop()]})"


def _ceiling(rows: Rows) -> str:
    ceilings = {(r["data"], r["model"]): float(r["ceiling"]) for r in rows if r["model"] in MODELS}
    return f"{mean(ceilings.values()):.2f}"


def optima_table(rule: str) -> list[str]:
    """Return a row for each table: AUC of the optima under a rule, mean over three models, in points."""
    rows = _read("optima_public")
    lines = []
    for name, title in TABLES.items():
        own = [r for r in rows if r["data"] == name]
        if any(r["rule"] == rule for r in own):
            cells = [_mean_auc(own, rule, release) for release in RELEASES]
            lines.append(_line([title, _mean_auc(own, "none", "unmasked"), *cells]))
    return lines


def _mean_auc(rows: Rows, rule: str, release: str) -> str:
    found = [float(r["auc"]) for r in rows if (r["rule"], r["release"]) == (rule, release)]
    return f"{100 * mean(found):.1f}" if found else "-"


def ahead_table() -> list[str]:
    """Return how far the default's optimum is ahead of each other release, by rule and model.

    Points of AUC, mean over the tables, and its standard error over them.
    """
    rows = _read("optima_public")
    auc: dict[tuple[str, ...], list[float]] = {}
    for r in rows:
        auc.setdefault((r["rule"], r["release"], r["model"], r["data"]), []).append(float(r["auc"]))
    lines = []
    for rule in dict.fromkeys(r["rule"] for r in rows if r["rule"] != "none"):
        for release, title in list(RELEASES.items())[1:]:
            cells = []
            for model in MODELS:
                apart = [
                    100 * (mean(auc[rule, "trace", model, name]) - mean(values))
                    for (r, other, m, name), values in auc.items()
                    if (r, other, m) == (rule, release, model)
                    and (rule, "trace", model, name) in auc
                ]
                error = f" ({stdev(apart) / len(apart) ** 0.5:.1f})" if len(apart) > 1 else ""
                cells.append(f"{mean(apart):+.1f}{error}")
            lines.append(_line([rule, title, *cells]))
    return lines


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Print all tables."""
    rules = ("k = 5, 2 %", "k = 10, 0 %")
    groups = (" ".join(MODELS), "lr")
    tables = [confirmation_table(), *map(chooser_table, groups), model_table(), rare_table()]
    tables += map(kind_table, KINDS)
    for table in (*tables, *map(optima_table, rules), ahead_table(), again_table()):
        print("\n".join(table), end="\n\n")


if __name__ == "__main__":
    main()
