"""The leak audit: against counting by hand, and what two files tell together."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from protect_support import CANARY, make_table

import aegis
from aegis.errors import PolicyError
from aegis.policy import load_policy
from aegis.safe.protect import audit_document, audit_leak, compare, dumps, loads, protect
from aegis.safe.protect.derive.cells import ranges
from aegis.safe.protect.leak import withheld_cells
from aegis.summary import Information, builder, row_pairs, withhold

KEY = b"0123456789abcdef-secret"


def test_small_cells_are_counted_in_every_part(policy):
    table = make_table(200, canary=True)
    summary = aegis.summarize(table, policy)
    found = audit_leak(summary)
    parts = {p.part: p for p in found.parts}
    assert set(parts) == {"label tables", "pairs by class", "frequency table", "folds"}
    rows = table.to_pylist()
    combined: dict[tuple, int] = {}
    for row in rows:
        key = (row["age"] // 5, row["city"], row["sex"], row["income"])
        combined[key] = combined.get(key, 0) + 1
    sizes = np.array(list(combined.values()))
    assert parts["frequency table"].cells == len(sizes)
    assert parts["frequency table"].alone == (sizes == 1).sum()
    classes = Counter((row["age"] // 5, row["city"], row["sex"]) for row in rows)
    assert found.persons_alone == sum(size == 1 for size in classes.values())
    assert found.persons_alone < parts["frequency table"].alone
    assert parts["frequency table"].small == (sizes < 5).sum()
    cities = pa.table({"c": table["city"]}).group_by("c").aggregate([("c", "count")])
    [city] = [a for a in found.attributes if a.attribute == "city"]
    assert city.rare == sum(n < 5 for n in cities["c_count"].to_pylist()) == 1
    assert city.disclosed >= 1
    assert CANARY not in str(found.to_dict())


def test_levels_are_held_or_not(policy):
    table = make_table(1500)
    summary = aegis.summarize(table, policy)
    assert audit_leak(summary).keeps_level
    assert not audit_leak(summary, level="counts").keeps_level
    assert "no noise was added" in audit_leak(summary, level="noise").shortfalls[0]
    told = protect(summary, policy, level="counts", key=KEY)
    assert audit_leak(told).keeps_level
    assert not audit_leak(told, level="noise").keeps_level
    noisy = protect(summary, policy, epsilon=1, delta=1e-6)
    assert audit_leak(noisy).keeps_level


def test_a_careless_file_is_found_by_linear_programming(policy):
    """Counts as they are, said to be rounded to a step of 2 with a threshold of 10."""
    told = protect(make_table(1500), policy, level="counts", key=KEY, step=2, threshold=2)
    text = dumps(told)
    careless = loads(text)
    found = audit_leak(careless, threshold=10)
    assert found.parts[0].small > 0
    assert not found.keeps_level


@given(st.data())
def test_withheld_counts_are_bounded_as_linear_programs_do(data):
    counts = np.array(
        data.draw(
            st.lists(st.lists(st.integers(0, 4), min_size=2, max_size=2), min_size=2, max_size=4)
        )
    )
    table = pa.table(
        {
            "v": pa.array(
                [i for i, row in enumerate(counts) for n in row for _ in range(n)], pa.int64()
            ),
            "y": pa.array(
                [y for row in counts for y, n in enumerate(row) for _ in range(n)], pa.int64()
            ),
        }
    )
    if not (counts.sum(axis=0) > 0).all():
        return
    page = {
        "version": 1,
        "label": "y",
        "attributes": {"v": {"role": "feature", "masks": ["suppress"]}},
    }
    from aegis.policy import load_policy as load

    policy = load(page)
    less = withhold(aegis.summarize(table, policy), Information.HISTOGRAM).attributes["v"]
    if less.domain is None:
        return
    kept = counts[counts.sum(axis=1) > 0]
    size = kept.size
    sums = np.vstack(
        [np.kron(np.eye(len(kept)), np.ones((1, 2))), np.kron(np.ones((1, len(kept))), np.eye(2))]
    )
    true = sums @ kept.ravel()
    found = ranges(np.zeros(size), np.full(size, kept.sum()), sums=sums, least=true, most=true)
    expected = sum(r.values < 3 and r.high > 0 and r.low < 3 for r in found)
    assert withheld_cells(less, 3) == (expected if len(kept) > 1 else 0)


def test_one_row_more_is_read_off_two_versions(policy):
    rows = make_table(400).to_pylist()
    older = aegis.summarize(pa.Table.from_pylist(rows), policy)
    newer = aegis.summarize(pa.Table.from_pylist([*rows, rows[7]]), policy)
    found = compare(newer, older, other="older")
    assert found.rows == 1
    parts = {p.part: p for p in found.parts}
    assert (parts["frequency table"].cells, parts["frequency table"].alone) == (1, 1)
    assert parts["label tables"].cells == 4
    assert any("a reader can read the values of that row" in text for text in found.findings)
    assert compare(older, older).small == 0
    assert compare(older, older).findings == ()


def test_a_merge_and_its_part_give_the_other_part(policy):
    rows = make_table(400).to_pylist()
    first = aegis.summarize(pa.Table.from_pylist(rows[:395]), policy)
    second = aegis.summarize(pa.Table.from_pylist(rows[395:]), policy, like=first)
    found = compare(aegis.merge(first, second), first)
    assert found.rows == 5
    assert {p.part: p.alone for p in found.parts}["frequency table"] >= 4


def test_costs_of_two_noisy_versions_add_up(policy):
    noisy = [protect(make_table(300), policy, epsilon=1, delta=1e-6) for _ in range(2)]
    found = compare(*noisy)
    assert "rho" in found.findings[0]
    assert not found.parts


def test_kinds_do_not_mix(policy):
    summary = aegis.summarize(make_table(300), policy)
    noisy = protect(summary, policy, epsilon=1, delta=1e-6)
    with pytest.raises(PolicyError, match="One summary is exact"):
        compare(summary, noisy)
    with pytest.raises(PolicyError, match="threshold is 400"):
        audit_leak(summary, threshold=400)
    with pytest.raises(PolicyError, match="threshold is '5'"):
        audit_leak(summary, threshold="5")
    with pytest.raises(PolicyError, match="Unknown level"):
        audit_leak(summary, level="secret")


def test_documents_are_searched_for_rare_values(policy):
    summary = aegis.summarize(make_table(300, canary=True), policy)
    clean = audit_document("masks: {city: identity, age: suppress}", "policy", [summary])
    assert clean.clean
    told = audit_document(f'{{"groups": ["aa", "{CANARY}"]}}', "certificate", [summary])
    assert told.rare == {"city": 1}
    assert not told.clean
    comment = audit_document("# int32, 119 values, 0 to 99999; 91.7 % are 0\n", "policy")
    assert comment.extremes == 2
    cuts = audit_document('"quantiles": {"count": 3, "edges": [33, 41]}', "certificate")
    assert cuts.cuts == 2


def test_a_protected_file_claims_no_count_that_it_does_not_show(policy):
    """The audit stated 0 values of one label and 0 rows that are alone, without counting any."""
    told = protect(make_table(1500, canary=True), policy, level="counts", key=KEY)
    audit = audit_leak(told)
    assert {(a.rare, a.disclosed) for a in audit.attributes} == {(None, None)}
    assert (audit.persons_alone, audit.classes_disclosed) == (None, None)


def test_without_a_label_none_is_disclosed():
    import pyarrow as pa

    table = pa.table({"age": [1, 2, 3, 4] * 9})
    masks = {"role": "quasi-identifier", "masks": ["identity", "suppress"]}
    policy = load_policy({"version": 1, "privacy": {"k": 2}, "attributes": {"age": masks}})
    audit = audit_leak(aegis.summarize(table, policy))
    assert audit.classes_disclosed == 0
    assert [a.disclosed for a in audit.attributes] == [0]


def test_the_audit_of_rows_in_memory_counts_each_pair_once(monkeypatch):
    counted = []
    count = row_pairs.AtomRows.pair

    def counting(self, i, j):
        counted.append((i, j))
        return count(self, i, j)

    monkeypatch.setattr(builder, "WIDE", 2)
    monkeypatch.setattr(row_pairs, "_CACHE_BYTES", 1)  # bytes: only the last pair is remembered
    monkeypatch.setattr(row_pairs.AtomRows, "pair", counting)
    random = np.random.default_rng(3)
    names = [f"c{place}" for place in range(6)]
    table = pa.table(
        {name: random.integers(0, 4, 200) for name in names} | {"y": random.integers(0, 2, 200)}
    )
    policy = {
        "version": 1,
        "label": "y",
        "attributes": {name: {"role": "feature", "masks": ["identity"]} for name in names},
    }
    summary = aegis.summarize(table, load_policy(policy))
    assert summary.pairs.folds is not None
    counted.clear()
    audit_leak(summary)
    assert len(counted) == len(set(counted)) == 15


def test_a_file_without_counts_does_not_say_how_many_rows_it_has(policy):
    """In 40 rows, epsilon 0.01 names no value, so that no count is published."""
    told = protect(make_table(40), policy, epsilon=0.01, delta=1e-6)
    assert not any(len(a.table) for a in told.attributes.values())
    unknown = "an unknown number of labelled rows: the noise hides every count"
    assert told.rows_words == unknown
    assert audit_leak(told).subject == f"Protected summary (level noise) of {unknown}"
    assert "about" not in repr(told)
    many = protect(make_table(3000), policy, level="counts", key=KEY)
    assert many.rows_words == f"about {many.rows:,.0f} labelled rows"
