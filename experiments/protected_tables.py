"""Print the tables of docs/experiments.md on protected summaries, from the summaries of the results.

python experiments/protected_tables.py
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from math import isnan
from pathlib import Path
from statistics import mean

SUMMARIES = Path(__file__).parent / "summaries"
SETS = {
    "adult": "Adult, 32,561 rows",
    "air_quality": "Air Quality, 5,000, 4 classes",
    "fars": "FARS, 10,093, 7 classes",
    "hotel": "hotel, 10,000",
    "german": "German, 1,000",
}
MEASURE = "held-out-pillai"
"""The default when this was measured."""
KINDS = ("random", "near ties")
NOISE = ("noise 0.5", "noise 1", "noise 2", "noise 4")
COUNTS = ("counts rounding", "counts cell-keys")
Rows = list[dict[str, str]]


def _read(name: str) -> Rows:
    with (SUMMARIES / f"protected_summaries_{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def _measured() -> dict[str, str]:
    """Return the sets that were measured, with their titles."""
    return {
        name: title
        for name, title in SETS.items()
        if (SUMMARIES / f"protected_summaries_{name}.csv").exists()
    }


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _chosen(rows: Rows, **values: str) -> Rows:
    return [r for r in rows if all(r[name] == value for name, value in values.items())]


def _cell(rows: Rows) -> str:
    """Return Spearman's correlation and the loss in percent, means over draws.

    A draw that scores all configurations alike has no rank correlation, and counts as 0.
    """
    if not rows:
        return ""
    ranks = [float(r["spearman"]) for r in rows]
    rank = mean(0.0 if isnan(rank) else rank for rank in ranks)
    loss = mean(float(r["loss_percent"]) for r in rows)
    return f"{rank:.2f} / {loss:.1f}{_marked(rows)}"


def _marked(rows: Sequence[dict[str, str]]) -> str:
    """Return a mark for what was ranked by label tables alone."""
    used = {r["estimator"] for r in rows}
    return " t" if used == {"tables"} else " (t)" if "tables" in used else ""


def rank_table() -> list[str]:
    """Return how well each protection ranks, as the lines of a table: one for each set and kind."""
    lines = []
    for name, title in _measured().items():
        rows = _read(name)
        for kind in KINDS:
            of = _chosen(rows, configurations=kind, measure=MEASURE)
            cells = [
                *(
                    _cell(_chosen(of, protection="none", asked=asked))
                    for asked in ("halves", "exact", "held out")
                ),
                *(_cell(_chosen(of, protection=p, asked="rule")) for p in (*NOISE, *COUNTS)),
            ]
            lines.append(_line((f"{title}: {kind}", *cells)))
    return lines


def rule_table() -> list[str]:
    """Return what the rule, label tables and codes reach on random configurations."""
    lines = []
    for name, title in _measured().items():
        rows = _chosen(_read(name), configurations="random", measure=MEASURE)
        for asked in ("rule", "tables", "codes"):
            of = _chosen(rows, asked=asked)
            cells = (_cell(_chosen(of, protection=p)) for p in NOISE)
            lines.append(_line((title, asked, *cells)))
    return lines


def derivable_cells() -> dict[str, int]:
    """Return how many cells linear programming derives over all draws of level counts, by set."""
    return {
        name: sum(int(r["derivable_cells"]) for r in _read(name) if r["protection"] in COUNTS)
        for name in _measured()
    }


def main() -> None:
    """Print both tables."""
    print(*rank_table(), "", *rule_table(), "", derivable_cells(), sep="\n")


if __name__ == "__main__":
    main()
