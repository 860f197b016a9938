"""Releases together: joint classes by brute force, search beside what is out, and release."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aegis
from aegis.advisor.composition import (
    after,
    compose,
    read_release,
    summary_after,
    summary_of,
    widened,
)
from aegis.errors import DataError, NoAdmissibleConfiguration, PolicyError
from aegis.policy import Configuration, load_policy

POLICY = {
    "version": 1,
    "label": "y",
    "measure": "adjusted-pillai",
    "privacy": {"k": 3, "suppression": 0.1},
    "attributes": {
        "a": {
            "role": "quasi-identifier",
            "masks": [
                "identity",
                {"bucketize": {"width": 2}},
                {"bucketize": {"width": 3}},
                "suppress",
            ],
        },
        "b": {
            "role": "quasi-identifier",
            "masks": ["identity", {"keep_frequent": {"count": 1}}, "suppress"],
        },
        "c": {"role": "feature", "masks": ["identity", "suppress"]},
    },
}


def make(rows, seed):
    random = np.random.default_rng(seed)
    a, b = random.integers(0, 6, rows), random.choice(["u", "v", "w"], rows, p=[0.6, 0.3, 0.1])
    label = (random.random(rows) < 0.2 + 0.1 * a).astype(int)
    return pa.table(
        {
            "a": pa.array(a, pa.int64()),
            "b": pa.array(b.tolist()),
            "c": pa.array(random.integers(0, 2, rows), pa.int64()),
            "y": pa.array(label, pa.int64()),
        }
    )


def configurations(summary):
    names = list(summary.attributes)
    listed = [summary.attributes[n].candidates for n in names]
    return [
        Configuration(f"c{i}", {n: c.mask for n, c in zip(names, chosen, strict=True)})
        for i, chosen in enumerate(itertools.product(*listed))
    ]


def shown(summary, configuration, row):
    found = []
    for name in ("a", "b"):
        attribute = summary.attributes[name]
        candidate = attribute.candidate(configuration.masks[name])
        place = attribute.values.to_pylist().index(row[name])
        found.append(int(candidate.groups[place]))
    return tuple(found)


def made_in_order(summary, releases, rows, names=("a", "b"), k=3):
    """Return classes before suppression and rows left out of each release, counted row by row."""
    places = [("a", "b").index(name) for name in names]
    trace, made = [()] * len(rows), []
    for release in releases:
        seen = [tuple(shown(summary, release, row)[p] for p in places) for row in rows]
        keys = list(zip(trace, seen, strict=True))
        sizes = Counter(keys)
        kept = {key for key, n in sizes.items() if n >= k}
        while True:
            missing = Counter(t for t, v in keys if (t, v) not in kept and any(t))
            beside = [
                [key for key in kept if key[0] == t] for t, count in missing.items() if count < k
            ]
            smallest = [min(keys, key=sizes.__getitem__) for keys in beside if keys]
            if not smallest:
                break
            kept -= set(smallest)
        made.append((sizes, sum(key not in kept for key in keys)))
        trace = [(*t, v if (t, v) in kept else None) for t, v in keys]
    return made


@given(st.integers(0, 10_000), st.data())
def test_joint_classes_are_those_counted_row_by_row(seed, data):
    policy = load_policy(POLICY)
    table = make(60, seed)
    if len(set(table["y"].to_pylist())) < 2:
        return
    summary = aegis.summarize(table, policy)
    every = configurations(summary)
    releases = [
        every[data.draw(st.integers(0, len(every) - 1))]
        for _ in range(data.draw(st.integers(2, 3)))
    ]
    found = compose(summary, releases, policy.privacy)
    rows = table.to_pylist()

    def left_out(names):
        """Return the rows left out of the first release that breaks the rule, else of the last."""
        _, *rest = made_in_order(summary, releases, rows, names)
        lost = [n for _, n in rest]
        return next((n for n in lost if n > 6), lost[-1])

    sizes = made_in_order(summary, releases, rows)[-1][0]
    assert found.classes == len(sizes)
    assert found.alone == sum(n == 1 for n in sizes.values())
    assert found.verdict.suppressed_rows == left_out(("a", "b"))
    assert found.admissible == (found.verdict.suppressed_rows <= 6)
    for share in found.attributes:
        assert share.suppressed_rows == left_out(("b",) if share.attribute == "a" else ("a",))


@given(st.integers(0, 10_000))
def test_search_beside_a_release_is_the_best_of_all_that_may_follow(seed):
    policy = load_policy(POLICY)
    table = make(80, seed)
    if len(set(table["y"].to_pylist())) < 2:
        return
    summary = aegis.summarize(table, policy)
    every = configurations(summary)
    first = every[seed % len(every)]
    beside = summary_after(table, policy, [first])
    found = aegis.search(beside, policy, top=1)
    scorer = aegis.advisor.Scorer(summary)
    from aegis.measures import get

    admissible = [c for c in every if compose(summary, [first, c], policy.privacy).admissible]
    if not admissible:
        assert found.best is None
        return
    best = max(scorer.value(scorer.choose(c), get("adjusted-pillai")) for c in admissible)
    assert found.search.exact
    assert found.search.gap == 0
    assert found.search.best == pytest.approx(best, abs=1e-9)
    assert compose(summary, [first, found.best.configuration], policy.privacy).admissible


def test_a_release_after_another_leaves_out_rows_of_small_joint_classes():
    policy = load_policy(POLICY)
    table = make(70, 5)
    summary = aegis.summarize(table, policy)
    every = configurations(summary)
    pair = next(
        (one, two)
        for one, two in itertools.product(every, every)
        if (v := compose(summary, [one, two], policy.privacy).verdict).admissible
        and v.suppressed_rows > compose(summary, [two, two], policy.privacy).verdict.suppressed_rows
    )
    first, second = pair
    plain = aegis.apply(table, policy, second)
    beside = aegis.apply(table, policy, second, after=[first])
    _, (_, left_out) = made_in_order(summary, [first, second], table.to_pylist())
    assert beside.suppressed_rows == left_out > plain.suppressed_rows
    assert beside.audit.passed
    assert set(beside.data.column_names) == set(plain.data.column_names)


def test_a_release_that_breaks_the_rule_with_an_earlier_one_is_refused(tmp_path):
    """By twos and by threes each class has ten rows and more, but the one row of 2 is told by both."""
    policy = load_policy(POLICY | {"privacy": {"k": 3}})
    ages = [a for a in (0, 1, 3, 4, 5) for _ in range(10)] + [2]
    columns = {"a": ages, "b": ["u"] * 51, "c": [0, 1, 1] * 17, "y": [0, 1] * 25 + [1]}
    table = pa.table(columns)
    masks = aegis.masks.parse_mask
    first, second = (
        Configuration(
            f"by {width}",
            {
                "a": masks({"bucketize": {"width": width}}),
                "b": masks("suppress"),
                "c": masks("identity"),
            },
        )
        for width in (2, 3)
    )
    output = tmp_path / "m.parquet"
    assert aegis.apply(table, policy, second).suppressed_rows == 0
    with pytest.raises(NoAdmissibleConfiguration, match="together with what was released before"):
        aegis.apply(table, policy, second, after=[first], output=output)
    assert not output.exists()
    found = compose(aegis.summarize(table, policy), [first, second], policy.privacy)
    assert (found.admissible, found.alone) == (False, 1)
    assert [v.admissible for v in found.each] == [True, True]


def test_a_certificate_tells_its_configuration(tmp_path):
    policy = load_policy(POLICY)
    table = make(300, 1)
    summary = aegis.summarize(table, policy)
    chosen = next(
        c for c in configurations(summary) if compose(summary, [c, c], policy.privacy).admissible
    )
    aegis.apply(
        table,
        policy,
        chosen,
        **{"output": tmp_path / "m.csv", "certificate": tmp_path / "m.json"},
    )
    told = read_release(tmp_path / "m.json", policy)
    assert told.masks == dict(chosen.masks)
    assert told.name == "m"
    (tmp_path / "n.json").write_text(json.dumps({"recipe": {}}))
    with pytest.raises(DataError, match="no certificate"):
        read_release(tmp_path / "n.json", policy)


def test_masks_that_are_no_candidates_are_counted_from_the_table():
    policy = load_policy(POLICY)
    table = make(200, 2)
    other = Configuration(
        "old",
        {
            "a": aegis.masks.parse_mask({"bucketize": {"width": 4}}),
            "b": aegis.masks.parse_mask("suppress"),
        },
    )
    assert len(widened(policy, [other]).attributes["a"].masks) == 5
    summary = summary_of(table, policy, [other, other])
    found = compose(summary, [other, other], policy.privacy)
    sizes = Counter(v // 4 for v in table["a"].to_pylist())
    assert found.classes == len(sizes)
    beside = summary_after(table, policy, [other])
    assert [len(a.candidates) for a in beside.attributes.values()] == [4, 3, 2]


def test_what_cannot_be_put_together_is_refused():
    policy = load_policy(POLICY)
    table = make(100, 3)
    summary = aegis.summarize(table, policy)
    [one] = configurations(summary)[:1]
    with pytest.raises(PolicyError, match="you named 1"):
        compose(summary, [one], policy.privacy)
    noisy = Configuration(
        "n", {"a": aegis.masks.parse_mask({"geometric": {"epsilon": 1, "lower": 0, "upper": 5}})}
    )
    with pytest.raises(PolicyError, match="noise"):
        after(summary, [noisy], policy)
    open_mask = Configuration("o", {"b": aegis.masks.parse_mask({"keep_frequent": {"count": 2}})})
    with pytest.raises(PolicyError, match="not fitted"):
        after(summary, [open_mask], policy)
    close = load_policy(
        POLICY
        | {"privacy": {"k": 2, "suppression": 0.1, "t_closeness": {"attribute": "y", "t": 0.5}}}
    )
    with pytest.raises(PolicyError, match="compares classes with the whole table"):
        summary_after(table, close, [one])
    beside = after(summary, [one], policy)
    with pytest.raises(PolicyError, match="classes of one release"):
        aegis.search(beside, policy, objective="discernibility")
