from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import yaml
from anonymizers_support import GRADES, HIERARCHY, encoded

from aegis.anonymizers import AttributeKind, Records, ValueTree, encode, encode_for
from aegis.errors import DataError, PolicyError
from aegis.policy import load_policy

TABLE = pa.table(
    {
        "age": [30, None, 20, 40],
        "job": ["judge", "nurse", None, "doctor"],
        "grade": ["top", "low", "high", "low"],
        "illness": ["a", None, "b", "a"],
    }
)
ROLES = {
    "age": "quasi-identifier",
    "job": "quasi-identifier",
    "grade": "quasi-identifier",
    "illness": "sensitive",
}


def test_domains_are_sorted_and_a_missing_value_is_the_last_code():
    records = encoded(TABLE, ROLES)
    age, job, grade = records.attributes
    assert age.kind is AttributeKind.NUMERIC
    assert age.domain == (20, 30, 40, None)
    assert age.codes.tolist() == [1, 3, 0, 2]
    assert (age.missing, age.present) == (3, 3)
    assert (age.centre, age.spread) == (30.0, pytest.approx(np.sqrt(200 / 3)))
    assert age.positions.tolist() == [0.0, 0.5, 1.0, 2.0]
    assert age.resolution == 1.0
    assert job.domain == ("doctor", "nurse", "judge", None)
    assert grade.kind is AttributeKind.ORDINAL
    assert grade.domain == ("low", "high", "top")
    assert records.sensitive[0].domain == ("a", "b", None)
    assert records.sensitive[0].codes.tolist() == [0, 2, 1, 0]


def test_a_hierarchy_has_nested_levels_and_missing_goes_to_the_top():
    job = encoded(TABLE, ROLES).attributes[1]
    tree = job.tree
    assert tree.height == 2
    doctor, nurse, judge, missing = range(4)
    assert tree.heights_to(doctor)[[doctor, nurse, judge, missing]].tolist() == [0, 1, 2, 2]
    assert tree.shares[nurse].tolist() == [0.25, 0.5, 1.0]


def test_nan_is_missing():
    records = encode(pa.table({"x": [1.5, float("nan"), 2.5]}), {"x": "quasi-identifier"})
    assert records.attributes[0].domain == (1.5, 2.5, None)
    assert records.attributes[0].resolution == 0.1


def test_dictionary_columns_are_encoded_by_their_values():
    column = pa.array(["b", "a", "b"]).dictionary_encode()
    records = encode(pa.table({"x": column}), {"x": "quasi-identifier"})
    assert records.attributes[0].domain == ("a", "b")
    assert records.attributes[0].codes.tolist() == [1, 0, 1]


def test_combinations_are_numbered_by_first_record():
    table = pa.table({"x": ["b", "a", "b", "a"], "y": [1, 2, 1, 1]})
    first, of = encode(table, dict.fromkeys("xy", "quasi-identifier")).combinations
    assert first.tolist() == [0, 1, 3]
    assert of.tolist() == [0, 1, 0, 2]


def test_taking_records_keeps_domain_and_scale():
    records = encoded(TABLE, ROLES)
    some = records.take(np.array([0, 2]))
    assert len(some) == 2
    assert some.attributes[0].domain == records.attributes[0].domain
    assert some.attributes[0].spread == records.attributes[0].spread


@pytest.mark.parametrize(
    ("columns", "roles", "more", "error", "says"),
    [
        ({"x": [1, 2]}, {}, {}, PolicyError, "There is no role for column 'x'"),
        (
            {"x": [1, 2]},
            {"x": "quasi"},
            {},
            PolicyError,
            "Allowed: identifier, quasi-identifier, sensitive",
        ),
        ({"x": [1, 2]}, {"x": "sensitive"}, {}, DataError, "no quasi-identifier"),
        ({"x": [1, 2]}, {"x": "label", "z": "label"}, {}, DataError, "No column 'z'"),
        ({"x": [None, None]}, {"x": "quasi-identifier"}, {}, DataError, "null in every row"),
        ({"x": [3, 3]}, {"x": "quasi-identifier"}, {}, DataError, "same value in every row: 3"),
        ({"x": [[1], [2]]}, {"x": "quasi-identifier"}, {}, DataError, "list<"),
        ({"x": [1.0, float("inf")]}, {"x": "quasi-identifier"}, {}, DataError, "infinite"),
        (
            {"x": ["1", "2"]},
            {"x": "quasi-identifier"},
            {"kinds": {"x": "numeric"}},
            DataError,
            "Attribute 'x' cannot be numeric: its values have the type string",
        ),
        (
            {"x": ["1", "2"]},
            {"x": "quasi-identifier"},
            {"kinds": {"x": "ordinal"}},
            PolicyError,
            "The order of the string values of ordinal attribute",
        ),
        (
            {"x": ["1", "2"]},
            {"x": "quasi-identifier"},
            {"kinds": {"x": "number"}},
            PolicyError,
            "Allowed: numeric, ordinal, categorical",
        ),
        (
            {"x": ["1", "2"]},
            {"x": "quasi-identifier"},
            {"orders": {"x": ["1"]}},
            PolicyError,
            "lacks the value '2'",
        ),
        (
            {"x": ["1", "2", "3"]},
            {"x": "quasi-identifier"},
            {"orders": {"x": [3]}},
            PolicyError,
            "lacks the value '1' and 1 more",
        ),
        (
            {"x": [True, False]},
            {"x": "quasi-identifier"},
            {"kinds": {"x": "ordinal"}},
            PolicyError,
            "The order of the bool values of ordinal attribute",
        ),
        (
            {"x": [1, 2], "z": [1, 2]},
            {"x": "quasi-identifier", "z": "feature"},
            {"orders": {"z": [1, 2]}},
            DataError,
            "No column 'z' in the table (orders of quasi-identifiers)",
        ),
        (
            {"x": ["nurse", "pilot"]},
            {"x": "quasi-identifier"},
            {"hierarchies": {"x": HIERARCHY}},
            DataError,
            "does not cover the value 'pilot'",
        ),
        (
            {"x": ["a", "b"]},
            {"x": "quasi-identifier"},
            {"hierarchies": {"y": HIERARCHY}},
            DataError,
            "No column 'y'",
        ),
        (
            {"x": ["a", "b"]},
            {"x": "quasi-identifier"},
            {"hierarchies": {"x": [["a", "*"], ["b"]]}},
            DataError,
            "the same number of levels",
        ),
        (
            {"x": ["a", "b"]},
            {"x": "quasi-identifier"},
            {"hierarchies": {"x": [["a", "g"], ["a", "h"], ["b", "g"]]}},
            DataError,
            "lists the value 'a' twice",
        ),
        (
            {"x": ["a", "b", "c"]},
            {"x": "quasi-identifier"},
            {"hierarchies": {"x": [["a", "g", "1"], ["b", "g", "2"], ["c", "h", "2"]]}},
            DataError,
            "Hierarchy of 'x': The hierarchy is not a tree: a group of level 1 lies in two groups",
        ),
    ],
)
def test_bad_input_gets_one_clear_error(columns, roles, more, error, says):
    with pytest.raises(error) as raised:
        encode(pa.table(columns), roles, **more)
    assert says in str(raised.value)


def test_an_empty_table_is_refused():
    table = pa.table({"x": pa.array([], pa.int64())})
    with pytest.raises(DataError, match="no rows"):
        encode(table, {"x": "quasi-identifier"})


def test_a_hierarchy_must_end_in_one_group():
    with pytest.raises(DataError, match="one group that holds all values"):
        ValueTree(np.array([[0, 0], [1, 1]], dtype=np.int32), (("a", "b"), ("a", "b")))


def test_an_unknown_quasi_identifier_is_named():
    records: Records = encoded(TABLE, ROLES)
    with pytest.raises(DataError, match="Did you mean 'age'"):
        records.attribute("agee")


def test_orders_may_list_values_that_do_not_occur():
    table = pa.table({"grade": ["top", "low"]})
    records = encode(table, {"grade": "quasi-identifier"}, orders={"grade": GRADES})
    assert records.attributes[0].domain == ("low", "top")


def test_a_missing_value_may_have_a_row_of_its_own():
    rows = [["a", "known", "*"], [None, "unknown", "*"], ["b", "unknown", "*"]]
    table = pa.table({"x": ["a", "b", None]})
    records = encode(table, {"x": "quasi-identifier"}, hierarchies={"x": rows})
    attribute = records.attributes[0]
    assert attribute.domain == ("a", "b", None)
    assert attribute.tree.heights_to(2).tolist() == [2, 1, 0]


def test_whole_floats_are_covered_by_whole_numbers():
    rows = [["1", "low"], ["2", "high"]]
    table = pa.table({"x": [1.0, 2.0]})
    records = encode(table, {"x": "quasi-identifier"}, hierarchies={"x": rows})
    assert records.attributes[0].tree.height == 2


POLICY = """
version: 1
label: income
attributes:
  id: {role: identifier}
  age: {role: quasi-identifier}
  job:
    role: quasi-identifier
    hierarchy: {care: [nurse, doctor], office: [clerk]}
  illness: {role: sensitive}
  hours: {role: feature}
privacy: {k: 2}
"""


def test_a_policy_gives_roles_and_hierarchies(tmp_path):
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    table = pa.table(
        {
            "id": [1, 2, 3],
            "age": [20, 30, 40],
            "job": ["nurse", "clerk", "doctor"],
            "illness": ["a", "b", "a"],
            "hours": [1, 2, 3],
            "income": ["x", "y", "x"],
            "other": [7, 8, 9],
        }
    )
    records = encode_for(table, load_policy(file))
    assert [a.name for a in records.attributes] == ["age", "job"]
    assert [a.name for a in records.sensitive] == ["illness"]
    assert records.left_out == ("id", "other")
    assert records.attributes[1].domain == ("doctor", "nurse", "clerk")
    with pytest.raises(DataError, match="No column 'hours'"):
        encode_for(table.drop_columns(["hours"]), load_policy(file))


KINDS = """
version: 1
label: income
attributes:
  grade: {role: quasi-identifier, order: [low, "1", 2, high]}
  stage: {role: quasi-identifier, kind: ordinal}
  code: {role: quasi-identifier, kind: categorical}
  seen: {role: quasi-identifier}
"""


def test_a_policy_gives_kinds_and_orders():
    table = pa.table(
        {
            "grade": ["2", None, "high", "1"],
            "stage": [4, 2, 30, 2],
            "code": [10, 9, 9, 10],
            "seen": pa.array([30, 10, 20, None], pa.date32()),
            "income": [0, 1, 0, 1],
        }
    )
    policy = load_policy(yaml.safe_load(KINDS))
    grade, stage, code, seen = encode_for(table, policy).attributes
    assert grade.kind is AttributeKind.ORDINAL
    assert grade.domain == ("1", "2", "high", None)
    assert (stage.kind, stage.domain) == (AttributeKind.ORDINAL, (2, 4, 30))
    assert stage.positions.tolist() == [0.0, 0.5, 1.0]
    assert code.kind is AttributeKind.CATEGORICAL
    # Dates have an order of their own.
    assert seen.kind is AttributeKind.ORDINAL
    assert seen.codes.tolist() == [2, 0, 1, 3]
    changed = encode_for(
        table, policy, kinds={"stage": "numeric"}, orders={"grade": ["2", "1", "high"]}
    )
    assert changed.attributes[0].domain == ("2", "1", "high", None)
    assert changed.attributes[1].kind is AttributeKind.NUMERIC


def test_numbers_under_a_dictionary_are_numbers():
    column = pa.array([3, 1, 3]).dictionary_encode()
    (found,) = encode(pa.table({"x": column}), {"x": "quasi-identifier"}).attributes
    assert found.kind is AttributeKind.NUMERIC
    assert found.domain == (1, 3)
