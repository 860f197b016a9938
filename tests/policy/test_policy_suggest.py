"""Whole proposals: the YAML reads back, candidates are coarser, bad tables get one clear error."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from suggest_support import check, load_text, people

from aegis.policy import Role
from aegis.policy.lines import read_yaml
from aegis.policy.suggest import init_policy
from aegis.policy.suggest import profile as suggest_profile
from aegis.policy.suggest.yaml_text import scalar, show
from aegis.sources import Reading, open_table

AWKWARD = [
            "yes", "no", "null", "~", "true", "on", "1", "1.5", "1e3", ".inf", "0x1f", "0o17", "12:30:00",
            "2024-01-31", "<<", "=", "-", "?", ":", "a: b", "a #b", "#c", "'", '"', "it's", 'say "hi"', "[x]",
            "{y}", "& z", "*w", "!t", "| p", "> q", "%r", "@s", "`u`", " lead", "trail ", "two  spaces", "tab\tin",
            "line\nbreak", "return\r", "next\x85line", "sep\u2028arated", "\ufeffbom", "nul\\0", "bell\x07",
            "Straße", "日本語", "😀", "عربى", "e\u0301", "age", "Zip Code", "y", "x" * 300, "ü" * 1500, "id", "version",
        ]  # fmt: skip

NAMES = st.sampled_from(AWKWARD) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=30
)

COLUMNS: list[st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]]] = [
    st.just((pa.int64(), st.integers(-(2**63), 2**63 - 1))),
    st.just((pa.int32(), st.integers(0, 120))),
    st.just((pa.uint64(), st.integers(0, 2**64 - 1))),
    st.just((pa.float64(), st.floats())),
    st.just((pa.float32(), st.floats(width=32))),
    st.just((pa.float64(), st.floats(-100, 100))),
    st.just((pa.decimal128(38, 4), st.decimals(-(10**30), 10**30, places=4, allow_nan=False))),
    st.just((pa.string(), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8))),
    st.just((pa.string(), st.sampled_from("abcdefgh"))),
    st.just((pa.string(), st.from_regex(r"[0-9]{5}", fullmatch=True))),
    st.just((pa.bool_(), st.booleans())),
    st.just((pa.date32(), st.dates(date(1, 1, 1), date(9999, 12, 31)))),
    st.just((pa.timestamp("us", tz="UTC"), st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)))),
    st.just((pa.binary(), st.binary(max_size=3))),
]  # fmt: skip


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, str]:
    rows = draw(st.integers(4, 40))
    names = draw(st.lists(NAMES, min_size=3, max_size=6, unique_by=lambda n: n.lower()))
    label, anchor, *others = names
    data = {
        label: pa.array([i % 2 for i in range(rows)]),
        # One column that is certainly scored, so that every table has a proposal.
        anchor: pa.array([i % 3 == 0 for i in range(rows)]),
    }
    for name in others:
        dtype, values = draw(st.one_of(COLUMNS))
        data[name] = pa.array(
            draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), dtype
        )
    return pa.table(data), label


@settings(max_examples=5)
@given(tables())
def test_the_yaml_of_any_table_reads_back_to_the_policy(case: tuple[pa.Table, str]) -> None:
    check(*case)


@given(NAMES)
def test_any_name_reads_back_as_key_and_value(name: str) -> None:
    text = f"? {scalar(name)}\n: {{column: {scalar(name)}, bins: 5}}   # {show(name)}\n? {scalar(name * 9)}\n: {scalar(name)}"
    assert read_yaml(text, "test").data == {name: {"column": name, "bins": 5}, name * 9: name}
    assert "\n" not in scalar(name)


def test_all_awkward_names_in_one_table() -> None:
    columns = {name: [i % 8 for i in range(80)] for name in AWKWARD}
    proposed = init_policy(
        pa.table({**columns, "income": [i % 2 for i in range(80)]}), label="income"
    )
    assert load_text(proposed.yaml) == proposed.policy
    assert list(proposed.policy.attributes) == AWKWARD


@pytest.mark.parametrize(
    "name", ["no", "a: b", "1e3", "line\nbreak", "ü" * 1500, 'say "hi" # \u2028']
)
def test_awkward_labels_and_sensitive_attributes(name: str) -> None:
    rows = range(80)
    table = pa.table(
        {
            name: [i % 40 for i in rows],
            f"{name} salary": [i % 8 for i in rows],
            "x": [i % 3 for i in rows],
        }
    )
    proposed = init_policy(table, label=name)
    assert load_text(proposed.yaml) == proposed.policy
    assert proposed.policy.label.is_number
    if len(name) < 200:
        assert proposed.policy.privacy.sensitive == (f"{name} salary",)


def test_roles_and_masks_of_a_table_of_people() -> None:
    proposed = check(people(), "label")
    roles = {name: str(a.role) for name, a in proposed.policy.attributes.items()}
    assert roles == {
        "user_id": "identifier",
        "email": "identifier",
        "token": "identifier",
        "age": "quasi-identifier",
        "zip": "quasi-identifier",
        "sex": "quasi-identifier",
        "job": "quasi-identifier",
        "birth_date": "quasi-identifier",
        "visited": "quasi-identifier",
        "diagnosis": "sensitive",
        "weight": "feature",
        "spent": "feature",
        "constant": "ignore",
        "void": "ignore",
        "items": "ignore",
    }
    specs = {n: [m.spec() for m in a.masks] for n, a in proposed.policy.attributes.items()}
    assert specs["age"] == [
        {"bucketize": {"width": 5}},
        {"bucketize": {"width": 10}},
        {"bucketize": {"width": 20}},
        {"quantiles": {"count": 4}},
        "suppress",
    ]
    assert specs["zip"][:-1] == [{"blur": {"keep": n}} for n in (4, 3, 2)]
    assert specs["sex"] == ["identity", "suppress"]
    assert specs["birth_date"][:-1] == [
        *({"truncate": {"unit": u}} for u in ("month", "year")),
        {"truncate": {"unit": "year", "count": 5}},
        {"truncate": {"unit": "year", "count": 10, "show": "decade"}},
    ]
    assert specs["visited"][:-1] == [{"truncate": {"unit": u}} for u in ("day", "week")]
    # Outside the rule nothing is masked, but values that nearly all differ are rounded.
    assert specs["diagnosis"] == ["identity"]
    assert specs["spent"] == ["identity"]
    assert specs["weight"] == [{"round": {"digits": 2}}]
    assert (
        "masks: 100 % of the values differ: somebody who knows one finds its row" in proposed.yaml
    )
    assert str(proposed.policy.privacy) == (
        "k-anonymity (k = 5); distinct l-diversity of diagnosis (l = 2); at most 2 % of the rows suppressed"
    )
    assert "masks: [identity]" in proposed.yaml  # age, as an option in a comment
    assert "quasi-identifier  age: bucketize(width=5)" in repr(proposed)


def test_the_yaml_quotes_no_identifier_and_no_rare_value() -> None:
    rows = 100
    table = pa.table(
        {
            "email": [f"p{i}@example.org" for i in range(rows)],
            "patient_id": range(770_000, 770_000 + rows),
            "word": ["rare-word" if i < 3 else "common-word" for i in range(rows)],
            "label": [i % 2 for i in range(rows)],
        }
    )
    proposed = init_policy(table, label="label")
    shown = proposed.yaml + json.dumps(proposed.to_dict()) + repr(proposed)
    assert "example.org" not in shown
    assert "7700" not in shown
    assert "rare-word" not in shown
    assert "common-word (97.0 %)" in proposed.yaml


def test_too_few_or_dominated_sensitive_values_leave_the_rule_commented_out() -> None:
    for values in (["a", "b"] * 50, ["a"] * 90 + [f"v{i % 5}" for i in range(10)]):
        table = pa.table(
            {
                "diagnosis": values,
                "x": [i % 3 for i in range(100)],
                "y": [i % 2 for i in range(100)],
            }
        )
        proposed = check(table, "y")
        assert proposed.policy.privacy.sensitive == ()
        assert "# l_diversity: {attribute: diagnosis, kind: distinct, l: 2}" in proposed.yaml
        uncommented = proposed.yaml.replace("  # l_diversity:", "  l_diversity:")
        assert load_text(uncommented).privacy.sensitive == ("diagnosis",)


def test_commented_options_are_valid_policies() -> None:
    lines = init_policy(people(), label="label").yaml.splitlines()
    options = [i for i, line in enumerate(lines) if line.strip().startswith("# masks: [")]
    assert len(options) >= 3
    for i in options:
        entry = list(lines)
        name = max(
            j for j in range(i) if lines[j].startswith("  ") and lines[j].rstrip().endswith(":")
        )
        masks = [j for j in range(name, i) if lines[j].startswith("    masks:")]
        for j in masks:
            entry[j] = ""
        entry[i] = lines[i].replace("# masks:", "masks:", 1)
        load_text("\n".join(entry))


def test_duplicate_rows_are_rows() -> None:
    table = people(100)
    twice = pa.concat_tables([table, table])
    assert init_policy(twice, label="label").profiles["age"].facts.rows == 200
    check(twice, "label")


def test_small_tables_have_no_near_unique_columns() -> None:
    table = pa.table({"a": range(10), "b": [f"v{i}" for i in range(10)], "y": [0, 1] * 5})
    proposed = check(table, "y")
    assert all(a.role is Role.FEATURE for a in proposed.policy.attributes.values())
    assert (
        "WARNING: The rule protects nothing, because no column is a quasi-identifier"
        in proposed.yaml
    )


def test_the_policy_of_a_file_without_names_of_columns_reads_back(tmp_path: Path) -> None:
    table = tmp_path / "bare.csv"
    table.write_text("".join(f"{20 + i % 50},{i % 2},{i % 7}\n" for i in range(100)))
    source = open_table(table, reading=Reading(header=False))
    proposed = init_policy(source, label=source.columns[1])
    assert "  header: false\n" in proposed.yaml
    assert load_text(proposed.yaml) == proposed.policy


def test_a_wide_table() -> None:
    rows = 60
    data: dict[str, Any] = {f"c{i}": [(i + j) % 7 for j in range(rows)] for i in range(240)}
    data |= {f"t{i}": [f"v{(i + j) % 7}" for j in range(rows)] for i in range(60)}
    proposed = init_policy(pa.table({**data, "y": [j % 2 for j in range(rows)]}), label="y")
    assert len(proposed.policy.attributes) == 300
    assert load_text(proposed.yaml) == proposed.policy


def test_the_number_of_queries_does_not_grow_with_the_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from aegis.sources import Source

    queries = []
    collect = Source.collect

    def counted(self: Source, expression: Any) -> pa.Table:
        queries.append(1)
        return collect(self, expression)

    monkeypatch.setattr(Source, "collect", counted)
    init_policy(people(60).select(["age", "sex", "label"]), label="label")
    few = len(queries)
    queries.clear()
    init_policy(people(60), label="label")
    assert few <= len(queries) <= few + 3  # three compare columns, where there are features


def test_an_estimated_table_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggest_profile, "EXACT_ROWS", 100)
    monkeypatch.setattr(suggest_profile, "SAMPLE_ROWS", 200)
    proposed = check(people(), "label")
    assert "estimated from a sample" in proposed.yaml
    assert "about 2 values" in proposed.yaml
    assert proposed.policy.attributes["user_id"].role is Role.IDENTIFIER
    assert proposed.policy.attributes["constant"].role is Role.IGNORE


@pytest.mark.parametrize(
    ("file", "label", "quasi", "identifiers"),
    [
        ("hotel/hotel_interactions.csv", "is_booking", {"user_location_city", "srch_children_cnt"}, {"serial", "user_id", "date_time"}),
        ("fars/fars_subset.csv", "iinjury", {"iage", "irace", "isex", "ihispanic"}, set()),
        ("arx_adult/adult.csv", "salary-class", {"age", "sex", "race", "education"}, set()),
        ("air_quality/updated_pollution_dataset.csv", "Air Quality", set(), set()),
    ],
)  # fmt: skip
def test_real_tables(
    shared_data: Path, file: str, label: str, quasi: set[str], identifiers: set[str]
) -> None:
    path = shared_data / file
    proposed = init_policy(path, label=label)
    assert load_text(proposed.yaml) == proposed.policy
    assert quasi <= {a.name for a in proposed.policy.quasi_identifiers}
    assert {a.name for a in proposed.policy.with_role(Role.IDENTIFIER)} == identifiers


def test_comments_say_what_the_masks_are() -> None:
    pay = [28476.43 - i / 7 for i in range(99)] + [28476.43]
    three = ["a", "b", "c"] * 33 + ["a"]
    proposed = init_policy(
        pa.table({"pay": pay, "region": three, "y": ["n", "p"] * 50}),
        label="y",
        path="my rules.yaml",
    )
    assert "to 28476.43," in proposed.yaml
    assert "--policy 'my rules.yaml'\n" in proposed.yaml
    region = proposed.profiles["region"]
    assert [str(mask) for mask in region.masks] == ["identity", "suppress"]
    assert region.masks_reason == "too few values to group"
