"""Real certificates of several kinds of release, and every way to change one leaf of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

import aegis
from aegis.policy import Policy, policy_digest
from aegis.release import certified
from aegis.sources import Source

ROWS = 120
TABLE = pa.table(
    {
        "name": [f"p{i}" for i in range(ROWS)],
        "patient": [i // 2 for i in range(ROWS)],
        "age": [20 + i % 40 for i in range(ROWS)],
        "height": [1.5 + (i % 50) / 100 for i in range(ROWS)],
        "dose": np.random.default_rng(1).normal(10, 3, ROWS).tolist(),
        "city": ["abcd"[i % 4] for i in range(ROWS)],
        "zip": [f"{1000 + i % 30}" for i in range(ROWS)],
        "illness": [("flu", "cold", "none")[i % 7 % 3] for i in range(ROWS)],
        "bought": [("no", "yes")[(i + i // 7) % 2] for i in range(ROWS)],
    }
)
ATTRIBUTES: Mapping[str, Any] = {
    "name": {"role": "identifier"},
    "patient": {"role": "identifier"},
    "age": {"role": "quasi-identifier", "masks": [{"bucketize": {"width": 20}}]},
    "height": {"role": "feature", "masks": [{"quantiles": {"count": 3}}]},
    "dose": {"role": "feature", "masks": [{"equal_width": {"count": 3}}]},
    "city": {
        "role": "quasi-identifier",
        "masks": [{"group": {"groups": {"x": ["a", "b"], "y": ["c", "d"]}}}],
    },
    "zip": {"role": "quasi-identifier", "masks": ["suppress"]},
    "illness": {"role": "sensitive"},
}
DIVERSE = {"k": 4, "suppression": 0.3, "l_diversity": {"attribute": "illness", "l": 2}}
POLICY: Mapping[str, Any] = {
    "version": 1,
    "label": "bought",
    "privacy": DIVERSE,
    "attributes": ATTRIBUTES,
}


@dataclass(frozen=True)
class Certified:
    """A released file, its certificate, and the policy where the check needs it."""

    file: Path
    document: dict[str, Any]
    policy: Mapping[str, Any] | None = None


def _masked(folder: Path, policy: Mapping[str, Any], name: str) -> Certified:
    study = aegis.Study(TABLE, policy)
    study.apply(study.advise(), folder / name, certificate=folder / "c.json")
    return Certified(folder / name, json.loads((folder / "c.json").read_text()))


def masked(folder: Path) -> Certified:
    """Return a release under fitted masks."""
    return _masked(folder, POLICY, "m.parquet")


def suppressed(folder: Path) -> Certified:
    """Return a release as CSV without some rows, and without a column that would show nothing."""
    narrow = {"role": "quasi-identifier", "masks": [{"bucketize": {"width": 7}}]}
    policy = {
        **POLICY,
        "measure": "mi",
        "suppressed_columns": "leave-out",
        "privacy": {"k": 9, "suppression": 0.4},
        "attributes": {**ATTRIBUTES, "age": narrow},
    }
    return _masked(folder, policy, "m.csv")


def grouped(folder: Path) -> Certified:
    """Return a record-level release."""
    policy = {**POLICY, "privacy": {"k": 4}}
    study = aegis.Study(TABLE, policy)
    study.anonymize("mondrian", output=folder / "m.csv", certificate=folder / "c.json")
    return Certified(folder / "m.csv", json.loads((folder / "c.json").read_text()), policy)


def of_persons(folder: Path) -> Certified:
    """Return a release whose rule counts persons."""
    others = {name: entry for name, entry in ATTRIBUTES.items() if name != "patient"}
    privacy = {"k": 3, "suppression": 0.4}
    return _masked(
        folder,
        {**POLICY, "person": "patient", "privacy": privacy, "attributes": others},
        "m.parquet",
    )


def noised(folder: Path) -> Certified:
    """Return a release with a quasi-identifier that shows noise."""
    noise = {
        "role": "quasi-identifier",
        "masks": [{"geometric": {"epsilon": 1, "lower": 20, "upper": 60}}],
    }
    attributes = {**ATTRIBUTES, "age": noise}
    policy = {**POLICY, "privacy": {"k": 2, "suppression": 0.3}, "attributes": attributes}
    return _masked(folder, policy, "m.parquet")


KINDS = {
    "masked": masked,
    "suppressed": suppressed,
    "grouped": grouped,
    "persons": of_persons,
    "noised": noised,
}


def leaves(document: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of each value that holds no other."""
    items: Any = ()
    if isinstance(document, Mapping):
        items = document.items()
    elif isinstance(document, list):
        items = enumerate(document)
    if not items or not document:
        yield path
    for key, value in items:
        yield from leaves(value, (*path, key))


def changes(value: Any) -> list[Any]:
    """Return other values in place of one: near it, and of other types."""
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, int):
        return [value + 1, value - 5, str(value)]
    if isinstance(value, float):
        return [float(f"{value:.9g}") * (1 + 1e-8) + 1e-10, value / 2 + 1, None]
    if isinstance(value, str):
        return [_last_changed(value), "", 7]
    if value is None:
        return [1, "no"]
    return [[*value, "more"] if isinstance(value, list) else {"more": 1}, None]


def _last_changed(text: str) -> str:
    """Return a text whose last digit, else whose last character, is another."""
    places = [i for i, c in enumerate(text) if c.isdigit()] or [len(text) - 1]
    if places == [-1]:
        return "x"
    last = text[places[-1]]
    other = str((int(last) + 1) % 10) if last.isdigit() else chr(ord(last) + 1)
    return text[: places[-1]] + other + text[places[-1] + 1 :]


def changed(document: Mapping[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """Return a document with another value at a path."""
    other: dict[str, Any] = copy.deepcopy(dict(document))
    entry: Any = other
    for key in path[:-1]:
        entry = entry[key]
    entry[path[-1]] = value
    return other


def deleted(document: Mapping[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
    """Return a document without the value at a path."""
    other: dict[str, Any] = copy.deepcopy(dict(document))
    entry: Any = other
    for key in path[:-1]:
        entry = entry[key]
    del entry[path[-1]]
    return other


@contextmanager
def measured_once() -> Iterator[None]:
    """Measure the same thing of the same file once while the context lasts."""
    audits: dict[str, Any] = {}
    summaries: dict[str, Any] = {}
    collected: dict[Any, Any] = {}
    policies: dict[str, Any] = {}
    audit, summarize, collect = certified.audit, certified.summarize, Source.collect
    load = certified.load_policy

    def audit_once(source: Source, **asked: Any) -> Any:
        policy = asked.pop("policy", None)
        key = f"{source.files} {asked!r} {None if policy is None else policy_digest(policy)}"
        if key not in audits:
            audits[key] = audit(source, policy=policy, **asked)
        return audits[key]

    def summarize_once(source: Source, policy: Policy) -> Any:
        key = f"{source.origin} {policy_digest(policy)}"
        if key not in summaries:
            summaries[key] = summarize(source, policy)
        return summaries[key]

    def collect_once(source: Source, table: Any) -> Any:
        key = (source.origin, table.op())
        if key not in collected:
            collected[key] = collect(source, table)
        return collected[key]

    def load_once(data: Mapping[str, Any]) -> Policy:
        key = repr(data)
        if key not in policies:
            policies[key] = load(data)
        return policies[key]

    with (
        patch.object(certified, "load_policy", load_once),
        patch.object(certified, "audit", audit_once),
        patch.object(certified, "summarize", summarize_once),
        patch.object(Source, "collect", collect_once),
    ):
        yield
