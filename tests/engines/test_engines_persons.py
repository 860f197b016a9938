"""Persons are counted alike on every engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import aegis
from aegis.masks import parse_mask
from aegis.policy import Configuration, load_policy
from aegis.policy.suggest.names import Trait, find_fixed
from aegis.sources import Source, open_table
from aegis.summary import count_classes

pytestmark = pytest.mark.filterwarnings("ignore")
QUASI = ["age", "town"]


def visits(rows: int = 300) -> pa.Table:
    """Return visits of persons with nulls in all columns but the label."""
    random = np.random.default_rng(5)

    def some(values: list[Any]) -> list[Any]:
        return [values[i] for i in random.integers(0, len(values), rows)]

    return pa.table(
        {
            "person": pa.array(some([*map(str, range(80)), None]), pa.string()),
            "age": pa.array(some([*range(20, 26), None]), pa.int64()),
            "town": pa.array(some(["a", "b", None]), pa.string()),
            "ill": pa.array(some(["flu", "cold", None]), pa.string()),
            "y": pa.array(some(["yes", "no"]), pa.string()),
        }
    )


POLICY = load_policy(
    {
        "version": 1,
        "label": "y",
        "person": "person",
        "privacy": {
            "k": 12,
            "suppression": 0.9,
            "l_diversity": {"attribute": "ill", "kind": "distinct", "l": 2},
        },
        "attributes": {
            "age": {"role": "quasi-identifier", "masks": ["identity", {"bucketize": {"width": 2}}]},
            "town": {"role": "quasi-identifier", "masks": ["identity"]},
            "ill": {"role": "sensitive", "masks": ["identity"]},
        },
    }
)
CHOSEN = Configuration(
    "chosen",
    {
        "age": parse_mask({"bucketize": {"width": 2}}),
        "town": parse_mask("identity"),
        "ill": parse_mask("identity"),
    },
)


@pytest.fixture(params=["postgres", "polars", "spark"])
def people(request: pytest.FixtureRequest) -> Iterator[Source]:
    """The visits on one engine."""
    yield from on_engine(request, visits())


@pytest.fixture(params=["postgres", "polars", "spark"])
def panel(request: pytest.FixtureRequest) -> Iterator[Source]:
    """Twenty months of each of fifty persons on one engine, `who` being their key."""
    table = pa.table(
        {
            "who": [None if i == 7 else i // 20 for i in range(1000)],
            "male": [i // 20 % 3 == 0 for i in range(1000)],
            "race": [None if i == 9 else "abc"[i // 20 % 3] for i in range(1000)],
            "month": [i % 20 for i in range(1000)],
            "y": ["yes" if i * i % 7 > 2 else "no" for i in range(1000)],
        }
    )
    yield from on_engine(request, table)


def on_engine(request: pytest.FixtureRequest, table: pa.Table) -> Iterator[Source]:
    if request.param == "spark":
        session = request.getfixturevalue("spark")
        file = request.getfixturevalue("tmp_path") / "table.parquet"
        pq.write_table(table, file)
        yield open_table(session.read.parquet(str(file)))
        return
    if request.param == "polars":
        connection = ibis.polars.connect()
        yield open_table(connection.create_table("visits", table))
        return
    connection = ibis.connect(request.getfixturevalue("postgres").url)
    connection.create_table("visits", table, overwrite=True)
    yield Source(connection.table("visits"), "visits")
    connection.disconnect()


def test_a_key_of_persons_is_found_by_what_it_fixes(panel: Source) -> None:
    traits = [Trait("male", 2, 0.66), Trait("race", 3, 0.34), Trait("y", 2, 0.6)]
    fixed, varied = find_fixed(panel, panel.table, {"who": 50, "month": 20}, traits)
    assert fixed == {"who": ("male", "race")}
    assert varied == {"who": ("y",), "month": ("male", "race", "y")}


def test_classes_and_values_are_those_of_the_embedded_engine(people: Source) -> None:
    here = count_classes(open_table(visits()), QUASI, ["ill"], person="person").table
    there = count_classes(people, QUASI, ["ill"], person="person").table
    assert there.sizes.tolist() == here.sizes.tolist()
    assert there.class_rows.tolist() == here.class_rows.tolist()
    assert there.sensitive["ill"].counts.tolist() == here.sensitive["ill"].counts.tolist()
    assert there.subjects == here.subjects


def test_persons_of_several_classes_are_those_of_the_embedded_engine(people: Source) -> None:
    here = count_classes(open_table(visits()), QUASI, person="person").table
    there = count_classes(people, QUASI, person="person").table
    odd = np.arange(len(here)) % 2 == 1
    assert there.subjects_in(odd) == here.subjects_in(odd) < here.subjects


def test_releases_are_those_of_the_embedded_engine(people: Source, tmp_path: Path) -> None:
    here = aegis.apply(visits(), POLICY, CHOSEN)
    assert here.suppressed_rows > 0
    release = aegis.apply(people, POLICY, CHOSEN, output=tmp_path / "masked.parquet")
    assert release.suppressed_rows == here.suppressed_rows
    assert release.suppressed_persons == here.suppressed_persons
    assert release.audit.report.k == here.audit.report.k
    assert "person" not in release.to_arrow().column_names


def test_plans_are_those_of_the_embedded_engine(people: Source) -> None:
    best = aegis.search(people, POLICY, measure="chi2", top=1).require_best()
    same = aegis.search(visits(), POLICY, measure="chi2", top=1).require_best()
    assert str(best.configuration.masks) == str(same.configuration.masks)
    assert best.suppressed_rows == same.suppressed_rows


@pytest.mark.parametrize("people", ["postgres"], indirect=True)
def test_a_table_is_made_in_the_database(people: Source) -> None:
    here = aegis.apply(visits(), POLICY, CHOSEN)
    release = aegis.apply(people, POLICY, CHOSEN, into="masked_visits", force=True)
    assert release.suppressed_persons == here.suppressed_persons
    assert release.released_rows == here.released_rows
