"""Draw what the rule to be confirmed gains over the default, table by table.

    python experiments/confirmation_plot.py

Reads `results/confirmation.csv` and trains nothing. One line a table: the difference of Spearman's
correlations with each of the three models, and their mean. Below, the mean over the tables with two standard errors
on either side. Writes `results/confirmation.svg`.
"""

from __future__ import annotations

import csv
from statistics import mean, stdev
from typing import Any

from common import result, save_chart
from public_tables import DEFAULT, MODELS, RULE, TABLES

NAME = "confirmation"
ALL = "mean of all tables, two standard errors"


def differences() -> list[dict[str, Any]]:
    """Return one row per table and model: correlation of the rule less that of the default."""
    with result(f"{NAME}.csv").open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["model"] in MODELS]
    said = {(r["chooser"], r["data"], r["model"]): float(r["spearman"] or 0) for r in rows}
    return [
        {"table": TABLES[name], "model": MODELS[model], "gain": value - said[DEFAULT, name, model]}
        for (chooser, name, model), value in said.items()
        if chooser == RULE
    ]


def means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the mean over the models of each table, the largest first."""
    tables = dict.fromkeys(row["table"] for row in rows)
    listed = [
        {"table": t, "gain": mean(row["gain"] for row in rows if row["table"] == t)} for t in tables
    ]
    return sorted(listed, key=lambda row: -row["gain"])


def main() -> None:
    """Draw, write, and print the mean with its error."""
    import altair

    rows = differences()
    by_table = means(rows)
    gains = [row["gain"] for row in by_table]
    middle, error = mean(gains), stdev(gains) / len(gains) ** 0.5
    over_all = [
        {"table": ALL, "gain": middle, "low": middle - 2 * error, "high": middle + 2 * error}
    ]
    order = [*(row["table"] for row in by_table), ALL]
    x = altair.X("gain:Q", title="Spearman's correlation, the rule less the default")
    y = altair.Y("table:N", sort=order, title=None, axis=altair.Axis(labelLimit=260))

    def of(data: list[dict[str, Any]]) -> Any:
        return altair.Chart(altair.Data(values=data))

    layers = (
        of([{"gain": 0}]).mark_rule(color="gray").encode(x=x),
        of(over_all).mark_rule(strokeWidth=2).encode(x=altair.X("low:Q"), x2="high:Q", y=y),
        of(rows).mark_point(filled=True, size=35, opacity=0.7).encode(x=x, y=y, color="model:N"),
        of([*by_table, *over_all]).mark_tick(thickness=3, color="black").encode(x=x, y=y),
    )
    save_chart(NAME, altair.layer(*layers).properties(width=420))
    print(f"{len(gains)} tables: {middle:+.3f} ({error:.3f})")


if __name__ == "__main__":
    main()
