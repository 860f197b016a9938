"""Persons counted by the frequency table and by the engine, against plain pandas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from aegis.advisor.plan import PrivacyPlan
from aegis.errors import DataError, PolicyError
from aegis.policy import load_policy
from aegis.privacy import ClassTable, PrivacyRule
from aegis.sources import open_table
from aegis.summary import count_classes, load_bundle, save_bundle, summarize

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["p", "q", "r", "s", "t", None]),
        st.integers(0, 3),
        st.sampled_from(["x", "y", None]),
        st.sampled_from(["flu", "hiv", "none", None]),
        st.sampled_from(["0", "1"]),
    ),
    min_size=2,
    max_size=30,
).filter(lambda rows: len({row[4] for row in rows}) == 2)
QUICK = (Phase.explicit, Phase.reuse, Phase.generate)
"""Tables are small: shrinking them further costs minutes."""
DEMANDS: tuple[dict[str, Any], ...] = (
    {"k": 2},
    {"k": 3},
    {"k": 2, "l_diversity": {"attribute": "d", "kind": "distinct", "l": 2}},
    {"l_diversity": {"attribute": "d", "kind": "entropy", "l": 1.5}},
    {"alpha_k": {"attribute": "d", "alpha": 0.6, "k": 2}},
    {"max_risk": {"kind": "prosecutor", "threshold": 0.5}},
)


def frame_of(rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    """Return the rows, all persons without a name as one, and nulls as texts that compare."""
    frame = pd.DataFrame(rows, columns=["person", "a", "b", "d", "y"]).astype(object)
    return frame.where(frame.notna(), "(null)")


def table_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    kinds = [pa.int64() if isinstance(row, int) else pa.string() for row in rows[0]]
    kinds[2] = kinds[3] = pa.string()
    names = ["person", "a", "b", "d", "y"]
    columns = zip(names, zip(*rows, strict=True), kinds, strict=True)
    return pa.table({name: pa.array(column, kind) for name, column, kind in columns})


def policy_of(privacy: dict[str, Any], *, suppression: float = 0.0) -> Any:
    quasi = {"role": "quasi-identifier"}
    return load_policy(
        {
            "version": 1,
            "label": "y",
            "person": "person",
            "privacy": privacy | {"suppression": suppression},
            "attributes": {
                "a": quasi | {"masks": ["identity", {"bucketize": {"width": 2}}, "suppress"]},
                "b": quasi | {"masks": ["identity", "suppress"]},
                "d": {"role": "sensitive", "masks": ["identity"]},
            },
        }
    )


def sizes(frame: pd.DataFrame, quasi: list[str]) -> list[int]:
    return sorted(frame.groupby(quasi)["person"].nunique())


def fails(group: pd.DataFrame, demand: dict[str, Any]) -> bool:
    """Return whether a class fails a demand, by counting the sets of persons and values."""
    persons = group["person"].nunique()
    by_value = group.groupby("d")["person"].nunique()
    certain = by_value.max() == persons
    if persons < demand.get("k", 1):
        return True
    if "max_risk" in demand and 1 / persons > demand["max_risk"]["threshold"] + 1e-9:
        return True
    if "alpha_k" in demand:
        asked = demand["alpha_k"]
        return persons < asked["k"] or by_value.max() / persons > asked["alpha"] + 1e-9
    diversity = demand.get("l_diversity")
    if diversity is None:
        return False
    if diversity["kind"] == "distinct":
        return certain or len(by_value) < diversity["l"]
    shares = by_value / by_value.sum()
    entropy = 0.0 if certain else -float((shares * np.log(shares)).sum())
    return entropy < math.log(diversity["l"]) - 1e-9


def brute(frame: pd.DataFrame, demand: dict[str, Any], suppression: float) -> tuple[bool, int]:
    """Return whether a table meets a demand after suppression, and how many persons lose a row."""
    bad = [g for _, g in frame.groupby(["a", "b"]) if fails(g, demand)]
    lost = set().union(*(set(g["person"]) for g in bad)) if bad else set()
    left = sum(map(len, bad)) < len(frame)
    allowed = math.floor(suppression * frame["person"].nunique() + 1e-9)
    return left and len(lost) <= allowed, len(lost)


def masked(frame: pd.DataFrame, widths: tuple[str, str]) -> pd.DataFrame:
    frame = frame.copy()
    if widths[0] == "bucketize":
        frame["a"] = frame["a"] // 2
    elif widths[0] == "suppress":
        frame["a"] = "*"
    if widths[1] == "suppress":
        frame["b"] = "*"
    return frame


@settings(max_examples=12, phases=QUICK)
@given(ROWS)
def test_classes_and_their_values_are_counted_in_persons(rows):
    frame, source = frame_of(rows), open_table(table_of(rows))
    counted = count_classes(source, ["a", "b"], ["d"], person="person")
    table = counted.table
    assert sorted(table.sizes.tolist()) == sizes(frame, ["a", "b"])
    assert sorted(table.sensitive["d"].counts.tolist()) == sizes(frame, ["a", "b", "d"])
    assert table.subjects == frame["person"].nunique()
    assert table.rows == len(frame)
    chosen = np.arange(len(table)) % 2 == 0
    keys = counted.members(chosen).to_pydict()
    listed = set(zip(keys["k0"], ("(null)" if b is None else b for b in keys["k1"]), strict=True))
    inside = frame[[pair in listed for pair in zip(frame["a"], frame["b"], strict=True)]]
    assert table.subjects_in(chosen) == inside["person"].nunique()
    assert table.keep(chosen).subjects == inside["person"].nunique()


@settings(max_examples=12, phases=QUICK)
@given(ROWS, st.sampled_from(DEMANDS), st.sampled_from([0.0, 0.25, 0.5]))
def test_plans_are_exact_for_every_configuration(rows, demand, suppression):
    frame = frame_of(rows)
    policy = policy_of(demand, suppression=suppression)
    try:
        summary = summarize(table_of(rows), policy)
        plan = PrivacyPlan(summary, policy.privacy)
    except PolicyError:
        persons, values = frame["person"].nunique(), frame["d"].nunique()
        asked = demand.get("l_diversity", demand.get("alpha_k", {}))
        least = max(demand.get("k", 1), asked.get("k", 1), 2 if "max_risk" in demand else 1)
        assert persons < least or values < 2
        return
    for a in summary.attributes["a"].candidates:
        for b in summary.attributes["b"].candidates:
            d = summary.attributes["d"].candidates[0]
            verdict = plan.check({"a": a, "b": b, "d": d})
            shown = masked(frame, (a.mask.name, b.mask.name))
            admissible, lost = brute(shown, demand, suppression)
            assert verdict.admissible == admissible
            assert verdict.suppressed_persons == lost
            assert verdict.persons == frame["person"].nunique()


def test_the_engine_and_the_frequency_table_agree_on_every_class():
    random = np.random.default_rng(3)
    rows = [
        (
            int(random.integers(0, 60)),
            int(random.integers(0, 8)),
            "xyz"[random.integers(0, 3)],
            "uvw"[random.integers(0, 3)],
            "01"[random.integers(0, 2)],
        )
        for _ in range(400)
    ]
    policy = policy_of(DEMANDS[2], suppression=0.9)
    summary = summarize(table_of(rows), policy)
    assert summary.frequency is not None
    choice = {name: one.candidates[0] for name, one in summary.attributes.items()}
    planned = PrivacyPlan(summary, policy.privacy).classes(choice)
    counted = count_classes(open_table(table_of(rows)), ["a", "b"], ["d"], person="person").table
    assert planned.sizes.tolist() == counted.sizes.tolist()
    assert planned.class_rows.tolist() == counted.class_rows.tolist()
    for name in ("classes", "values", "counts"):
        found = getattr(planned.sensitive["d"], name)
        assert found.tolist() == getattr(counted.sensitive["d"], name).tolist()
    odd = np.arange(len(counted)) % 2 == 1
    assert planned.subjects_in(odd) == counted.subjects_in(odd)


def test_merging_classes_of_the_same_persons_can_break_alpha_but_never_k():
    """Why alpha, entropy and closeness prune nothing where persons are counted."""
    fine = {"one": [("p", "flu"), ("x", "none")], "two": [("q", "flu"), ("x", "none")]}
    rows = [
        (person, i, "x", value, "01"[i])
        for i, listed in enumerate(fine.values())
        for person, value in listed
    ]
    source = open_table(table_of(rows))
    alpha = PrivacyRule.parse({"alpha_k": {"attribute": "d", "alpha": 0.5, "k": 2}})
    apart = count_classes(source, ["a"], ["d"], person="person").table
    merged = count_classes(source, ["b"], ["d"], person="person").table
    assert alpha.check(apart).admissible
    assert not alpha.check(merged).admissible
    assert merged.sizes.min() >= apart.sizes.min()


def test_a_value_that_all_persons_share_is_certain_whatever_else_they_have():
    rows = [(p, 0, "x", d, "01"[i]) for p in "pq" for i, d in enumerate(["flu", "hiv"])]
    table: ClassTable = count_classes(
        open_table(table_of(rows)), ["a"], ["d"], person="person"
    ).table
    for kind in ("distinct", "entropy"):
        rule = PrivacyRule.parse({"l_diversity": {"attribute": "d", "kind": kind, "l": 2}})
        assert not rule.check(table).admissible


def test_a_bundle_does_not_say_who_has_which_rows(tmp_path):
    rows = [("p", i % 2, "x", "flu", "01"[i % 2]) for i in range(4)] + [("q", 0, "x", "hiv", "1")]
    policy = policy_of({"k": 2})
    summary = summarize(table_of(rows), policy)
    assert summary.frequency is not None
    assert summary.frequency.persons is not None
    assert summary.frequency.persons.total == 2
    save_bundle(summary, tmp_path / "b.aegis")
    loaded = load_bundle(tmp_path / "b.aegis")
    with pytest.raises(DataError, match="counts persons"):
        PrivacyPlan(loaded, policy.privacy)
