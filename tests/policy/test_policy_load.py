"""Policies from YAML: every key, and the way back."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from policy_support import FULL, HEAD, SMALL, A, write

from aegis.errors import AegisError, PolicyError
from aegis.masks import Bucketize, Hierarchy, Identity, KeepFrequent, Level, Suppress, parse_mask
from aegis.policy import (
    Configuration,
    Policy,
    Role,
    Unseen,
    dump_configurations,
    dump_policy,
    load_configurations,
    load_policy,
    measure_of_choice,
    policy_digest,
    policy_mapping,
)
from aegis.privacy import PrivacyRule


def test_every_key(tmp_path: Path) -> None:
    policy = load_policy(write(tmp_path, FULL))
    assert (policy.label.column, policy.label.bins) == ("price", 4)
    assert policy.measure == "mi"
    assert policy.unseen is Unseen.SUPPRESS
    assert policy.privacy.suppression == 0.02
    assert policy.privacy.minimum_size == 5
    assert policy.privacy.sensitive == ("job",)
    assert policy.sensitive == ("job",)
    age, town, job = (policy.attributes[name] for name in ("age", "town", "job"))
    assert age.masks == (Identity(), Bucketize(10), Suppress())
    assert town.hierarchy == Hierarchy((("Oslo", "north", "*"), ("Rome", "south", "*")))
    assert town.masks == (Identity(), Level(1, town.hierarchy), Level(2, town.hierarchy))
    assert (age.weight, town.weight) == (1, 2)
    assert job.masks == (Identity(),)
    assert policy.attributes["hours"].masks == (KeepFrequent(3),)
    assert policy.attributes["note"].masks == ()
    assert [a.name for a in policy.features] == ["age", "town", "job", "hours"]
    assert [a.name for a in policy.quasi_identifiers] == ["age", "town"]
    assert [a.name for a in policy.released()] == ["age", "town", "job", "hours", "name"]
    assert policy.configurations == {
        "coarse": Configuration(
            "coarse",
            {
                "age": Bucketize(10),
                "town": Level(2, town.hierarchy),
                "job": Identity(),
                "hours": KeepFrequent(3),
            },
        )
    }


def test_the_way_back(tmp_path: Path) -> None:
    policy = load_policy(write(tmp_path, FULL))
    again = load_policy(write(tmp_path, dump_policy(policy), "again.yaml"))
    assert again == policy
    assert policy_digest(again) == policy_digest(policy)
    text = dump_configurations(policy.configurations)
    assert load_configurations(write(tmp_path, text, "best.yaml"), policy) == policy.configurations


def test_a_file_names_the_measure_that_chose(tmp_path: Path) -> None:
    policy = load_policy(write(tmp_path, FULL))
    text = dump_configurations(policy.configurations, measure="cmim")
    file = write(tmp_path, text, "best.yaml")
    assert measure_of_choice(file) == "cmim"
    assert load_configurations(file, policy) == policy.configurations
    silent = write(tmp_path, dump_configurations(policy.configurations), "silent.yaml")
    assert measure_of_choice(silent) is None
    # Of a bare mapping `measure` is an attribute like any other.
    assert measure_of_choice(write(tmp_path, "measure: suppress\n", "bare.yaml")) is None
    with pytest.raises(PolicyError, match="cmimm"):
        measure_of_choice(write(tmp_path, text.replace("cmim", "cmimm"), "typo.yaml"))


def test_the_digest_is_the_documented_one(tmp_path: Path) -> None:
    """docs/reference/json.md says what is hashed."""
    policy = load_policy(
        {"version": 1, "label": "y", "attributes": {"town": {"role": "quasi-identifier"}}}
    )
    text = json.dumps(policy_mapping(policy), sort_keys=True)
    assert policy_digest(policy) == hashlib.sha256(text.encode()).hexdigest()


def test_the_digest_sees_the_content_of_hierarchies(tmp_path: Path) -> None:
    file = write(tmp_path, FULL)
    before = policy_digest(load_policy(file))
    (tmp_path / "levels" / "town.csv").write_text("Oslo;north;*\nRome;Italy;*\n")
    assert policy_digest(load_policy(file)) != before


def test_a_hierarchy_within_the_policy() -> None:
    policy = load_policy(
        {
            "version": 1,
            "label": "y",
            "attributes": {
                "town": {
                    "role": "quasi-identifier",
                    "hierarchy": {"Europe": {"north": ["Oslo"], "south": ["Rome"]}},
                },
                "grade": {
                    "role": "feature",
                    "hierarchy": {"levels": {1: ["low"], 2: ["low"], 3: ["high"]}},
                },
            },
        }
    )
    town = policy.attributes["town"].hierarchy
    assert town == Hierarchy((("Oslo", "north", "Europe"), ("Rome", "south", "Europe")))
    assert policy.attributes["grade"].hierarchy == Hierarchy(
        (("1", "low"), ("2", "low"), ("3", "high"))
    )
    assert load_policy(yaml.safe_load(dump_policy(policy))) == policy


def test_no_privacy_is_an_empty_rule() -> None:
    for rest in ({}, {"privacy": {}}):
        policy = load_policy({**SMALL, **rest})
        assert policy.privacy == PrivacyRule()
    assert load_policy(yaml.safe_load(dump_policy(policy))) == policy


@pytest.mark.parametrize("role", list(Role))
def test_default_masks(role: Role) -> None:
    attributes = {"a": {"role": str(role)}, "b": {"role": "feature"}}
    masks = load_policy({**SMALL, "attributes": attributes}).attributes["a"].masks
    expected: dict[Role, tuple[Any, ...]] = {
        Role.IDENTIFIER: (),
        Role.IGNORE: (),
        Role.QUASI_IDENTIFIER: (Identity(), Suppress()),
        Role.SENSITIVE: (Identity(),),
        Role.FEATURE: (Identity(),),
    }
    assert masks == expected[role]


def test_repeated_masks_count_once() -> None:
    masks = ["identity", {"blur": {"keep": 2}}, {"identity": {}}, {"blur": {"keep": 2}}]
    policy = load_policy({**SMALL, "attributes": {"a": {"role": "feature", "masks": masks}}})
    assert policy.attributes["a"].masks == (Identity(), parse_mask({"blur": {"keep": 2}}))


TRAPS = [
    "yes", "No", "on", "OFF", "y", "n", "null", "~", "true", "False", "2024", "1e5", "1_000", "0o17", "0x1F",
    "012", "12:30:00", "2024-01-31", ".inf", ".nan", "-", "*", "&a", "a: b", "#a", " a ", "", "<<", "=",
    "é", "名前", "🇳🇴", "a'b", 'a"b', "a\nb", "%", "@", "!x", "{", "[", ",", "?", "|", ">",
]  # fmt: skip


@pytest.mark.parametrize("name", TRAPS)
def test_any_text_may_be_a_name_or_a_value(tmp_path: Path, name: str) -> None:
    other = name + "2"
    policy = load_policy(
        {
            "version": 1,
            "label": other,
            "attributes": {
                name: {"role": "feature", "masks": [{"group": {"groups": {name or "x": [name]}}}]}
            },
            "configurations": {name: {name: {"group": {"groups": {name or "x": [name]}}}}},
        }
    )
    [attribute] = policy.attributes.values()
    assert attribute.name == name
    assert policy.label.column == other
    [mask] = attribute.masks
    assert mask.groups == ((name or "x", (name,)),)  # type: ignore[attr-defined]
    assert policy.configurations[name].masks == {name: mask}
    assert load_policy(write(tmp_path, dump_policy(policy))) == policy


@pytest.mark.parametrize(
    "name", ["yes", "No", "on", "OFF", "y", "2024", "012", "2024-01-31", "null", "true", "1e5"]
)
def test_names_as_a_person_writes_them(tmp_path: Path, name: str) -> None:
    text = f"version: 1\nlabel: y1\nattributes:\n  {name}: {{role: feature}}\nconfigurations:\n  {name}: {{{name}: suppress}}\n"
    policy = load_policy(write(tmp_path, text))
    assert list(policy.attributes) == [name]
    assert policy.configurations[name].masks == {name: Suppress()}


@pytest.mark.parametrize(
    "name", ["yes", "No", "on", "OFF", "y", "2024", "012", "2024-01-31", "12:30"]
)
def test_labels_as_a_person_writes_them(tmp_path: Path, name: str) -> None:
    for label in (name, f"{{column: {name}}}"):
        policy = load_policy(write(tmp_path, f"version: 1\nlabel: {label}\nattributes:\n{A}"))
        assert policy.label.column == name


def test_values_of_groups_as_a_person_writes_them(tmp_path: Path) -> None:
    mask = "{group: {groups: {norwegian: [no, on, 01234, 2024-01-31, 12:30], both: [true, 5, 1.5, 1e3]}}}"
    policy = load_policy(write(tmp_path, HEAD + f"  a: {{role: feature, masks: [{mask}]}}"))
    [group] = policy.attributes["a"].masks
    groups = dict(group.groups)  # type: ignore[attr-defined]
    assert set(groups["norwegian"]) == {"no", "on", "01234", "2024-01-31", "12:30"}
    assert set(map(repr, groups["both"])) == {"True", "5", "1.5", "1000.0"}


def test_anchors_and_merges(tmp_path: Path) -> None:
    text = HEAD + "  a: &quasi {role: quasi-identifier, weight: 2}\n  b: {<<: *quasi, weight: 3}\n"
    policy = load_policy(write(tmp_path, text))
    assert [a.weight for a in policy.quasi_identifiers] == [2, 3]


names = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\x85\u2028\u2029\ufeff"),
    min_size=1,
    max_size=6,
)
specs = st.sampled_from(
    [
        "identity",
        "suppress",
        {"bucketize": {"width": 0.1}},
        {"bucketize": {"width": 5, "origin": 2, "show": "lower"}},
        {"quantiles": {"count": 4}},
        {"quantiles": {"count": 3, "edges": [1, 2.5]}},
        {"keep_frequent": {"count": 2, "values": ["yes", 1]}},
        {"group": {"groups": {"no": ["off", "1e5"], "x": [7]}, "rest": "keep"}},
        {"blur": {"hide": 2, "symbol": "#"}},
        {"truncate": {"unit": "month"}},
        {"compose": [{"top_code": {"at": 90}}, {"bucketize": {"width": 10}}]},
        {"erase_digits": {"digits": 2}},
    ]
)


KINDS: list[dict[str, Any]] = [
    {},
    {"kind": "categorical"},
    {"kind": "ordinal"},
    {"order": ["no", "1e5", 3, 2.5, "2024-01-31"]},
    {"kind": "ordinal", "order": [2, 1]},
]


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    listed = draw(st.lists(names, min_size=2, max_size=5, unique=True))
    label, *others = listed
    roles = st.sampled_from(["quasi-identifier", "sensitive", "feature"])
    attributes = {
        name: {
            "role": draw(roles),
            "masks": draw(st.lists(specs, min_size=1, max_size=4)),
            "weight": draw(st.sampled_from([1.0, 0.25, 3.0, 1e-7])),
        }
        for name in others
    }
    for entry in attributes.values():
        if entry["role"] == "quasi-identifier":
            entry |= draw(st.sampled_from(KINDS))
    rule: dict[str, Any] = draw(st.sampled_from([{}, {"k": 5}, {"k": 3, "suppression": 0.05}]))
    configurations = {
        name: {a: draw(st.sampled_from(attributes[a]["masks"])) for a in others}
        for name in draw(st.lists(names, max_size=2, unique=True))
    }
    return load_policy(
        {
            "version": 1,
            "label": {"column": label, "bins": draw(st.none() | st.integers(2, 9))},
            "measure": draw(st.sampled_from(["adjusted-pillai", "mi", "g3", None])),
            "privacy": rule,
            "attributes": attributes,
            "configurations": configurations,
        }
    )


@given(policies())
def test_every_policy_comes_back(policy: Policy) -> None:
    text = dump_policy(policy)
    # Readers of YAML 1.1 see the same.
    assert load_policy(yaml.safe_load(text)) == policy
    assert policy_digest(load_policy(yaml.safe_load(text))) == policy_digest(policy)


@given(policy=policies())
def test_every_policy_comes_back_from_a_file(
    policy: Policy, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("policy")
    assert load_policy(write(folder, dump_policy(policy))) == policy


@given(
    text=st.text(max_size=60)
    | st.text(st.sampled_from("version:1\n label{}[],&*!-#a\"' "), max_size=80)
)
def test_any_text_is_a_policy_or_one_clear_error(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("any") / "policy.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(AegisError):
        load_policy(file)


def test_configurations_may_be_partial(tmp_path: Path) -> None:
    policy = load_policy(write(tmp_path, FULL))
    bare = write(tmp_path, "age: suppress\n", "mine.yaml")
    [(name, found)] = load_configurations(bare, policy).items()
    assert name == "mine"
    assert found.masks["age"] == Suppress()
    assert found.masks["town"] == Identity()
    assert found.masks["hours"] == KeepFrequent(3)
    assert list(found.masks) == ["age", "town", "job", "hours"]


def test_the_label_as_an_attribute() -> None:
    attributes = {
        "a": {"role": "sensitive"},
        "y": {"role": "quasi-identifier", "masks": ["identity", {"bucketize": {"width": 10}}]},
    }
    policy = load_policy(
        {**SMALL, "attributes": attributes, "privacy": {"l_diversity": {"attribute": "a", "l": 2}}}
    )
    assert policy.label_attribute is policy.attributes["y"]
    assert [a.name for a in policy.features] == ["a"]
    assert [a.name for a in policy.quasi_identifiers] == ["y"]
    assert policy.sensitive == ("a",)


def test_the_label_may_be_protected_without_an_entry() -> None:
    rule = {"l_diversity": {"attribute": "y", "l": 2}}
    assert load_policy({**SMALL, "privacy": rule}).sensitive == ("y",)
