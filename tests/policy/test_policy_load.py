"""Policies from YAML: every key, every mistake with its line, and the way back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import AegisError, DataError, PolicyError
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
    policy_digest,
)
from aegis.privacy import PrivacyRule

FULL = """\
version: 1
label: {column: price, bins: 4}
measure: mi
privacy: {k: 5, suppression: 0.02, l_diversity: {attribute: job, kind: entropy, l: 2}}
unseen: suppress
attributes:
  age:
    role: quasi-identifier
    masks: [identity, {bucketize: {width: 10}}, suppress]
  town:
    role: quasi-identifier
    hierarchy: levels/town.csv
    weight: 2
  job: {role: sensitive}
  hours: {role: feature, masks: [{keep_frequent: {count: 3}}]}
  name: {role: identifier, masks: [{tokenise: {key_env: KEY}}]}
  note: {role: ignore}
configurations:
  coarse: {age: {bucketize: {width: 10}}, town: {level: 2}}
"""


def write(folder: Path, text: str, name: str = "policy.yaml") -> Path:
    (folder / "levels").mkdir(exist_ok=True)
    (folder / "levels" / "town.csv").write_text("Oslo;north;*\nRome;south;*\n")
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


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


SMALL: dict[str, Any] = {"version": 1, "label": "y", "attributes": {"a": {"role": "feature"}}}


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


HEAD = "version: 1\nlabel: y\nattributes:\n"
A = "  a: {role: feature}\n"
MISTAKES = {
    "empty": ("", r"is empty", None),
    "list": ("- a", r"not a mapping", None),
    "version": ("label: y\nversion: 2\nattributes: {a: {role: feature}}", r"version is 2", 2),
    "no version": ("label: y\nattributes: {a: {role: feature}}", r"'version' is missing", 1),
    "no label": ("version: 1\nattributes: {a: {role: feature}}", r"'label' is missing", 1),
    "no attributes": ("version: 1\nlabel: y\n", r"'attributes' is missing", 1),
    "null attributes": ("version: 1\nlabel: y\nattributes:\n", r"attributes is None", 3),
    "null attribute": (HEAD + "  a:\n", r"attributes\.a is None.*mapping", 4),
    "no role": (
        HEAD + "  a: {masks: [suppress]}",
        r"attributes\.a\.role' is missing.*identifier, quasi-identifier, sensitive",
        4,
    ),
    "role": (HEAD + "  a:\n    role: featur\n", r"role is 'featur'.*'feature'", 5),
    "attribute key": (HEAD + "  a: {role: feature, mask: [x]}", r"'mask'.*mean 'masks'", 4),
    "top key": (HEAD + A + "mesure: mi", r"'mesure'.*mean 'measure'", 5),
    "label key": (
        "version: 1\nlabel: {colum: y}\nattributes: {a: {role: feature}}",
        r"'colum'.*mean 'column'",
        2,
    ),
    "label bins": (
        "version: 1\nlabel: {column: y, bins: 1}\nattributes: {a: {role: feature}}",
        r"label\.bins is 1",
        2,
    ),
    "label type": (
        "version: 1\nlabel: [y]\nattributes: {a: {role: feature}}",
        r"label is \['y'\]",
        2,
    ),
    "mask type": (HEAD + "  a: {role: feature, masks: [5]}", r"masks\.0 is 5", 4),
    "kind": (
        HEAD + "  a:\n    role: quasi-identifier\n    kind: ordnal\n",
        r"kind is 'ordnal'.*'numeric', 'ordinal' or 'categorical'",
        6,
    ),
    "kind of a feature": (
        HEAD + "  a:\n    role: feature\n    kind: ordinal\n",
        r"'kind' of 'a', whose role is feature",
        6,
    ),
    "order of a sensitive attribute": (
        HEAD + "  a:\n    role: sensitive\n    order: [x, y]\n",
        r"'order' of 'a', whose role is sensitive",
        6,
    ),
    "order and another kind": (
        HEAD + "  a:\n    role: quasi-identifier\n    order: [x, y]\n    kind: categorical\n",
        r"'a' has an order and is categorical",
        7,
    ),
    "a value twice in an order": (
        HEAD + '  a:\n    role: quasi-identifier\n    order:\n      - 1\n      - x\n      - "1"\n',
        r"'1' is given twice",
        9,
    ),
    "order type": (
        HEAD + "  a:\n    role: quasi-identifier\n    order: [x, null]\n",
        r"order\.1 is None.*text or a number",
        6,
    ),
    "short order": (
        HEAD + "  a:\n    role: quasi-identifier\n    order: [x]\n",
        r"order is \['x'\]",
        6,
    ),
    "no masks": (HEAD + "  a: {role: feature, masks: []}", r"masks is \[\]", 4),
    "one mask": (HEAD + "  a: {role: feature, masks: suppress}", r"masks is 'suppress'.*list", 4),
    "mask": (
        HEAD
        + "  a:\n    role: feature\n    masks:\n      - identity\n      - bucketise: {width: 5}\n",
        r"'a'.*'bucketise'.*mean 'bucketize'",
        8,
    ),
    "parameter": (
        HEAD + "  a: {role: feature, masks: [{bucketize: {with: 5}}]}",
        r"'with'.*mean 'width'",
        4,
    ),
    "parameter type": (
        HEAD + "  a: {role: feature, masks: [{bucketize: {width: wide}}]}",
        r"'width' is 'wide'",
        4,
    ),
    "weight": (HEAD + "  a: {role: feature, weight: -1}", r"weight is -1", 4),
    "weight type": (HEAD + "  a: {role: feature, weight: heavy}", r"weight is 'heavy'", 4),
    "weight inf": (HEAD + "  a: {role: feature, weight: .inf}", r"weight is inf", 4),
    "hierarchy type": (HEAD + "  a: {role: feature, hierarchy: [1]}", r"hierarchy is \[1\]", 4),
    "hierarchy level": (
        HEAD + "  a: {role: feature, masks: [{level: 5}], hierarchy: levels/town.csv}",
        r"no level 5",
        4,
    ),
    "configuration": (HEAD + A + "configurations: {c: 5}", r"configurations\.c is 5", 5),
    "configuration mask": (
        HEAD + A + "configurations: {c: {a: 5}}",
        r"configurations\.c\.a is 5",
        5,
    ),
    "configuration name": (
        HEAD + A + "configurations:\n  c:\n    aa: suppress",
        r"'aa'.*mean 'a'",
        7,
    ),
    "measure": (HEAD + A + "measure: pilai", r"'pilai'.*mean 'pillai'", 5),
    "rule": (HEAD + A + "privacy: {kk: 5}", r"'kk'.*mean 'k'", 5),
    "rule type": (HEAD + A + "privacy: 5", r"privacy is 5", 5),
    "rule asks nothing": (HEAD + A + "privacy: {suppression: 0.1}", r"asks for nothing", 5),
    "suppression": (HEAD + A + "privacy: {suppression: 2, k: 5}", r"'suppression'.* is 2", 5),
    "unseen": (HEAD + A + "unseen: drop", r"unseen is 'drop'", 5),
    "no scored attribute": (HEAD + "  a: {role: ignore}", r"no attribute that can be scored", None),
    "protected": (
        HEAD + A + "privacy: {l_diversity: {attribute: b, l: 2}}",
        r"privacy rule 'b'",
        None,
    ),
    "protected role": (
        HEAD + A + "privacy: {l_diversity: {attribute: a, l: 2}}",
        r"role sensitive",
        None,
    ),
    "identifier": (
        HEAD + A + "  b: {role: identifier, masks: [identity]}",
        r"would release it",
        None,
    ),
    "identifiers": (
        HEAD + A + "  b: {role: identifier, masks: [suppress, {tokenise: {key_env: K}}]}",
        r"has 2 masks",
        None,
    ),
    "label ignored": (HEAD + A + "  y: {role: ignore}", r"label 'y' has the role ignore", None),
    "repeated": (HEAD + A + A, r"'a' is given twice", 5),
    "repeated text": (HEAD + A + '  "a": {role: feature}', r"'a' is given twice", 5),
    "open bracket": (HEAD + "  a: {role: feature\n", r"not valid YAML", 5),
    "tab": (HEAD + "\ta: {role: feature}", r"not valid YAML", 4),
    "key": (HEAD + "  ? [1]\n  : {role: feature}", r"key is not a plain text", 4),
    "python": (HEAD + "  a: !!python/object:os.system {}", r"not valid YAML", 4),
    "itself": (HEAD + "  a: &x [*x]", r"alias stands for itself", None),
    "two documents": (HEAD + A + "---\nb: 1\n", r"not valid YAML", 5),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_name_their_line(tmp_path: Path, mistake: str) -> None:
    text, message, line = MISTAKES[mistake]
    file = write(tmp_path, text)
    with pytest.raises(PolicyError) as caught:
        load_policy(file)
    said = str(caught.value)
    assert re.search(message, said, re.DOTALL), said
    assert said.startswith(str(file))
    assert caught.value.hint
    if line is not None:
        assert f"{file}, line {line}:" in said


def test_hierarchies_that_cannot_be_read(tmp_path: Path) -> None:
    file = write(tmp_path, HEAD + "  a: {role: feature, hierarchy: none.csv}")
    with pytest.raises(DataError, match=r"line 4: Cannot read hierarchy file.*none\.csv"):
        load_policy(file)
    (tmp_path / "levels" / "town.csv").write_text("Oslo;north\nOslo;south\n")
    file = write(tmp_path, HEAD + "  a: {role: feature, hierarchy: bad.csv}")
    (tmp_path / "bad.csv").write_text("Oslo;north\nOslo;south\n")
    with pytest.raises(DataError, match=r"line 4: .*'Oslo' has two rows"):
        load_policy(file)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="Cannot read policy file"):
        load_policy(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes("label: prénom".encode("latin-1"))
    with pytest.raises(PolicyError, match="not UTF-8"):
        load_policy(tmp_path / "latin.yaml")


def test_mappings_hold_plain_values_only() -> None:
    with pytest.raises(PolicyError, match="cannot hold"):
        load_policy({**SMALL, "measure": np.float64(1)})
    with pytest.raises(PolicyError, match="measure is 5"):
        load_policy({**SMALL, "measure": 5})


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
            "measure": draw(st.sampled_from(["pillai", "mi", "g3", None])),
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


def test_a_configuration_that_leaves_a_choice_open(tmp_path: Path) -> None:
    attributes = {
        "a": {"role": "feature", "masks": ["suppress", {"blur": {"keep": 1}}]},
        "b": {"role": "feature"},
    }
    policy = load_policy({**SMALL, "attributes": attributes})
    with pytest.raises(PolicyError, match="does not say how to mask 'a'"):
        load_configurations(write(tmp_path, "b: identity\n", "c.yaml"), policy)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a", "not a mapping"),
        ("configurations: {}", "no configurations"),
        ("configurations: [a]", "no configurations"),
        ("configurations: {c: a}", "is 'a'"),
        ("configurations:\n  c: {ages: suppress}", "line 2: .*mean 'age'"),
        ("configurations:\n  c:\n    age: supress", "line 3: .*mean 'suppress'"),
        ("configurations:\n  c:\n    name: suppress", "line 3: .*'name'"),
        ("", "is empty"),
    ],
)
def test_mistakes_in_configurations(tmp_path: Path, text: str, message: str) -> None:
    policy = load_policy(write(tmp_path, FULL))
    with pytest.raises(PolicyError, match=message):
        load_configurations(write(tmp_path, text, "c.yaml"), policy)
    with pytest.raises(PolicyError, match="Cannot read configuration file"):
        load_configurations(tmp_path / "none.yaml", policy)


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


@pytest.mark.parametrize(
    "more",
    [
        {"attributes": {"y": {"role": "quasi-identifier"}}},
        {"privacy": {"l_diversity": {"attribute": "y", "kind": "distinct", "l": 2}}},
    ],
)
def test_a_binned_label_has_no_role_and_no_protection(more: dict[str, Any]) -> None:
    attributes = {"a": {"role": "quasi-identifier"}, **more.get("attributes", {})}
    policy = {"version": 1, "label": {"column": "y", "bins": 3}} | more | {"attributes": attributes}
    with pytest.raises(PolicyError, match="cut into bins"):
        load_policy(policy)
