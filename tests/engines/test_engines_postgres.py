"""PostgreSQL for real: the same summary, advice and audit as the embedded engine, and its failures."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest
from engines_support import (
    HOSTILE,
    assert_advised_alike,
    assert_same,
    awkward,
    configuration,
    policy,
    rows_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import aegis
from aegis.advisor import released
from aegis.cli.main import run
from aegis.errors import (
    DataError,
    EngineError,
    InternalError,
    NoAdmissibleConfiguration,
    PolicyError,
)
from aegis.files import SILENT
from aegis.policy import dump_policy, policy_mapping
from aegis.release import applying
from aegis.sources import Source, open_table
from aegis.summary import coded_rows, summarize
from aegis.summary.codes import Dealer
from aegis.summary.cooccurrence import FoldCounts
from aegis.summary.pairs_in_engine import count_pairs_in_engine


@pytest.fixture(scope="module")
def people(postgres: Any) -> Iterator[Source]:
    connection = ibis.connect(postgres.url)
    connection.create_table("people", awkward(), overwrite=True)
    connection.raw_sql("ANALYZE people").close()
    yield open_table(postgres.url, name="people")
    connection.disconnect()


def test_the_summary_equals_that_of_the_embedded_engine(people: Source) -> None:
    assert not people.engine.in_process
    assert_same(summarize(people, policy()), summarize(awkward(), policy()))


def test_two_threads_group_the_rows_of_one_table(
    people: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first to end dropped the groups of the other."""
    monkeypatch.setattr(coded_rows, "TRIAL_ROWS", 10)
    columns, other = ("ill", "y"), ThreadPoolExecutor(1)
    with coded_rows.grouping(people, columns):
        inner = coded_rows.grouping(people, columns)
        other.submit(inner.__enter__).result()
        other.submit(inner.__exit__, None, None, None).result()
        query = coded_rows.count_by(people, people.table, {"y": people.table["y"]})
        counted = people.collect(query).to_pylist()
    assert {row["y"]: row["n"] for row in counted} == {"yes": 80, "no": 40}
    other.shutdown()


TAKEN = (
    *("w", "r", "u", "y", "a0", "n", "k0", "p"),
    *("c_a0", "v_a0", "c_y", "v_y", "c0", "aegis_y_", "first", "fold"),
)
"""Names that queries may use themselves, besides those of a table's columns."""


@pytest.mark.parametrize("start", range(0, len(TAKEN), 4))
def test_columns_may_have_any_name(start: int, postgres: Any) -> None:
    """A column `w` was taken for weights."""
    names = dict(zip(("age", "pay", "ill", "y"), TAKEN[start : start + 4], strict=True))
    rows = awkward()
    rows = rows.rename_columns([names.get(name, name) for name in rows.column_names])
    mapping = policy_mapping(policy())
    mapping["label"] = names["y"]
    mapping["attributes"] = {names.get(n, n): e for n, e in mapping["attributes"].items()}
    connection = ibis.connect(postgres.url)
    connection.create_table("taken", rows, overwrite=True)
    connection.disconnect()
    source, rules = open_table(postgres.url, name="taken"), aegis.load_policy(mapping)
    assert_same(summarize(source, rules), summarize(rows, rules))


@pytest.mark.parametrize(("copies", "once"), [(3, True), (1, False)])
def test_rows_that_repeat_are_grouped_once(
    copies: int, once: bool, postgres: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.concat_tables([awkward(100)] * copies)
    connection = ibis.connect(postgres.url)
    connection.create_table("repeated", rows, overwrite=True)
    connection.disconnect()
    monkeypatch.setattr(coded_rows, "TRIAL_ROWS", rows.num_rows)
    source, queries = open_table(postgres.url, name="repeated"), []
    collect = Source.collect

    def noted(self: Source, expression: Any) -> pa.Table:
        if source.table.op() in expression.op().find(type(source.table.op())):
            queries.append(expression)
        return collect(self, expression)

    monkeypatch.setattr(Source, "collect", noted)
    assert_same(summarize(source, policy()), summarize(rows, policy()))
    # Once: the first rows, the only feature that is not grouped, and the number of rows.
    assert len(queries) == (3 if once else 9)


def test_a_number_to_predict_is_added_up_exactly(postgres: Any) -> None:
    draw = np.random.default_rng(4)
    rows = pa.table(
        {
            "age": draw.integers(20, 40, 400),
            "town": draw.choice(list("abc"), 400),
            "price": pa.array([None if i % 9 == 0 else i * 1.25 - 40.5 for i in range(400)]),
        }
    )
    number: dict[str, Any] = {
        "version": 1,
        "label": {"column": "price", "kind": "number"},
        "attributes": {"age": {"role": "quasi-identifier"}, "town": {"role": "feature"}},
    }
    connection = ibis.connect(postgres.url)
    connection.create_table("prices", rows, overwrite=True)
    there = summarize(open_table(postgres.url, name="prices"), number)
    connection.disconnect()
    here = summarize(rows, number)
    assert there.label.unit == here.label.unit
    assert there.number == here.number
    assert there.pairs.responses is not None
    assert here.pairs.responses is not None
    assert there.pairs.responses.folds == 10
    for one, two in zip(there.pairs.responses.sums, here.pairs.responses.sums, strict=True):
        assert one.sum(axis=0).tolist() == two.sum(axis=0).tolist()  # folds are dealt otherwise


def test_advice_and_audit_equal_those_of_the_embedded_engine(people: Source) -> None:
    assert_advised_alike(people, 8)


def test_an_advice_masks_the_rows_of_its_best_release_once(
    people: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Utility and residual risks are counted in one stored table."""
    masked, kept, check_classes = [], [], released.check_classes
    monkeypatch.setattr(released, "check_classes", lambda *a: masked.append(a) or check_classes(*a))
    keep = Source.keep

    def counting(source: Source, rows: Any) -> Any:
        kept.append(rows)
        return keep(source, rows)

    monkeypatch.setattr(Source, "keep", counting)
    study = aegis.Study(people, policy())
    advice = study.rank({"best": configuration(policy())})
    assert advice.best is not None
    assert advice.best.suppressed_rows
    assert advice.best.utility is not None
    assert advice.uncovered is not None
    assert advice.uncovered.unique_rows is not None
    assert len(masked) == 1
    assert len(kept) == 4  # pairs of the table and of the release, the release, its distinct rows


def test_a_sample_is_drawn_in_the_engine(people: Source) -> None:
    summary = summarize(people, policy(), sample_rows=60, seed=3)
    assert summary.sampled
    again = summarize(people, policy(), sample_rows=60, seed=3)
    assert summary.pairs.rows == again.pairs.rows


@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
def test_a_view_is_sampled_row_by_row(people: Source, postgres: Any, kind: str) -> None:
    name = kind.replace(" ", "_").lower()
    people.backend.raw_sql(f"CREATE {kind} {name} AS SELECT * FROM people").close()
    source = open_table(postgres.url, name=name)
    drawn = [source.collect(source.sample(60, seed=seed)) for seed in (1, 1, 2)]
    assert rows_of(drawn[0]) == rows_of(drawn[1]) != rows_of(drawn[2])
    # 60 of 120 expected; the standard deviation is 5.5.
    assert all(38 <= table.num_rows <= 82 for table in drawn)
    assert not rows_of(drawn[0]) - rows_of(awkward())
    summary = summarize(source, policy(), sample_rows=60, seed=1)
    assert summary.sampled


def test_rows_fall_into_folds_at_random(people: Source) -> None:
    one, two = (summarize(people, policy(), seed=seed).pairs.folds for seed in (1, 2))
    again = summarize(people, policy(), seed=1).pairs.folds
    assert one is not None
    assert two is not None
    assert again is not None
    assert one.size == 10
    assert one.rows.sum() == two.rows.sum() == 120
    assert np.array_equal(one.rows, again.rows)
    assert all(map(np.array_equal, one.atom_counts, again.atom_counts))
    assert not all(map(np.array_equal, one.atom_counts, two.atom_counts))


@given(st.integers(0, 2**32), st.integers(1, 60))
@settings(max_examples=4)
def test_pairs_counted_in_the_engine_equal_pairs_counted_here(seed: int, size: int) -> None:
    chosen = np.random.default_rng(seed).integers(0, 120, size)
    table = awkward().take(pa.array([0, 1, 3, *chosen.tolist()]))
    summary = summarize(table, policy(), seed=seed)
    source = open_table(table)
    classes = pa.array(summary.label.classes)
    with SILENT.step("Counting") as step:
        pairs = count_pairs_in_engine(
            source,
            source.table,
            summary.attributes,
            lambda t: t["y"],
            classes,
            step,
            Dealer(tuple(summary.attributes), 10, seed),
        )
    assert_folds(pairs.folds, summary.pairs.folds)
    assert pairs.rows == summary.pairs.rows
    assert all(map(np.array_equal, pairs.atom_counts, summary.pairs.atom_counts))
    for pair, index in summary.pairs.index.items():
        assert np.array_equal(pairs.index[pair], index)
        assert np.array_equal(pairs.count[pair], summary.pairs.count[pair])


def test_texts_coded_by_a_join_equal_those_coded_here(postgres: Any) -> None:
    texts = ["a", "A", "a ", " a", "", "\u00e4", "a\u0308", "O'Brien", "%", "\\", "1", "01", None]
    rows = pa.table(
        {
            "text": pa.array([texts[i * i % 13] for i in range(200)] + texts),
            "number": pa.array([i % 11 - 5 for i in range(212)] + [None], pa.int16()),
            "y": pa.array(["yes" if i % 3 else "no" for i in range(213)]),
        }
    )
    role = {"role": "quasi-identifier", "masks": ["identity", "suppress"]}
    rules = {"version": 1, "label": "y", "attributes": {"text": role, "number": role}}
    connection = ibis.connect(postgres.url)
    connection.create_table("texts", rows, overwrite=True)
    there = summarize(open_table(postgres.url, name="texts"), rules)
    connection.disconnect()
    here = summarize(rows, rules)
    assert_same(there, here)
    assert_folds(there.pairs.folds, here.pairs.folds)


def assert_folds(own: FoldCounts | None, other: FoldCounts | None) -> None:
    """Check that two counts have the same rows in each fold."""
    assert own is not None
    assert other is not None
    assert own.rows.tolist() == other.rows.tolist()
    assert all(map(np.array_equal, own.atom_counts, other.atom_counts))
    for pair, cells in other.cell.items():
        assert np.array_equal(own.cell[pair], cells)
        assert np.array_equal(own.fold[pair], other.fold[pair])
        assert np.array_equal(own.count[pair], other.count[pair])


def test_a_file_is_released_from_the_database(people: Source, tmp_path: Any) -> None:
    rules = policy()
    chosen = configuration(rules)
    ours = aegis.apply(people, rules, chosen, output=tmp_path / "a.parquet")
    theirs = aegis.apply(awkward(), rules, chosen, output=tmp_path / "b.parquet")
    assert ours.released_rows == theirs.released_rows > 0
    found, expected = ours.audit.to_dict(), theirs.audit.to_dict()
    # Which released columns predict hidden ones is counted where rows are at hand.
    assert found["outside"].pop("implied") is None
    assert expected["outside"].pop("implied") is not None
    assert found == expected


def test_a_wrong_password_is_not_echoed(postgres: Any) -> None:
    url = f"postgres://aegis:hunter2@127.0.0.1:{postgres.port}/postgres"
    with pytest.raises(EngineError, match="password authentication failed") as caught:
        open_table(url, name="people")
    assert "hunter2" not in f"{caught.value}{caught.value.__cause__!r}"


def test_an_unreachable_server_is_named(postgres: Any) -> None:
    with pytest.raises(EngineError, match=r"Cannot connect to postgres://a:\*\*\*@127.0.0.1:1/db"):
        open_table("postgres://a:b@127.0.0.1:1/db?connect_timeout=2", name="t")


def test_a_missing_table_is_refused_with_the_nearest(people: Source, postgres: Any) -> None:
    with pytest.raises(DataError, match=r"No table 'peeple'.*Did you mean 'people'"):
        open_table(postgres.url, name="peeple")
    with pytest.raises(PolicyError, match="Name one with --table"):
        open_table(postgres.url)
    with pytest.raises(DataError, match=r"No table 'nowhere.people'"):
        open_table(postgres.url, name="nowhere.people")


def test_a_lost_connection_is_said(postgres: Any, people: Source) -> None:
    source = open_table(postgres.url, name="people")
    process = source.backend.con.info.backend_pid
    people.backend.raw_sql(f"SELECT pg_terminate_backend({process})").close()
    with pytest.raises(EngineError, match=r"The connection to people of .* was lost"):
        summarize(source, policy())


def test_hostile_names_survive(people: Source) -> None:
    assert HOSTILE in people.columns


@pytest.mark.parametrize("form", ["table", "view"])
def test_a_release_is_made_in_the_database(people: Source, form: str) -> None:
    rules = policy(k=3, suppression=0.9)
    chosen = configuration(rules, **{HOSTILE: 1})
    name = f"masked_{form}"
    release = aegis.apply(people, rules, chosen, into=name, form=form)
    expected = aegis.apply(awkward(), rules, chosen).data
    assert expected is not None
    made = people.backend.table(name).to_pyarrow()
    assert rows_of(made) == rows_of(expected)
    assert rows_of(release.to_arrow()) == rows_of(expected)
    assert release.into == name
    assert release.released_rows == expected.num_rows > 0
    with pytest.raises(PolicyError, match="exists in the database"):
        aegis.apply(people, rules, chosen, into=name, form=form)
    again = aegis.apply(people, rules, chosen, into=name, form=form, force=True)
    assert again.released_rows == release.released_rows


def test_a_release_that_fails_its_audit_is_undone(
    people: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = policy(k=3, suppression=0.9)
    chosen = configuration(rules)

    def refuse(*_: Any, **__: Any) -> None:
        raise InternalError("not as planned")

    monkeypatch.setattr(applying, "refuse_unplanned", refuse)
    with pytest.raises(InternalError, match="not as planned"):
        aegis.apply(people, rules, chosen, into="undone")
    assert "undone" not in people.backend.list_tables()


def test_bad_places_are_refused(people: Source) -> None:
    rules = policy(k=3, suppression=0.9)
    chosen = configuration(rules)
    with pytest.raises(PolicyError, match="is the input itself"):
        aegis.apply(people, rules, chosen, into="people", force=True)
    with pytest.raises(EngineError, match="not a table of a database"):
        aegis.apply(awkward(), rules, chosen, into="t")
    with pytest.raises(NoAdmissibleConfiguration):
        aegis.apply(people, policy(k=3), chosen, into="never")
    assert "never" not in people.backend.list_tables()


def test_the_command_works_on_a_database(
    postgres: Any, people: Source, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = policy(k=3, suppression=0.9)
    (tmp_path / "p.yaml").write_text(dump_policy(rules), encoding="utf-8")
    best = tmp_path / "best.yaml"
    words = [postgres.url, "--table", "people", "-p", str(tmp_path / "p.yaml")]
    assert run(["advise", *words, "--generate", "10", "-o", str(best)]) == 0
    assert run(["apply", *words, "-c", str(best), "--into", "by_command"]) == 0
    assert run(["audit", postgres.url, "--table", "by_command", "-p", words[-1]]) == 0
    assert run(["apply", *words, "-c", str(best)]) == 2
    said = capsys.readouterr()
    assert "by_command" in people.backend.list_tables()
    assert "ss%2Fw" not in said.out + said.err
    assert "pa:ss/w" not in said.out + said.err


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ibis calls an old name of DuckDB's
def test_a_table_of_a_duckdb_file_is_released_beside_it(tmp_path: Any) -> None:
    connection = ibis.duckdb.connect(tmp_path / "t.db")
    connection.create_table("people", awkward())
    connection.disconnect()
    rules = policy(k=3, suppression=0.9)
    source = open_table(f"duckdb://{tmp_path}/t.db", name="people")
    chosen = configuration(rules)
    aegis.apply(source, rules, chosen, into="masked")
    expected = aegis.apply(awkward(), rules, chosen).data
    assert expected is not None
    assert rows_of(source.backend.table("masked").to_pyarrow()) == rows_of(expected)
    source.backend.disconnect()


RULES = {
    "version": 1,
    "label": "y",
    "privacy": {"k": 2, "suppression": 0.5},
    "attributes": {"a": {"role": "quasi-identifier"}, "b": {"role": "quasi-identifier"}},
}


def test_a_view_that_draws_values_at_random_is_no_bug(postgres: Any) -> None:
    """A value that came between two queries had no code, which ended in a ValueError."""
    connection = ibis.connect(postgres.url)
    connection.raw_sql(
        "CREATE OR REPLACE VIEW drawn AS SELECT (random() * 2000)::int AS a, i % 3 AS b, "
        "(ARRAY['u', 'v'])[1 + i % 2] AS y FROM generate_series(1, 400) AS i"
    )
    connection.disconnect()
    with pytest.raises(DataError, match="did not have when Aegis counted") as refused:
        summarize(open_table(postgres.url, name="drawn"), aegis.load_policy(RULES))
    assert "does a view draw values at random?" in refused.value.hint


@pytest.mark.parametrize(("kind", "value"), [("date", "-infinity"), ("numeric", "NaN")])
def test_values_that_python_cannot_represent_say_what_to_do(
    kind: str, value: str, postgres: Any
) -> None:
    connection = ibis.connect(postgres.url)
    connection.raw_sql("DROP TABLE IF EXISTS odd")
    connection.raw_sql(
        f"CREATE TABLE odd AS SELECT '{value}'::{kind} AS a, i % 3 AS b, i % 2 AS y "
        "FROM generate_series(1, 40) AS i"
    )
    connection.disconnect()
    with pytest.raises(EngineError) as refused:
        summarize(open_table(postgres.url, name="odd"), aegis.load_policy(RULES))
    assert refused.value.hint.startswith("Give a view in which such values are null")
