"""Local suppression against all partitions of small tables, and recounted with pandas alone."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from anonymizers_support import tables
from hypothesis import given, settings
from hypothesis import strategies as st

import aegis
from aegis.anonymizers import ANONYMIZERS, Recipe, encode
from aegis.errors import DataError, NoAdmissibleConfiguration, PolicyError
from aegis.policy import Policy, load_policy

METHOD = ANONYMIZERS.get("local-suppression")
QUASI = ("age", "place", "grade", "job")


def fewest_cells(rows: list[tuple[int, ...]], k: int) -> int:
    """The fewest suppressed cells of all partitions into groups of k or more.

    A group loses the cells in which its rows differ; rows of equal released values may always be
    taken as one group, so this is the least of all ways.
    """
    width = len(rows[0])

    def cost(group: tuple[int, ...]) -> int:
        return len(group) * sum(len({rows[i][a] for i in group}) > 1 for a in range(width))

    @cache
    def least(left: tuple[int, ...]) -> float:
        if not left:
            return 0
        first, rest = left[0], left[1:]
        costs = [
            cost((first, *more)) + least(tuple(i for i in rest if i not in more))
            for size in range(k - 1, len(rest) + 1)
            for more in itertools.combinations(rest, size)
        ]
        return min(costs, default=float("inf"))

    return int(least(tuple(range(len(rows)))))


def codes_table(rows: list[tuple[int, ...]]) -> pa.Table:
    return pa.table({f"c{a}": [row[a] for row in rows] for a in range(len(rows[0]))})


def suppressed_cells(rows: list[tuple[int, ...]], k: int) -> int:
    table = codes_table(rows)
    records = encode(table, dict.fromkeys(table.column_names, "quasi-identifier"), degenerate=True)
    grouped = METHOD.group(records, METHOD.configure(k=k))
    shown = list(zip(*grouped.columns.values(), strict=True))
    assert min(Counter(shown).values()) >= k
    for row, values in zip(rows, shown, strict=True):
        assert all(value in ("*", old, str(old)) for old, value in zip(row, values, strict=True))
    counted = sum(value == "*" for values in shown for value in values)
    assert grouped.details["suppressed_cells"] == counted
    return counted


def test_it_is_close_to_the_fewest_cells_of_all_ways() -> None:
    random = np.random.default_rng(1)
    ours = least = best = 0
    for _ in range(40):
        size, width, k = random.integers(4, 9), random.integers(2, 4), int(random.integers(2, 4))
        rows = [tuple(row) for row in random.integers(0, 3, (size, width)).tolist()]
        own, fewest = suppressed_cells(rows, k), fewest_cells(rows, k)
        assert own >= fewest
        ours, least, best = ours + own, least + fewest, best + (own == fewest)
    assert ours <= 1.1 * least
    assert best >= 30


def test_a_large_class_gives_few_records_to_one_that_would_stand_alone() -> None:
    rows = [(1, 1, 1)] * 20 + [(1, 1, 2)]
    assert suppressed_cells(rows, 3) == 3  # its own cell and those of two others
    assert suppressed_cells([(1, 1, 1)] * 4 + [(1, 1, 2)], 3) == 5  # four cannot spare two


@settings(max_examples=25)
@given(table=tables(), data=st.data())
def test_stars_and_empty_cells_keep_k_and_l(table: pa.Table, data: st.DataObject) -> None:
    k = data.draw(st.integers(2, table.num_rows))
    held = len(set(table["illness"].to_pylist()))
    wanted = data.draw(st.integers(1, held))
    roles = dict.fromkeys(QUASI, "quasi-identifier") | {"illness": "sensitive"}
    records = encode(table.select([*QUASI, "illness"]), roles, degenerate=True)
    options = METHOD.configure(k=k, l=wanted, empty=data.draw(st.booleans()))
    grouped = METHOD.group(records, options)
    shown = list(zip(*grouped.columns.values(), strict=True))
    assert min(Counter(shown).values()) >= k
    values: dict[Any, set[Any]] = {}
    for key, value in zip(shown, table["illness"].to_pylist(), strict=True):
        values.setdefault(key, set()).add(value)
    assert min(map(len, values.values())) >= wanted
    assert grouped.suppressed == 0


def visits(people: int = 90) -> pa.Table:
    random = np.random.default_rng(8)
    who = random.integers(0, people, 300)
    return pa.table(
        {
            "who": [f"p{v}" for v in who],
            "age": 20 + who % 40 + random.integers(0, 3, 300),
            "sex": ["fm"[v % 2] for v in who],
            "town": random.choice(["a", "b", "c", "d"], 300, p=[0.6, 0.2, 0.15, 0.05]),
            "ill": random.choice(["flu", "cold", "rash"], 300),
            "y": (who % 40 > 20).astype(int),
        }
    )


def policy(person: str | None = None, age: Any = None, **privacy: Any) -> Policy:
    named = {} if person is None else {"person": person}
    return load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 4} | privacy,
            "attributes": {
                "age": {"role": "quasi-identifier"} | ({} if age is None else {"masks": age}),
                "sex": {"role": "quasi-identifier"},
                "town": {"role": "quasi-identifier"},
                "ill": {"role": "sensitive"},
            },
        }
        | named
    )


NAMES = ["age", "sex", "town"]


@pytest.mark.parametrize("empty", [True, False])
def test_the_written_file_meets_the_rule_when_pandas_counts_it(empty: bool, tmp_path: Path) -> None:
    rule = policy(l_diversity={"attribute": "ill", "kind": "distinct", "l": 2})
    release = aegis.anonymize(
        visits().drop_columns(["who"]),
        rule,
        "local-suppression",
        options={"empty": empty},
        output=tmp_path / "out.csv",
        certificate=tmp_path / "out.json",
    )
    shown = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    classes = shown.groupby(NAMES)
    assert len(shown) == 300
    assert classes.size().min() == release.audit.report.k >= 4
    assert classes["ill"].nunique().min() >= 2
    before = visits().to_pandas()
    hidden = shown[NAMES] == ("" if empty else "*")
    assert (hidden | (shown[NAMES] == before[NAMES].astype(str))).all(axis=None)
    said = json.loads((tmp_path / "out.json").read_text())
    assert said["details"]["suppressed_cells"] == hidden.to_numpy().sum() > 0
    assert said["details"]["suppressed_cells_of"] == hidden.sum().to_dict()
    assert "counts as a separate value" in " ".join(said["notes"])


def test_persons_are_counted_in_each_class(tmp_path: Path) -> None:
    table = visits()
    release = aegis.anonymize(
        table, policy("who"), "local-suppression", output=tmp_path / "out.parquet"
    )
    shown = pd.read_parquet(tmp_path / "out.parquet")
    assert "who" not in shown
    shown["who"] = table["who"].to_pylist()
    persons = shown.groupby(NAMES)["who"].nunique()
    assert persons.min() == release.audit.report.k >= 4
    assert release.suppressed_persons == 0


def test_what_the_rule_asks_beyond_k_and_l_is_left_to_rows_within_the_limit() -> None:
    close = {"t_closeness": {"attribute": "ill", "t": 0.3}}
    table = visits().drop_columns(["who"])
    with pytest.raises(NoAdmissibleConfiguration):
        aegis.anonymize(table, policy(**close), "local-suppression")
    release = aegis.anonymize(table, policy(suppression=0.9, **close), "local-suppression")
    assert 0 < release.suppressed_rows <= 270
    shown = release.data.to_pandas()
    whole = shown["ill"].value_counts(normalize=True)
    for _, part in shown.groupby(NAMES):
        own = part["ill"].value_counts(normalize=True).reindex(whole.index, fill_value=0)
        assert abs(own - whole).sum() / 2 <= 0.3 + 1e-9


def test_masks_show_quasi_identifiers_before_cells_are_suppressed() -> None:
    table = visits().drop_columns(["who"])
    wide = aegis.anonymize(
        table,
        policy(),
        "local-suppression",
        options={"masks": {"age": {"bucketize": {"width": 20}}}},
    )
    plain = aegis.anonymize(table, policy(), "local-suppression")
    assert set(wide.data["age"].to_pylist()) <= {"[20, 40[", "[40, 60[", "[60, 80[", "*"}
    assert wide.grouped.details["suppressed_cells"] < plain.grouped.details["suppressed_cells"]
    # What the policy does not want to see as it is, is shown under its first candidate.
    first = aegis.anonymize(
        table, policy(age=[{"bucketize": {"width": 20}}, "suppress"]), "local-suppression"
    )
    assert first.data.equals(wide.data)


def test_important_cells_are_spared() -> None:
    table = visits().drop_columns(["who"])
    plain = aegis.anonymize(table, policy(), "local-suppression")
    spared = aegis.anonymize(
        table, policy(), "local-suppression", options={"importance": ["age", "town"]}
    )
    of = "suppressed_cells_of"
    assert spared.grouped.details[of]["age"] < plain.grouped.details[of]["age"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"masks": {"agee": "suppress"}}, "Did you mean 'age'"),
        ({"masks": {"age": "supress"}}, "Did you mean 'suppress'"),
        (
            {"masks": {"age": {"laplace": {"epsilon": 1, "lower": 0, "upper": 99}}}},
            "draws at random",
        ),
        ({"masks": 3}, "a mapping or null"),
        ({"importance": ["agee"]}, "agee"),
        ({"k": 301}, "above the number of records, 300"),
    ],
)
def test_wrong_options_say_what_is_allowed(options: dict[str, Any], says: str) -> None:
    with pytest.raises((PolicyError, DataError)) as raised:
        aegis.anonymize(
            visits().drop_columns(["who"]), policy(), "local-suppression", options=options
        )
    assert says in str(raised.value)


def test_the_same_masks_are_ranked_with_rows_left_out_and_with_cells_suppressed() -> None:
    table = visits().drop_columns(["who"])
    rule = policy(age=["identity", {"bucketize": {"width": 10}}, "suppress"], suppression=0.2)
    study = aegis.Study(table, rule)
    advice = study.search(methods=["local-suppression"])
    by_name = {one.name: one for one in advice.ranking}
    first = study.search(methods=()).best
    assert first is not None
    assert first.suppressed_rows > 0
    cells = by_name[f"local-suppression on {first.name}"]
    assert (cells.admissible, cells.suppressed_rows) == (True, 0)
    finer = [one for one in advice.ranking if one.name == "local-suppression on finer masks"]
    assert all(one.admissible and one.suppressed_rows == 0 for one in finer)
    assert cells.method is not None
    recipe = cells.method.recipe
    assert set(recipe.options["masks"]) == set(NAMES)
    again = aegis.anonymize(table, rule, Recipe(recipe.method, recipe.options))
    assert again.audit.report.k == cells.method.report.k >= 4
    ranked = study.rank(generate_count=20, methods=["local-suppression"])
    names = [one.name for one in ranked.ranking if one.method is not None]
    assert "local-suppression" in names
    own = cells.method.method_text
    for name in NAMES:
        mask = first.configuration.masks[name]
        before = "" if str(mask) == "identity" else f"{mask}, then "
        assert cells.mask_texts[name] == f"{before}{own}"
