"""Swapping: columns keep their values, partners are as close and as alike as was asked for."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aegis
from aegis.anonymizers import ANONYMIZERS, Recipe, encode
from aegis.errors import AegisError, DataError, NoAdmissibleConfiguration, PolicyError
from aegis.policy import load_policy
from aegis.records.swapping import swapped_places, swapped_ranks

QUASI = "quasi-identifier"


def records_of(**columns: list[Any]) -> Any:
    return encode(pa.table(columns), dict.fromkeys(columns, QUASI), degenerate=True)


@given(
    st.lists(st.integers(0, 9) | st.none(), min_size=2, max_size=40).filter(
        lambda v: any(x is not None for x in v)
    ),
    st.sampled_from([1.0, 5.0, 20.0, 100.0]),
    st.integers(0, 5),
)
def test_ranks_are_swapped_within_reach(
    values: list[int | None], percent: float, seed: int
) -> None:
    attribute = records_of(x=values).attribute("x")
    codes = swapped_ranks(attribute, percent, np.random.default_rng(seed))
    released = [attribute.domain[c] for c in codes]
    assert Counter(released) == Counter(values)
    present = sorted(v for v in values if v is not None)
    reach = max(1, int(percent * len(present) // 100))
    for before, after in zip(values, released, strict=True):
        assert (before is None) == (after is None)
        if before is not None and after is not None:
            low, high = sorted((before, after))
            # From the last place of the smaller value to the first of the larger one.
            between = present.index(high) - (len(present) - 1 - present[::-1].index(low))
            assert between <= reach


def test_most_ranks_change_and_nothing_is_lost_of_the_correlation() -> None:
    draw = np.random.default_rng(3)
    x = draw.normal(size=2000)
    y = x + 0.5 * draw.normal(size=2000)
    released = []
    for name, column in (("x", x), ("y", y)):
        attribute = records_of(**{name: column.tolist()}).attribute(name)
        codes = swapped_ranks(attribute, 2.0, np.random.default_rng(4))
        assert np.mean(codes != attribute.codes) > 0.97
        released.append(attribute.numbers[codes])
    assert np.corrcoef(*released)[0, 1] == pytest.approx(np.corrcoef(x, y)[0, 1], abs=0.02)


places = st.lists(
    st.tuples(
        st.sampled_from("NS"), st.sampled_from("ab"), st.sampled_from("fm"), st.integers(0, 3)
    ),
    min_size=2,
    max_size=40,
)


@given(places, st.integers(2, 4), st.sampled_from([0.0, 0.3, 1.0]), st.booleans())
def test_records_change_places_with_ones_alike_elsewhere(
    rows: list[tuple[str, str, str, int]], k: int, rate: float, similar: bool
) -> None:
    region, county, sex, age = (list(column) for column in zip(*rows, strict=True))
    county = [r + c for r, c in zip(region, county, strict=True)]
    records = records_of(region=region, county=county, sex=sex, age=age)
    options = ANONYMIZERS.get("record-swap").configure(
        k=k, geography=["region", "county"], similar=["sex"] if similar else [], rate=rate
    )
    got, at_risk, helpless = swapped_places(records, options, np.random.default_rng(1))
    assert sorted(got.tolist()) == list(range(len(rows)))
    assert (got[got] == np.arange(len(rows))).all()  # two change places with each other
    moved = np.flatnonzero(got != np.arange(len(rows)))
    for one in moved:
        assert county[one] != county[got[one]]
        assert not similar or sex[one] == sex[got[one]]
    risky = set()
    for geography in (region, county):
        keys = list(
            zip(geography, county if geography is county else region, sex, age, strict=True)
        )
        risky |= {i for i, key in enumerate(keys) if keys.count(key) < k}
    assert at_risk == len(risky)
    assert helpless == len(risky - set(moved.tolist()))
    # Who stays though at risk has no partner left that stayed too.
    for one in risky - set(moved.tolist()):
        left = [
            other
            for other in range(len(rows))
            if got[other] == other
            and county[other] != county[one]
            and region[other] != region[one]
            and (not similar or sex[other] == sex[one])
        ]
        assert not left


TABLE = pa.table(
    {
        "age": list(range(20, 60)) * 5,
        "region": [("north", "south", "east")[i % 3] for i in range(200)],
        "sex": [("f", "m")[i % 2] for i in range(200)],
        "y": [("no", "yes")[i % 7 % 2] for i in range(200)],
    }
)


def policy(**more: Any) -> Any:
    attributes = {name: {"role": QUASI} for name in ("age", "region", "sex")}
    return load_policy(
        {"version": 1, "label": "y", "privacy": {"k": 1}, "attributes": attributes} | more
    )


@pytest.mark.parametrize(
    ("method", "options", "changed"),
    [
        ("rank-swap", {"percent": 10}, "age"),
        ("record-swap", {"geography": ["region"], "similar": ["sex"], "rate": 0.2}, "region"),
    ],
)
def test_a_release_keeps_every_column(
    method: str, options: dict[str, Any], changed: str, tmp_path: Path
) -> None:
    recipe = Recipe(method, {"k": 2, **options}, seed=2)
    aegis.anonymize(TABLE, policy(), recipe, output=tmp_path / "r.parquet")
    released = pq.read_table(tmp_path / "r.parquet")
    for name in TABLE.column_names:
        assert Counter(released[name].to_pylist()) == Counter(TABLE[name].to_pylist())
        same = released[name].to_pylist() == TABLE[name].to_pylist()
        assert same == (name != changed)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("rank-swap", {"percent": 10}),
        ("record-swap", {"geography": ["region"], "similar": ["sex"], "rate": 0.5}),
        ("hybrid", {}),
    ],
)
def test_what_is_swapped_or_added_comes_from_the_system(
    method: str, options: dict[str, Any], tmp_path: Path
) -> None:
    asked = policy(
        attributes={n: {"role": QUASI} for n in ("age", "region")} | {"sex": {"role": "sensitive"}}
    )
    if method == "record-swap":
        asked = policy()
    seen = []
    for seed in (0, 0, 918273, None, None):
        certificate = tmp_path / "c.json"
        made = aegis.anonymize(
            TABLE,
            asked,
            method,
            options={"k": 2, **options},
            output=tmp_path / "r.parquet",
            certificate=certificate,
            force=True,
            seed=seed,
        )
        seen.append(pq.read_table(tmp_path / "r.parquet").to_pylist())
        assert any("a seed was given" in note for note in made.notes) == (seed is not None)
        document = json.loads(certificate.read_text())
        assert document["anonymizer"]["method"] == method
        assert "918273" not in certificate.read_text()
    assert seen[0] == seen[1]
    assert all(a != b for a, b in combinations(seen[1:], 2))


@pytest.mark.parametrize(
    ("method", "options", "error", "match"),
    [
        ("rank-swap", {"percent": 0}, PolicyError, "percent"),
        ("record-swap", {}, PolicyError, "place of a record"),
        ("record-swap", {"geography": ["town"]}, DataError, "town"),
        (
            "record-swap",
            {"geography": ["sex"], "similar": ["sex"]},
            PolicyError,
            "not both|equal in",
        ),
        ("record-swap", {"geography": ["sex"], "rate": 2}, PolicyError, "rate"),
    ],
)
def test_bad_options(
    method: str, options: dict[str, Any], error: type[AegisError], match: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=match):
        aegis.anonymize(TABLE, policy(), Recipe(method, options), output=tmp_path / "r.parquet")


def test_persons_are_refused(tmp_path: Path) -> None:
    table = TABLE.append_column("p", pa.array([i // 2 for i in range(200)]))
    with pytest.raises(PolicyError, match="moves values between rows"):
        aegis.anonymize(
            table, policy(person="p"), Recipe("rank-swap"), output=tmp_path / "r.parquet"
        )


def test_without_an_order_there_are_no_ranks(tmp_path: Path) -> None:
    asked = load_policy(
        {"version": 1, "label": "y", "privacy": {"k": 1}, "attributes": {"sex": {"role": QUASI}}}
    )
    with pytest.raises(PolicyError, match="needs ordered values"):
        aegis.anonymize(TABLE, asked, Recipe("rank-swap"), output=tmp_path / "r.parquet")


@pytest.mark.parametrize(("method", "has_strict"), [("rank-swap", False), ("hybrid", True)])
def test_a_strict_form_is_advised_only_where_there_is_one(
    method: str, has_strict: bool, tmp_path: Path
) -> None:
    attributes = {"age": {"role": QUASI}, "region": {"role": QUASI}, "sex": {"role": "sensitive"}}
    asked = policy(privacy={"k": 150}, attributes=attributes)
    with pytest.raises(NoAdmissibleConfiguration) as refused:
        aegis.anonymize(TABLE, asked, Recipe(method, {"k": 2}), output=tmp_path / "r.parquet")
    assert "choose another method" in str(refused.value)
    assert ("strict=true" in str(refused.value)) == has_strict
