"""Several labels in a policy: read, written, and refused where they make no sense."""

from __future__ import annotations

from typing import Any

import pytest

import aegis
from aegis.errors import PolicyError
from aegis.policy import Label, LabelTask, Serve, dump_policy, load_policy, several_labels

ATTRIBUTES: dict[str, Any] = {"a": {"role": "feature"}}


def policy(**keys: Any) -> aegis.Policy:
    return load_policy({"version": 1, "attributes": ATTRIBUTES, **keys})


def test_several_labels_are_read_and_written() -> None:
    given = policy(
        labels=[
            "y",
            {"column": "hours", "kind": "number", "weight": 2},
            {"column": "z", "bins": 4},
        ],
        serve="worst",
        labels_known=True,
    )
    several = given.label.several
    assert several is not None
    assert (several.serve, several.labels_known, several.columns) == (
        Serve.WORST,
        True,
        ("y", "hours", "z"),
    )
    assert [task.weight for task in several.tasks] == [1, 2, 1]
    assert load_policy_text(dump_policy(given)) == given
    assert not given.label
    assert given.label.columns == ("y", "hours", "z")


def load_policy_text(text: str) -> aegis.Policy:
    import yaml

    return load_policy(yaml.safe_load(text))


def test_one_of_several_labels_is_a_label() -> None:
    assert policy(labels=["y"]) == policy(label="y")
    assert dump_policy(policy(labels=[{"column": "y", "kind": "number"}])) == dump_policy(
        policy(label={"column": "y", "kind": "number"})
    )


def test_any_is_read_and_written() -> None:
    given = policy(labels="any")
    assert given.label.several is not None
    assert given.label.several.any_column
    assert load_policy_text(dump_policy(given)) == given


def test_each_label_has_a_measure_of_its_kind() -> None:
    given = policy(
        labels=["y", {"column": "n", "kind": "number"}, {"column": "z", "measure": "mi"}],
        measure="adjusted-pillai",
    )
    measures = [task.measure_by(given.measure).name for task in given.tasks]
    assert measures == ["adjusted-pillai", "held-out-r2", "mi"]


def test_another_label_is_no_attribute_of_a_task_unless_it_is_known() -> None:
    attributes = {n: {"role": "quasi-identifier"} for n in ("a", "y")}
    keys: dict[str, Any] = {"labels": ["y", "z"], "attributes": attributes}
    unknown, known = policy(**keys), policy(**keys, labels_known=True)
    assert [[f.name for f in unknown.of_task(t).features] for t in unknown.tasks] == [["a"], ["a"]]
    assert [[f.name for f in known.of_task(t).features] for t in known.tasks] == [["a"], ["a", "y"]]


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "label and labels": ({"label": "y", "labels": ["z", "x"]}, "`label` and `labels` are both"),
    "twice": ({"labels": ["y", "z", "y"]}, "'y' 2 times"),
    "no weight": ({"labels": ["y", {"column": "z", "weight": 0}]}, "weight 0.*above zero"),
    "negative": ({"labels": ["y", {"column": "z", "weight": -1}]}, "weight -1.*above zero"),
    "weight type": ({"labels": ["y", {"column": "z", "weight": "x"}]}, r"labels\.1\.weight is 'x'"),
    "infinite": ({"labels": ["y", {"column": "z", "weight": float("inf")}]}, "weight is inf"),
    "none": ({"labels": []}, "names no column"),
    "neither list nor any": ({"labels": "y"}, "labels is 'y'.*list"),
    "key": ({"labels": [{"colum": "y"}, "z"]}, "'colum'.*mean 'column'"),
    "serve": ({"labels": ["y", "z"], "serve": "best"}, "serve is 'best'. Allowed: mean, worst"),
    "serve of one": ({"label": "y", "serve": "worst"}, "'serve' is given without `labels`"),
    "known of none": ({"labels_known": True}, "'labels_known' is given without `labels`"),
    "measure of none": (
        {"labels": ["y", "z"], "measure": "held-out-r2"},
        "suits none of the labels",
    ),
    "measure of another kind": (
        {"labels": [{"column": "y", "measure": "held-out-r2"}, "z"]},
        "number",
    ),
    "ignored": (
        {"labels": ["y", "z"], "attributes": {**ATTRIBUTES, "z": {"role": "ignore"}}},
        "'z' has the role ignore",
    ),
    "person": (
        {"labels": ["y", "z"], "person": "z"},
        "'z' is both a label and the column of persons",
    ),
    "nothing left": (
        {"labels": ["y", "z"], "attributes": {n: {"role": "feature"} for n in ("y", "z")}},
        "no attribute that can be scored",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_clear_error(name: str) -> None:
    keys, message = MISTAKES[name]
    with pytest.raises(PolicyError, match=message):
        policy(**keys)


def test_a_column_that_is_missing_is_refused_by_the_table() -> None:
    import pyarrow as pa

    table = pa.table({"a": [1, 2], "y": ["u", "v"]})
    with pytest.raises(aegis.errors.AegisError, match="nope"):
        aegis.summarize(table, policy(labels=["y", "nope"]))


def test_the_library_makes_labels_too() -> None:
    with pytest.raises(PolicyError, match="2 times"):
        several_labels([LabelTask(Label("y")), LabelTask(Label("y"))])


def test_init_proposes_several_labels() -> None:
    import pyarrow as pa

    rows = 60
    table = pa.table(
        {
            "age": [20 + i % 30 for i in range(rows)],
            "y": ["no", "yes"] * (rows // 2),
            "grade": [i % 5 for i in range(rows)],
            "cost": [float(i) * 3 for i in range(rows)],
        }
    )
    proposed = aegis.init_policy(table, label=["y", "grade", "cost"])
    assert proposed.policy.label.columns == ("y", "grade", "cost")
    assert [task.label.is_number for task in proposed.policy.tasks] == [False, False, True]
    assert load_policy_text(proposed.yaml) == proposed.policy
    assert proposed.yaml.count("# The class to predict") == 2
    assert "ASK" in proposed.yaml
    assert aegis.init_policy(table, label=["y"]).yaml == aegis.init_policy(table, label="y").yaml


@pytest.mark.parametrize(("key", "value"), [("serve", "worst"), ("labels_known", True)])
def test_any_says_itself_how_columns_are_combined(key: str, value: object) -> None:
    with pytest.raises(PolicyError, match="cannot be used with `labels: any`") as refused:
        policy(labels="any", **{key: value})
    assert f"leave {key!r} out" in str(refused.value.hint)
    with pytest.raises(PolicyError, match="Training needs a label, but the policy names none"):
        policy(labels="any").require_label("Training")
