"""Releases of random tables under random rules, rechecked from their rows alone."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa

import aegis
from aegis.errors import AegisError, InternalError
from aegis.files import temporary_folder

from . import checker
from .inputs import Failure

FORMATS = (".parquet", ".csv", ".tsv", ".arrow", ".feather")
TREE = {
    "0": ["low", "any"], "1": ["low", "any"], "2": ["mid", "any"],
    "3": ["mid", "any"], "4": ["high", "any"], "5": ["high", "any"],
}  # fmt: skip
"""Groups above the codes of the sensitive attribute."""
TEXTS = (
    "a",
    "b",
    "b ",
    "A",
    "x,y",
    'q"q',
    "O'Hara",
    "'",
    "é",
    "1",
    "1.0",
    "-",
    "null",
    "two words",
)
MASKS: Mapping[str, tuple[Any, ...]] = {
    "number": ("identity", "suppress", {"bucketize": {"width": 5}}, {"round": {"step": 10}},
               {"equal_width": {"count": 2}}, {"quantiles": {"count": 2}}, {"top_code": {"at": 12}}),
    "text": ("suppress", {"blur": {"keep": 1}}, {"keep_frequent": {"count": 2}}, "identity"),
    "day": ("suppress", {"truncate": {"unit": "year"}}, {"truncate": {"unit": "month"}}),
    "flag": ("identity", "suppress"),
}  # fmt: skip


def case(random: Random) -> tuple[pa.Table, dict[str, Any], dict[str, Any]]:
    """Return a table, a policy and a configuration."""
    rows = random.choice([12, 40, 40, 150, 400])
    few = random.choice([2, 4, 8])
    columns: dict[str, Any] = {
        "number": [random.choice([None, *range(5 * few)]) for _ in range(rows)],
        "text": [random.choice([*TEXTS[:few], None]) for _ in range(rows)],
        "day": pa.array([random.randrange(18000, 18000 + 90 * few) for _ in range(rows)], pa.int32()).cast(pa.date32()),
        "flag": [random.choice([True, False, None]) for _ in range(rows)],
    }  # fmt: skip
    quasi = random.sample(sorted(columns), random.choice([1, 2, 2, 3]))
    data = {name: columns[name] for name in quasi}
    data["s"] = [random.choice([0, 0, 0, 1, 2, 3, 4, 5]) for _ in range(rows)]
    data["name"] = [f"person-{random.random():.12f}" for _ in range(rows)]
    data["y"] = ["u" if i < 2 else "v" if i < 4 else random.choice(["u", "v"]) for i in range(rows)]
    attributes: dict[str, Any] = {
        name: {"role": "quasi-identifier", "masks": list(MASKS[name])} for name in quasi
    }
    attributes["s"] = {"role": "sensitive", "hierarchy": {"levels": TREE}, "masks": ["identity"]}
    attributes["name"] = {"role": "identifier"}
    policy = {"version": 1, "label": "y", "privacy": _rule(random), "attributes": attributes}
    chosen = {name: random.choice(MASKS[name]) for name in quasi} | {"s": "identity"}
    return pa.table(data), policy, chosen


def _rule(random: Random) -> dict[str, Any]:
    rule: dict[str, Any] = {"suppression": random.choice([0.0, 0.1, 0.5, 0.9, 0.9])}
    for name in random.sample(
        ["k", "l_diversity", "t_closeness", "max_risk"], random.choice([1, 2, 3])
    ):
        kind = random.choice(["distinct", "entropy", "recursive"])
        diverse = {"attribute": "s", "kind": kind, "l": random.choice([2, 3])}
        rule[name] = {
            "k": random.choice([2, 3, 5]),
            "l_diversity": diverse
            | ({"c": random.choice([1, 2.5, 6])} if kind == "recursive" else {}),
            "t_closeness": {
                "attribute": "s",
                "distance": random.choice(["equal", "ordered", "hierarchical"]),
                "t": random.choice([0.15, 0.3, 0.5]),
            },
            "max_risk": {
                "kind": random.choice(["prosecutor", "marketer"]),
                "threshold": random.choice([0.1, 0.25, 0.5]),
            },
        }[name]
    return rule


def attempt(seed: int, postgres: str | None = None) -> tuple[bool, Failure | None]:
    """Make one release and recheck it; return whether there was one, and what is wrong with it."""
    name = f"release:{seed}"
    random = Random(name)
    table, policy, chosen = case(random)
    ending = random.choice(FORMATS)
    with temporary_folder("fuzz") as folder:
        output, certificate = folder / f"m{ending}", folder / "c.json"
        try:
            rules = aegis.load_policy(policy)
            (folder / "c.yaml").write_text(json.dumps({"configurations": {"one": chosen}}))
            [configuration] = aegis.load_configurations(folder / "c.yaml", rules).values()
            aegis.apply(table, rules, configuration, output=output, certificate=certificate)
        except InternalError as error:
            return False, Failure(name, f"internal: {error}", traceback.format_exc())
        except AegisError:
            left = [path.name for path in folder.iterdir() if path.name != "c.yaml"]
            return False, Failure(name, f"refused, and left {left}") if left else None
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
            return False, Failure(name, f"{type(error).__name__}: {error}", traceback.format_exc())
        wrong = _recheck(table, policy, output, certificate)
        return True, Failure(name, "; ".join(wrong)) if wrong else None


def _recheck(table: pa.Table, policy: dict[str, Any], output: Path, certificate: Path) -> list[str]:
    said = json.loads(certificate.read_text())
    frame = checker.read(output)
    attributes = policy["attributes"]
    wrong = checker.problems(
        frame,
        quasi=[n for n, a in attributes.items() if a["role"] == "quasi-identifier"],
        rule=policy["privacy"],
        rows_before=table.num_rows,
        identifiers={"name": table.column("name").to_pylist()},
        tree=TREE,
    )
    if said["output"]["sha256"] != checker.digest(output):
        wrong.append("the certificate's digest is another")
    if said["output"]["rows"] != len(frame):
        wrong.append(f"the certificate says {said['output']['rows']} rows of {len(frame)}")
    for ending in (".partial", ".tmp"):
        wrong += [f"{p.name} is left" for p in output.parent.iterdir() if ending in p.name]
    if not isinstance(frame, pd.DataFrame):
        wrong.append("no table")
    return wrong
