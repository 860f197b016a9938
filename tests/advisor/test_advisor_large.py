"""Advice on a large Parquet table, whose columns are read once as codes, against the engine's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aegis
from aegis.advisor import advise, released
from aegis.advisor.released import ReleasedRows
from aegis.arrays import distinct_keys
from aegis.policy import load_policy
from aegis.sources import open_table
from aegis.study import subject
from aegis.summary import build, builder, coded_rows, frequency, outside, summarize
from aegis.summary.frequency import combine, distinct_rows

ROWS, SAMPLE = 600, 250


def table_of(seed: int) -> pa.Table:
    """Return a table with nulls, NaN, rare towns, rows without a label and repeated weights."""
    random = np.random.default_rng(seed)

    def drawn(values: list[Any]) -> list[Any]:
        return [values[i] for i in random.integers(len(values), size=ROWS)]

    towns = [*["north", "south", "east", None] * 9, "rare", "seldom"]
    return pa.table(
        {
            "age": pa.array(drawn([*range(20, 40), None]), pa.int32()),
            "town": pa.array(drawn(towns), pa.string()),
            "pay": pa.array(drawn([0.5, 1.5, -0.0, float("nan"), None]), pa.float64()),
            "member": pa.array(drawn([True, False, None])),
            "weight": pa.array(drawn([1, 2, 3])),
            "hours": pa.array(drawn([*range(0, 60, 5), None])),
            "y": pa.array(drawn(["p", "q", "q", None]), pa.string()),
        }
    )


def policy_of(**changes: Any) -> dict[str, Any]:
    ranges = [{"bucketize": {"width": 5}}, {"bucketize": {"width": 20}}]
    attributes = {
        "age": {"role": "quasi-identifier", "masks": ranges},
        "town": {"role": "quasi-identifier", "masks": ["identity"]},
        "pay": {"role": "feature", "masks": [{"round": {"step": 1}}, "identity"]},
        "member": {"role": "sensitive", "masks": ["identity"]},
    }
    privacy = {"k": 25, "suppression": 0.9}
    return {"version": 1, "label": "y", "privacy": privacy, "attributes": attributes} | changes


HOURS = {"column": "hours", "kind": "number"}
CASES = {
    "classes": {},
    "nothing suppressed": {"privacy": {"k": 1}},
    "another measure": {"measure": "adjusted-pillai"},
    "a number": {"label": HOURS},
    "no label": {"label": None},
    "several labels": {"label": None, "labels": ["y", HOURS]},
    "weights": {"weight": "weight"},
    "a sensitive column": {
        "privacy": {
            "k": 25,
            "suppression": 0.9,
            "l_diversity": {"attribute": "member", "kind": "distinct", "l": 3},
        }
    },
}


@contextmanager
def sized(*, large: int, most: int = 0, sample: int = SAMPLE) -> Iterator[None]:
    """Return a context in which the limits fit small tables: how many rows of a Parquet file are
    held, how many rows of any table are kept as codes, and how many are sampled.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coded_rows, "LARGE", large)
        patch.setattr(coded_rows, "_FIRST", ROWS)
        patch.setattr(frequency, "BLOCK", 64)
        patch.setattr(coded_rows, "BLOCK", 64)
        for module in (coded_rows, builder, build):
            patch.setattr(module, "MOST_ROWS", most)
        for module in (builder, build):
            patch.setattr(module, "SAMPLE_ROWS", sample)
        patch.setattr(subject, "SAMPLE_ROWS", sample)
        for later in (outside, released, advise):
            patch.setattr(later, "MOST_ROWS", most)
        patch.setattr(released, "summarize", partial(summarize, sample_rows=sample))
        yield


def advised(path: str, declared: dict[str, Any], **how: Any) -> dict[str, Any]:
    """Return all that an advice states, but for the times."""
    study = aegis.Study(path, load_policy(declared))
    stated = study.rank(generate_count=6, **how).to_dict()
    stated.pop("timings")
    return stated


def written(folder: Path, rows: pa.Table, files: int = 1) -> str:
    """Write a table to Parquet files; return a pattern of their paths."""
    for i in range(files):
        part = rows.slice(i * ROWS // files, ROWS // files)
        pyarrow.parquet.write_table(part, folder / f"in{i}.parquet", row_group_size=100)
    return str(folder / "in*.parquet")


# What is counted depends on the case, how rows are read on the files.
@pytest.mark.parametrize(("case", "files"), [("classes", 1), *((case, 2) for case in CASES)])
def test_an_advice_on_rows_that_are_held_is_that_of_the_engine(
    case: str, files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, declared = written(tmp_path, table_of(3), files), policy_of(**CASES[case])
    with sized(large=10**9):
        of_engine = advised(path, declared)
    asked: list[Any] = []
    monkeypatch.setattr(ReleasedRows, "table", lambda *a: asked.append(a))
    with sized(large=0):
        assert advised(path, declared) == of_engine
    assert not asked  # the engine masks nothing
    first = of_engine["ranking"][0]
    assert (first["suppressed_rows"] > 0) == (case != "nothing suppressed")
    assert first["utility"]["rows"] == "released"
    assert of_engine["summary"]["sampled"]


def test_pairs_on_all_rows_are_counted_in_blocks(tmp_path: Path) -> None:
    path, declared = written(tmp_path, table_of(5)), policy_of()
    with sized(large=10**9):
        of_engine = advised(path, declared, exact=True)
    with sized(large=0):
        assert advised(path, declared, exact=True) == of_engine
    assert not of_engine["summary"]["sampled"]


def test_an_advice_on_rows_that_are_held_states_what_the_certificate_states(tmp_path: Path) -> None:
    path, declared = written(tmp_path, table_of(7)), policy_of()
    with sized(large=0):
        study = aegis.Study(path, load_policy(declared))
        advice = study.rank(generate_count=4)
        made = study.apply(advice, tmp_path / "a.parquet", certificate=tmp_path / "a.json")
    assert advice.require_best().suppressed_rows
    assert made.utility == advice.utility


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 40),
    masks=st.tuples(st.integers(0, 1), st.just(0), st.integers(0, 1)),
)
def test_counts_of_kept_rows_are_those_of_the_rows_themselves(
    seed: int,
    k: int,
    masks: tuple[int, int, int],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = written(tmp_path_factory.mktemp("t"), table_of(seed))
    policy = load_policy(policy_of(privacy={"k": k, "suppression": 1.0}))
    with sized(large=0, sample=ROWS):
        study = aegis.Study(path, policy)
        places = dict(zip(study.summary.attributes, (*masks, 0), strict=True))
        choice = {n: a.candidates[places[n]] for n, a in study.summary.attributes.items()}
        counter = ReleasedRows(study.plan, study.source, policy)
        with coded_rows.holding(study.source):
            kept = counter.of(choice)
        rows = study.source.collect(counter.table(choice)).to_pylist()
    assert kept is not None
    sizes = Counter((row["age"], row["town"]) for row in rows)
    assert min(sizes.values(), default=k) >= k
    if kept.constant:
        return
    summary = kept.scorer.summary
    labelled = [row for row in rows if row["y"] is not None]
    shown = {name: _texts(a) for name, a in summary.attributes.items()}
    for name, attribute in summary.attributes.items():
        joint = Counter((_text(row[name]), row["y"]) for row in labelled)
        for value, counts in zip(shown[name], attribute.joint.tolist(), strict=True):
            assert counts == [joint[value, y] for y in summary.label.classes]
    names = list(summary.attributes)
    for i, j in combinations(range(len(names)), 2):
        a, b, y, n = summary.pairs.cells(i, j)
        counted = Counter((_text(r[names[i]]), _text(r[names[j]]), r["y"]) for r in labelled)
        assert {
            (shown[names[i]][u], shown[names[j]][v], summary.label.classes[c]): m
            for u, v, c, m in zip(*(own.tolist() for own in (a, b, y, n)), strict=True)
        } == counted


def _texts(attribute: Any) -> list[str]:
    return list(map(_text, attribute.values.to_pylist()))


def _text(value: Any) -> str:
    return str(0.0 if value == 0.0 and isinstance(value, float) else value)


@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=40),
    block=st.integers(1, 20),
)
def test_combinations_in_blocks_are_those_of_all_rows(
    rows: list[tuple[int, int]], block: int
) -> None:
    columns = [np.array(own, dtype=np.uint8) for own in zip(*rows, strict=True)]
    whole = distinct_keys(combine(columns, len(rows)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frequency, "BLOCK", block)
        for one, two in zip(distinct_rows(columns, len(rows)), whole, strict=True):
            assert one.tolist() == two.tolist()


def test_a_sample_of_several_files_is_drawn_at_places(tmp_path: Path) -> None:
    rows = table_of(0).append_column("place", pa.array(range(ROWS)))
    source = open_table(written(tmp_path, rows, 3))
    drawn = source.collect(source.sample(200, seed=3))["place"].to_pylist()
    places = source.sample_positions(200, seed=3)
    assert places is not None
    assert places.tolist() == sorted(drawn)
