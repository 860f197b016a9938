"""What the tests of engines share: one awkward table, a policy for it, configurations."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa

import aegis
from aegis.policy import Configuration, Policy, load_policy
from aegis.sources import Source
from aegis.summary import FrequencyTable, Summary, summarize

HOSTILE = "we\"ird `co`l; -- 'x'"
"""A column name that no quoting may break."""


def awkward(rows: int = 120) -> pa.Table:
    """Return a table with nulls, NaN, negative numbers, dates, Unicode, quotes and case."""
    cities = ["Oslo", "oslo", "Århus", "名前", "O'Brien", "", None]
    return pa.table(
        {
            "age": pa.array(
                [None if i % 17 == 0 else (i * 7) % 60 - 5 for i in range(rows)], pa.int32()
            ),
            HOSTILE: pa.array([cities[(i * i) % 7] for i in range(rows)]),
            "pay": pa.array(
                [
                    None if i % 23 == 0 else float("nan") if i % 29 == 0 else (i % 13) * -1.25
                    for i in range(rows)
                ]
            ),
            "born": pa.array([date(1950 + i % 5, 1 + i % 12, 1 + i % 28) for i in range(rows)]),
            "ill": pa.array(
                [None if i % 31 == 0 else ["a", "b", "c"][(i // 2) % 3] for i in range(rows)]
            ),
            "y": pa.array(["yes" if i % 3 else "no" for i in range(rows)]),
        }
    )


def policy(**privacy: Any) -> Policy:
    return load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": privacy or {"k": 3, "suppression": 0.5},
            "attributes": {
                "age": {
                    "role": "quasi-identifier",
                    "masks": [{"bucketize": {"width": 20}}, {"top_code": {"at": 30}}, "suppress"],
                },
                HOSTILE: {
                    "role": "quasi-identifier",
                    "masks": ["identity", {"blur": {"keep": 1}}, "suppress"],
                },
                "pay": {"role": "feature", "masks": ["identity", {"round": {"step": 5}}]},
                "born": {
                    "role": "quasi-identifier",
                    "masks": [{"truncate": {"unit": "year"}}, "suppress"],
                },
                "ill": {"role": "sensitive", "masks": ["identity"]},
            },
        }
    )


def configuration(rules: Policy, **places: int) -> Configuration:
    """Return the configuration of the first mask of each attribute, or of the one at its place."""
    summary: Summary = summarize(awkward(), rules)
    return Configuration(
        "chosen",
        {a.name: a.candidates[places.get(a.name, 0)].mask for a in summary.all_attributes},
    )


def rows_of(table: pa.Table) -> Counter[tuple[str, ...]]:
    """Return the rows of a table and how often each occurs; NaN equals itself, and -0.0 is 0.0."""
    return Counter(
        tuple(repr(0.0 if value == 0.0 and isinstance(value, float) else value) for value in row)
        for row in zip(*(c.to_pylist() for c in table.columns), strict=True)
    )


def same_arrays(one: pa.Array, two: pa.Array) -> bool:
    return one.type == two.type and [repr(v) for v in one.to_pylist()] == [
        repr(v) for v in two.to_pylist()
    ]


def cells_of(table: FrequencyTable) -> set[tuple[int, ...]]:
    columns = [table.representatives[name][table.codes[name]] for name in table.codes]
    return set(zip(*(c.tolist() for c in columns), table.counts.tolist(), strict=True))


def assert_alike(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    """Hold two rankings against each other; engines draw the folds of standard errors each anew."""

    def fixed(one: dict[str, Any]) -> dict[str, Any]:
        utility = one.get("utility")
        return one | {
            "stderr": None,
            "tied_with_best": None,
            "utility": utility and utility | {"stderr": None},
        }

    assert [fixed(one) for one in ours] == [fixed(one) for one in theirs]
    for one, two in zip(ours, theirs, strict=True):
        assert (one["stderr"] is None) == (two["stderr"] is None)
        if one["stderr"]:
            assert 0.2 < one["stderr"] / two["stderr"] < 5


def assert_advised_alike(source: Source, count: int) -> None:
    """Hold advice on the awkward table, and its audit, against those of the embedded engine."""
    rules = policy()
    ours, theirs = (
        aegis.advise(one, rules, generate_count=count, seed=1, measure="adjusted-pillai").to_dict()
        for one in (source, awkward())
    )
    assert_alike(ours["ranking"], theirs["ranking"])
    audits = (aegis.audit(one, policy=rules).to_dict() for one in (source, awkward()))
    assert next(audits) == next(audits)


def assert_same(one: Summary, two: Summary) -> None:
    """Hold two summaries against each other, field by field; cells may come in any order."""
    assert one.to_dict() | {"seed": 0} == two.to_dict() | {"seed": 0}
    assert one.label.classes == two.label.classes
    assert one.label.mask == two.label.mask
    for mine, other in zip(one.all_attributes, two.all_attributes, strict=True):
        assert same_arrays(mine.values, other.values), mine.name
        for name in ("counts", "joint", "atoms"):
            assert np.array_equal(getattr(mine, name), getattr(other, name)), (mine.name, name)
        pairs = zip(
            (*mine.candidates, mine.unmasked), (*other.candidates, other.unmasked), strict=True
        )
        for candidate, twin in pairs:
            assert candidate.mask == twin.mask
            assert np.array_equal(candidate.groups, twin.groups)
            assert np.array_equal(candidate.levels, twin.levels), (mine.name, candidate.mask)
            assert same_arrays(candidate.masked_values, twin.masked_values)
    assert one.pairs.rows == two.pairs.rows
    assert one.pairs.sizes == two.pairs.sizes
    assert all(map(np.array_equal, one.pairs.atom_counts, two.pairs.atom_counts))
    for pair, index in one.pairs.index.items():
        assert np.array_equal(index, two.pairs.index[pair])
        assert np.array_equal(one.pairs.count[pair], two.pairs.count[pair])
    assert (one.frequency is None) == (two.frequency is None)
    if one.frequency is not None and two.frequency is not None:
        assert cells_of(one.frequency) == cells_of(two.frequency)
