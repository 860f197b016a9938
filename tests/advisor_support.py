"""Small tables, and plain versions of what the advisor computes, row by row."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from hypothesis import strategies as st

from aegis.advisor import Choice
from aegis.masks import Mask, evaluate
from aegis.measures import (
    Direction,
    Measure,
)
from aegis.policy import Policy, load_policy
from aegis.privacy import ClassTable, PrivacyRule
from aegis.summary import Summary
from area_support import area_loss
from charge_support import average_size, shown_classification

Row = tuple[Any, ...]
Floats = npt.NDArray[np.float64]

COLUMNS = ("age", "zip", "pay", "ill", "y")
TYPES = (pa.int64(), pa.string(), pa.float64(), pa.string(), pa.string())
# No candidate of `age` or `zip` forms a chain with all others: widths that do not divide,
# quantiles, frequent values and a hierarchy beside a prefix.
AGE = [
    "identity",
    {"bucketize": {"width": 4}},
    {"bucketize": {"width": 6}},
    {"quantiles": {"count": 3}},
    "suppress",
]
ZIP = [
    {"level": 0},
    {"level": 1},
    {"blur": {"keep": 1}},
    {"keep_frequent": {"count": 2}},
    "suppress",
]
TREE = {"north": ["a1", "b1"], "south": ["a2", "b2", "c2"]}

rows = st.lists(
    st.tuples(
        st.none() | st.integers(20, 33),
        st.none() | st.sampled_from(["a1", "a2", "b1", "b2", "c2"]),
        st.none() | st.sampled_from([0.5, 1.5, 2.5]),
        st.sampled_from(["flu", "flu", "cold", "rash"]),
        st.none() | st.sampled_from(["p", "q", "r"]),
    ),
    min_size=8,
    max_size=40,
).filter(lambda given: len({row[-1] for row in given} - {None}) > 1)
"""Rows of (age, zip, pay, ill, y); at least two classes of the label y."""


def random_rows(seed: int, count: int = 60) -> list[Row]:
    """Return rows whose label depends on the attributes, with a few nulls."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        age = int(random.integers(20, 34))
        zip_code = str(
            random.choice(["a1", "a2", "b1", "b2", "c2"], p=[0.35, 0.25, 0.2, 0.12, 0.08])
        )
        pay = float(random.choice([0.5, 1.5, 2.5]))
        ill = str(random.choice(["flu", "cold", "rash"], p=[0.5, 0.3, 0.2]))
        likely = (age > 27) + (zip_code in ("a1", "b1")) + (pay > 1) + random.normal(0, 1)
        label: str | None = "pqr"[int(np.clip(round(likely), 0, 2))]
        made.append(
            (
                None if random.random() < 0.04 else age,
                None if random.random() < 0.04 else zip_code,
                None if random.random() < 0.04 else pay,
                ill,
                None if random.random() < 0.03 else label,
            )
        )
    return made


def table_of(given: Sequence[Row]) -> pa.Table:
    """Return rows as an Arrow table."""
    columns = list(zip(*given, strict=True))
    arrays = [pa.array(column, dtype) for column, dtype in zip(columns, TYPES, strict=True)]
    return pa.table(dict(zip(COLUMNS, arrays, strict=True)))


def policy_of(
    privacy: Mapping[str, Any] | None = None,
    *,
    label_masks: Sequence[Any] | None = None,
    ill_masks: Sequence[Any] = ("identity",),
    **changes: Any,
) -> Policy:
    """Return the policy of the small tables; `changes` replace entries of the file."""
    attributes: dict[str, Any] = {
        "age": {"role": "quasi-identifier", "masks": AGE, "weight": 2},
        "zip": {"role": "quasi-identifier", "masks": ZIP, "hierarchy": {"all": TREE}},
        "pay": {"role": "feature", "masks": ["identity", "suppress"]},
        "ill": {"role": "sensitive", "masks": list(ill_masks)},
    }
    if label_masks is not None:
        attributes["y"] = {"role": "quasi-identifier", "masks": list(label_masks)}
    data = {"version": 1, "label": "y", "privacy": dict(privacy or {}), "attributes": attributes}
    data["attributes"] |= changes.pop("attributes", {})
    return load_policy(data | changes)


LABEL_MASKS = ["identity", {"group": {"groups": {"pq": ["p", "q"]}}}]

RULES: tuple[dict[str, Any], ...] = (
    {"k": 3},
    {"max_risk": {"kind": "prosecutor", "threshold": 0.25}},
    {"max_risk": {"kind": "marketer", "threshold": 0.3}},
    {"alpha_k": {"attribute": "ill", "alpha": 0.8, "k": 2}},
    {"l_diversity": {"attribute": "ill", "kind": "distinct", "l": 2}},
    {"l_diversity": {"attribute": "ill", "kind": "entropy", "l": 1.7}},
    {"l_diversity": {"attribute": "ill", "kind": "recursive", "l": 2, "c": 3}},
    {"t_closeness": {"attribute": "ill", "distance": "equal", "t": 0.35}},
    {"t_closeness": {"attribute": "ill", "distance": "ordered", "t": 0.3}},
    {"beta_likeness": {"attribute": "ill", "kind": "basic", "beta": 1.5}},
    {"beta_likeness": {"attribute": "ill", "kind": "enhanced", "beta": 1.5}},
    {"delta_disclosure": {"attribute": "ill", "values": "all", "delta": 1.5}},
    {"delta_disclosure": {"attribute": "ill", "values": "present", "delta": 0.8}},
    {"l_diversity": {"attribute": "ill", "kind": "entropy-grassberger", "l": 1.7}},
    {"sample_uniqueness": 0.1},
    {"no_attack": {"gain": 12, "cost": 4}},
    {
        "k": 2,
        "l_diversity": {"attribute": "ill", "kind": "distinct", "l": 2},
        "t_closeness": {"attribute": "ill", "distance": "equal", "t": 0.5},
    },
)
"""Every privacy model that needs no population and no fit, alone, and some together."""
UNIQUENESS: tuple[dict[str, Any], ...] = tuple(
    {"population_uniqueness": {"estimator": name, "threshold": 0.05, "population": 1000}}
    for name in ("dankar", "pitman", "snb", "zayatz")
)
"""Models that fit a population to class sizes, which takes long: for few configurations."""


def with_suppression(rule: Mapping[str, Any], share: float) -> dict[str, Any]:
    """Return a rule that allows `share` of the rows to be suppressed."""
    return {**rule, "suppression": share} if share else dict(rule)


def all_choices(summary: Summary) -> list[Choice]:
    """Return every combination of candidates."""
    attributes = summary.all_attributes
    return [
        {a.name: c for a, c in zip(attributes, chosen, strict=True)}
        for chosen in product(*(a.candidates for a in attributes))
    ]


def masked_columns(table: pa.Table, choice: Choice) -> dict[str, list[Any]]:
    """Return the columns of the masked table, each mask applied row by row."""
    columns = {name: table[name].to_pylist() for name in table.column_names}
    return columns | {name: masked_column(table, name, own.mask) for name, own in choice.items()}


_MASKED: dict[tuple[int, str, int], tuple[pa.Table, Mask, list[Any]]] = {}
"""Masked columns of the last tables, which are held so that no other object gets their identity."""


def masked_column(table: pa.Table, name: str, mask: Mask) -> list[Any]:
    """Return a masked column: the combinations of a table share those of its candidates."""
    key = (id(table), name, id(mask))
    if key not in _MASKED:
        if len(_MASKED) >= 500:
            _MASKED.clear()
        [grouping] = evaluate([mask], table[name].combine_chunks())
        shown = grouping.masked_values.to_pylist()
        _MASKED[key] = (table, mask, [shown[code] for code in grouping.codes])
    return list(_MASKED[key][2])


def class_table(
    table: pa.Table, choice: Choice, quasi: Sequence[str], sensitive: Sequence[str]
) -> ClassTable:
    """Group the masked rows into equivalence classes, in plain Python."""
    return classes_of(table, masked_columns(table, choice), quasi, sensitive)


def classes_of(
    table: pa.Table,
    columns: Mapping[str, list[Any]],
    quasi: Sequence[str],
    sensitive: Sequence[str],
) -> ClassTable:
    """Group masked columns into equivalence classes, in the order in which they appear."""
    key = (id(table), id(columns), tuple(quasi), tuple(sensitive))
    if key not in _CLASSES:
        if len(_CLASSES) >= 2000:
            _CLASSES.clear()
        _CLASSES[key] = (table, columns, grouped(table, columns, quasi, sensitive))
    return _CLASSES[key][2]


_CLASSES: dict[tuple[Any, ...], tuple[pa.Table, Mapping[str, list[Any]], ClassTable]] = {}
"""Classes of the last masked columns, which are held so that no other object gets their identity."""


def grouped(
    table: pa.Table,
    columns: Mapping[str, list[Any]],
    quasi: Sequence[str],
    sensitive: Sequence[str],
) -> ClassTable:
    """Group masked columns into equivalence classes, without looking for what was grouped before."""
    keys = list(zip(*(columns[q] for q in quasi), strict=True))
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    counted = {}
    for name in sensitive:
        # Masked values in the order of the values behind them: what an ordered distance sees.
        pairs = dict(zip(table[name].to_pylist(), columns[name], strict=True))
        ordered = sorted(pairs, key=lambda v: (v is None, v))
        order = list(dict.fromkeys(pairs[v] for v in ordered))
        codes = [order.index(value) for value in columns[name]]
        counted[name] = (codes, tuple(map(str, order)))
    return ClassTable.from_cells([places[key] for key in keys], np.ones(len(keys)), counted)


def labelled(columns: Mapping[str, list[Any]], raw_label: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the rows that have a label: the others count for privacy alone."""
    keep = [value is not None for value in raw_label]
    return {n: [v for v, k in zip(c, keep, strict=True) if k] for n, c in columns.items()}


def kept(
    score: float, reference: float, measure: Measure, label: Sequence[Any] = ()
) -> float | None:
    """Return the percent of utility kept, as the documentation defines it."""
    share = np.array(list(Counter(label).values())) / max(len(label), 1)
    constant = 1.0
    gained, whole = score - measure.floor, reference - measure.floor
    if measure.name == "held-out-accuracy":
        gained, whole = gained - share.max(), whole - share.max()
    elif measure.name == "held-out-log-loss":
        entropy = constant = -(share * np.log(share)).sum()
        gained, whole = entropy - score, entropy - reference
    elif measure.direction is Direction.LOWER:
        gained, whole = 1 - score, 1 - reference
    return None if whole <= 1e-9 * constant else max(0.0, min(100 * gained / whole, 100))


def nu_entropy(values: Sequence[Any], masked: Sequence[Any]) -> float:
    """Return the non-uniform entropy of one column in bits."""
    own, groups = Counter(values), Counter(masked)
    return -sum(math.log2(own[v] / groups[m]) for v, m in zip(values, masked, strict=True))


def penalty(values: Sequence[Any], masked: Sequence[Any]) -> float:
    """Return the normalised certainty penalty of one column."""
    members: dict[Any, set[Any]] = {}
    for v, m in zip(values, masked, strict=True):
        members.setdefault(m, set()).add(v)
    if all(v is None or isinstance(v, int | float) for v in values):

        def width(group: set[Any]) -> float:
            numbers = [v for v in group if v is not None]
            return max(numbers) - min(numbers) if numbers else 0
    else:

        def width(group: set[Any]) -> float:
            return len(group) - 1

    whole = width(set(values))
    return sum(width(members[m]) for m in masked) / (whole * len(values)) if whole else 0.0


def class_loss(
    name: str,
    table: pa.Table,
    masked: Mapping[str, list[Any]],
    quasi: Sequence[str],
    rule: PrivacyRule,
) -> float | None:
    """Return a loss over classes, row by row; None where the rule is not met."""
    verdict = rule.check(classes_of(table, masked, quasi, rule.sensitive))
    if not verdict.admissible:
        return None
    keys = list(zip(*(masked[q] for q in quasi), strict=True))
    kept = dict(zip(dict.fromkeys(keys), verdict.kept_classes.tolist(), strict=True))
    members = Counter(keys)
    if name.startswith("discernibility"):
        free = name.endswith("(factor=0)")
        return float(sum(members[key] if free or kept[key] else len(keys) for key in keys))
    if name.startswith("average-class-size"):
        return average_size(name, len(keys), kept)
    if name in ("ambiguity", "kl-divergence") or name.startswith("publisher-payout"):
        return area_loss(name, table, masked, quasi, keys, kept)
    rows = [(key, y) for key, y in zip(keys, table["y"].to_pylist(), strict=True) if y is not None]
    whole = Counter(y for _, y in rows)
    labels = {key: Counter(y for other, y in rows if other == key) for key in members}
    if name.startswith("classification") and "y" in quasi:
        others = zip(*(masked[q] for q in quasi if q != "y"), strict=True)
        three = list(zip(others, masked["y"], table["y"].to_pylist(), strict=True))
        pairs = {row[:2]: kept[key] for row, key in zip(three, keys, strict=True)}
        return shown_classification(name, three, pairs)
    if name == "classification":
        right = sum(max(labels[key].values(), default=0) for key in members if kept[key])
        return 1 - right / len(rows)
    shares = (
        labels[key][y] / labels[key].total() if kept[key] else whole[y] / whole.total()
        for key, y in rows
    )
    return sum(-math.log2(share) for share in shares) / len(rows)
