"""Summaries of parts add up to the summary of the whole."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from engines_support import assert_same
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import aegis
from aegis.errors import DataError, PolicyError
from aegis.masks import refines
from aegis.policy import Policy, load_policy
from aegis.summary import (
    AttributeSummary,
    Candidate,
    Summary,
    merge,
    summarize,
)
from aegis.summary.attributes import pool

RULES: dict[str, Any] = {
    "version": 1,
    "label": "y",
    "privacy": {"k": 2, "l_diversity": {"attribute": "s", "kind": "distinct", "l": 2}},
    "attributes": {
        "a": {
            "role": "quasi-identifier",
            "masks": ["identity", {"bucketize": {"width": 3}}, {"quantiles": {"count": 2}}],
        },
        "b": {"role": "quasi-identifier", "masks": [{"blur": {"keep": 1}}, "suppress"]},
        "s": {"role": "sensitive", "masks": ["identity"]},
        "f": {"role": "feature", "masks": ["identity", {"equal_width": {"count": 2}}]},
    },
}

ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(-9, 9)),
        st.sampled_from(["x", "xy", "xz", "y", "é", "", None]),
        st.sampled_from([True, False, None]),
        st.sampled_from([0.0, -0.0, 1.5, float("nan"), None, -7.25, 1e300]),
        st.sampled_from(["no", "yes", "10", "9", None]),
    ),
    min_size=2,
    max_size=40,
)
SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("b", pa.string()),
        ("s", pa.bool_()),
        ("f", pa.float64()),
        ("y", pa.string()),
    ]
)


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table(
        [pa.array(c, t.type) for c, t in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def policy(**changes: Any) -> Policy:
    return load_policy({**RULES, **changes})


def labels_of(rows: list[tuple[Any, ...]]) -> set[Any]:
    return {row[-1] for row in rows if row[-1] is not None}


@given(ROWS, st.lists(ROWS, min_size=1, max_size=2), st.sampled_from([4, 128]))
@settings(max_examples=4)
def test_parts_like_the_first_add_up_to_the_whole(
    head: list[tuple[Any, ...]], tail: list[list[tuple[Any, ...]]], max_levels: int
) -> None:
    assume(len(labels_of(head)) > 1)
    rules = policy()
    first = summarize(table(head), rules, max_levels=max_levels)
    parts = [first, *(summarize(table(rows), rules, like=first) for rows in tail)]
    rows = [*head, *(row for part in tail for row in part)]
    for attributes in zip(*(part.all_attributes for part in parts), strict=True):
        assume(not _pool_apart(*attributes))
    merged = merge(*parts)
    if max_levels == 128:
        assert_same(merged, summarize(table(rows), rules, like=first))
    wholes = [summarize(table(rows), rules, like=part) for part in parts]
    for mine in merged.all_attributes:
        others = [whole.attribute(mine.name) for whole in wholes]
        for i, candidate in enumerate(_listed(mine)):
            twins = [_listed(other)[i] for other in others]
            assert np.array_equal(candidate.groups, twins[0].groups)
            pooled = [t.levels[o.atoms].tolist() for t, o in zip(twins, others, strict=True)]
            by_counts = pool(candidate.groups, mine.counts, max_levels).tolist()
            assert candidate.levels[mine.atoms].tolist() in [by_counts, *pooled]
    assert_pairs(merged, rows)


def _pool_apart(first: AttributeSummary, *rest: AttributeSummary) -> bool:
    """Return whether several later parts pool groups, where the first has none to pool."""
    for i, own in enumerate(_listed(first)):
        pooled = [c for c in (_listed(part)[i] for part in rest) if c.size > c.n_levels]
        if own.size <= own.n_levels and len(pooled) > 1:
            return True
    return False


def assert_pairs(summary: Summary, rows: list[tuple[Any, ...]]) -> None:
    """Count every pair of atoms anew, row by row."""
    places = {
        a.name: {
            repr(plain(v)): int(atom) for v, atom in zip(a.values.to_pylist(), a.atoms, strict=True)
        }
        for a in summary.attributes.values()
    }
    names = list(summary.attributes)
    columns = {name: SCHEMA.names.index(name) for name in names}
    for i, one in enumerate(names):
        for j in range(i + 1, len(names)):
            found = Counter(
                (
                    places[one][repr(plain(row[columns[one]]))],
                    places[names[j]][repr(plain(row[columns[names[j]]]))],
                    summary.label.classes.index(row[-1]),
                )
                for row in rows
                if row[-1] is not None
            )
            a, b, y, n = summary.pairs.cells(i, j)
            cells = zip(a.tolist(), b.tolist(), y.tolist(), strict=True)
            assert dict(zip(cells, n.tolist(), strict=True)) == found


def plain(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value


FIXED = {
    **RULES["attributes"],
    "a": {"role": "quasi-identifier", "masks": ["identity", {"bucketize": {"width": 3}}]},
    "f": {"role": "feature", "masks": ["identity"]},
    "y": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
}


@given(ROWS, ROWS, st.sampled_from([4, 128]))
@settings(max_examples=8)
def test_parts_made_alone_add_up_to_the_whole_or_are_refused(
    one: list[tuple[Any, ...]], two: list[tuple[Any, ...]], max_levels: int
) -> None:
    rules = policy(attributes=FIXED)
    assume(len(labels_of(one)) > 1 and len(labels_of(two)) > 1)
    parts = [summarize(table(rows), rules, max_levels=max_levels) for rows in (one, two)]
    whole = summarize(table([*one, *two]), rules, max_levels=max_levels)
    knows = all(
        refines(
            own.levels[part.attribute(a.name).atoms], _levels_here(a, part.attribute(a.name), i)
        )
        for part in parts
        for a in whole.all_attributes
        for i, own in enumerate(_listed(part.attribute(a.name)))
    )
    if knows:
        assert_same(merge(*parts), whole)
    elif not any(_follows(parts, a.name) for a in whole.all_attributes):
        with pytest.raises(DataError, match="pool different groups"):
            merge(*parts)


def _listed(attribute: AttributeSummary) -> tuple[Candidate, ...]:
    return (*attribute.candidates, attribute.unmasked)


def _levels_here(whole: AttributeSummary, part: AttributeSummary, index: int) -> Any:
    """Return the level in the whole of each value of a part, for one candidate."""
    places = [
        list(map(repr, whole.values.to_pylist())).index(repr(v)) for v in part.values.to_pylist()
    ]
    return _listed(whole)[index].levels[whole.atoms[places]]


def _follows(parts: list[Summary], name: str) -> bool:
    """Return whether a part that pools nothing can follow the other one."""
    return any(c.size <= c.n_levels for part in parts for c in _listed(part.attribute(name)))


def test_masks_fitted_to_each_part_are_refused() -> None:
    rows = [(i, "x", True, float(i), "no" if i % 2 else "yes") for i in range(10)]
    shifted = [(a + 50, *rest) for a, *rest in rows]
    rules = policy()
    parts = [summarize(table(rows), rules), summarize(table(shifted), rules)]
    with pytest.raises(PolicyError, match=r"fitted to each part separately.*--like"):
        merge(*parts)


def test_another_policy_is_refused() -> None:
    rows = [(i, "x", True, float(i), "no" if i % 2 else "yes") for i in range(10)]
    one = summarize(table(rows), policy())
    other = policy(privacy={"k": 3})
    with pytest.raises(PolicyError, match="another policy"):
        merge(one, summarize(table(rows), other))
    with pytest.raises(PolicyError, match="another policy"):
        summarize(table(rows), other, like=one)


def test_samples_are_refused() -> None:
    rows = [(i % 9, "x", True, 0.5, "no" if i % 2 else "yes") for i in range(400)]
    first = summarize(table(rows), policy())
    sampled = summarize(table(rows), policy(), sample_rows=100, like=first)
    assert sampled.sampled
    with pytest.raises(DataError, match=r"sample.*--exact"):
        merge(first, sampled)


def test_other_types_are_refused() -> None:
    rows = table([(i, "x", True, 0.5, "no" if i % 2 else "yes") for i in range(9)])
    small = rows.set_column(0, "a", rows["a"].cast(pa.int16()))
    first = summarize(rows, policy())
    with pytest.raises(DataError, match="int16 in summary 2 and int64"):
        merge(first, summarize(small, policy(), like=first))


def test_classes_whose_order_is_unclear_are_refused_and_like_settles_it() -> None:
    rules = load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 1},
            "attributes": {"a": {"role": "feature", "masks": ["identity"]}},
        }
    )
    one = pa.table({"a": [1, 2, 3], "y": [10, 20, 20]})
    two = pa.table({"a": [1, 4], "y": [3, 4]})
    first = summarize(one, rules)
    with pytest.raises(DataError, match="order is not clear"):
        merge(first, summarize(two, rules))
    merged = merge(first, summarize(two, rules, like=first))
    assert merged.label.classes == ("3", "4", "10", "20")
    assert merged.label.counts.tolist() == [1, 1, 1, 2]


def test_a_part_may_lack_a_class_and_bins_of_the_label_are_kept() -> None:
    rules = load_policy(
        {
            "version": 1,
            "label": {"column": "y", "bins": 2},
            "privacy": {"k": 1},
            "attributes": {"a": {"role": "feature", "masks": ["identity"]}},
        }
    )
    one = pa.table({"a": [1, 2, 3, 4], "y": [1.0, 2.0, 3.0, 4.0]})
    two = pa.table({"a": [1, 9], "y": [0.5, 0.25]})
    first = summarize(one, rules)
    merged = merge(first, summarize(two, rules, like=first))
    assert_same(merged, summarize(pa.concat_tables([one, two]), rules, like=first))
    assert merged.label.counts.tolist() == [2, 4]


def test_one_summary_is_its_own_sum_and_none_is_refused() -> None:
    only = summarize(table([(1, "x", True, 0.5, "no"), (2, "x", True, 0.5, "yes")]), policy())
    assert aegis.merge(only) is only
    with pytest.raises(PolicyError, match="nothing to merge"):
        merge()


def test_parts_that_pool_other_groups_are_refused_until_one_is_the_model() -> None:
    rules = load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 1},
            "attributes": {"a": {"role": "feature", "masks": ["identity"]}},
        }
    )

    def rows(*values: str) -> pa.Table:
        return pa.table({"a": [*values], "y": ["no", "yes", *["no"] * (len(values) - 2)]})

    tables = [rows("p", "q"), rows(*"aabbccd"), rows(*"ccddeea")]
    first, *others = [summarize(t, rules, max_levels=3) for t in tables]
    with pytest.raises(DataError, match=r"pool different groups.*best the largest"):
        merge(first, *others)
    model = others[0]
    parts = [summarize(t, rules, like=model) for t in tables]
    whole = summarize(pa.concat_tables(tables), rules, like=model)
    assert_same(merge(*parts), whole)


NOISY: dict[str, Any] = {
    "version": 1,
    "label": "y",
    "privacy": {"k": 2},
    "attributes": {
        "b": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
        "n": {
            "role": "feature",
            "masks": [
                "identity",
                {"bucketize": {"width": 3}},
                {"geometric": {"epsilon": 1, "lower": -9, "upper": 9}},
                {"add_uniform": {"amount": 2}},
            ],
        },
        "c": {"role": "feature", "masks": ["identity", {"randomised_response": {"epsilon": 2}}]},
    },
}


@given(st.integers(0, 2**32), st.integers(8, 60), st.integers(2, 6))
@settings(max_examples=5)
def test_parts_under_noise_masks_add_up_to_the_whole(seed: int, size: int, cut: int) -> None:
    random = np.random.default_rng(seed)
    numbers = random.integers(-9, 10, size)
    whole = pa.table(
        {
            "b": pa.array(random.choice(["x", "y"], size)),
            "n": pa.array(numbers),
            "c": pa.array(random.choice(["p", "q", "r"], size)),
            "y": pa.array(["yes", "no", *random.choice(["yes", "no"], size - 2)]),
        }
    )
    rules = load_policy(NOISY)
    try:
        first = summarize(whole, rules)
    except PolicyError:  # a noise mask needs at least two values
        assume(False)
    middle = size // 2 + cut - 4
    parts = [
        summarize(part, rules, like=first) for part in (whole.slice(0, middle), whole.slice(middle))
    ]
    merged = merge(*parts)
    assert_same(merged, summarize(whole, rules, like=first))
    # Folds go by the place of a row in its part, so a score by part of the rows is another draw.
    ours, theirs = (
        aegis.advise(s, rules, generate_count=8, seed=1, measure="held-out-pillai")
        for s in (merged, first)
    )
    assert [r.score for r in ours.ranking] == pytest.approx([r.score for r in theirs.ranking])


def test_parts_like_the_first_are_the_whole_like_the_first_where_groups_are_pooled() -> None:
    """Near-keys, groups between the caps of ranges and levels, and short attributes."""
    random = np.random.default_rng(5)
    rows = 1200
    number = np.round(500 * np.exp(random.normal(size=rows) / 2)).astype(int)
    whole = pa.table(
        {
            "near_key": number,
            "place": [f"c{v}" for v in random.zipf(1.3, rows) % 400],
            "age": random.integers(18, 90, rows),
            "y": np.where(number + random.normal(0, 200, rows) > 500, "a", "b"),
        }
    )
    rules = load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 2},
            "attributes": {
                "age": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
                "near_key": {
                    "role": "feature",
                    "masks": ["identity", {"bucketize": {"width": 40}}],
                },
                "place": {
                    "role": "feature",
                    "masks": ["identity", {"keep_frequent": {"count": 9}}],
                },
            },
        }
    )
    first = summarize(whole.slice(0, 700), rules)
    merged = merge(first, summarize(whole.slice(700), rules, like=first))
    followed = summarize(whole, rules, like=first)
    by_counts = summarize(whole, rules)
    assert 32 < by_counts.attributes["age"].unmasked.size <= 128
    assert 32 < by_counts.attributes["near_key"].candidates[1].size <= 128
    assert by_counts.attributes["near_key"].unmasked.size > 128
    assert_same(merged, followed)
    for name in merged.attributes:
        mine, other = merged.attributes[name], by_counts.attributes[name]
        for one, two in zip(_listed(mine), _listed(other), strict=True):
            same = _shown_at(mine, one) == _shown_at(other, two)
            assert same if one.size <= 128 and one.mask == two.mask else not same or name == "place"
    scores = [
        [(r.name, r.score) for r in advised.ranking]
        for advised in (
            aegis.advise(s, rules, generate_count=12, measure="held-out-pillai")
            for s in (merged, followed)
        )
    ]
    assert [name for name, _ in scores[0]] == [name for name, _ in scores[1]]
    assert [s for _, s in scores[0]] == pytest.approx([s for _, s in scores[1]], rel=1e-9)


def _shown_at(attribute: AttributeSummary, candidate: Candidate) -> tuple[Any, Any]:
    ranges = candidate.ranges
    return (
        candidate.levels[attribute.atoms].tolist(),
        None if ranges is None else ranges[attribute.atoms].tolist(),
    )
