"""What the tests of summaries share: small generated tables with policies, and brute force."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

from aegis.masks import Mask
from aegis.policy import Policy, load_policy
from aegis.sources import open_table
from aegis.summary import Summary

HALF = settings(max_examples=settings.default.max_examples // 2)
"""For tests that summarise a table more than once an example."""


@dataclass(frozen=True)
class Case:
    """A table and a policy for it."""

    table: pa.Table
    policy: Policy

    def column(self, name: str) -> list[Any]:
        return [plain(v) for v in self.table[name].to_pylist()]


def plain(value: Any) -> Any:
    """Return a value that equals itself: NaN as a text of its own, and one zero."""
    if isinstance(value, float):
        return "<NaN>" if math.isnan(value) else value + 0.0
    return value


TREE = {"north": {"a": ["Oslo", "Århus"], "b": ["名前"]}, "south": {"c": ["Rome", "O'Brien"]}}
KINDS: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {
    "text": (
        pa.string(),
        ["Oslo", "Århus", "名前", "Rome", "O'Brien"],
        [{"blur": {"keep": 1}}, {"keep_frequent": {"count": 2}}, {"level": 1}, {"level": 2}],
    ),
    "integer": (
        pa.int64(),
        [-7, 0, 3, 4, 12, 2**60],
        [{"bucketize": {"width": 5}}, {"quantiles": {"count": 2}}, {"erase_digits": {"digits": 1}}],
    ),
    "float": (
        pa.float64(),
        [0.0, -0.0, 0.3, -1.5, 7.25, math.nan, -math.nan, math.inf],
        [{"bucketize": {"width": 0.1}}, {"equal_width": {"count": 3}}, {"round": {"step": 1}}],
    ),
    "boolean": (pa.bool_(), [True, False], [{"keep_frequent": {"count": 1}}]),
    "date": (
        pa.date32(),
        [date(2023, 12, 31), date(2024, 1, 1), date(2024, 1, 31), date(2024, 2, 1)],
        [{"truncate": {"unit": "month"}}, {"truncate": {"unit": "year"}}],
    ),
    "timestamp": (
        pa.timestamp("us"),
        [datetime(2024, 1, 1, 12), datetime(2024, 1, 1, 13, 30), datetime(2024, 3, 1)],
        [{"truncate": {"unit": "day"}}],
    ),
    "decimal": (
        pa.decimal128(9, 2),
        [Decimal("1.10"), Decimal("2.00"), Decimal("-3.45")],
        [{"bucketize": {"width": 1}}, {"round": {"step": 1}}],
    ),
    "small": (pa.int8(), [1, 2, 3], [{"bucketize": {"width": 2}}]),
}
LABELS: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {
    "text": (pa.string(), ["no", "yes", "é"], ["identity", "suppress", {"blur": {"keep": 1}}]),
    "integer": (pa.int64(), [0, 1, 2], ["identity", "suppress", {"bucketize": {"width": 2}}]),
    "float": (pa.float64(), [0.5, -0.0, 0.0, math.nan], ["identity", {"bucketize": {"width": 1}}]),
    "boolean": (pa.bool_(), [True, False], ["identity", "suppress"]),
}


@st.composite
def cases(draw: st.DrawFn, *, most: int = 40) -> Case:
    """Tables of up to `most` rows with 1 to 4 attributes of any kind, nulls, and a label."""
    rows = draw(st.integers(2, most))
    label_type, label_values, label_masks = LABELS[draw(st.sampled_from(sorted(LABELS)))]
    columns = {}
    attributes: dict[str, Any] = {}
    for i in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(sorted(KINDS)))
        dtype, values, masks = KINDS[kind]
        column = draw(st.lists(st.none() | st.sampled_from(values), min_size=rows, max_size=rows))
        columns[f"{kind} {i}"] = pa.array(column, dtype)
        chosen = draw(
            st.lists(st.sampled_from(["identity", "suppress", *masks]), min_size=1, max_size=4)
        )
        role = draw(
            st.sampled_from(["quasi-identifier", "quasi-identifier", "sensitive", "feature"])
        )
        attributes[f"{kind} {i}"] = {"role": role, "masks": chosen}
        if kind == "text":
            attributes[f"{kind} {i}"]["hierarchy"] = TREE
    labels = draw(
        st.lists(st.none() | st.sampled_from(label_values), min_size=rows - 2, max_size=rows - 2)
    )
    # Two classes at least; which two rows hold them does not matter.
    columns["label"] = pa.array([*labels, label_values[0], label_values[1]], label_type)
    if draw(st.booleans()):
        role = draw(st.sampled_from(["quasi-identifier", "sensitive", "feature"]))
        listed = draw(st.lists(st.sampled_from(label_masks), min_size=1, max_size=2))
        if role == "feature":  # one mask of intervals would make the classes
            listed = ["identity", *listed]
        attributes["label"] = {"role": role, "masks": listed}
    columns["unnamed"] = pa.array(range(rows))
    policy = load_policy({"version": 1, "label": "label", "attributes": attributes})
    return Case(pa.table(columns), policy)


def masked_rows(case: Case, masks: dict[str, Mask]) -> dict[str, list[Any]]:
    """Return the columns, each masked row by row in the engine, in the order of the table."""
    source = open_table(case.table)
    table = source.table
    found = source.collect(
        table.select(**{name: mask.expression(table[name]) for name, mask in masks.items()})
    )
    return {name: [plain(v) for v in found[name].to_pylist()] for name in masks}


def row_codes(case: Case, summary: Summary, name: str) -> np.ndarray:
    """Return the index of each row's value among the summary's values."""
    values = [plain(v) for v in summary.attribute(name).values.to_pylist()]
    place = {value: i for i, value in enumerate(values)}
    return np.array([place[value] for value in case.column(name)])


def label_codes(case: Case) -> list[int | None]:
    """Return the class of each row, None where there is none; classes ascend, NaN last."""
    labels = case.column("label")
    present = {v for v in labels if v is not None}
    ordered = sorted(present - {"<NaN>"}) + (
        ["<NaN>"] if case.table["label"].type == pa.float64() and "<NaN>" in present else []
    )
    place = {value: i for i, value in enumerate(ordered)}
    return [None if v is None else place[v] for v in labels]


def tally(*columns: Any) -> Counter[tuple[Any, ...]]:
    """Return how often each combination of values occurs."""
    return Counter(zip(*columns, strict=True))
