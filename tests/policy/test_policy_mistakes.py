"""Every mistake in a policy or configuration is one error with its line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from policy_support import FULL, HEAD, SMALL, A, write

import aegis
from aegis.errors import DataError, PolicyError
from aegis.policy import load_configurations, load_policy

MISTAKES = {
    "empty": ("", r"is empty", None),
    "list": ("- a", r"not a mapping", None),
    "version": ("label: y\nversion: 2\nattributes: {a: {role: feature}}", r"version is 2", 2),
    "no version": ("label: y\nattributes: {a: {role: feature}}", r"'version' is missing", 1),
    "what to add": ("label: y\n", r"'version' is missing.*`version: 1`", 1),
    "no attributes": ("version: 1\nlabel: y\n", r"'attributes' is missing", 1),
    "null attributes": ("version: 1\nlabel: y\nattributes:\n", r"attributes is None", 3),
    "null attribute": (HEAD + "  a:\n", r"attributes\.a is None.*mapping", 4),
    "no role": (
        HEAD + "  a: {masks: [suppress]}",
        r"attributes\.a\.role' is missing.*identifier, quasi-identifier, sensitive",
        4,
    ),
    "role": (HEAD + "  a:\n    role: featur\n", r"role is 'featur'.*Did you mean 'feature'", 5),
    "attribute key": (HEAD + "  a: {role: feature, mask: [x]}", r"'mask'.*mean 'masks'", 4),
    "top key": (HEAD + A + "mesure: mi", r"'mesure'.*mean 'measure'", 5),
    "population": (HEAD + A + "population: {size: 9}", r"population is .*path of a table", 5),
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
        r"kind is 'ordnal'.*mean 'ordinal'.*numeric, ordinal, categorical",
        6,
    ),
    "kind of a feature": (
        HEAD + "  a:\n    role: feature\n    kind: ordinal\n",
        r"'a' has the role feature, so it cannot have 'kind'",
        6,
    ),
    "order of a sensitive attribute": (
        HEAD + "  a:\n    role: sensitive\n    order: [x, y]\n",
        r"'a' has the role sensitive, so it cannot have 'order'",
        6,
    ),
    "order and another kind": (
        HEAD + "  a:\n    role: quasi-identifier\n    order: [x, y]\n    kind: categorical\n",
        r"'a' has an order, but its kind is categorical",
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
    "weight too large": (HEAD + "  a: {role: feature, weight: 1.0e+308}", r"weight is 1e\+308", 4),
    "weight too small": (HEAD + "  a: {role: feature, weight: 5.0e-324}", r"weight is 5e-324", 4),
    "weight nan": (HEAD + "  a: {role: feature, weight: .nan}", r"weight is nan", 4),
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
    "measure": (
        HEAD + A + "measure: adjusted-pilai",
        r"'adjusted-pilai'.*mean 'adjusted-pillai'",
        5,
    ),
    "rule": (HEAD + A + "privacy: {kk: 5}", r"'kk'.*mean 'k'", 5),
    "rule type": (HEAD + A + "privacy: 5", r"privacy is 5", 5),
    "rule asks nothing": (HEAD + A + "privacy: {suppression: 0.1}", r"requires nothing", 5),
    "suppression": (HEAD + A + "privacy: {suppression: 2, k: 5}", r"'suppression'.* is 2", 5),
    "unseen": (HEAD + A + "unseen: drop", r"unseen is 'drop'", 5),
    "no scored attribute": (HEAD + "  a: {role: ignore}", r"no attribute that can be scored", None),
    "protected": (
        HEAD + A + "privacy: {l_diversity: {attribute: b, l: 2}}",
        r"privacy rule 'b'.*List another column first: b: {role: sensitive}",
        5,
    ),
    "protected role": (
        HEAD + A + "privacy: {l_diversity: {attribute: a, l: 2}}",
        r"role sensitive",
        5,
    ),
    "key of a rule": (HEAD + A + "privacy:\n  k: 5\n  supression: 0.1\n", r"'supression'", 7),
    "k of a rule": (HEAD + A + "privacy:\n  suppression: 0.1\n  k: 0\n", r"'k' of", 7),
    "suppression of a rule": (
        HEAD + A + "privacy:\n  k: 5\n  suppression: 2\n",
        r"'suppression'.* is 2",
        7,
    ),
    "preset of a rule": (HEAD + A + "privacy:\n  k: 5\n  preset: emma\n", r"'emma'", 7),
    "second entry of a model": (
        HEAD
        + A
        + "privacy:\n  k: 5\n  l_diversity:\n    - {attribute: a, l: 2}\n"
        + "    - attribute: b\n      l: two\n",
        r"'l' of .* is 'two'",
        10,
    ),
    "kind of a model": (
        HEAD + A + "privacy:\n  l_diversity:\n    attribute: a\n    kind: entropic\n    l: 2\n",
        r"'entropic'",
        8,
    ),
    "parameter of a model": (
        HEAD + A + "privacy:\n  t_closeness:\n    attribute: a\n    tt: 0.2\n",
        r"'tt'",
        8,
    ),
    "attribute of a model": (
        HEAD + A + "privacy:\n  t_closeness:\n    t: 0.2\n    attribute: 5\n",
        r"lacks the sensitive attribute",
        8,
    ),
    "what a model compares with": (
        HEAD
        + A
        + "privacy:\n  t_closeness:\n    attribute: a\n    t: 0.2\n    reference: output\n",
        r"'output'",
        9,
    ),
    "attribute that a rule does not know": (
        HEAD + A + "privacy:\n  k: 5\n  l_diversity:\n    l: 2\n    attribute: bb\n",
        r"privacy rule 'bb'",
        9,
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
    "itself": (HEAD + "  a: &x [*x]", r"alias represents itself", None),
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


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("stays.csv", "age,sick\n1,y\n", "stays.csv is a table, not a policy"),
        ("stays.parquet", "PAR1", "stays.parquet is a table, not a policy"),
        (
            "c.json",
            '{"certificate": 2, "configuration": {}}',
            "is the certificate of a release, not a policy",
        ),
    ],
)
def test_another_file_in_place_of_a_policy_is_named(tmp_path, name, text, told) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(PolicyError, match=told):
        load_policy(tmp_path / name)


def test_the_text_of_a_policy_is_no_path() -> None:
    """The operating system said that the name of the file is too long."""
    text = "version: 1\nlabel: sick\nattributes:\n" + "  age: {role: feature}\n" * 500
    with pytest.raises(PolicyError, match="text of a policy, not the path"):
        load_policy(text)


def test_only_a_policy_and_configurations_are_written() -> None:
    """Python said that an int has no attribute `version`."""
    for written in (aegis.dump_policy, aegis.dump_configurations):
        with pytest.raises(PolicyError, match="is 3, of type int"):
            written(3)
