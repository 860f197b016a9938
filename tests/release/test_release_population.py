"""Audits beside a population: classes by brute force, models that need one, refusals."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aegis
from aegis.cli.main import run
from aegis.errors import DataError, PolicyError
from aegis.privacy import PrivacyRule

KEYS = ("a", "b")
PEOPLE = st.lists(
    st.tuples(st.sampled_from([1, 2, None]), st.sampled_from("uv"), st.sampled_from("xyz")),
    min_size=1,
    max_size=30,
)


def table_of(rows: list[tuple[object, ...]]) -> pa.Table:
    return pa.table(
        {
            "a": pa.array([r[0] for r in rows], pa.int64()),
            "b": pa.array([r[1] for r in rows], pa.string()),
            "s": pa.array([r[2] for r in rows], pa.string()),
        }
    )


@settings(max_examples=10)
@given(PEOPLE, st.data())
def test_figures_are_those_counted_person_by_person(people: list, data: st.DataObject) -> None:
    places = data.draw(
        st.lists(st.integers(0, len(people) - 1), min_size=1, max_size=len(people), unique=True)
    )
    sample = [people[i] for i in places]
    crowd = Counter(p[:2] for p in people)
    sizes = Counter(p[:2] for p in sample)
    k, threshold = data.draw(st.integers(1, 5)), data.draw(st.sampled_from([0.2, 0.5, 1.0]))
    rule = PrivacyRule.parse(
        {"k_map": k, "max_risk": {"threshold": threshold, "kind": "journalist"}}
    )
    counted = data.draw(st.booleans())
    if counted:
        population = table_of([(*key, "x") for key in crowd]).append_column(
            "rows", pa.array(list(crowd.values()), pa.int64())
        )
    else:
        population = table_of(people)
    audit = aegis.audit(
        table_of(sample),
        quasi_identifiers=list(KEYS),
        sensitive=["s"],
        rule=rule,
        population=population,
    )
    risks = [1 / crowd[p[:2]] for p in sample]
    assert audit.report.journalist.maximum == pytest.approx(max(risks))
    assert audit.report.journalist.average == pytest.approx(sum(risks) / len(risks))
    assert audit.report.k == min(sizes.values())
    lonely = any(crowd[key] < k for key in sizes)
    assert audit.passed == (not lonely and max(risks) <= threshold + 1e-9)


def test_presence_is_measured_against_who_is_absent() -> None:
    people = table_of([(1, "u", "x")] * 4 + [(2, "v", "x")] * 4)
    rule = PrivacyRule.parse({"delta_presence": {"minimum": 0.0, "maximum": 0.5}})
    given_ = {"quasi_identifiers": list(KEYS), "rule": rule, "population": people}
    assert aegis.audit(table_of([(1, "u", "x")] * 2), **given_).passed
    assert not aegis.audit(table_of([(1, "u", "x")] * 3), **given_).passed


def test_a_population_that_does_not_fit_is_refused() -> None:
    sample = table_of([(1, "u", "x")] * 2)
    keys = list(KEYS)
    with pytest.raises(DataError, match="population is smaller"):
        aegis.audit(sample, quasi_identifiers=keys, population=table_of([(1, "u", "x")]))
    with pytest.raises(DataError, match="'b'"):
        aegis.audit(sample, quasi_identifiers=keys, population=pa.table({"a": [1]}))
    with pytest.raises(DataError, match="in the population and"):
        aegis.audit(sample, quasi_identifiers=keys, population=pa.table({"a": ["one"], "b": ["u"]}))
    with pytest.raises(DataError, match="no whole numbers"):
        aegis.audit(
            sample,
            quasi_identifiers=keys,
            population=pa.table({"a": [1], "b": ["u"], "rows": ["many"]}),
        )
    with pytest.raises(PolicyError, match="counts persons"):
        aegis.audit(sample, quasi_identifiers=["a"], person="b", population=sample)


def test_the_shell_takes_a_population(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample, people = tmp_path / "sample.parquet", tmp_path / "people.parquet"
    pq.write_table(table_of([(1, "u", "x")] * 2), sample)
    pq.write_table(table_of([(1, "u", "x")] * 5), people)
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "version: 1\nlabel: s\nprivacy: {k_map: 5}\n"
        "attributes: {a: {role: quasi-identifier}, b: {role: quasi-identifier}}\n"
    )
    words = ["audit", str(sample), "-p", str(policy), "--format", "json"]
    assert run(words) == 2
    assert "population" in capsys.readouterr().err
    assert run([*words, "--population", str(people)]) == 0
    assert '"passed": true' in capsys.readouterr().out
