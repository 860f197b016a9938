"""Policies from anywhere: limits on length, depth, parts and numbers, each said with its line."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aegis.policy.lines as lines
from aegis.errors import AegisError, DataError, PolicyError
from aegis.masks import Hierarchy, parse_mask
from aegis.policy import load_configurations, load_policy
from aegis.policy.lines import read_yaml, write_yaml
from aegis.privacy import PrivacyRule

HEAD = "version: 1\nlabel: y\nattributes:\n"
HUGE = "9" * 400


def refused(text: str) -> str:
    with pytest.raises(PolicyError) as caught:
        read_yaml(text, "p.yaml")
    assert caught.value.hint
    return caught.value.message


def test_aliases_of_aliases_are_not_written_out() -> None:
    """443 bytes took over 120 s and 4.5 GB."""
    text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
    text += "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10))
    assert len(text) < 600
    tracemalloc.start()
    said = refused(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "line 6: more than 500,000 keys and values (each alias counts" in said
    assert peak < 10_000_000


def test_depth() -> None:
    assert "line 2: more than 64 mappings and lists" in refused("\n" + "[" * 65)
    # PyYAML 6.0.4 refuses this before the first list is read; older ones leave it to Aegis.
    said = refused("\n" + "[" * 100_000)
    assert re.search(
        "line 2: (more than 64 mappings|not valid YAML .exceeded maximum nesting)", said
    )
    assert "more than 64" in refused("{a: " * 2000 + "1" + "}" * 2000)
    deep = "[" * 64 + "]" * 64
    assert read_yaml(deep, "p.yaml").data is not None


def test_parts_and_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MOST_PARTS", 10)
    assert "line 2: more than 10 keys" in refused("[a, a, a, a, a,\n a, a, a, a, a, a]")
    monkeypatch.setattr(lines, "MOST_CHARACTERS", 10)
    assert "25 characters; at most 10" in refused(" " * 24 + "a")


def test_the_same_for_configurations_and_hierarchies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = load_policy(
        {"version": 1, "label": "y", "attributes": {"a": {"role": "feature"}}},
    )
    file = tmp_path / "c.yaml"
    file.write_text("configurations: " + "[" * 65)
    with pytest.raises(PolicyError, match="more than 64"):
        load_configurations(file, policy)
    file = tmp_path / "h.csv"
    file.write_text("a;b;c\nd;e;f\n")
    monkeypatch.setattr("aegis.masks.hierarchy.MOST_CELLS", 5)
    with pytest.raises(DataError, match="more than 5 cells"):
        Hierarchy.from_csv(file)
    monkeypatch.setattr("aegis.files.MOST_TEXT", 3)
    with pytest.raises(DataError, match="more than 3 characters"):
        Hierarchy.from_csv(file)


def test_a_hierarchy_that_is_no_csv(tmp_path: Path) -> None:
    file = tmp_path / "h.csv"
    file.write_text('a;"b"c\n')
    with pytest.raises(DataError, match="not a CSV file"):
        Hierarchy.from_csv(file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: !!python/object:os.system x", "line 1: not valid YAML (the tag"),
        ("a: !mine x", "the tag '!mine'"),
        ("a: !!set {x}", "the tag"),
        ("a: !!int x", "'x' is no int"),
        ("a: *nobody", "undefined alias 'nobody'"),
        ("a: 1\n---\nb: 2", "line 2: not valid YAML (but found another document"),
        ("[a]: 1", "a key is not a plain text"),
        ("a: {<<: 1}", "'<<' merges mappings only"),
        ("a: 1\na: 2", "line 2: 'a' is given twice"),
        (f"a: {HUGE}", "line 1: a number of 400 digits"),
        (f"a: {'9' * 5000}", "line 1: a number of 5,000 digits"),
        ("a: &x {b: *x}", "the alias represents itself: 'x'"),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    assert said in refused(text)


def test_what_is_read() -> None:
    text = (
        "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {<<: [*a, {z: 0, x: 9}]}\nd: [*a, !!str 5]\n"
        "e: '<<'\nf: !!float 3\ng: -.inf\nh: ! 7\n? i\n: ''\n'null': ~\n"
    )
    located = read_yaml(text, "p.yaml")
    assert located.data == {
        "a": {"x": 1, "y": 2},
        "b": {"x": 1, "y": 3},
        "c": {"z": 0, "x": 1, "y": 2},
        "d": [{"x": 1, "y": 2}, "5"],
        "e": "<<",
        "f": 3.0,
        "g": float("-inf"),
        "h": "7",
        "i": "",
        "null": None,
    }
    assert located.where("d", 0, "y") == "p.yaml, line 1"
    assert located.where("c", "nothing") == "p.yaml, line 3"


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(data=st.dictionaries(st.sampled_from(["a", "b", "c"]), PLAIN, min_size=1))
def test_the_way_back(data: dict[str, Any]) -> None:
    assert read_yaml(write_yaml(data), "p.yaml").data == data


NUMBERS = [
    {"bucketize": {"width": 10**400}},
    {"bucketize": {"width": 5, "origin": -(10**400)}},
    {"equal_width": {"count": 10**400}},
    {"quantiles": {"edges": [1, 10**400]}},
    {"round": {"step": 10**400}},
    {"round": {"digits": 10**400}},
    {"top_code": {"at": 10**400}},
    {"bottom_code": {"at": -(10**5000)}},
    {"erase_digits": {"digits": 10**400}},
    {"blur": {"keep": 10**400}},
    {"blur": {"hide": 2**31}},
    {"keep_frequent": {"count": 10**400}},
    {"laplace": {"scale": 10**400}},
    {"laplace": {"epsilon": 10**400}},
    {"geometric": {"epsilon": 10**400}},
    {"add_uniform": {"amount": 10**400}},
    {"scale_uniform": {"ratio": 10**400}},
    {"date_noise": {"days": 10**400}},
    {"randomised_response": {"keep": 10**400}},
    {"randomised_response": {"epsilon": 10**400}},
    {"tokenise": {"key_env": "X", "length": 10**400}},
]


@pytest.mark.parametrize("spec", NUMBERS, ids=lambda spec: str(next(iter(spec))))
def test_numbers_of_hundreds_of_digits(spec: dict[str, Any]) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_mask(spec)
    assert len(caught.value.message) < 400


@pytest.mark.parametrize(
    "rule",
    [
        {"k": 10**400},
        {"k": -(10**400)},
        {"suppression": 10**400, "k": 2},
        {"t_closeness": {"attribute": "s", "t": 10**400}},
    ],
)
def test_rules_of_hundreds_of_digits(rule: dict[str, Any]) -> None:
    with pytest.raises(AegisError) as caught:
        PrivacyRule.parse(rule)
    assert len(str(caught.value)) < 600


def test_twenty_thousand_masks_are_told_apart() -> None:
    """Each was compared with all before it."""
    masks = [{"bucketize": {"width": width}} for width in range(1, 5001)]
    entry = {"role": "feature", "masks": [*masks, *masks]}
    policy = load_policy({"version": 1, "label": "y", "attributes": {"a": entry}})
    assert [mask.spec() for mask in policy.attributes["a"].masks] == masks
