"""What a masked file may hold under its configuration."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import aegis
from aegis.errors import NoAdmissibleConfiguration, PolicyError
from aegis.masks.base import Kind
from aegis.policy import Configuration, load_policy
from aegis.release.writing import odd_values, unfitting
from aegis.sources import open_table

POLICY = load_policy(
    {
        "version": 1,
        "label": "ill",
        "attributes": {"visits": {"role": "feature", "masks": ["identity"]}},
    }
)


POLICY_OF_VOTES = {
    "version": 1,
    "label": "vote",
    "attributes": {"visits": {"role": "feature"}},
}


@pytest.mark.parametrize("stored", [pa.int64(), pa.float64()])
@pytest.mark.parametrize("kind", [Kind.INTEGER, Kind.NUMBER])
def test_whole_numbers_fit_in_each_type_of_numbers(stored, kind):
    """pandas stores integers with nulls as floats; a noisy summary sees whole numbers."""
    table = pa.table({"visits": pa.array([1, None, 3], stored), "ill": ["y", "n", "y"]})
    whole = Configuration("whole", {"visits": POLICY.attributes["visits"].masks[0]})
    assert unfitting(table, POLICY, whole, {"visits": kind}) == []


def test_texts_fit_no_column_of_numbers():
    table = pa.table({"visits": ["1", "2", "3"], "ill": ["y", "n", "y"]})
    whole = Configuration("whole", {"visits": POLICY.attributes["visits"].masks[0]})
    wrong = unfitting(table, POLICY, whole, {"visits": Kind.INTEGER})
    assert wrong == ["visits holds text, and identity shows integer"]


def test_no_column_needs_no_query():
    assert odd_values(open_table(pa.table({"ill": ["y", "n"]})), {}) == {}


def test_a_table_that_changed_is_checked_and_certified_by_itself(tmp_path):
    """A configuration may mask next month's rows, so that the figures of advise are not theirs."""
    attributes = {"visits": {"role": "quasi-identifier", "masks": ["identity"]}}
    policy = load_policy(
        {"version": 1, "label": "ill", "privacy": {"k": 5}, "attributes": attributes}
    )
    former = pa.table({"visits": [1, 2] * 50, "ill": ["y", "n"] * 50})
    chosen = aegis.Study(former, policy).search().require_best().configuration
    chance = pa.table({"visits": [1, 1, 2, 2] * 10, "ill": ["y", "n"] * 20})
    release = aegis.apply(
        chance, policy, chosen, output=tmp_path / "a.csv", certificate=tmp_path / "a.json"
    )
    assert aegis.Study(former, policy).search().require_best().score > 0.9
    assert release.utility.value < 0.6
    rare = pa.table({"visits": [1] * 9 + [2], "ill": ["y", "n"] * 5})
    with pytest.raises(NoAdmissibleConfiguration, match="1 row in classes smaller than 5"):
        aegis.apply(rare, policy, chosen, output=tmp_path / "b.csv")


def test_a_certificate_is_no_configuration(tmp_path):
    """It named the first key of the file as an attribute that the policy does not know."""
    table = pa.table({"visits": [1, 2, 2, 3] * 9, "ill": ["y", "n"] * 18})
    study = aegis.Study(table, POLICY)
    file = tmp_path / "certificate.json"
    study.apply(study.advise(), tmp_path / "out.csv", certificate=file)
    with pytest.raises(PolicyError, match="is the certificate of a release") as refused:
        aegis.load_configurations(file, POLICY)
    assert "aegis advise -o" in refused.value.hint


def test_the_label_of_another_policy_is_not_certified(tmp_path):
    table = pa.table({"visits": [1, 2, 2, 3] * 9, "ill": ["y", "n"] * 18})
    study = aegis.Study(table, POLICY)
    file, certificate = tmp_path / "out.csv", tmp_path / "certificate.json"
    study.apply(study.advise(), file, certificate=certificate)
    other = replace(POLICY, label=load_policy(POLICY_OF_VOTES).label)
    told = aegis.check_certificate(file, certificate, policy=other)
    assert [mismatch.what for mismatch in told.mismatches] == ["policy.sha256"]
