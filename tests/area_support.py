"""Losses by the combinations of values that a released row may stand for."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa


def area_loss(
    name: str,
    table: pa.Table,
    masked: Mapping[str, list[Any]],
    quasi: Sequence[str],
    keys: list[Any],
    kept: Mapping[Any, bool],
) -> float:
    """Return a loss by the combinations of values that each row may stand for, row by row."""
    original = {q: table[q].to_pylist() for q in quasi}
    leaves: dict[tuple[str, Any], set[Any]] = {}
    for q in quasi:
        for value, shown in zip(original[q], masked[q], strict=True):
            leaves.setdefault((q, shown), set()).add(value)
    whole = math.prod(len(set(original[q])) for q in quasi)
    areas = [
        math.prod(len(leaves[q, part]) for q, part in zip(quasi, key, strict=True))
        if kept[key]
        else whole
        for key in keys
    ]
    if name == "ambiguity":
        return float(sum(areas))
    if name.startswith("publisher-payout"):
        stakes = stakes_of(name)
        return sum(
            unpaid(stakes, math.log2(area) / math.log2(whole), keys.count(key))
            if kept[key]
            else stakes["benefit"]
            for key, area in zip(keys, areas, strict=True)
        )
    released = Counter(key if kept[key] else None for key in keys)
    rows = list(zip(*(original[q] for q in quasi), strict=True))
    own = Counter(rows)
    return sum(
        math.log2(own[row] * area / released[key if kept[key] else None])
        for row, key, area in zip(rows, keys, areas, strict=True)
    ) / len(rows)


def stakes_of(name: str) -> dict[str, float]:
    """Return what a publisher's payout is made of: the defaults, and what the name says otherwise."""
    stakes = {"benefit": 1200.0, "loss": 300.0, "gain": 300.0, "cost": 4.0}
    return stakes | {key: float(value) for key, value in re.findall(r"(\w+)=(\d+)", name)}


def unpaid(stakes: dict[str, float], hidden: float, size: int) -> float:
    """Return what a kept row of a class of a size pays less than the benefit."""
    attacked = stakes["gain"] / size > stakes["cost"]
    return stakes["benefit"] * hidden + (stakes["loss"] / size if attacked else 0)
