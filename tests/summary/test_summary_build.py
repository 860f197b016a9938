"""Every part of a summary equals what counting row by row gives."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from summary_support import HALF, Case, cases, label_codes, masked_rows, plain, row_codes, tally

from aegis.errors import DataError, PolicyError
from aegis.masks import Bucketize, Identity, Mask, Suppress, refines
from aegis.policy import Configuration, Policy, load_policy
from aegis.sources import open_table
from aegis.study import Study
from aegis.summary import (
    AttributeSummary,
    Candidate,
    FrequencyTable,
    PairCounts,
    Summary,
    builder,
    count_in_engine,
    summarize,
)
from aegis.summary.attributes import atomise, pool
from aegis.summary.cooccurrence import Chunk, count_pairs
from aegis.summary.count_cells import count_cells
from aegis.summary.frequency import combine


@given(case=cases())
def test_values_and_joints(case: Case) -> None:
    summary = summarize(case.table, case.policy)
    y = label_codes(case)
    assert summary.rows == case.table.num_rows
    assert summary.unnamed == ("unnamed",)
    classes = Counter(y)
    assert summary.label.unlabelled == classes.pop(None, 0)
    assert summary.label.counts.tolist() == [classes[i] for i in range(len(classes))]
    assert list(summary.attributes) == [a.name for a in case.policy.features]
    for attribute in summary.all_attributes:
        column = case.column(attribute.name)
        values = [plain(v) for v in attribute.values.to_pylist()]
        assert len(set(values)) == len(values)
        ordinary = [v for v in values if v is not None and v != "<NaN>"]
        assert ordinary == sorted(ordinary)
        assert values[len(ordinary) :] == [v for v in ("<NaN>", None) if v in values]
        counts = Counter(column)
        assert dict(zip(values, attribute.counts.tolist(), strict=True)) == counts
        assert attribute.nulls == counts[None]
        joint = tally(column, y)
        expected = [[joint[v, c] for c in range(len(classes))] for v in values]
        assert attribute.joint.tolist() == expected


@given(case=cases())
def test_groups_are_what_rows_show(case: Case) -> None:
    summary = summarize(case.table, case.policy)
    for attribute in summary.all_attributes:
        codes = row_codes(case, summary, attribute.name)
        for candidate in (*attribute.candidates, attribute.unmasked):
            shown = [plain(v) for v in candidate.masked_values.to_pylist()]
            assert len(set(shown)) == len(shown) == candidate.size == len(candidate.labels)
            rows = masked_rows(case, {attribute.name: candidate.mask})[attribute.name]
            assert [shown[g] for g in candidate.groups[codes]] == rows
        assert attribute.unmasked.mask == Identity()
        declared = case.policy.attributes[attribute.name].masks
        assert tuple(c.declared for c in attribute.candidates) == declared
        assert all(c.mask.fitted for c in attribute.candidates)


@HALF
@given(case=cases(), most=st.integers(2, 5))
def test_levels_and_atoms(case: Case, most: int) -> None:
    summary = summarize(case.table, case.policy, max_levels=most)
    assert summary.max_levels == most
    for attribute in summary.all_attributes:
        every = [*attribute.candidates, attribute.unmasked]
        by_value = [c.levels[attribute.atoms] for c in every]
        ranges = [c.ranges[attribute.atoms] for c in every if c.ranges is not None]
        kinds = set(zip(*(told.tolist() for told in [*by_value, *ranges]), strict=True))
        assert len(kinds) == attribute.n_atoms
        for candidate, levels in zip(every, by_value, strict=True):
            assert candidate.n_levels == len(set(levels.tolist())) == min(most, candidate.size)
            assert refines(candidate.groups, levels)
            check_pooled(attribute, candidate, levels, most)


def check_pooled(
    attribute: AttributeSummary, candidate: Candidate, levels: np.ndarray, most: int
) -> None:
    """The levels of their own are the most frequent groups; the last level holds the others."""
    sizes = np.bincount(candidate.groups, weights=attribute.counts, minlength=candidate.size)
    ranked = sorted(range(candidate.size), key=lambda g: (-sizes[g], g))
    alone = set(ranked if candidate.size <= most else ranked[: most - 1])
    for group in range(candidate.size):
        level = levels[candidate.groups == group][0]
        members = set(candidate.groups[levels == level].tolist())
        assert members == ({group} if group in alone else set(range(candidate.size)) - alone)


@given(case=cases())
def test_pairs(case: Case) -> None:
    summary = summarize(case.table, case.policy)
    check_pairs(summary.pairs, case, summary, range(case.table.num_rows))
    assert not summary.sampled


def check_pairs(pairs: PairCounts, case: Case, summary: Summary, rows: Any) -> None:
    y = label_codes(case)
    kept = [row for row in rows if y[row] is not None]
    assert pairs.rows == len(kept)
    atoms = {n: a.atoms[row_codes(case, summary, n)] for n, a in summary.attributes.items()}
    total = np.zeros((pairs.offsets[-1],) * 2)
    for i, one in enumerate(pairs.names):
        own = tally([atoms[one][r] for r in kept], [y[r] for r in kept])
        found = {cell: n for cell, n in np.ndenumerate(pairs.atom_counts[i]) if n}
        assert found == dict(own)
        for j, two in enumerate(pairs.names):
            expected = tally(*([c[r] for r in kept] for c in (atoms[one], atoms[two])))
            for (a, b), n in expected.items():
                total[pairs.offsets[i] + a, pairs.offsets[j] + b] = n
            if i != j:
                a, b, c, n = (part.tolist() for part in pairs.cells(i, j))
                cells = tally(*([c[r] for r in kept] for c in (atoms[one], atoms[two], y)))
                assert dict(zip(zip(a, b, c, strict=True), n, strict=True)) == dict(cells)
    np.testing.assert_array_equal(pairs.total, total)
    np.testing.assert_array_equal(pairs.stacked_joint, np.concatenate(pairs.atom_counts))
    for index in pairs.index.values():
        assert (np.diff(index) > 0).all()


@HALF
@given(case=cases(), data=st.data())
def test_roll_up_is_a_group_by_of_the_masked_rows(case: Case, data: st.DataObject) -> None:
    summary = summarize(case.table, case.policy)
    table = summary.frequency
    assert table is not None
    quasi = [a.name for a in case.policy.quasi_identifiers]
    assert table.quasi == tuple(quasi)
    assert table.sensitive == case.policy.sensitive
    assert table.rows == summary.rows
    assert table.cells == len({tuple(row) for row in key_rows(case, table, summary)})
    chosen = {
        a.name: data.draw(st.sampled_from(a.candidates), label=a.name)
        for a in summary.all_attributes
    }
    check_roll_up(case, table, chosen)
    counter = count_in_engine(open_table(case.table), table.quasi, table.sensitive)
    masks = {name: candidate.mask for name, candidate in chosen.items()}
    engine = counter(masks)
    sensitive = {n: (chosen[n].groups, chosen[n].labels) for n in table.sensitive}
    rolled = table.roll_up({n: chosen[n].groups for n in quasi}, sensitive)
    assert sorted(engine.sizes.tolist()) == sorted(rolled.sizes.tolist())


def key_rows(case: Case, table: FrequencyTable, summary: Summary) -> Any:
    """Yield, per row, what the frequency table can tell apart."""
    columns = []
    for name in dict.fromkeys((*table.quasi, *table.sensitive, "label")):
        if name == "label":
            columns.append(case.column(name))
            continue
        attribute = summary.attribute(name)
        finest = max(attribute.candidates, key=lambda c: c.size)
        alone = all(refines(finest.groups, c.groups) for c in attribute.candidates)
        codes = row_codes(case, summary, name)
        columns.append(
            (finest.groups if alone else np.arange(len(attribute.values)))[codes].tolist()
        )
    return zip(*columns, strict=True)


def check_roll_up(case: Case, table: FrequencyTable, chosen: dict[str, Candidate]) -> None:
    """Sizes and sensitive counts of the classes equal those of the masked rows."""
    names = dict.fromkeys((*table.quasi, *table.sensitive))
    masks: dict[str, Mask] = {name: chosen[name].mask for name in names}
    rows = masked_rows(case, masks) if masks else {}
    keys = list(zip(*(rows[q] for q in table.quasi), strict=True)) or [()] * case.table.num_rows
    sensitive = {n: (chosen[n].groups, chosen[n].labels) for n in table.sensitive}
    rolled = table.roll_up({n: chosen[n].groups for n in table.quasi}, sensitive)
    assert sorted(rolled.sizes.tolist()) == sorted(Counter(keys).values())
    expected: dict[Any, list[Any]] = defaultdict(list)
    for row, key in enumerate(keys):
        expected[key].append(tuple(rows[name][row] for name in table.sensitive))
    for position, name in enumerate(table.sensitive):
        counts = rolled.sensitive[name]
        assert counts.labels == chosen[name].labels
        found: dict[int, list[int]] = defaultdict(list)
        for cell, rows_there in zip(counts.classes.tolist(), counts.counts.tolist(), strict=True):
            found[cell].append(rows_there)
        brute = [sorted(Counter(r[position] for r in c).values()) for c in expected.values()]
        assert sorted(sorted(c) for c in found.values()) == sorted(brute)


@HALF
@given(case=cases(most=60), rows=st.integers(1, 59), seed=st.integers(0, 9))
def test_a_sample_is_only_behind_the_pairs(case: Case, rows: int, seed: int) -> None:
    exact = summarize(case.table, case.policy, sample_rows=rows, exact=True)
    summary = summarize(case.table, case.policy, sample_rows=rows, seed=seed)
    for one, two in zip(summary.all_attributes, exact.all_attributes, strict=True):
        np.testing.assert_array_equal(one.joint, two.joint)
    source = open_table(case.table)
    chosen = source.collect(source.sample(rows, seed=seed))["unnamed"].to_pylist()
    check_pairs(summary.pairs, case, summary, chosen)
    check_pairs(exact.pairs, case, exact, range(case.table.num_rows))
    assert not exact.sampled


def test_a_sample_is_said_to_be_one(tmp_path: Any) -> None:
    table = pa.table({"a": [i % 7 for i in range(5000)], "y": [i % 2 for i in range(5000)]})
    pq.write_table(table, tmp_path / "t.parquet")
    for given_table in (table, tmp_path / "t.parquet"):
        summary = summarize(given_table, small_policy("a"), sample_rows=1000, seed=3)
        assert summary.sampled
        assert 800 < summary.pairs.rows < 1200
        assert "sampled" in repr(summary)
        assert summary.to_dict()["cooccurrence_rows"] == summary.pairs.rows
        assert summary.attributes["a"].joint.sum() == 5000


@given(
    codes=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 99), st.integers(0, 999), st.integers(0, 2)),
        max_size=200,
    ),
    cuts=st.lists(st.integers(0, 200), max_size=5),
    weighted=st.booleans(),
)
def test_pairs_from_chunks(codes: list[tuple[int, ...]], cuts: list[int], weighted: bool) -> None:
    sizes = (3, 100, 1000)
    table = np.array(codes, dtype=np.int64).reshape(-1, 4)
    weights = 1 + np.arange(len(table)) % 3 if weighted else np.ones(len(table), dtype=np.int64)
    places = np.split(np.arange(len(table)), sorted(min(cut, len(table)) for cut in cuts))
    chunks = (
        Chunk(list(table[part, :3].T), table[part, 3], weights[part] if weighted else None)
        for part in places
    )
    pairs = count_pairs(("a", "b", "c"), sizes, 3, chunks)
    assert pairs.rows == weights.sum()
    repeated = np.repeat(table, weights, axis=0).T.tolist()
    for i in range(3):
        joint = tally(repeated[i], repeated[3])
        assert {cell: n for cell, n in np.ndenumerate(pairs.atom_counts[i]) if n} == dict(joint)
        for j in range(3):
            if i != j:
                a, b, y, n = (part.tolist() for part in pairs.cells(i, j))
                found = dict(zip(zip(a, b, y, strict=True), n, strict=True))
                assert found == dict(tally(repeated[i], repeated[j], repeated[3]))
    for pair, index in pairs.index.items():
        assert (np.diff(index) > 0).all()
        assert index.dtype == pairs.count[pair].dtype == np.int64


@given(
    rows=st.lists(st.tuples(*[st.integers(0, 3)] * 5), min_size=1, max_size=50),
    scale=st.sampled_from([1, 1000, 2**15, 2**29]),
)
def test_combined_ids_tell_the_same_rows_apart(rows: list[tuple[int, ...]], scale: int) -> None:
    # At 2**29 the product of five radices exceeds 64 bits many times over.
    table = np.array(rows, dtype=np.int64) * scale
    ids = combine((table[:, i] for i in range(5)), len(table))
    assert (ids >= 0).all()
    assert tally(ids.tolist(), rows).keys() == {
        (i, row) for i, row in zip(ids.tolist(), rows, strict=True)
    }
    assert (
        len(set(ids.tolist())) == len(set(rows)) == len(set(zip(ids.tolist(), rows, strict=True)))
    )


def test_no_columns_are_one_class() -> None:
    assert combine((), 3).tolist() == [0, 0, 0]


@given(
    groups=st.lists(st.integers(0, 6), min_size=1, max_size=30),
    others=st.lists(st.integers(0, 6), min_size=30, max_size=30),
    most=st.integers(2, 8),
)
def test_pooling_and_atoms_of_plain_codes(groups: list[int], others: list[int], most: int) -> None:
    one = np.unique(groups, return_inverse=True)[1].astype(np.int32)
    two = np.unique(others[: len(one)], return_inverse=True)[1].astype(np.int32)
    counts = np.arange(1, len(one) + 1, dtype=np.int64)
    levels = pool(one, counts, most)
    assert len(np.unique(levels)) == min(most, len(np.unique(one)))
    atoms, by_atom = atomise([levels, two], len(one))
    np.testing.assert_array_equal(by_atom[0][atoms], levels)
    np.testing.assert_array_equal(by_atom[1][atoms], two)
    assert len(set(atoms.tolist())) == len(set(zip(levels.tolist(), two.tolist(), strict=True)))


def small_policy(name: str = "a", *, masks: Any = ("identity", "suppress"), **rest: Any) -> Policy:
    attributes = {name: {"role": "quasi-identifier", "masks": list(masks)}}
    return load_policy({"version": 1, "label": "y", "attributes": attributes, **rest})


def test_a_numeric_label_is_cut_into_bins() -> None:
    prices = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, None]
    table = pa.table({"a": ["x", "x", "x", "z", "z", "z", "z"], "y": prices})
    policy = small_policy(label={"column": "y", "bins": 2})
    summary = summarize(table, policy)
    assert summary.label.classes == ("[4, inf[", "]-inf, 4[")
    assert summary.label.counts.tolist() == [3, 3]
    assert summary.label.unlabelled == 1
    assert summary.attributes["a"].joint.tolist() == [[0, 3], [3, 0]]
    assert summary.label.mask is not None
    assert summary.label.mask.fitted


def test_a_label_with_null_rows_and_masks_of_its_own() -> None:
    table = pa.table({"a": ["x", "x", "z", "z"], "y": ["no", None, "yes", None]})
    attributes = {
        "a": {"role": "feature"},
        "y": {"role": "quasi-identifier", "masks": ["suppress", "identity"]},
    }
    policy = load_policy({"version": 1, "label": "y", "attributes": attributes})
    summary = summarize(table, policy)
    own = summary.attribute("y")
    assert own.values.to_pylist() == ["no", "yes", None]
    assert own.counts.tolist() == [1, 1, 2]
    assert own.joint.tolist() == [[1, 0], [0, 1], [0, 0]]
    assert own.nulls == 2
    frequency = summary.frequency
    assert frequency is not None
    suppress, identity = own.candidates
    assert frequency.roll_up({"y": identity.groups}).sizes.tolist() == [1, 1, 2]
    assert frequency.roll_up({"y": suppress.groups}).sizes.tolist() == [4]


def test_a_frequency_table_that_would_be_too_large() -> None:
    table = pa.table({"a": list(range(50)), "y": [0, 1] * 25})
    summary = summarize(table, small_policy(masks=["identity", "suppress"]))
    source = open_table(table)
    classes = pa.array([0, 1])
    found = [
        count_cells(
            source, ("a",), (), summary.attributes, "y", lambda t: t["y"], classes, max_cells=most
        )
        for most in (49, 50)
    ]
    assert found[0] is None
    assert found[1] is not None
    assert found[1].cells == 50


def test_finding_candidates() -> None:
    table = pa.table({"a": [1, 2, 3, 4], "y": [0, 1, 0, 1]})
    summary = summarize(table, small_policy(masks=[{"quantiles": {"count": 2}}, "suppress"]))
    attribute = summary.attribute("a")
    first, second = attribute.candidates
    assert attribute.candidate(first.declared) is first
    assert attribute.candidate(first.mask) is first
    assert attribute.candidate(Suppress()) is second
    with pytest.raises(PolicyError, match="not among the summarised candidates"):
        attribute.candidate(Identity())
    with pytest.raises(PolicyError, match="Unknown attribute 'b'"):
        summary.attribute("b")


def test_figures_for_reports() -> None:
    table = pa.table({"a": [1, None, 3, 4], "c": [1, 2, 3, 4], "y": ["n", "p", "n", None]})
    found = summarize(table, small_policy()).to_dict()
    assert found["rows"] == 4
    assert found["classes"] == {"n": 2, "p": 1}
    assert found["unlabelled_rows"] == 1
    assert found["not_in_policy"] == ["c"]
    assert found["attributes"]["a"] == {
        "role": "quasi-identifier",
        "kind": "integer",
        "values": 4,
        "nulls": 1,
        "candidates": ["identity", "suppress"],
    }


BAD_TABLES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no label": ({"a": [1, 2]}, {}, "No column 'y' in the table .the policy's label."),
    "no attribute": ({"b": [1, 2], "y": [0, 1]}, {}, "No column 'a'"),
    "no rows": ({"a": pa.array([], pa.int64()), "y": pa.array([], pa.int64())}, {}, "has no rows"),
    "null label": ({"a": [1, 2], "y": pa.array([None, None], pa.int64())}, {}, "null in every row"),
    "untyped label": ({"a": [1, 2], "y": pa.nulls(2)}, {}, "null in every row"),
    "list label": ({"a": [1, 2], "y": [[1], [2]]}, {}, "label 'y' has type array"),
    "one class": ({"a": [1, 2], "y": [1, None]}, {}, "one class only: 1"),
    "many classes": ({"a": [1] * 1100, "y": list(range(1100))}, {}, "1,100 classes; at most 1024"),
    "bins of text": (
        {"a": [1, 2], "y": ["x", "z"]},
        {"label": {"column": "y", "bins": 2}},
        "2 bins but has type string",
    ),
    "one bin": (
        {"a": [1, 2], "y": [7, 7]},
        {"label": {"column": "y", "bins": 2}},
        "one class only",
    ),
    "list attribute": ({"a": [[1], [2]], "y": [0, 1]}, {}, "'a' has type array.*no mask works on"),
    "many values": (
        {"a": list(range(60)), "y": [0, 1] * 30},
        {},
        "'a' has more than 10 distinct values",
    ),
}


@pytest.mark.parametrize("mistake", BAD_TABLES)
def test_tables_that_cannot_be_summarised(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    columns, rest, message = BAD_TABLES[mistake]
    if mistake == "many values":
        monkeypatch.setattr(builder, "MAX_VALUES", 10)
    with pytest.raises(DataError, match=message) as caught:
        summarize(pa.table(columns), small_policy(**rest))
    assert caught.value.hint


def test_masks_that_do_not_fit() -> None:
    table = pa.table({"a": ["x", "z"], "y": [0, 1]})
    with pytest.raises(PolicyError, match="'a' does not fit a column of text"):
        summarize(table, small_policy(masks=[{"bucketize": {"width": 5}}]))


@pytest.mark.parametrize("rows", [300, 30_000])
def test_the_one_value_that_makes_a_column_of_numbers_text_is_named(
    rows: int, tmp_path: Path
) -> None:
    """The error did not name it, so you had to find it among all rows."""
    written = [str(20 + i % 50) for i in range(rows)]
    written[rows - 7] = "abc"
    lines = [f"{text},{i % 2}" for i, text in enumerate(written)]
    path = tmp_path / "odd.csv"
    path.write_text("\n".join(["a,y", *lines]), encoding="utf-8")
    rules = small_policy(masks=[{"bucketize": {"width": 5}}])
    told = f"{rows - 1:,} of {rows:,} values are numbers, but 'abc' is not."
    with pytest.raises(PolicyError, match="'a' does not fit a column of text") as caught:
        summarize(path, rules)
    assert told in caught.value.hint
    with pytest.raises(PolicyError, match="does not fit a column of text") as caught:
        Study(path, rules).apply(Configuration("c", {"a": Bucketize(5)}))
    assert told in caught.value.hint
    words = pa.table({"a": ["x", "z", "1"], "y": [0, 1, 0]})
    with pytest.raises(PolicyError, match="does not fit a column of text") as caught:
        summarize(words, rules)
    assert "are numbers, but" not in caught.value.hint


def test_a_hierarchy_that_does_not_cover_a_value() -> None:
    table = pa.table({"a": ["Oslo", "Rome", "Bern", None], "y": [0, 1, 0, 1]})
    attributes = {
        "a": {"role": "quasi-identifier", "hierarchy": {"north": ["Oslo"], "south": ["Rome"]}}
    }
    policy = load_policy({"version": 1, "label": "y", "attributes": attributes})
    with pytest.raises(DataError, match=r"'a'.*'Bern'"):
        summarize(table, policy)


def test_a_table_that_changes_while_it_is_read() -> None:
    values = pa.array([1, 2])
    with pytest.raises(DataError, match="did not have when Aegis counted"):
        builder.code_values(pa.array([1, 3]), values)


def test_attributes_of_one_value() -> None:
    table = pa.table({"a": pa.array([None, None], pa.int64()), "b": ["x", "x"], "y": [0, 1]})
    attributes = {"a": {"role": "quasi-identifier"}, "b": {"role": "feature"}}
    summary = summarize(table, load_policy({"version": 1, "label": "y", "attributes": attributes}))
    assert summary.attributes["a"].values.to_pylist() == [None]
    assert summary.attributes["a"].nulls == 2
    assert summary.pairs.sizes == (1, 1)


@pytest.mark.parametrize("label", ["y", "a"])
def test_times_of_day_are_to_be_written_as_seconds(label: str) -> None:
    times = [dt.time(8, 30), dt.time(9, 15)] * 2
    table = pa.table({"a": times if label == "y" else [0, 1, 0, 1], "y": [0, 1, 0, 1]})
    if label == "a":
        table = table.set_column(1, "y", pa.array(times))
    with pytest.raises(DataError, match="has type time") as caught:
        summarize(table, small_policy())
    assert "as seconds in a column of numbers" in caught.value.hint
