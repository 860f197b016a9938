"""Recheck a release from its rows alone: pandas and nothing of Aegis.

Formulas are those of the literature, computed in another way than Aegis does where there is one.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

SLACK = 1e-9


def read(path: Path) -> pd.DataFrame:
    """Return the rows of a file; of text files every cell as its text."""
    ending = path.suffix.lower()
    if ending in (".csv", ".tsv"):
        separator = "," if ending == ".csv" else "\t"
        return pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False)
    return pd.read_parquet(path) if ending == ".parquet" else pd.read_feather(path)


def read_database(url: str, table: str) -> pd.DataFrame:
    """Return the rows of a table of PostgreSQL."""
    import psycopg

    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f'SELECT * FROM "{table}"')
        names = [column.name for column in cursor.description or ()]
        return pd.DataFrame(cursor.fetchall(), columns=names)


def texts(column: pd.Series) -> pd.Series:
    """Return the values of a column as texts that are equal just where the values are."""
    return column.astype(object).map(lambda value: "\0" if pd.isna(value) else str(value))


def sizes(frame: pd.DataFrame, quasi: Sequence[str]) -> pd.Series:
    """Return the size of the class of each row."""
    return frame[list(quasi)].apply(texts).groupby(list(quasi))[quasi[0]].transform("size")


def problems(
    frame: pd.DataFrame,
    *,
    quasi: Sequence[str],
    rule: Mapping[str, Any],
    rows_before: int,
    identifiers: Mapping[str, Sequence[str]],
    tree: Mapping[str, Sequence[str]] | None = None,
) -> list[str]:
    """Return what of a release breaks its rule, one sentence each.

    Parameters
    ----------
    frame
        The released rows.
    quasi
        Quasi-identifiers.
    rule
        The privacy rule as a policy writes it.
    rows_before
        Rows of the table that was masked.
    identifiers
        Values of the columns that must not be there.
    tree
        Groups above each sensitive value, the nearest first.
    """
    wrong = []
    allowed = math.floor(rule.get("suppression", 0.0) * rows_before + SLACK)
    if rows_before - len(frame) > allowed:
        wrong.append(f"{rows_before - len(frame)} rows suppressed, {allowed} allowed")
    smallest = int(sizes(frame, quasi).min()) if len(frame) else 0
    if "k" in rule and smallest < rule["k"]:
        wrong.append(f"k is {smallest}")
    if "max_risk" in rule and len(frame):
        asked = rule["max_risk"]
        risks = 1 / sizes(frame, quasi)
        risk = risks.mean() if asked.get("kind") == "marketer" else risks.max()
        if risk > asked["threshold"] + SLACK:
            wrong.append(f"{asked.get('kind', 'prosecutor')} risk is {risk}")
    keyed = frame.assign(**{name: texts(frame[name]) for name in quasi})
    for model in ("l_diversity", "t_closeness"):
        if model in rule:
            asked = rule[model]
            column = texts(frame[asked["attribute"]])
            groups = [part for _, part in column.groupby([keyed[name] for name in quasi])]
            judge = _diverse if model == "l_diversity" else _close
            worst = [g for g in groups if not judge(g, column, asked, tree or {})]
            if worst:
                wrong.append(f"{model} {dict(asked)} of {worst[0].tolist()[:20]}")
    wrong += _leaks(frame, identifiers)
    return wrong


def _leaks(frame: pd.DataFrame, identifiers: Mapping[str, Sequence[str]]) -> list[str]:
    wrong = [f"column {name} is released" for name in identifiers if name in frame.columns]
    secret = {value for values in identifiers.values() for value in values}
    return wrong + [
        f"an identifier stands in column {name}"
        for name in frame.columns
        if not secret.isdisjoint(texts(frame[name]))
    ]


def _diverse(group: pd.Series, whole: pd.Series, asked: Mapping[str, Any], tree: Any) -> bool:
    counts = sorted(group.value_counts().tolist(), reverse=True)
    kind = asked.get("kind", "distinct")
    if kind == "distinct":
        return len(counts) >= asked["l"]
    if kind == "entropy":
        shares = [count / len(group) for count in counts]
        return -sum(q * math.log(q) for q in shares) >= math.log(asked["l"]) - SLACK
    tail = sum(counts[int(asked["l"]) - 1 :])
    return counts[0] < asked["c"] * tail + SLACK


def _close(
    group: pd.Series, whole: pd.Series, asked: Mapping[str, Any], tree: Mapping[str, Sequence[str]]
) -> bool:
    p, q = whole.value_counts(normalize=True), group.value_counts(normalize=True)
    q = q.reindex(p.index).fillna(0.0)
    distance = asked.get("distance", "equal")
    if distance == "equal":
        found = float((q - p).abs().sum()) / 2
    elif distance == "ordered":
        order = sorted(p.index, key=lambda text: (text == "\0", float(text.replace("\0", "0"))))
        steps = (q - p).reindex(order).cumsum().abs()
        found = float(steps.sum()) / (len(order) - 1) if len(order) > 1 else 0.0
    else:
        found = _over_tree(p, q, tree)
    return found <= asked["t"] + 1e-7


def _over_tree(p: pd.Series, q: pd.Series, tree: Mapping[str, Sequence[str]]) -> float:
    """Return the earth mover's distance: what crosses each edge times its length, 1/(2H).

    Two leaves are as far apart as their lowest common ancestor is high, in units of the height of
    the tree, so that all edges are equally long. A root is put on top of several topmost groups.
    """
    height = len(next(iter(tree.values())))
    tops = {groups[-1] for groups in (tree[value] for value in p.index)}
    levels = [0, *range(1, height + (len(tops) > 1))]
    total = len(levels)
    crossing = 0.0
    for level in levels:
        node = [value if level == 0 else tree[value][level - 1] for value in p.index]
        crossing += float((q - p).groupby(node).sum().abs().sum())
    return crossing / (2 * total)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
