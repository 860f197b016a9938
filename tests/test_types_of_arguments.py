"""Arguments of wrong types are refused by one error that names what is allowed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import aegis
from aegis.errors import AegisError, PolicyError
from aegis.options import checks_types, request_with
from aegis.policy import Role, dump_policy
from aegis.requests import ApplyRequest, RankRequest, RiskRequest, SearchRequest
from aegis.safe.ledger import Ledger, Spend, TableVersion
from aegis.safe.protect import audit_leak, protect, release_protected

POLICY = aegis.load_policy(
    {
        "version": 1,
        "label": {"column": "y", "classes": ["n", "p"]},
        "privacy": {"k": 2, "suppression": 0.5},
        "attributes": {"age": {"role": "quasi-identifier", "masks": ["identity", "suppress"]}},
    }
)
TABLE = pa.table({"age": [30, 30, 40, 40, 50, 50], "y": ["n", "p"] * 3})
[CONFIGURATION] = [aegis.Configuration("one", {"age": POLICY.attributes["age"].masks[0]})]
WRONG: tuple[Any, ...] = (
    "\ud800", 3, -1, 1.5, float("nan"), True, b"bytes", [1], {"a": 1}, object(), 10**400, ("x",), (),
)  # fmt: skip


@checks_types
def example(
    number: float | None = None,
    names: Collection[str] = (),
    path: str | Path = "x",
    table: Mapping[str, int] | None = None,
    flag: bool = False,
    count: int = 0,
    **more: Any,
) -> str:
    """Return a text."""
    return f"{number} {names} {path} {table} {flag} {count} {more}"


@pytest.mark.parametrize(
    "fine",
    [
        {"number": 1},
        {"number": np.float64(1.5)},
        {"names": np.array(["a"])},
        {"names": {"a"}},
        {"path": Path("x")},
        {"path": "\udcff"},
        {"table": {"a": 1}},
        {"count": np.int64(3)},
        {"other": Ellipsis},
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_a_function_declares_is_taken(fine: dict[str, Any]) -> None:
    assert example(**fine)


@pytest.mark.parametrize(
    ("wrong", "allowed"),
    [
        ({"number": "1"}, "float | None"),
        ({"number": True}, "float | None"),
        ({"number": 10**400}, "float | None"),
        ({"names": "a"}, "Collection[str]"),
        ({"names": [1]}, "Collection[str]"),
        ({"path": 3}, "str | Path"),
        ({"path": "\ud800"}, "str | Path"),
        ({"table": [1]}, "Mapping[str, int] | None"),
        ({"flag": 1}, "bool"),
        ({"count": 1.0}, "int"),
        ({"count": None}, "int"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_another_type_is_refused_with_what_is_allowed(wrong: dict[str, Any], allowed: str) -> None:
    with pytest.raises(PolicyError) as refused:
        example(**wrong)
    assert refused.value.message.startswith(f"{next(iter(wrong))} is ")
    assert refused.value.hint == f"Allowed: {allowed}."


def refused_or_answered(call: Callable[[], object]) -> None:
    """Fail where anything but an answer or an error of Aegis comes."""
    try:
        call()
    except AegisError as error:
        code, hint = error.exit_code, error.hint
    else:
        return
    assert code in (1, 2)
    assert hint


PROMISE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
COUNTS: dict[str, Any] = {"level": "counts", "key": bytes(16)}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda value: repr(value)[:12])
@pytest.mark.parametrize(
    ("base", "names"),
    [
        (PROMISE, "level epsilon delta unit rows_per_person person public verdicts rule_override"),
        (COUNTS, "key method threshold step variance verdicts"),
    ],
    ids=["noise", "counts"],
)
def test_protect_takes_any_value(base: dict[str, Any], names: str, wrong: Any) -> None:
    for name in names.split():
        refused_or_answered(lambda name=name: protect(TABLE, POLICY, **(base | {name: wrong})))
    refused_or_answered(lambda: protect(TABLE, wrong, **base))
    refused_or_answered(lambda: protect(wrong, POLICY, **base))


@pytest.mark.parametrize("wrong", WRONG, ids=lambda value: repr(value)[:12])
def test_the_ledger_takes_any_value(wrong: Any, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a.ledger", create=True)
    ledger.open_population("people", ceiling=1.0, delta=1e-6)
    calls: tuple[Callable[[], object], ...] = (
        lambda: Ledger(wrong),
        lambda: ledger.open_population(wrong, ceiling=1.0, delta=1e-6),
        lambda: ledger.open_population("a", ceiling=wrong, delta=1e-6),
        lambda: ledger.open_population("b", ceiling=1.0, delta=wrong),
        lambda: ledger.open_population("c", ceiling=1.0, delta=1e-6, unit=wrong),
        lambda: ledger.reserve(wrong, None),
        lambda: ledger.reserve("people", wrong),
        lambda: ledger.reserve("people", None, note=wrong),
        lambda: ledger.reserve("people", None, version=wrong),
        lambda: ledger.reserve("people", None, version=TableVersion(wrong)),
        lambda: ledger.reserve("people", Spend(wrong, 0.001)),
        lambda: Spend("mechanism", wrong),
        lambda: ledger.balance(wrong),
        lambda: ledger.entries(wrong),
        lambda: ledger.commit(wrong, "digest"),
        lambda: ledger.list_release("people", wrong, wrong),
        lambda: ledger.verify(wrong),
        lambda: audit_leak(wrong),
        lambda: release_protected(TABLE, POLICY, wrong, **PROMISE),
        lambda: release_protected(
            TABLE, POLICY, tmp_path / "t.protected", ledger=wrong, population=wrong, **PROMISE
        ),
    )
    for call in calls:
        refused_or_answered(call)
    ledger.verify()


@pytest.mark.parametrize("wrong", WRONG, ids=lambda value: repr(value)[:12])
def test_apply_and_audit_take_any_value(
    wrong: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("output", "certificate", "key", "measure", "into", "form", "after", "made_under"):
        given = {"output": tmp_path / f"{name}.csv", name: wrong}
        refused_or_answered(lambda given=given: aegis.apply(TABLE, POLICY, CONFIGURATION, **given))
    refused_or_answered(lambda: aegis.apply(TABLE, POLICY, wrong))
    refused_or_answered(lambda: aegis.apply(TABLE, wrong, CONFIGURATION))
    for name in ("quasi_identifiers", "sensitive", "policy", "rule", "person", "configuration"):
        given = {"quasi_identifiers": ["age"], name: wrong}
        refused_or_answered(lambda given=given: aegis.audit(TABLE, **given))


@pytest.mark.parametrize("wrong", WRONG, ids=lambda value: repr(value)[:12])
def test_the_functions_of_summaries_policies_and_certificates_take_any_value(
    wrong: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study = aegis.Study(TABLE, POLICY)
    sql: dict[str, Any] = {"dialect": "duckdb", "name": "t"}
    calls: tuple[Callable[[], object], ...] = (
        lambda: aegis.merge(wrong),
        lambda: aegis.merge(study.summary, wrong),
        lambda: aegis.merge_bundles(wrong),
        lambda: aegis.save_bundle(wrong, "t.aegis"),
        lambda: aegis.load_bundle(wrong),
        lambda: aegis.load_configurations(wrong, POLICY),
        lambda: aegis.init_policy(TABLE, label=wrong),
        lambda: aegis.load_configurations("t.yaml", wrong),
        lambda: aegis.check_certificate(TABLE, wrong),
        lambda: aegis.check_certificate(TABLE, {}, verify_key=wrong),
        lambda: aegis.check_certificate(TABLE, {}, progress=wrong),
        lambda: aegis.record_risk(TABLE, quasi_identifiers=["age"], progress=wrong),
        lambda: study.report(path=wrong),
        lambda: aegis.release_sql(TABLE, wrong, CONFIGURATION, **sql),
        lambda: aegis.release_sql(TABLE, POLICY, wrong, **sql),
        lambda: aegis.anonymize(TABLE, POLICY, wrong),
        lambda: aegis.Study(TABLE, POLICY, seed=wrong).rank(generate_count=1),
        lambda: aegis.Study(TABLE, POLICY, exact=wrong).rank(generate_count=1),
        lambda: study.rank(generate_count=1, methods=wrong),
        lambda: study.search(work=wrong),
        lambda: aegis.Configuration("one", {"age": wrong}),
        lambda: aegis.Configuration("one", wrong),
        lambda: aegis.dump_configurations({"one": wrong}),
        lambda: POLICY.without(wrong),
        lambda: POLICY.with_role(wrong),
        lambda: POLICY.measure_by(wrong),
        lambda: POLICY.of_task(wrong),
        lambda: POLICY.with_label(wrong),
        lambda: study.costs(wrong),
        lambda: study.summary.attribute(wrong),
        lambda: study.rank(generate_count=1).rows(wrong),
        lambda: study.rank(generate_count=1).stated_utility(wrong),
        lambda: study.reconstruct("age", measure=wrong),
        lambda: study.reconstruct("age", masks=wrong),
        lambda: study.anonymize("mdav", report=wrong),
        lambda: aegis.init_policy(TABLE).save(wrong, force=True),
    )
    for call in calls:
        refused_or_answered(call)
    for report in (study.report, aegis.render_report):
        with pytest.raises(PolicyError, match="is no advice"):
            report(wrong)


def test_a_name_is_no_list_of_names() -> None:
    with pytest.raises(PolicyError, match="names is 'age', of type str"):
        POLICY.without("age")
    with pytest.raises(PolicyError, match="masks is None, of type NoneType"):
        aegis.Configuration("one", None)  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match="with half of a surrogate pair"):
        aegis.Configuration("\ud800", {})
    advice = aegis.Study(TABLE, POLICY).rank(generate_count=1)
    with pytest.raises(PolicyError, match="shown is 3, of type int"):
        aegis.render_report(advice, shown=3)  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match="url is 3, of type int"):
        aegis.connect(3, "token")  # type: ignore[arg-type]
    assert POLICY.with_role(Role.QUASI_IDENTIFIER)


def test_a_name_is_no_list_of_methods() -> None:
    with pytest.raises(PolicyError, match="methods is 'mondrian', of type str"):
        aegis.Study(TABLE, POLICY).rank(methods="mondrian")
    with pytest.raises(PolicyError, match="work -1 is not valid"):
        aegis.Study(TABLE, POLICY).search(work=-1)


@pytest.mark.parametrize("kind", [SearchRequest, RankRequest, ApplyRequest, RiskRequest])
def test_a_request_is_of_its_kind(kind: type[Any]) -> None:
    with pytest.raises(PolicyError, match="request"):
        request_with(kind, {"top": 3}, {})


def test_configurations_are_configurations() -> None:
    wrong: tuple[Sequence[Any] | Mapping[str, Any] | Any, ...] = ([1], {"a": 1}, "text", 3)
    study = aegis.Study(TABLE, POLICY)
    for given in wrong:
        with pytest.raises(PolicyError, match="configuration"):
            study.rank(given)


def test_progress_says_what_it_must_be() -> None:
    """`progress=True`, as other libraries take it, ended in an AttributeError."""
    for wrong in (True, None, print):
        with pytest.raises(PolicyError, match="progress is") as refused:
            aegis.Study(TABLE, POLICY, progress=wrong)
        assert refused.value.hint == (
            "Allowed: Progress, an object whose method `step(title, total)` is told about the steps of "
            "a job, to show them."
        )


def test_an_unknown_keyword_names_its_function_and_what_is_near() -> None:
    with pytest.raises(TypeError, match=r"^audit\(\) got an unexpected keyword argument 'rul'"):
        aegis.audit(TABLE, rul=None)
    with pytest.raises(TypeError, match="no 'time_limt'\\. Did you mean 'time_limit'"):
        aegis.Study(TABLE, POLICY).search(time_limt=1)


def test_one_call_takes_what_a_study_takes(tmp_path: Path) -> None:
    """`apply` and `release_sql` refused the advice that `Study.apply` takes, and some a policy's path."""
    path = tmp_path / "policy.yaml"
    path.write_text(dump_policy(POLICY))
    advice = aegis.advise(TABLE, path, measure="mi")
    best = advice.require_best()
    files: dict[str, Any] = {"output": tmp_path / "a.csv", "certificate": tmp_path / "a.json"}
    for given in (advice, best):
        utility = aegis.apply(TABLE, path, given, **files, force=True).utility
        assert utility is not None
        assert utility.measure == "mi"
    sql: dict[str, Any] = {"dialect": "duckdb", "name": "t"}
    queries = {str(aegis.release_sql(TABLE, path, given, **sql)) for given in (advice, best)}
    assert queries == {str(aegis.release_sql(TABLE, POLICY, best.configuration, **sql))}
    listed = tmp_path / "one.yaml"
    listed.write_text("age: suppress")
    assert list(aegis.load_configurations(listed, path)) == ["one"]
