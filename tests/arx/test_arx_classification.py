"""The classification metric with the charges of ARX: searched as it is counted by hand."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aegis
from aegis.advisor import PrivacyPlan
from aegis.advisor.search import Searcher
from aegis.privacy import PrivacyRule
from aegis.summary import summarize
from charge_support import arx_classification, shown_classification

TOWNS = {"Ulm": "south", "Rom": "south", "Kiel": "north", "Oslo": "north"}
WIDTHS = (1, 5, 10, 1000)
Row = tuple[int, str, str | None]
rows_of_people = st.lists(
    st.tuples(
        st.integers(0, 19), st.sampled_from(list(TOWNS)), st.sampled_from(["a", "b", "c", None])
    ),
    min_size=8,
    max_size=30,
).filter(lambda rows: len({y for _, _, y in rows if y}) > 1)


def policy(label: dict[str, Any] | None = None) -> Any:
    levels = {town: [part, "*"] for town, part in TOWNS.items()}
    ages = ["identity", *({"bucketize": {"width": w}} for w in WIDTHS[1:3]), "suppress"]
    return aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "attributes": {
                "age": {"role": "quasi-identifier", "masks": ages},
                "town": {"role": "quasi-identifier", "hierarchy": {"levels": levels}},
                **({} if label is None else {"y": label}),
            },
        }
    )


def by_hand(objective: str, rows: list[Row], k: int, age: int, town: int) -> tuple[float, int]:
    """Return the loss of a pair of masks, and the rows it suppresses."""
    keys = [(a // WIDTHS[age], (t, TOWNS[t], "*")[town]) for a, t, _ in rows]
    sizes = Counter(keys)
    kept = {key: size >= k for key, size in sizes.items()}
    labelled = [(key, y) for key, (_, _, y) in zip(keys, rows, strict=True) if y is not None]
    lost = sum(size for key, size in sizes.items() if not kept[key])
    return arx_classification(objective, labelled, kept), lost


@settings(max_examples=8, deadline=None)
@given(
    rows=rows_of_people,
    k=st.integers(2, 5),
    share=st.sampled_from([0.0, 0.1, 0.3, 0.9]),
    factor=st.sampled_from([0.0, 0.1, 0.4, 0.5, 0.6, 0.9, 1.0]),
    part=st.tuples(st.integers(1, 15), st.integers(1, 7)),
)
def test_bounds_and_optimum_equal_what_is_counted_by_hand(
    rows: list[Row], k: int, share: float, factor: float, part: tuple[int, int]
) -> None:
    """Boxes are bounded over all their configurations, also those that suppress too many rows."""
    objective = f"classification(charges=arx, factor={factor})"
    table = pa.table(
        dict(zip(("age", "town", "y"), map(list, zip(*rows, strict=True)), strict=True))
    )
    summary = summarize(table, policy())
    rule = PrivacyRule.parse({"k": k, "suppression": share})
    searcher = Searcher(summary, PrivacyPlan(summary, rule), objective, "adjusted-pillai")
    bound = searcher.objective_under(rule).bound
    variables = searcher.problem.variables
    costs: dict[tuple[int, int], tuple[float, int]] = {}
    leaves: dict[tuple[int, ...], float] = {}
    for i, j in product(range(4), range(3)):
        costs[i, j] = by_hand(objective, rows, k, i, j)
        levels = {"age": i, "town": j}
        chosen = {v.name: summary.attributes[v.name].candidates[levels[v.name]] for v in variables}
        if all(chosen[v.name] in v.candidates for v in variables):
            leaf = tuple(1 << v.candidates.index(chosen[v.name]) for v in variables)
            leaves[leaf] = costs[i, j][0]
            assert -bound(leaf) == pytest.approx(costs[i, j][0], abs=1e-12)
    box = tuple(full & v.full or v.full for full, v in zip(part, variables, strict=True))
    inside = [c for leaf, c in leaves.items() if all(a & b for a, b in zip(leaf, box, strict=True))]
    assert all(-bound(box) <= cost + 1e-12 for cost in inside)
    room = math.floor(share * len(rows) + 1e-9)
    admissible = [cost for cost, lost in costs.values() if lost <= room and lost < len(rows)]
    best = searcher.run(rule, top=1, time_limit=None)[1].best
    assert best == (pytest.approx(min(admissible), abs=1e-12) if admissible else None)


LABELS = [
    {"a": "a", "b": "b", "c": "c"},
    {"a": "ab", "b": "ab", "c": "c"},
    dict.fromkeys("abc", "*"),
]


@settings(max_examples=8, deadline=None)
@given(
    rows=rows_of_people,
    k=st.integers(1, 4),
    options=st.sampled_from(["", *(f"(charges=arx, factor={f})" for f in (0, 0.3, 0.5, 0.8, 1))]),
    part=st.tuples(st.integers(1, 15), st.integers(1, 7), st.integers(1, 7)),
)
def test_what_is_shown_of_a_label_equals_what_is_counted_by_hand(
    rows: list[Row], k: int, options: str, part: tuple[int, int, int]
) -> None:
    """The label is a quasi-identifier, and has masks of its own."""
    masks = ["identity", {"group": {"groups": {"ab": ["a", "b"]}}}, "suppress"]
    columns = map(list, zip(*rows, strict=True))
    table = pa.table(dict(zip(("age", "town", "y"), columns, strict=True)))
    summary = summarize(table, policy({"role": "quasi-identifier", "masks": masks}))
    rule = PrivacyRule.parse({"k": k, "suppression": 1})
    plan = PrivacyPlan(summary, rule)
    searcher = Searcher(summary, plan, f"classification{options}", "adjusted-pillai")
    bound, variables = searcher.objective.bound, searcher.problem.variables
    assert summary.label_attribute is not None
    leaves: dict[tuple[int, ...], float] = {}
    for i, j, m in product(range(4), range(3), range(3)):
        candidates = {v.name: v.attribute.candidates for v in variables}
        chosen = {n: candidates[n][x] for n, x in (("age", i), ("town", j), ("y", m))}
        if not all(chosen[v.name] in v.candidates for v in variables):
            continue  # groups as another candidate does
        others = [(a // WIDTHS[i], (t, TOWNS[t], "*")[j]) for a, t, _ in rows]
        shown = ["*" if m == 2 else y and LABELS[m][y] for _, _, y in rows]
        sizes = Counter(zip(others, shown, strict=True))
        three = [(o, s, y) for o, s, (_, _, y) in zip(others, shown, rows, strict=True)]
        loss = shown_classification(options, three, {key: n >= k for key, n in sizes.items()})
        leaf = tuple(1 << v.candidates.index(chosen[v.name]) for v in variables)
        assert -bound(leaf) == pytest.approx(loss, abs=1e-12)
        leaves[leaf] = loss
    box = tuple(full & v.full or v.full for full, v in zip(part, variables, strict=True))
    for leaf, loss in leaves.items():
        if all(a & b for a, b in zip(leaf, box, strict=True)):
            assert -bound(box) <= loss + 1e-12


def test_a_tie_is_charged_in_full_and_a_suppressed_row_half() -> None:
    """Ulm has a tie of four rows, Rom one row of five without its majority, Kiel two rows alone."""
    towns = ["Ulm"] * 4 + ["Rom"] * 5 + ["Kiel"] * 2
    table = pa.table(
        {"age": [1] * 11, "town": towns, "y": list("aabb") + list("aaaab") + list("ab")}
    )
    masks = {"masks": ["identity"], "role": "quasi-identifier"}
    written = {
        "version": 1,
        "label": "y",
        "privacy": {"k": 3, "suppression": 0.2},
        "attributes": {"town": masks},
    }
    study = aegis.Study(table, aegis.load_policy(written))
    assert study.search(objective="classification").best.objective == pytest.approx(5 / 11)
    for options, charge in (("", 4 + 1 + 1), (", factor=0.25", 2 + 1 + 0.5), (", factor=0.75", 6)):
        objective = f"classification(charges=arx{options})"
        assert study.search(objective=objective).best.objective == pytest.approx(charge / 11)
