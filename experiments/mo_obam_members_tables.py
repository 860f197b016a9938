"""Print the tables of docs/anonymizers.md on why (k,l)-member's published counts are not reached.

python experiments/mo_obam_members_tables.py
"""

from __future__ import annotations

import csv
import json
from itertools import groupby
from pathlib import Path

SUMMARIES = Path(__file__).parent / "summaries"
METHODS = {"mdav": "k-anonymity", "kl-member": "(k,l)-member"}
AT_RISK = ("at_risk_0.05", "at_risk_0.075", "at_risk_0.1")
READING = ("unit", "near", "seeds", "diverse")
WITHIN = 0.05


def _read(name: str) -> list[dict[str, str]]:
    with (SUMMARIES / f"{name}.csv").open(newline="") as file:
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
    bounds = json.loads((SUMMARIES / "mo_obam_members.json").read_text())["bounds"]
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


def adult_table(k: str) -> list[str]:
    """Return the published row of Adult, and what each reading makes of it in one decision changed."""
    published = _published("Adult", k)
    shown = [
        _line(
            "*published*",
            "",
            published["published_clusters"],
            "",
            _loss(published["published_il"]),
            *(published[f"published_{figure}"] for figure in AT_RISK),
        )
    ]
    for row in _read("mo_obam_members_adult"):
        if row["k"] != k:
            continue
        more = int(row["classes"]) / int(published["published_clusters"]) - 1
        shown.append(
            _line(
                row["reading"],
                row["clusters"],
                row["classes"],
                f"{100 * more:+.1f} %",
                _loss(row["il"]),
                *(row[figure] for figure in AT_RISK),
            )
        )
    return shown


def truncated_table() -> list[str]:
    """Return k-anonymity with rounded and with truncated centroids beside what is published."""
    rows = _read("mo_obam_truncated")
    shown = []
    for data, k in dict.fromkeys((row["data"], row["k"]) for row in rows):
        told = next(
            row
            for row in _read("mo_obam_risk")
            if (row["data"], row["method"], row["k"]) == (data, "mdav", k)
        )
        two = [row for row in rows if (row["data"], row["k"]) == (data, k)]
        triples = [
            " / ".join((told[f"published_{figure}"], *(row[figure] for row in two)))
            for figure in AT_RISK
        ]
        loss = " / ".join(map(_loss, (told["published_il"], *(row["il"] for row in two))))
        count = " / ".join((told["published_clusters"], *(row["classes"] for row in two)))
        shown.append(_line(f"{data}, k = {k}", count, loss, *triples))
    return shown


def main() -> None:
    """Print all tables."""
    german = (bound_table(), reading_table("5", "years"), reading_table("10"))
    for table in (*german, adult_table("5"), adult_table("10"), truncated_table()):
        print("\n".join(table), end="\n\n")


if __name__ == "__main__":
    main()
