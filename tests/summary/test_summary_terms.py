"""A summary says under which policy and rule it was made, and its bundle carries that."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from bundle_support import assert_same, example

from aegis import Study, merge
from aegis.errors import DataError, PolicyError
from aegis.policy import Policy, Terms, load_policy, policy_digest
from aegis.privacy import PrivacyRule
from aegis.signing import sealed_digest
from aegis.summary import Summary, load_bundle, lock, save_bundle, summarize
from aegis.summary.bundle import archive as container

TABLE = pa.table(
    {
        "age": [20, 20, 30, 30, 40, 40] * 5,
        "city": ["a", "b", "c"] * 10,
        "bought": ["no", "yes", "yes", "no", "yes"] * 6,
    }
)
DECLARED = {
    "version": 1,
    "label": "bought",
    "privacy": {"k": 5, "suppression": 0.1},
    "attributes": {
        "age": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
        "city": {
            "role": "quasi-identifier",
            "hierarchy": {"x": ["a", "b"], "y": ["c"]},
            "masks": [{"level": 1}, "suppress"],
        },
    },
}


def policy(**privacy: Any) -> Policy:
    return load_policy(DECLARED | ({"privacy": privacy} if privacy else {}))


def under_no_rule() -> Policy:
    return load_policy(DECLARED | {"privacy": {}})


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    """What was read from a bundle, which binds whoever has it to its rule."""
    file = tmp_path_factory.mktemp("bundle") / "s.aegis"
    save_bundle(summarize(TABLE, policy()), file)
    return load_bundle(file)


def test_a_bundle_carries_the_policy_and_the_rule(summary: Summary, tmp_path: Path) -> None:
    save_bundle(lock(summary), tmp_path / "s.aegis")
    terms = load_bundle(tmp_path / "s.aegis").terms
    assert terms is not None
    assert terms.locked
    assert terms.owner.rule == policy().privacy
    assert terms.digest == policy_digest(policy())
    assert terms.declared["attributes"]["age"]["masks"] == ["identity", "suppress"]
    assert len(terms.declared["attributes"]["city"]["hierarchy"]) == 64  # a digest of its content


def test_a_bundle_of_the_former_version_is_read_and_asks_for_no_rule(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = replace(example(), terms=None)
    monkeypatch.setattr(container, "OF_CLASSES", 3)
    save_bundle(whole, tmp_path / "old.aegis")
    _drop_terms(tmp_path / "old.aegis")
    monkeypatch.undo()
    loaded = load_bundle(tmp_path / "old.aegis")
    assert loaded.terms is None
    assert_same(loaded, whole)
    with pytest.raises(PolicyError, match="does not say which rule"):
        lock(loaded)


def _drop_terms(file: Path) -> None:
    """Make a bundle what a version before terms wrote: its manifest has no such key."""
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"])
    assert manifest["version"] == 3
    assert manifest["summary"].pop("terms") is None
    del manifest["digest"]
    manifest["digest"] = sealed_digest(manifest)
    members["manifest.json"] = json.dumps(manifest, sort_keys=True, indent=1).encode()
    container._write(file, members, zipfile.ZIP_DEFLATED)


def test_a_rule_that_was_changed_in_the_bundle_is_refused(summary: Summary, tmp_path: Path) -> None:
    weaker = Terms.of(policy(k=2))
    save_bundle(replace(summary, terms=weaker), tmp_path / "s.aegis")
    with pytest.raises(DataError, match="its policy does not match its digest"):
        load_bundle(tmp_path / "s.aegis")


def test_another_rule_needs_to_be_meant(summary: Summary) -> None:
    with pytest.raises(PolicyError, match=r"made under the rule k-anonymity \(k = 5\)"):
        Study(summary, under_no_rule())
    with pytest.raises(PolicyError, match="rule-override"):
        Study(summary, policy(k=10))
    assert Study(summary, policy(max_risk={"threshold": 0.2}, suppression=0.1)).advise().best


def test_whoever_has_just_summarised_a_table_may_ask_under_any_rule() -> None:
    made = summarize(TABLE, policy())
    assert Study(made, under_no_rule()).advise().rule_override is None
    with pytest.raises(PolicyError, match="locked to the rule"):
        Study(lock(made), under_no_rule())


def test_what_overrides_the_rule_is_marked(summary: Summary) -> None:
    own = Study(summary, policy()).advise()
    assert own.owner_rule is not None
    assert (own.owner_rule.rule, own.rule_override) == (policy().privacy, None)
    study = Study(summary, under_no_rule(), rule_override=True)
    for advice in (study.rank(generate_count=3), study.search()):
        assert advice.rule_override is not None
        assert advice.rule_override.weaker
        assert advice.to_dict()["rule_override"]["lacks"] == ["k-anonymity (k = 5)"]
        assert advice.warnings[0].startswith("the owner's rule was overridden")
        assert "rule was overridden" in study.report(advice)


def test_advice_from_the_table_itself_has_no_owner() -> None:
    advice = Study(TABLE, policy()).under(under_no_rule()).advise()
    assert (advice.owner_rule, advice.rule_override) == (None, None)


def test_a_weaker_rule_is_refused_on_a_locked_summary(summary: Summary) -> None:
    locked = lock(summary)
    for weak in (under_no_rule(), policy(k=4, suppression=0.1), policy(k=5, suppression=0.2)):
        with pytest.raises(PolicyError, match="locked to the rule"):
            Study(locked, weak, rule_override=True)
    stronger = Study(locked, policy(k=6, suppression=0.1), rule_override=True).advise()
    assert stronger.rule_override is not None
    assert not stronger.rule_override.weaker
    with pytest.raises(PolicyError, match="locked to the rule"):
        Study(locked, policy()).under(under_no_rule(), rule_override=True)


def test_a_front_leaves_out_rules_that_are_weaker_than_the_owner_s(summary: Summary) -> None:
    advice = Study(summary, policy()).search(front="k=2,4,5,6")
    assert advice.front is not None
    assert [point.value for point in advice.front.points] == [5, 6]
    assert advice.front.weaker.startswith(
        "The front leaves out k = 2, 4, which are weaker than the rule of the summary's owner, "
        "k-anonymity (k = 5)"
    )
    assert advice.front.notes[0] == advice.front.weaker
    assert Study(summary, policy()).front("k=5,6").weaker == ""
    assert len(Study(summary, policy(), rule_override=True).front("k=2,5").points) == 2
    locked = Study(lock(summary), policy(), rule_override=True)
    assert [point.value for point in locked.front("k=2,5").points] == [5]


def test_a_front_of_weaker_rules_only_is_refused(summary: Summary) -> None:
    with pytest.raises(PolicyError, match="does not allow: k = 2, which is weaker"):
        Study(summary, policy()).front("k=2")
    with pytest.raises(PolicyError, match=r"k = 2, 3, 4, which are weaker.* the summary is locked"):
        Study(lock(summary), policy(), rule_override=True).front("k=2..4")


def test_a_release_says_that_the_rule_of_its_summary_was_overridden(
    summary: Summary, tmp_path: Path
) -> None:
    advice = Study(summary, policy()).advise()
    table = Study(TABLE, under_no_rule())
    with pytest.raises(PolicyError, match="was chosen from was made under the rule"):
        table.apply(advice)
    release = table.apply(
        advice,
        tmp_path / "m.parquet",
        certificate=tmp_path / "c.json",
        rule_override=True,
    )
    assert release.certificate is not None
    assert release.certificate["rule_override"]["weaker"]
    same = Study(TABLE, policy()).apply(advice, tmp_path / "n.csv", certificate=tmp_path / "n.json")
    assert same.certificate is not None
    assert "rule_override" not in same.certificate


def test_a_whole_is_locked_where_a_part_is(summary: Summary) -> None:
    other = lock(summarize(TABLE.slice(0, 20), policy(), like=summary))
    whole = merge(summary, other)
    assert whole.terms is not None
    assert whole.terms.locked
    assert whole.terms.owner.rule == PrivacyRule.parse({"k": 5, "suppression": 0.1})
