"""The hybrid scheme of Majeed and Hwang (2023) on Adult, as published and strict.

Pattern-friendly attributes with their bands; originality, disclosure risk under growing
background knowledge, accuracy, distortion, run time and the k that the release really has, for
growing k, beside k-member and Mondrian.

    python experiments/hybrid.py [--k 5,10,20] [--trees 100]
"""

from __future__ import annotations

import argparse
from typing import Any

import pyarrow as pa
import pyarrow.parquet

import aegis
from aegis.anonymizers import ANONYMIZERS, build_release, encode
from common import ADULT, save_chart, write_json
from hybrid_metrics import disclosure_risk, forest_accuracy, originality

QUASI = ("age", "sex", "race", "native-country")
SENSITIVE = "income"
HIERARCHIES = {
    "sex": [["Male", "*"], ["Female", "*"]],
    "race": [
        ["White", "White", "*"],
        *([race, "Not white", "*"] for race in ("Black", "Asian-Pac-Islander")),
        *([race, "Not white", "*"] for race in ("Amer-Indian-Eskimo", "Other")),
    ],
}
"""Ours: the paper shows no hierarchies for these. Countries go by region below."""
REGIONS = {
    "North America": ("United-States", "Canada", "Outlying-US(Guam-USVI-etc)"),
    "Latin America": (
        "Mexico",
        "Puerto-Rico",
        "El-Salvador",
        "Cuba",
        "Jamaica",
        "Dominican-Republic",
        "Guatemala",
        "Columbia",
        "Haiti",
        "Nicaragua",
        "Peru",
        "Ecuador",
        "Trinadad&Tobago",
        "Honduras",
    ),
    "Asia": (
        "Philippines",
        "India",
        "China",
        "Vietnam",
        "Japan",
        "Taiwan",
        "Iran",
        "Hong",
        "Thailand",
        "Cambodia",
        "Laos",
        "South",
    ),
    "Europe": (
        "Germany",
        "England",
        "Italy",
        "Poland",
        "Portugal",
        "Greece",
        "France",
        "Ireland",
        "Yugoslavia",
        "Hungary",
        "Scotland",
        "Holand-Netherlands",
    ),
}
EPSILONS = (0.01, 0.1, 0.5, 1.0, 3.0, 5.0, 10.0)
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "hybrid, published": ("hybrid", {}),
    "hybrid, sensitivity range": ("hybrid", {"sensitivity": None}),
    "hybrid, strict": ("hybrid", {"strict": True}),
    "k-member": ("k-member", {}),
    "mondrian": ("mondrian", {}),
}


def table() -> pa.Table:
    """Return the columns of Adult that the experiment uses."""
    return pyarrow.parquet.read_table(ADULT, columns=[*QUASI, SENSITIVE])


def hierarchies(rows: pa.Table) -> dict[str, list[list[str]]]:
    """Return a hierarchy per category, countries by region."""
    of = {country: region for region, inside in REGIONS.items() for country in inside}
    values = rows["native-country"].drop_null().unique().to_pylist()
    countries = [[value, of.get(value, "Unknown"), "*"] for value in values]
    return {**HIERARCHIES, "native-country": countries}


def main(argv: list[str] | None = None) -> None:
    """Group, measure, and write figures and plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--k", default="5,10,20")
    parser.add_argument("--trees", type=int, default=100)
    arguments = parser.parse_args(argv)
    rows = table()
    roles = dict.fromkeys(QUASI, "quasi-identifier") | {SENSITIVE: "sensitive"}
    records = encode(rows, roles, hierarchies=hierarchies(rows))
    found, patterns = [], None
    raw = {
        "release": "raw",
        "k_asked": 1,
        **figures(rows, rows, arguments.trees),
        "distortion": 0.0,
        "suppressed": 0,
        "seconds": 0.0,
    }
    for k in map(int, arguments.k.split(",")):
        for name, (method, given) in METHODS.items():
            anonymizer = ANONYMIZERS.get(method)
            options = anonymizer.configure(k=k, **given)
            grouped = anonymizer.group(records, options, seed=1)
            released = build_release(rows, records, grouped)
            kept = rows.filter(pa.array(grouped.groups.of >= 0))
            found.append(
                {
                    "release": name,
                    "k_asked": k,
                    **figures(kept, released, arguments.trees),
                    "distortion": grouped.details.get("distortion", grouped.loss.penalty),
                    "suppressed": grouped.suppressed,
                    "seconds": grouped.seconds,
                }
            )
            patterns = grouped.details if name == "hybrid, published" else patterns
            print(found[-1])
    losses = []
    for sensitivity in (1.0, None):
        for epsilon in EPSILONS:
            options = ANONYMIZERS.get("hybrid").configure(
                k=5,
                epsilon=epsilon,
                epsilon_violating=epsilon,
                sensitivity=sensitivity,
                pattern_friendly=("race", "native-country"),
            )
            details = ANONYMIZERS.get("hybrid").group(records, options, seed=1).details
            losses.append(
                {
                    "sensitivity": sensitivity,
                    "epsilon": epsilon,
                    "originality": details["originality"],
                    "distortion": details["distortion"],
                }
            )
            print(losses[-1])
    write_json(
        "hybrid",
        {
            "by_epsilon": losses,
            "quasi_identifiers": list(QUASI),
            "sensitive": SENSITIVE,
            "patterns": (patterns or {}).get("patterns"),
            "violating": (patterns or {}).get("violating"),
            "epsilon": (patterns or {}).get("epsilon"),
            "releases": [raw, *found],
        },
    )
    draw([raw, *found])


def figures(rows: pa.Table, released: pa.Table, trees: int) -> dict[str, Any]:
    """Return what the paper measures on a release, and its true k."""
    risks = disclosure_risk(released, QUASI, SENSITIVE)
    checked = aegis.audit(released, quasi_identifiers=QUASI, sensitive=[SENSITIVE]).report
    return {
        "k_found": checked.k,
        "uniques": checked.uniques,
        "originality": originality(rows, released, QUASI),
        "disclosure_risk": {str(len(one.known)): one.mean for one in risks},
        "accuracy": forest_accuracy(released, QUASI, SENSITIVE, trees=trees),
    }


def draw(rows: list[dict[str, Any]]) -> None:
    """Draw disclosure risk by the number of quasi-identifiers known."""
    import altair

    points = [
        {"release": row["release"], "known": int(known), "risk": risk}
        for row in rows
        if row["k_asked"] in (1, rows[1]["k_asked"])
        for known, risk in row["disclosure_risk"].items()
    ]
    chart = (
        altair.Chart(altair.Data(values=points))
        .mark_line(point=True)
        .encode(
            x=altair.X("known:O", title="Quasi-identifiers known"),
            y=altair.Y("risk:Q", title="Mean disclosure risk", scale=altair.Scale(zero=False)),
            color=altair.Color("release:N", title=None),
        )
        .properties(width=420, height=260)
    )
    save_chart("hybrid", chart)


if __name__ == "__main__":
    main()
