"""Print the tables of docs/anonymizers.md on why (k,l)-member's published counts are not reached.

python experiments/mo_obam_members_tables.py
"""

from __future__ import annotations

import csv
import json
from itertools import groupby
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
METHODS = {"mdav": "k-anonymity", "kl-member": "(k,l)-member"}
AT_RISK = ("at_risk_0.05", "at_risk_0.075", "at_risk_0.1")
READING = ("unit", "near", "seeds", "diverse")
WITHIN = 0.05


def _read(name: str) -> list[dict[str, str]]:
    with (RESULTS / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def _published(data: str, k: str) -> dict[str, str]:
    return next(
        row
        for row in _read("mo_obam_risk")
        if (row["data"], row["method"], row["k"]) == (data, "kl-member", k)
    )


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _loss(text: str) -> str:
    return f"{float(text):.4f}".lstrip("0")


def _words(row: dict[str, str]) -> str:
    unit = {"years": "years", "deviations": "standard deviations", "range": "shares of the range"}
    first = "from the first record" if row["diverse"] == "first" else "at the end"
    diverse = f"; l values {first}" if row["l"] != "1" else "; without l"
    return f"{unit[row['unit']]}, to the {row['near']}, seeds {row['seeds']}{diverse}"


def off(row: dict[str, str], published: dict[str, str]) -> float:
    """Return the largest relative difference: clusters, and records at risk where there are any."""
    pairs = [(row["groups"], published["published_clusters"])]
    pairs += [(row[figure], published[f"published_{figure}"]) for figure in AT_RISK]
    return max(
        abs(float(own) - float(told)) / float(told) if float(told) else float(own)
        for own, told in pairs
    )


def bound_table() -> list[str]:
    """Return the published count of German's rows beside the most that their own columns allow."""
    bounds = json.loads((RESULTS / "mo_obam_members.json").read_text())["bounds"]
    return [
        _line(
            f"{METHODS[row['method']]}, k = {row['k']}", str(row["published"]), str(row["at_most"])
        )
        for row in sorted(bounds, key=lambda row: str(row["method"]), reverse=True)
        if row["data"] == "German"
    ]


def reading_table(k: str, units: str = "years,deviations,range") -> list[str]:
    """Return the published row of German, and the closest seed of the readings within 5 % of it."""
    published = _published("German", k)
    shown = [
        _line(
            "*published*",
            published["published_clusters"],
            "",
            _loss(published["published_il"]),
            *(published[f"published_{figure}"] for figure in AT_RISK),
            "",
        )
    ]
    rows = [row for row in _read("mo_obam_members") if (row["data"], row["k"]) == ("German", k)]
    for _, members in groupby(rows, key=lambda row: tuple(row[part] for part in READING)):
        own = list(members)
        met = [row for row in own if off(row, published) <= WITHIN]
        if not met or met[0]["unit"] not in units.split(","):
            continue
        best = min(met, key=lambda row: off(row, published))
        shown.append(
            _line(
                _words(best),
                best["groups"],
                best["classes"],
                _loss(best["il"]),
                *(best[figure] for figure in AT_RISK),
                f"{len(met)} of {len(own)}",
            )
        )
    return shown


def adult_table() -> list[str]:
    """Return the published rows of Adult and what the readings give."""
    shown = []
    rows = [row for row in _read("mo_obam_members") if row["data"] == "Adult"]
    for k in dict.fromkeys(row["k"] for row in rows):
        published = _published("Adult", k)
        shown.append(
            _line(
                f"*published*, k = {k}",
                "",
                published["published_clusters"],
                _loss(published["published_il"]),
                *(published[f"published_{figure}"] for figure in AT_RISK),
            )
        )
        shown += [
            _line(
                _words(row),
                row["groups"],
                row["classes"],
                _loss(row["il"]),
                *(row[figure] for figure in AT_RISK),
            )
            for row in rows
            if row["k"] == k
        ]
    return shown


def main() -> None:
    """Print all tables."""
    for table in (bound_table(), reading_table("5", "years"), reading_table("10"), adult_table()):
        print("\n".join(table), end="\n\n")


if __name__ == "__main__":
    main()
