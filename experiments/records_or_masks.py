"""Group records, or mask attributes? Adult, German credit and Air Quality, at equal k.

The searched best masking configuration against record-level releases under the same rule, columns
that are no quasi-identifier under the searched masks in all of them: the label measure and models
trained on each, whoever wins.

    python experiments/records_or_masks.py [--data Adult,German,AQ] [--store FILE]
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from aegis import advise, evaluate, search
from aegis.anonymizers import Recipe
from aegis.policy import Configuration, Policy, Role, load_policy
from aegis.sources import open_table
from aegis.words import json_fields
from common import ADULT, ROOT, data, save_chart, write_json
from records import german

METHODS: dict[str, tuple[Recipe, ...]] = {
    "Adult": (
        Recipe("mondrian"),
        Recipe("mdav"),
        Recipe("k-member"),
        Recipe("mo-obam", {"clusters": 100, "starts": 1}),
    ),
    "German": (
        *(Recipe(name) for name in ("mondrian", "mdav", "k-member", "kl-member")),
        Recipe("mo-obam", {"clusters": 100}),
    ),
    "AQ": (
        *(Recipe(name) for name in ("mondrian", "mdav", "v-mdav", "k-member")),
        Recipe("mo-obam", {"clusters": 100, "starts": 1}),
    ),
}
MODELS = {
    "Adult": ("lr", "nb", "gbdt"),
    "German": ("lr", "rf", "nb", "gbdt"),
    "AQ": ("lr", "rf", "nb", "gbdt"),
}
SPLITS = {"Adult": 5, "German": 20, "AQ": 10}
METRIC = {"Adult": "accuracy", "German": "roc_auc", "AQ": "accuracy"}


def problem(name: str) -> tuple[Any, Policy]:
    """Return the table and the example policy of a data set."""
    tables = {
        "Adult": lambda: ADULT,
        "German": german,
        "AQ": lambda: data("air_quality", "updated_pollution_dataset.csv"),
    }
    folder = {"Adult": "adult", "German": "german_credit", "AQ": "air_quality"}[name]
    return tables[name](), load_policy(ROOT / "examples" / folder / "policy.yaml")


def alike(policy: Policy, chosen: Configuration) -> Policy:
    """Return the policy with the searched mask as only candidate of other columns.

    All releases then differ in the quasi-identifiers alone.
    """
    attributes = {
        name: one
        if one.role is Role.QUASI_IDENTIFIER or name not in chosen.masks
        else replace(one, masks=(chosen.masks[name],))
        for name, one in policy.attributes.items()
    }
    return replace(policy, attributes=attributes)


def compare(name: str, store: str | None) -> dict[str, Any]:
    """Search, group, train, and return scores and trained figures side by side."""
    table, policy = problem(name)
    source = open_table(table)
    searched = search(source, policy, top=1, explain_best=False, time_limit=120)
    best = searched.require_best()
    chosen = replace(best.configuration, name="masks")
    policy = alike(policy, chosen)
    found = evaluate(
        source,
        policy,
        configurations={"masks": chosen},
        models=MODELS[name],
        metric=METRIC[name],
        splits=SPLITS[name],
        comparators=(),
        methods=METHODS[name],
        seed=1,
        store=store,
    )
    advice = advise(source, policy, configurations={"masks": chosen}, methods=METHODS[name], seed=1)
    return {
        "rule": str(policy.privacy),
        "optimal": searched.optimal,
        "masks": best.mask_texts,
        "metric": METRIC[name],
        "splits": SPLITS[name],
        "ranking": [
            {
                "name": one.name,
                "score": one.score,
                "kept": one.utility_kept,
                "after_suppression": None if one.utility is None else one.utility.value,
                "admissible": one.admissible,
                "smallest_class": one.smallest_class,
                "suppressed_rows": one.suppressed_rows,
                "violations": list(one.violations),
                "method": None if one.method is None else one.method.to_dict(),
            }
            for one in advice.ranking
        ],
        "trained": [json_fields(one) for one in found.scores if one.metric == METRIC[name]],
        "against_original": [
            json_fields(one) for one in found.against_original if one.metric == METRIC[name]
        ],
        "importance_shift": dict(found.importance_shift),
    }


def draw(results: dict[str, dict[str, Any]]) -> None:
    """Draw the label measure kept against the trained figure."""
    import altair

    points = []
    for name, result in results.items():
        kept = {one["name"]: one["kept"] for one in result["ranking"]}
        points += [
            {
                "data": name,
                "release": one["configuration"],
                "kept": kept[one["configuration"]],
                "value": one["value"],
                "model": one["model"],
            }
            for one in result["trained"]
        ]
    chart = (
        altair.Chart(altair.Data(values=points))
        .mark_point(filled=True, size=70)
        .encode(
            x=altair.X("kept:Q", title="Utility kept (%)", scale=altair.Scale(zero=False)),
            y=altair.Y("value:Q", title="Trained", scale=altair.Scale(zero=False)),
            color=altair.Color("release:N", title=None),
            shape=altair.Shape("model:N", title=None),
        )
        .properties(width=260, height=240)
        .facet("data:N")
        .resolve_scale(x="independent", y="independent")
    )
    save_chart("records_or_masks", chart)


def main(argv: list[str] | None = None) -> None:
    """Compare on each data set and write figures and plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="Adult,German,AQ")
    parser.add_argument("--store")
    arguments = parser.parse_args(argv)
    results = {}
    for name in arguments.data.split(","):
        results[name] = compare(name, arguments.store)
        for one in results[name]["ranking"]:
            print(name, one["name"], round(one["score"], 4), one["admissible"])
        for one in results[name]["trained"]:
            print(name, one["configuration"], one["model"], round(one["value"], 4))
    write_json("records_or_masks", results)
    draw(results)


if __name__ == "__main__":
    main()
