"""Precision and recall of the proposed roles on a collection of public tables, labelled by hand.

`labels.toml` holds the labels; `facts.json` what `aegis init` measured on each column (counts,
shares and quantiles, no value), so that the score needs no data of others. With a folder of the
tables as CSV files, `python -m benchmarks.roles FOLDER` measures them anew.
"""

from __future__ import annotations

import dataclasses
import json
import math
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from aegis.masks import Kind
from aegis.policy import Role
from aegis.policy.suggest.facts import ColumnFacts
from aegis.policy.suggest.profile import measure_columns
from aegis.policy.suggest.roles import likely_persons, propose_role
from aegis.sources import open_table

FOLDER = Path(__file__).parent
FACTS = FOLDER / "facts.json"
CV_FOLDS = ("tune", "judge")
ADDED = "rownames"
"""The number of rows that collections add when they export: it takes no part."""


@dataclass(frozen=True)
class Label:
    """The roles that a person accepts for one column; the first is the label."""

    table: str
    column: str
    part: str
    accepted: tuple[Role, ...]


@dataclass(frozen=True)
class Outcome:
    """A column, what people accept, and what was proposed for which reason."""

    label: Label
    proposed: Role
    reason: str

    @property
    def right(self) -> bool:
        """Whether the proposed role is one that people accept."""
        return self.proposed in self.label.accepted


@dataclass(frozen=True)
class RoleScore:
    """How often a proposed role is right, and how many of its columns get it."""

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        """Share of the columns proposed for the role that may have it; 1 where none is proposed."""
        proposed = self.right + self.wrong
        return self.right / proposed if proposed else 1.0

    @property
    def recall(self) -> float:
        """Share of the columns of the role for which it is proposed; 1 where there is none."""
        wanted = self.right + self.missed
        return self.right / wanted if wanted else 1.0


@cache
def read_labels() -> dict[str, dict[str, Any]]:
    """Return the labelled tables by name, as the file has them."""
    return tomllib.loads((FOLDER / "labels.toml").read_text(encoding="utf-8"))


def labels_of(table: str) -> dict[str, tuple[Role, ...]]:
    """Return the accepted roles of the columns of a table that are not plain features."""
    entry = read_labels()[table]
    plain = {
        column: (role,)
        for role in Role
        if role is not Role.FEATURE
        for column in entry.get(str(role), ())
    }
    either = entry.get("either", {})
    return plain | {column: tuple(map(Role, roles)) for column, roles in either.items()}


def record(folder: Path) -> None:
    """Measure every table of a folder of CSV files and write what was measured."""
    measured = {}
    for table, entry in read_labels().items():
        facts = measure_columns(open_table(folder / f"{table}.csv"))
        unknown = {*labels_of(table), entry["target"]} - set(facts)
        if unknown:
            raise SystemExit(f"{table} has no column {sorted(unknown)}.")
        measured[table] = {name: _plain(one) for name, one in facts.items()}
    lines = (
        f"{json.dumps(table)}: {{\n"
        + ",\n".join(f" {json.dumps(n)}: {json.dumps(f)}" for n, f in columns.items())
        + "\n}"
        for table, columns in measured.items()
    )
    FACTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _plain(one: ColumnFacts) -> dict[str, Any]:
    """Return the facts without any value of the table, and without what has its default."""
    shown = {
        field.name: getattr(one, field.name)
        for field in dataclasses.fields(one)
        if field.name not in ("low", "high", "frequent", "ranges", "name")
        and getattr(one, field.name) != field.default
    }
    if one.quantiles:
        shown["quantiles"] = {str(s): float(f"{q:.2g}") for s, q in one.quantiles.items()}
    if one.shapes:
        shown["shapes"] = {n: round(s, 3) for n, s in one.shapes.items() if round(s, 3) > 0}
    for name in ("peak", "separation", "round_share"):
        if name in shown and math.isfinite(shown[name]):
            shown[name] = round(shown[name], 4)
    return shown


def read_facts() -> dict[str, dict[str, ColumnFacts]]:
    """Return what was measured on every column, by table and name."""
    stored = json.loads(FACTS.read_text(encoding="utf-8"))
    return {
        table: {name: _facts(name, column) for name, column in columns.items()}
        for table, columns in stored.items()
    }


def _facts(name: str, stored: Mapping[str, Any]) -> ColumnFacts:
    given = dict(stored)
    given["kind"] = Kind(given["kind"]) if given.get("kind") else None
    if "quantiles" in given:
        given["quantiles"] = {float(share): q for share, q in given["quantiles"].items()}
    if "lengths" in given:
        given["lengths"] = tuple(given["lengths"])
    return ColumnFacts(name=name, **given)


def outcomes() -> Iterator[Outcome]:
    """Yield what is proposed for every labelled column."""
    facts = read_facts()
    for table, entry in read_labels().items():
        accepted = labels_of(table)
        for name, one in facts[table].items():
            if name in (ADDED, entry["target"]):
                continue
            label = Label(table, name, entry["part"], accepted.get(name, (Role.FEATURE,)))
            yield Outcome(label, *propose_role(one))


def person_keys() -> dict[str, str]:
    """Return the column proposed as key of persons, by table, where one is."""
    keys: dict[str, str] = {}
    for table, columns in read_facts().items():
        identifiers = [o for o in columns.values() if propose_role(o)[0] is Role.IDENTIFIER]
        if persons := likely_persons(identifiers):
            keys[table] = persons[0].name
    return keys


def score(part: str) -> dict[Role, RoleScore]:
    """Return precision and recall by role over the tables of one part."""
    right, wrong, missed = Counter[Role](), Counter[Role](), Counter[Role]()
    for outcome in outcomes():
        if outcome.label.part != part:
            continue
        if outcome.right:
            right[outcome.proposed] += 1
        else:
            wrong[outcome.proposed] += 1
            missed[outcome.label.accepted[0]] += 1
    return {role: RoleScore(right[role], wrong[role], missed[role]) for role in Role}


def released_keys() -> list[Outcome]:
    """Return the columns that name a person and are proposed for release as they are."""
    return [
        outcome
        for outcome in outcomes()
        if outcome.label.accepted[0] is Role.IDENTIFIER
        and outcome.proposed not in (Role.IDENTIFIER, Role.IGNORE)
        and not outcome.right
    ]


def table_of(part: str) -> str:
    """Return precision and recall of one part as a table in Markdown."""
    lines = [
        "| role | columns | precision | recall |",
        "|---|---:|---:|---:|",
    ]
    for role, one in score(part).items():
        columns = one.right + one.missed
        lines.append(f"| {role} | {columns} | {one.precision:.3f} | {one.recall:.3f} |")
    return "\n".join(lines)
