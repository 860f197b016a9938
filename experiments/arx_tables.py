"""The tables of ARX's test cases, from summaries/arx_cases.json, as the docs hold them.

python experiments/arx_tables.py          # the summary, for docs/arx-cases.md
python experiments/arx_tables.py --cases  # every case
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

SUMMARIES = Path(__file__).parent / "summaries" / "arx_cases.json"
VERDICTS = (
    "agrees",
    "better",
    "theirs fails the rule",
    "differs",
    "not proven in time",
    "refused",
    "not run",
    "no data",
)
REASONS = {
    "local recoding": "local recoding by ARX's repeated runs",
    "a classification target": "a target of ARX's classification metric that is no label",
    "k-map of an estimated population": "k-map of a population that ARX estimates",
}
"""What is missing, where the reader of a case says it in the words of the test."""


def results() -> dict[str, Any]:
    """Return the result of every case that was read."""
    read: dict[str, Any] = json.loads(SUMMARIES.read_text(encoding="utf-8"))
    return {key: one for key, one in read.items() if "verdict" in one}


def summary_table() -> list[str]:
    """Return cases by test class and verdict, a line each; the last one adds them up."""
    heads = ["test class", "cases", "expressible", *VERDICTS, "processor time, s"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    rows: dict[str, Counter[str]] = {}
    for key, one in results().items():
        row = rows.setdefault(_class(key), Counter())
        row[one["verdict"]] += 1
        row["seconds"] += one.get("seconds", 0)
    total: Counter[str] = sum(rows.values(), Counter())
    for name, row in [*sorted(rows.items()), ("all", total)]:
        cases = sum(n for v, n in row.items() if v != "seconds")
        cells = [cases, cases - row["not expressible"], *(row[v] or "" for v in VERDICTS)]
        lines.append(f"| {name} | {' | '.join(map(str, cells))} | {row['seconds']:.1f} |")
    return lines


def missing_table() -> list[str]:
    """Return what keeps cases of optima from being said, and how many each."""
    missing = Counter(
        one["missing"]
        for key, one in results().items()
        if one["verdict"] == "not expressible" and _class(key).startswith("Anonymization")
    )
    lines = ["| what Aegis cannot express | cases |", "|---|---|"]
    return lines + [f"| {REASONS.get(why, why)} | {n} |" for why, n in missing.most_common()]


def case_table() -> list[str]:
    """Return every case that expects an optimum, a line each."""
    heads = ("case", "table", "rule", "loss", "expected", "ours", "verdict", "processor time, s")
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for key, one in results().items():
        if not _class(key).startswith("Anonymization"):
            continue
        verdict = one["verdict"]
        if verdict == "not expressible":
            missing = REASONS.get(one["missing"], one["missing"])
            lines.append(f"| {_name(key)} | | | | | | not expressible: {missing} | |")
            continue
        table = one["table"] + (f" of {one['population']}" if one.get("population") else "")
        seconds = f"{one['seconds']:.2f}" if "seconds" in one else ""
        rule = json.dumps(one["rule"]).replace('"', "").replace("|", "\\|")
        cells = (table, f"`{rule}`", f"`{one['loss']}`", *_figures(one), verdict, seconds)
        lines.append(f"| {_name(key)} | {' | '.join(cells)} |")
    return lines


def _figures(one: dict[str, Any]) -> tuple[str, str]:
    """Return the figures at the optimum: expected, and ours."""
    if "nodes" in one and one.get("agreeing") is not None:
        return "one transformation", f"{one['agreeing']} of {one['nodes']} alike"
    if "ours" not in one:
        return "", ""
    return _figure(one["expected"]), _figure(one["ours"])


def _figure(value: float | None) -> str:
    return "none" if value is None else f"{value:.9g}"


def _class(key: str) -> str:
    return key.partition("[")[0].removeprefix("Test")


def _name(key: str) -> str:
    return f"{_class(key).removeprefix('Anonymization')} {key.partition('[')[2].rstrip(']')}"


if __name__ == "__main__":
    made = case_table() if "--cases" in sys.argv else [*summary_table(), "", *missing_table()]
    print("\n".join(made))
