"""What no rule on quasi-identifiers looks at, in audits and certificates, against plain Python."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import ibis.expr.types as ir
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aegis
from aegis.cli.screen import short_cautions
from aegis.masking import masked
from aegis.policy import load_policy
from aegis.release import check_certificate
from aegis.report import render_certificate
from aegis.sources import Source, open_table
from aegis.sources.engines import Engine
from aegis.summary.outside import Outside, Singling, outside_of


@pytest.mark.parametrize("name", ["fare", "fare: full", "no. of fare"])
def test_the_shortest_sentence_names_the_columns_that_single_out_most(name: str) -> None:
    few = Singling((name, "pclass"), 8)
    [sentence] = short_cautions(Outside(rows=10, unique_rows=9, singling=few).sentences)
    assert sentence == (
        "9 of 10 released rows are the only ones with their values in all columns together "
        f"({name} and pclass single out 8 of them within their classes)"
    )


ROWS = st.lists(
    st.tuples(st.sampled_from([1, 2, None]), st.sampled_from(["a", "b"]), st.sampled_from("pqr")),
    min_size=1,
    max_size=14,
)


@settings(max_examples=10)
@given(rows=ROWS, by_person=st.booleans())
def test_rows_that_nothing_equals_are_counted(rows: list[tuple[Any, ...]], by_person: bool) -> None:
    numbers, letters, who = zip(*rows, strict=True)
    table = pa.table({"n": pa.array(numbers, pa.int64()), "p": list(letters), "who": list(who)})
    found = aegis.audit(table, quasi_identifiers=["p"], person="who" if by_person else None)
    assert found.outside is not None
    if by_person:
        behind = defaultdict(set)
        for n, p, person in rows:
            behind[n, p].add(person)
        wanted = sum(len(behind[n, p]) == 1 for n, p, _ in rows)
    else:
        counts = Counter(rows)
        wanted = sum(counts[row] == 1 for row in rows)
    assert (found.outside.rows, found.outside.unique_rows) == (len(rows), wanted)
    columns = {"n": numbers, "p": letters} | ({} if by_person else {"who": who})
    values = {name: len(set(column) - {None}) for name, column in columns.items()}
    near = {name: n for name, n in values.items() if n >= len(rows) / 2 > 1}
    assert found.outside.near_keys == near


@pytest.mark.parametrize(
    ("values", "queries", "near"),
    [
        ([1.0, float("nan"), None, 2.0] * 3, 1, {}),  # 4 different rows of 12
        ([0.0, -0.0, 1.0, 1.0, 2.0, 2.0], 2, {"x": 3}),  # as many as make a near key
        ([*range(6)], 3, {"x": 6}),
    ],
)
def test_columns_are_counted_only_where_rows_are_different_enough(
    values: list[Any], queries: int, near: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = open_table(pa.table({"x": pa.array(values)}))
    assert source.rows == len(values)
    asked, collect = [], Source.collect

    def counted(self: Source, table: ir.Table) -> pa.Table:
        asked.append(table)
        return collect(self, table)

    monkeypatch.setattr(Source, "collect", counted)
    outside = outside_of(source, [])
    assert outside is not None
    assert outside.near_keys == near
    assert len(asked) == queries


def test_a_certificate_says_it_and_its_page_warns(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    table = pa.table(
        {
            "age": random.integers(2, 5, 90) * 10,
            "pay": random.normal(50, 9, 90).round(3),
            "y": random.integers(0, 2, 90),
        }
    )
    policy = load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 5},
            "attributes": {"age": {"role": "quasi-identifier"}, "pay": {"role": "feature"}},
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    study = aegis.Study(tmp_path / "t.parquet", policy)
    study.apply(study.advise(), tmp_path / "o.parquet", certificate=tmp_path / "c.json")
    said = json.loads((tmp_path / "c.json").read_text())
    values = len(set(table["pay"].to_pylist()))
    assert said["privacy"]["outside"] == {
        "rows": 90,
        "unique_rows": 90 if values == 90 else said["privacy"]["outside"]["unique_rows"],
        "near_keys": {"pay": values},
        "singling": {"columns": ["pay"], "unique_rows": said["privacy"]["outside"]["unique_rows"]},
        "implied": [],
    }
    page = render_certificate(said)
    assert "pay shows" in page
    assert "are the only ones with their values in all columns together" in page
    assert check_certificate(tmp_path / "o.parquet", tmp_path / "c.json").passed
    said["privacy"]["outside"]["unique_rows"] -= 1
    (tmp_path / "c.json").write_text(json.dumps(said))
    differing = check_certificate(tmp_path / "o.parquet", tmp_path / "c.json").mismatches
    assert {found.what for found in differing} == {"digest", "privacy.outside.unique_rows"}
    del said["privacy"]["outside"], said["digest"]  # of a version that did not look
    said["certificate"] = 1
    (tmp_path / "c.json").write_text(json.dumps(said))
    assert check_certificate(tmp_path / "o.parquet", tmp_path / "c.json").passed


def test_many_columns_that_are_nearly_keys_make_one_sentence() -> None:
    near = {f"c{place}": place for place in range(10, 60)} | {"pay": 60}
    said = Outside(rows=60, unique_rows=0, near_keys=near, label="pay").sentences
    assert len(said) == 2
    assert said[0].startswith("The column pay shows 60 values and is nearly a key")
    assert said[1].startswith(
        "50 columns are nearly keys (c59 with 59 values, c58 with 58 values, c57 with 57 values and 47 more)"
    )
    few = Outside(rows=60, unique_rows=0, near_keys={"a": 50, "b": 40, "c": 30}).sentences
    assert len(few) == 3


def test_wide_tables_need_no_more_queries_and_count_classes_in_few_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [0]
    classes_in: list[tuple[str, ...]] = []
    batches, count = Engine.batches, masked.count_classes

    def counted(self: Engine, expression: ir.Table, rows: int) -> Any:
        asked[-1] += 1
        return batches(self, expression, rows)

    def counting(*args: Any, table: ir.Table, **more: Any) -> Any:
        classes_in.append(tuple(table.columns))
        return count(*args, table=table, **more)

    monkeypatch.setattr(Engine, "batches", counted)
    monkeypatch.setattr(masked, "count_classes", counting)
    for columns in (3, 12):
        random, names = np.random.default_rng(columns), [f"c{i}" for i in range(columns)]
        table = pa.table(
            {"age": [20, 30] * 20, "y": random.integers(0, 2, 40)}
            | {name: random.normal(50, 9, 40) for name in names}
        )
        masks = {name: {"round": {"step": 10}} for name in names} | {"age": "identity"}
        policy = load_policy(
            {
                "version": 1,
                "label": "y",
                "privacy": {"k": 5},
                "attributes": {"age": {"role": "quasi-identifier"}}
                | {name: {"role": "feature", "masks": [masks[name]]} for name in names},
                "configurations": {"chosen": masks},
            }
        )
        chosen = policy.configurations["chosen"]
        output, certificate = tmp_path / f"{columns}.csv", tmp_path / f"{columns}.json"
        aegis.apply(table, policy, chosen, output=output, certificate=certificate)
        asked.append(0)
        assert check_certificate(output, certificate).passed
        asked.append(0)  # for the next release
    _, few, _, many, _ = asked
    assert few == many
    assert classes_in == [("age",)] * 2
