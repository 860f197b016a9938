"""Audits of any table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import aegis
from aegis.errors import DataError, InternalError, PolicyError
from aegis.masks import Identity
from aegis.policy import Configuration, load_policy
from aegis.privacy import PrivacyRule
from aegis.privacy.report import UNPROTECTED
from aegis.release import audit
from aegis.release.released import refuse_unplanned
from aegis.report.certificate import render_certificate

TABLE = pa.table(
    {
        "age": pa.array([1, 1, 1, None, None, 2], pa.int64()),
        "zip": pa.array(["a", "a", "a", "b", "b", None], pa.string()),
        "ill": ["flu", "cold", "flu", "flu", "flu", "rash"],
        "y": ["p", "q", "p", "q", "p", "q"],
    }
)
POLICY = load_policy(
    {
        "version": 1,
        "label": "y",
        "privacy": {"k": 2, "suppression": 0.5},
        "attributes": {
            "age": {"role": "quasi-identifier"},
            "zip": {"role": "quasi-identifier"},
            "ill": {"role": "sensitive"},
            "absent": {"role": "quasi-identifier"},
        },
    }
)


def test_figures() -> None:
    found = audit(TABLE, quasi_identifiers=["age", "zip"], sensitive=["ill"])
    assert (found.report.rows, found.report.classes, found.report.k) == (6, 3, 1)
    assert found.passed is None
    assert found.to_dict()["passed"] is None
    assert "no rule given" in repr(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_rule_without_quasi_identifiers_protects_nobody(tmp_path: Path) -> None:
    features = {name: {"role": "feature"} for name in ("age", "zip", "ill")}
    rules = {"version": 1, "label": "y", "privacy": {"k": 2}, "attributes": features}
    output, stated = tmp_path / "r.parquet", tmp_path / "c.json"
    release = aegis.apply(
        TABLE,
        rules,
        Configuration("all", {name: Identity() for name in features}),
        output=output,
        certificate=stated,
    )
    assert release.warnings[0] == UNPROTECTED
    assert audit(TABLE, policy=load_policy(rules)).warnings == (UNPROTECTED,)
    assert UNPROTECTED in render_certificate(json.loads(stated.read_text()))
    assert not audit(TABLE, policy=POLICY).warnings
    assert not audit(TABLE, quasi_identifiers=[]).warnings


def test_rule_without_suppression() -> None:
    # An audited table must meet the rule as it stands, whatever the policy lets a release remove.
    failed = audit(TABLE, policy=POLICY)
    assert failed.quasi_identifiers == ("age", "zip")
    assert failed.sensitive == ("ill",)
    assert failed.passed is False
    assert "1 row in classes smaller than 2" in failed.violations[0]
    passed = audit(TABLE.slice(0, 5), policy=POLICY)
    assert passed.passed is True
    assert passed.violations == ()
    assert "meets the rule" in repr(passed)


def test_a_rule_of_its_own_adds_what_it_protects() -> None:
    rule = PrivacyRule.parse({"l_diversity": {"attribute": "ill", "kind": "distinct", "l": 2}})
    found = audit(TABLE, quasi_identifiers=["age"], rule=rule)
    assert found.sensitive == ("ill",)
    assert found.passed is False
    mapping = {"l_diversity": {"attribute": "ill", "kind": "distinct", "l": 2}}
    again = audit(TABLE, quasi_identifiers=["age"], rule=mapping)
    assert again.violations == found.violations
    with pytest.raises(PolicyError, match="kk"):
        audit(TABLE, quasi_identifiers=["age"], rule={"kk": 2})
    everyone = audit(TABLE, quasi_identifiers=[], rule=rule)
    assert (everyone.passed, everyone.report.classes) == (True, 1)


def test_no_row_and_no_column(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no rows"):
        audit(TABLE.slice(0, 0), quasi_identifiers=["age"])
    with pytest.raises(DataError, match="Did you mean 'age'"):
        audit(TABLE, quasi_identifiers=["agee"])
    with pytest.raises(PolicyError, match="needs quasi-identifiers"):
        audit(TABLE)


@pytest.mark.parametrize(("violations", "rows"), [((), 7), (("k is 1",), 6), (("k is 1",), 7)])
def test_a_written_table_that_breaks_its_rule_or_lost_a_row_is_not_released(
    violations: tuple[str, ...], rows: int
) -> None:
    found = audit(TABLE, quasi_identifiers=["age", "zip"])
    counted = replace(found, violations=violations)
    assert counted.report.rows == 6
    with pytest.raises(InternalError, match="not what was planned") as refused:
        refuse_unplanned(counted, rows)
    assert (violations[0] if violations else "6 rows, not 7") in refused.value.message
    refuse_unplanned(replace(counted, violations=()), 6)
