"""The release as SQL: on the embedded engine it gives what `apply` gives, row for row."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from engines_support import HOSTILE, awkward, configuration, policy, rows_of

import aegis
from aegis.cli.main import run
from aegis.errors import DataError, NoAdmissibleConfiguration, PolicyError
from aegis.policy import Configuration, Policy, dump_configurations, dump_policy, load_policy
from aegis.policy.terms import OwnerRule
from aegis.privacy import MODELS, PrivacyRule
from aegis.release import Dialect, release_sql
from aegis.release.sql.rule import rule_query

SNAPSHOTS = Path(__file__).parent / "snapshots"
RULES: list[dict[str, Any]] = [
    {"k": 2, "suppression": 0.9},
    {"k": 1},
    {"k": 3, "suppression": 0.9, "l_diversity": {"attribute": "ill", "kind": "distinct", "l": 2}},
    {"suppression": 0.9, "l_diversity": {"attribute": "ill", "kind": "entropy", "l": 1.7}},
    {"suppression": 0.9, "alpha_k": {"attribute": "ill", "alpha": 0.6, "k": 3}},
    {"suppression": 0.9, "max_risk": {"kind": "prosecutor", "threshold": 0.3}},
]


def ran(sql: str, table: pa.Table) -> pa.Table:
    connection = duckdb.connect()
    connection.register("people", table)
    return connection.sql(sql).to_arrow_table()


COARSE = {"age": 1, HOSTILE: 2, "born": 1, "pay": 1}


@pytest.mark.parametrize(
    ("rule", "places"),
    [(RULES[0], {}), (RULES[4], {HOSTILE: 1}), *((rule, COARSE) for rule in RULES)],
    ids=lambda part: "-".join(part),
)
def test_on_duckdb_it_equals_apply(rule: dict[str, Any], places: dict[str, int]) -> None:
    rules = policy(**rule)
    chosen = configuration(rules, **places)
    query = release_sql(awkward(), rules, chosen, dialect="duckdb", name="people")
    found = ran(query.sql, awkward())
    try:
        expected = aegis.apply(awkward(), rules, chosen).data
    except NoAdmissibleConfiguration:
        assert found.num_rows == 0
        return
    assert expected is not None
    assert expected.num_rows > 0
    assert found.column_names == expected.column_names
    assert rows_of(found) == rows_of(expected)


def test_an_advice_under_a_rule_of_another_owner_is_refused() -> None:
    rules = policy(**RULES[0])
    advice = aegis.advise(awkward(), rules, generate_count=5)
    owner = OwnerRule(policy(k=50).privacy, locked=True)
    stricter = replace(advice, owner_rule=owner)
    with pytest.raises(PolicyError, match="is locked to the rule"):
        release_sql(awkward(), rules, stricter, dialect="duckdb", name="people")


def test_nothing_comes_out_beyond_the_suppression_limit() -> None:
    rules = policy(k=3, suppression=0.01)
    chosen = configuration(rules)
    with pytest.raises(NoAdmissibleConfiguration):
        aegis.apply(awkward(), rules, chosen)
    query = release_sql(awkward(), rules, chosen, dialect="duckdb", name="people")
    assert ran(query.sql, awkward()).num_rows == 0


def grouped(unseen: str) -> tuple[Policy, Configuration]:
    rules = load_policy(
        {
            "version": 1,
            "label": "y",
            "unseen": unseen,
            "privacy": {"k": 1},
            "attributes": {
                "ill": {"role": "feature", "masks": [{"group": {"groups": {"x": ["a", "b"]}}}]}
            },
        }
    )
    return rules, Configuration("one", {"ill": rules.attributes["ill"].masks[0]})


def test_unseen_values_give_no_row_where_the_policy_calls_them_an_error() -> None:
    table = awkward().select(["ill", "y"])
    for unseen, rows in (("error", 0), ("suppress", table.num_rows)):
        rules, chosen = grouped(unseen)
        query = release_sql(table, rules, chosen, dialect="duckdb", name="people")
        assert ran(query.sql, table).num_rows == rows
    rules, chosen = grouped("error")
    known = table.filter(pa.compute.field("ill") != "c")
    query = release_sql(known, rules, chosen, dialect="duckdb", name="people")
    assert rows_of(ran(query.sql, known)) == rows_of(aegis.apply(known, rules, chosen).data)


@pytest.mark.parametrize("form", ["view", "table"])
def test_views_and_tables_are_made(form: str) -> None:
    rules = policy()
    chosen = configuration(rules)
    connection = duckdb.connect()
    connection.execute('CREATE SCHEMA "my schema"')
    connection.register("people", awkward())
    name = '"my schema"."say ""hi"""'
    query = release_sql(
        awkward(), rules, chosen, dialect="duckdb", name="people", form=form, into=name
    )
    connection.execute(query.sql)
    found = connection.sql(f"SELECT * FROM {name}").to_arrow_table()
    assert rows_of(found) == rows_of(aegis.apply(awkward(), rules, chosen).data)


@pytest.mark.parametrize("dialect", list(Dialect))
def test_every_dialect_is_as_reviewed(dialect: Dialect) -> None:
    rules = policy(
        k=3, suppression=0.1, l_diversity={"attribute": "ill", "kind": "distinct", "l": 2}
    )
    query = release_sql(
        awkward(),
        rules,
        configuration(rules, **{HOSTILE: 1, "pay": 1}),
        dialect=dialect,
        name="hr.people",
        form="view",
    )
    assert query.sql.startswith("-- Masked release by Aegis ")
    written = "".join(line for line in query.sql.splitlines(True) if not line.startswith("-- "))
    file = SNAPSHOTS / f"{dialect}.sql"
    if os.environ.get("AEGIS_WRITE_SNAPSHOTS") == "1":
        file.write_text(written, encoding="utf-8")
    assert written == file.read_text(encoding="utf-8")


def test_keys_are_never_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AEGIS_TEST_KEY", "s3cret of sixteen bytes")
    rules = load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 1},
            "attributes": {
                "ill": {
                    "role": "identifier",
                    "masks": [{"tokenise": {"key_env": "AEGIS_TEST_KEY"}}],
                },
                "age": {"role": "feature", "masks": ["identity"]},
            },
        }
    )
    chosen = Configuration("one", {"age": rules.attributes["age"].masks[0]})
    with pytest.raises(PolicyError, match="it would hold the key"):
        release_sql(awkward(), rules, chosen, dialect="duckdb", name="people")


def test_a_key_in_a_composition_within_another_is_never_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AEGIS_TEST_KEY", "s3cret of sixteen bytes")
    token, short = {"tokenise": {"key_env": "AEGIS_TEST_KEY"}}, {"blur": {"keep": 4}}
    mask = {"compose": [{"compose": [token, short]}, {"blur": {"keep": 2}}]}
    attributes = {"ill": {"role": "quasi-identifier", "masks": [mask]}}
    rules = load_policy({"version": 1, "label": "y", "privacy": {"k": 1}, "attributes": attributes})
    chosen = Configuration("one", {"ill": rules.attributes["ill"].masks[0]})
    with pytest.raises(PolicyError, match="it would hold the key"):
        release_sql(awkward(), rules, chosen, dialect="duckdb", name="people")


@pytest.mark.parametrize(
    "rule",
    [
        {"t_closeness": {"attribute": "ill", "t": 0.5}},
        {"l_diversity": {"attribute": "ill", "kind": "recursive", "c": 3, "l": 2}},
    ],
)
def test_what_one_query_cannot_say_is_refused(rule: dict[str, Any]) -> None:
    rules = policy(**rule)
    with pytest.raises(PolicyError, match="cannot be written as one query"):
        release_sql(awkward(), rules, configuration(rules), dialect="duckdb", name="people")


def test_bad_names_are_refused() -> None:
    rules = policy()
    chosen = configuration(rules)
    for name in ("", "a.b.c.d", "f(1)"):
        with pytest.raises(PolicyError, match="not a table name"):
            release_sql(awkward(), rules, chosen, dialect="duckdb", name=name)
    hostile = release_sql(awkward(), rules, chosen, dialect="duckdb", name="a; DROP TABLE b")
    assert 'FROM "a; DROP TABLE b" AS' in hostile.sql
    with pytest.raises(PolicyError, match="Unknown SQL dialect 'oracle'"):
        release_sql(awkward(), rules, chosen, dialect="oracle", name="t")
    reserved = awkward().rename_columns(["age", HOSTILE, "pay", "born", "ill", "aegis_kept"])
    with pytest.raises((DataError, PolicyError)):
        release_sql(reserved, rules, chosen, dialect="duckdb", name="t")


def test_the_command_writes_what_the_function_returns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = policy()
    chosen = configuration(rules)
    data = tmp_path / "people.parquet"
    pa.parquet.write_table(awkward(), data)
    (tmp_path / "p.yaml").write_text(dump_policy(rules), encoding="utf-8")
    (tmp_path / "c.yaml").write_text(dump_configurations({"chosen": chosen}), encoding="utf-8")
    words = ["sql", "-p", str(tmp_path / "p.yaml"), "-c", str(tmp_path / "c.yaml")]
    words += ["--dialect", "postgres", "--table", "people", "--schema-from", str(data)]
    assert run(words) == 0
    query = release_sql(awkward(), rules, chosen, dialect="postgres", name="people")
    assert capsys.readouterr().out == query.sql
    assert run([*words, "--as", "view", "-o", str(tmp_path / "v.sql")]) == 0
    assert "CREATE VIEW" in (tmp_path / "v.sql").read_text(encoding="utf-8")


LINES = "a\nb'\"`]\\ --x"


def of_lines() -> tuple[pa.Table, Policy, Configuration]:
    """Return a table whose column name and shown values have several lines."""
    table = pa.table({LINES: ["u", "v", "u", "v\nw"] * 5, "y": ["p", "q"] * 10})
    mask = {"group": {"groups": {"it's\n--x\\": ["u", "v\nw"]}, "rest": "other"}}
    rules = load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 2},
            "attributes": {LINES: {"role": "quasi-identifier", "masks": ["identity", mask]}},
        }
    )
    return table, rules, Configuration("c\n1", {LINES: rules.attributes[LINES].masks[1]})


def test_names_and_texts_of_several_lines_stay_what_they_are() -> None:
    table, rules, chosen = of_lines()
    query = release_sql(table, rules, chosen, dialect="duckdb", name='"t x"')
    connection = duckdb.connect()
    connection.register("t x", table)
    made = connection.sql(query.sql).to_arrow_table()
    expected = aegis.apply(table, rules, chosen).data
    assert expected is not None
    assert made.column_names == [LINES, "y"]
    assert rows_of(made) == rows_of(expected)


@pytest.mark.parametrize("dialect", sorted({*Dialect} - {Dialect.DUCKDB, Dialect.POSTGRES}))
def test_names_of_several_lines_are_refused_where_they_may_not_be_read(dialect: str) -> None:
    table, rules, chosen = of_lines()
    with pytest.raises(DataError, match="has a line break in its name"):
        release_sql(table, rules, chosen, dialect=dialect, name="t")


def test_a_model_names_its_own_parameters() -> None:
    """Not only l: a package may call the least number of values p, and ask for k rows beside it."""
    distinct, size = MODELS.get("l_diversity.distinct"), MODELS.get("alpha_k")
    model = replace(
        distinct,
        name="p_sensitive",
        limit="p",
        parameters=(
            replace(next(p for p in distinct.parameters if p.name == "l"), name="p"),
            next(p for p in size.parameters if p.name == "k"),
        ),
        values=None,
        weakening=None,
    )
    rule = PrivacyRule((model.criterion({"attribute": "ill", "p": 2, "k": 3}),))
    written = rule_query(rule, ["zip"], lambda name: f'"{name}"')
    assert written.conditions == ("aegis_distinct_0 >= 2", "aegis_rows >= 3")
