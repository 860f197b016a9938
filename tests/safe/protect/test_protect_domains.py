"""What a protected summary names: declared, bought, or refused; and what the leak audit says of it."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
import yaml
from protect_support import POLICY, make_table

from aegis.errors import DataError, PolicyError
from aegis.policy import load_policy
from aegis.safe.ledger import Ledger
from aegis.safe.protect import audit_leak, dumps, loads, protect, release_protected
from aegis.safe.protect.file import _digest

KEY = b"0123456789abcdef-secret"
NOISE = {"epsilon": 4, "delta": 1e-6}


def policy_with(label, **keys):
    return load_policy(yaml.safe_load(POLICY) | {"label": label} | keys)


def with_a_rare_class(rows=900):
    listed = make_table(rows).to_pylist()
    return pa.Table.from_pylist([*listed, listed[0] | {"income": "only one"}])


@pytest.mark.parametrize("options", [NOISE, {"level": "counts", "key": KEY}])
def test_a_class_of_one_row_is_in_no_byte(options):
    made = protect(with_a_rare_class(), policy_with("income"), **options)
    assert made.classes == ("high", "low")
    assert "only one" not in dumps(made)
    assert audit_leak(made).keeps_level


@pytest.mark.parametrize("options", [NOISE, {"level": "counts", "key": KEY}])
def test_moments_and_tables_count_the_same_rows_with_the_table_and_without(options):
    """Rows of a class that is not named count nowhere, from a table as from its summary."""
    import aegis

    policy = policy_with({"column": "income", "classes": ["high", "low"]}, unseen="suppress")
    table = with_a_rare_class()
    for subject in (table, aegis.summarize(table, policy)):
        made = protect(subject, policy, **options)
        assert made.classes == ("high", "low")
        assert abs(made.rows - 900) < 100


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ({"column": "income", "classes": ["high", "other"]}, "too few classes"),
        ({"column": "age", "bins": 3}, "too few cuts"),
    ],
)
def test_too_few_classes_or_cuts_spend_and_write_nothing(tmp_path, label, message):
    ledger = Ledger(tmp_path / "house.ledger", create=True)
    ledger.open_population("patients", ceiling=0.2, delta=1e-6)
    page = yaml.safe_load(POLICY) | {"label": label}
    page["attributes"].pop(label["column"], None)
    policy = load_policy(page)
    with pytest.raises(PolicyError, match=message):
        release_protected(
            make_table(600),
            policy,
            tmp_path / "a.protected",
            ledger=tmp_path / "house.ledger",
            population="patients",
            epsilon=1,
            delta=1e-6,
        )
    assert not (tmp_path / "a.protected").exists()
    assert Ledger(tmp_path / "house.ledger").balance("patients").spent == 0


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ({"column": "income", "classes": ["high"]}, "at least two"),
        ({"column": "income", "classes": ["high", "high"]}, "each once"),
        ({"column": "income", "classes": ["high", "low"], "bins": 2}, "is cut into bins"),
        ({"column": "hours", "bins": 4, "cuts": [10, 20]}, "Give 3 cuts"),
        ({"column": "hours", "cuts": [20, 10]}, "least first"),
    ],
)
def test_declarations_that_contradict_themselves_are_refused(label, message):
    with pytest.raises(PolicyError) as refused:
        policy_with(label)
    assert message in f"{refused.value.message} {refused.value.hint}"


def test_a_file_of_an_earlier_version_is_read_and_not_called_held(protected):
    document = json.loads(dumps(protected))
    for key in ("domains", "thresholds"):
        del document["protection"][key]
    content = {k: v for k, v in document.items() if k not in ("format", "version", "sha256")}
    older = loads(json.dumps(document | {"sha256": _digest(content)}))
    assert older.protection.domains is None
    audit = audit_leak(older)
    assert not audit.keeps_level
    assert any("earlier version" in text for text in audit.shortfalls)
    assert audit_leak(protected).keeps_level


def test_what_the_owner_calls_public_is_an_exception(protected):
    audit = audit_leak(protected)
    assert "values and learnt groups of city and hours" in audit.exceptions
    assert audit.to_dict()["exceptions"] == audit.exceptions


def test_declared_values_are_all_named_even_where_nobody_has_them():
    page = yaml.safe_load(POLICY)
    page["attributes"]["city"]["values"] = ["aa", "bb", "cc", "dd", "ee"]
    made = protect(make_table(600), load_policy(page), **NOISE)
    assert set(made.attributes["city"].candidates[0].labels) == {
        "aa",
        "bb",
        "cc",
        "dd",
        "ee",
        "null",
    }
    page["attributes"]["city"]["values"] = ["aa", "bb"]
    with pytest.raises(PolicyError, match="does not declare"):
        protect(make_table(600), load_policy(page), **NOISE)


CUT = {"role": "feature", "masks": ["identity", {"quantiles": {"count": 3}}, "suppress"]}
UNLEARNT = {
    "city": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
    "hours": {"role": "feature", "masks": [{"bucketize": {"width": 10}}]},
}


@pytest.mark.parametrize(
    ("label", "declared", "shown"),
    [
        ({"column": "age", "bins": 3}, {}, "cut points of age"),
        ({"column": "age", "cuts": [30, 50]}, {}, ""),
        ("income", {"age": CUT}, "learnt groups of age"),
        ("income", {}, ""),
    ],
)
def test_level_counts_says_which_values_of_the_table_it_shows(label, declared, shown):
    """Cuts that are learnt are values of the table, which no owner called public."""
    page = yaml.safe_load(POLICY) | {"label": label}
    page["attributes"] |= UNLEARNT | declared
    if label != "income":
        page["attributes"].pop("age")
    made = protect(make_table(600), load_policy(page), level="counts", key=KEY)
    audit = audit_leak(loads(dumps(made)))
    assert audit.keeps_level
    assert audit.exceptions == shown
    said = [text for text in audit.findings if "as the table has them" in text]
    assert said == ([f"level counts shows these as the table has them: {shown}"] if shown else [])


@pytest.mark.parametrize(
    ("part", "figure", "factor"),
    [("rounds", "sigma", 0.9), ("rounds", "sensitivity", 1.2), ("thresholds", "least", 0.7)],
)
def test_a_file_whose_noise_or_thresholds_cost_more_than_it_states_is_not_held(
    part, figure, factor
):
    made = protect(make_table(600), policy_with("income"), **NOISE)
    stated = json.loads(dumps(made))
    assert audit_leak(loads(json.dumps(stated))).keeps_level
    for entry in stated["protection"][part]:
        entry[figure] *= factor
    content = {k: v for k, v in stated.items() if k not in ("format", "version", "sha256")}
    stated["sha256"] = _digest(content)
    audit = audit_leak(loads(json.dumps(stated)))
    assert not audit.keeps_level
    assert "its noise and thresholds cost epsilon" in audit.shortfalls[0]


def test_a_file_of_level_counts_that_hides_where_cuts_come_from_is_not_held():
    page = yaml.safe_load(POLICY)
    page["attributes"] |= UNLEARNT | {"age": CUT}
    made = protect(make_table(600), load_policy(page), level="counts", key=KEY)
    stated = json.loads(dumps(made))
    domains = stated["protection"]["domains"]
    stated["protection"]["domains"] = [d for d in domains if d["what"] != "bounds"]
    content = {k: v for k, v in stated.items() if k not in ("format", "version", "sha256")}
    stated["sha256"] = _digest(content)
    audit = audit_leak(loads(json.dumps(stated)))
    assert not audit.keeps_level
    assert audit.shortfalls == ("the file does not state the source of the bounds of age",)


def test_masks_that_learn_are_fitted_to_the_values_that_were_bought(policy):
    made = protect(make_table(3000), policy, epsilon=20, delta=1e-6)
    hours = made.attributes["hours"]
    assert [len(set(c.groups.tolist())) for c in hours.candidates][1] == 3


def test_a_type_that_the_policy_declares_is_not_bought():
    page = yaml.safe_load(POLICY)
    page["attributes"]["hours"]["type"] = "integer"
    made = protect(make_table(900), load_policy(page), **NOISE)
    kinds = {d.column: str(d.source) for d in made.protection.domains if d.what == "kind"}
    assert (kinds["hours"], kinds["city"]) == ("policy", "budget")


@pytest.mark.parametrize("rows", [[1.0], [1.0, 2.0, 3.0]])
def test_a_file_with_other_classes_than_rows_of_classes_is_refused(protected, rows):
    document = json.loads(dumps(protected))
    document["label"]["rows"] = rows
    content = {k: v for k, v in document.items() if k not in ("format", "version", "sha256")}
    with pytest.raises(DataError, match="classes and their rows differ"):
        loads(json.dumps(document | {"sha256": _digest(content)}))
