"""A certificate is held against the file: what was changed in either is named."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import aegis
from aegis.errors import DataError, PolicyError
from aegis.policy import load_policy, policy_digest
from aegis.privacy.report import FORMER_NOTES
from aegis.release import check_certificate
from aegis.release.possible import alike
from aegis.report import render_certificate
from aegis.signing import load_private_key, load_public_key, make_keys, seal, sealed_digest

TABLE = pa.table(
    {
        "name": [f"p{i}" for i in range(120)],
        "age": [20 + i % 40 for i in range(120)],
        "height": [1.5 + (i % 50) / 100 for i in range(120)],
        "city": ["abcd"[i % 4] for i in range(120)],
        "zip": [f"{1000 + i % 30}" for i in range(120)],
        "illness": [("flu", "cold", "none")[i % 7 % 3] for i in range(120)],
        "bought": [("no", "yes")[(i + i // 7) % 2] for i in range(120)],
    }
)
POLICY = {
    "version": 1,
    "label": "bought",
    "privacy": {"k": 4, "suppression": 0.3, "l_diversity": {"attribute": "illness", "l": 2}},
    "attributes": {
        "name": {"role": "identifier"},
        "age": {"role": "quasi-identifier", "masks": [{"bucketize": {"width": 20}}]},
        "height": {"role": "feature", "masks": [{"quantiles": {"count": 3}}]},
        "city": {
            "role": "quasi-identifier",
            "masks": [{"group": {"groups": {"x": ["a", "b"], "y": ["c", "d"]}}}],
        },
        "zip": {"role": "quasi-identifier", "masks": ["suppress"]},
        "illness": {"role": "sensitive"},
    },
}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("released")
    study = aegis.Study(TABLE, POLICY)
    study.apply(study.advise(), folder / "masked.parquet", certificate=folder / "c.json")
    return folder / "masked.parquet", json.loads((folder / "c.json").read_text())


def whats(file: Path | pa.Table, certificate: Any) -> list[str]:
    return [one.what for one in check_certificate(file, certificate).mismatches]


def test_a_true_certificate_is_told_to_be_true(released: tuple[Path, dict[str, Any]]) -> None:
    file, certificate = released
    check = check_certificate(file, certificate)
    assert (check.passed, check.mismatches) == (True, ())
    assert [text.partition(":")[0] for text in check.unchecked] == [
        "policy.sha256",
        "configuration.name",
        "privacy.outside.implied",
        "input, utility.reference, utility.stderr",
        "created",
        "aegis",
        "output.file",
    ]
    assert check_certificate(file, file.with_name("c.json"), policy=POLICY).passed  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("place", "value", "what"),
    [
        (("output", "sha256"), "0" * 64, "output.sha256"),
        (("output", "rows"), 7, "output.rows"),
        (("policy", "privacy"), {"k": 2}, "policy.sha256"),
        (("privacy", "k"), 99, "privacy.k"),
        (("privacy", "risk", "prosecutor", "highest"), 0.01, "privacy.risk.prosecutor.highest"),
        (("privacy", "l_diversity", "illness", "distinct"), 2, "privacy.l_diversity.illness"),
        (("utility", "value"), 0.99, "utility.value"),
        (
            ("configuration", "masks", "age"),
            {"bucketize": {"width": 30}},
            "configuration.masks.age",
        ),
        (("configuration", "masks", "city"), "suppress", "configuration.masks.city"),
        (("configuration", "masks", "shoes"), "suppress", "configuration.masks.shoes"),
        (("dropped_columns",), ["name", "age"], "dropped_columns: age"),
        (("privacy", "quasi_identifiers"), ["age", "shoes"], "privacy"),
        (("privacy", "quasi_identifiers"), 7, "privacy.quasi_identifiers"),
    ],
)
def test_whatever_is_changed_in_the_certificate_is_named(
    released: tuple[Path, dict[str, Any]], place: tuple[str, ...], value: Any, what: str
) -> None:
    file, certificate = released
    changed = copy.deepcopy(certificate)
    entry = changed
    for key in place[:-1]:
        entry = entry[key]
    assert entry.get(place[-1]) != value
    entry[place[-1]] = value
    assert any(one.startswith(what) for one in whats(file, changed)), whats(file, changed)


def test_a_certificate_names_no_folder_of_the_table(tmp_path: Path) -> None:
    table = tmp_path / "ward-7" / "patients.parquet"
    table.parent.mkdir()
    pq.write_table(TABLE, table)
    study = aegis.Study(table, POLICY)
    study.apply(study.advise(), tmp_path / "m.parquet", certificate=tmp_path / "c.json")
    text = (tmp_path / "c.json").read_text()
    assert json.loads(text)["input"]["origin"] == "patients.parquet"
    assert "ward-7" not in text


def test_a_count_below_zero_is_named_once(released: tuple[Path, dict[str, Any]]) -> None:
    file, certificate = released
    changed = {**certificate, "suppressed_rows": -1}
    changed["digest"] = sealed_digest(changed)
    assert whats(file, changed) == ["suppressed_rows"]


def test_a_number_that_no_float_can_hold_is_a_difference(tmp_path, released) -> None:
    file, certificate = released
    changed = copy.deepcopy(certificate)
    changed["privacy"]["k"] = 10**400
    (tmp_path / "c.json").write_text(json.dumps(changed))
    check = check_certificate(file, tmp_path / "c.json")
    assert any(one.what.startswith("privacy.k") for one in check.mismatches)


def test_ranges_of_equal_width_are_held_against_their_edges(tmp_path: Path) -> None:
    height = {"role": "feature", "masks": [{"equal_width": {"count": 3}}]}
    policy = POLICY | {"attributes": POLICY["attributes"] | {"height": height}}
    study = aegis.Study(TABLE, policy)
    study.apply(study.advise(), tmp_path / "m.parquet", certificate=tmp_path / "c.json")
    certificate = json.loads((tmp_path / "c.json").read_text())
    check = check_certificate(tmp_path / "m.parquet", certificate)
    assert check.mismatches == ()
    certificate["configuration"]["masks"]["height"]["equal_width"]["edges"] = [1.6, 1.9]
    assert "configuration.masks.height" in whats(tmp_path / "m.parquet", certificate)


def test_decades_are_compared_with_their_mask(tmp_path: Path) -> None:
    born = [date(1950 + i % 40, 1 + i % 12, 1) for i in range(120)]
    decade = {"truncate": {"unit": "year", "count": 10, "show": "decade"}}
    policy = {
        "version": 1,
        "label": "bought",
        "privacy": {"k": 4},
        "attributes": {"born": {"role": "quasi-identifier", "masks": [decade]}},
    }
    study = aegis.Study(pa.table({"born": born, "bought": TABLE["bought"]}), policy)
    file, certificate = tmp_path / "masked.parquet", tmp_path / "c.json"
    study.apply(study.advise(), file, certificate=certificate)
    masked = pq.read_table(file)
    assert set(masked["born"].to_pylist()) == {"1950s", "1960s", "1970s", "1980s"}
    assert check_certificate(file, certificate).passed
    dates = pa.array([text.replace("1950s", "1950-01-01") for text in masked["born"].to_pylist()])
    pq.write_table(masked.set_column(0, "born", dates), file)
    found = check_certificate(file, certificate).mismatches
    assert any("1950-01-01" in str(one.measured) for one in found), found


def test_a_rule_that_the_file_does_not_meet_is_named(
    released: tuple[Path, dict[str, Any]],
) -> None:
    file, certificate = released
    changed = copy.deepcopy(certificate)
    for part in (changed["policy"], changed["privacy"]):
        part["privacy" if "privacy" in part else "rule"] = {"k": 50}
    lines = list(map(str, check_certificate(file, changed).mismatches))
    assert any(
        "privacy.rule: the certificate says met, the file shows k-anonymity" in s for s in lines
    )


def test_another_file_is_told_by_its_digest_and_figures(
    released: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    file, certificate = released
    table = pq.read_table(file)
    pq.write_table(table.slice(0, 50), tmp_path / "other.parquet")
    found = whats(tmp_path / "other.parquet", certificate)
    assert found[:2] == ["output.sha256", "output.rows"]
    assert "privacy.rows" in found
    # The same rows that are in no file have no digest, and everything else is as certified.
    check = check_certificate(table, certificate)
    assert check.passed
    assert "digest" in check.unchecked[0]


def test_what_is_no_certificate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"input": {}}')
    with pytest.raises(DataError, match="not a certificate: it lacks output, policy, privacy"):
        check_certificate(TABLE, tmp_path / "c.json")
    (tmp_path / "c.json").write_text("{")
    with pytest.raises(DataError, match="is not JSON"):
        check_certificate(TABLE, tmp_path / "c.json")
    with pytest.raises(DataError, match="cannot be read"):
        check_certificate(TABLE, tmp_path / "none.json")


def test_a_record_level_release_is_checked_alike(tmp_path: Path) -> None:
    study = aegis.Study(TABLE, POLICY | {"privacy": {"k": 4}})
    study.anonymize("mondrian", output=tmp_path / "m.csv", certificate=tmp_path / "c.json")
    check = check_certificate(tmp_path / "m.csv", tmp_path / "c.json")
    assert check.passed, list(map(str, check.mismatches))


@pytest.mark.filterwarnings("ignore::aegis.registry.RenamedWarning")
def test_a_certificate_of_a_measures_former_name_holds(
    released: tuple[Path, dict[str, Any]],
) -> None:
    file, certificate = released
    then = load_policy(POLICY | {"measure": "adjusted-pillai"})
    old = copy.deepcopy(certificate)
    old["policy"]["measure"] = "pillai"
    old["policy"]["sha256"] = policy_digest(replace(then, measure="pillai"))
    old = seal(old)
    assert whats(file, old) == []
    assert aegis.check_certificate(file, old, policy=then).passed
    other = copy.deepcopy(old)
    other["policy"]["measure"] = "mi"
    assert whats(file, seal(other)) == ["policy.sha256"]


def keys(folder: Path, name: str) -> tuple[Path, Path]:
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    for path, data in zip((private, public), make_keys(), strict=True):
        path.write_bytes(data)
    return private, public


def test_a_certificate_with_a_former_note_holds(released: tuple[Path, dict[str, Any]]) -> None:
    path, document = released
    former = (  # as 0.2.0 wrote it
        "No population is given, so the table stands for it: journalist risk equals prosecutor risk."
    )
    changed = copy.deepcopy(document)
    notes = changed["privacy"]["notes"]
    place = notes.index(FORMER_NOTES[former])
    for note, holds in ((former, True), (f"Not {former}", False)):
        notes[place] = note
        check = check_certificate(path, seal(changed))
        assert check.passed is holds, check.mismatches
    notes[place] = former
    assert FORMER_NOTES[former] in render_certificate(seal(changed))


def test_a_signature_binds_what_nothing_is_compared_with(tmp_path: Path) -> None:
    private, public = keys(tmp_path, "hospital")
    stranger, other = keys(tmp_path, "stranger")
    study = aegis.Study(TABLE, POLICY)
    file, path = tmp_path / "m.parquet", tmp_path / "c.json"
    study.apply(study.advise(), file, certificate=path, key=load_private_key(private))
    certificate = json.loads(path.read_text())

    def mismatches(document: Any, key: Path) -> list[str]:
        check = check_certificate(file, document, verify_key=load_public_key(key))
        return [mismatch.what for mismatch in check.mismatches]

    assert mismatches(certificate, public) == []
    assert mismatches(certificate, other) == ["signature.key"]
    forged = copy.deepcopy(certificate)
    forged["input"]["origin"] = "another table"
    sealed = {**seal(forged), "signature": certificate["signature"]}
    sealed["digest"] = sealed_digest(sealed)
    assert mismatches(sealed, public) == ["signature.value"]
    assert mismatches(seal(forged), public) == ["signature"]
    assert mismatches(seal(forged, load_private_key(stranger)), public) == ["signature.key"]
    assert mismatches({**certificate, "signature": "mine"}, public)[:2] == ["digest", "signature"]
    assert "signature: give the key" in str(check_certificate(file, certificate).unchecked)


def test_a_key_without_a_certificate_is_refused(tmp_path: Path) -> None:
    private, _ = keys(tmp_path, "hospital")
    study = aegis.Study(TABLE, POLICY)
    with pytest.raises(PolicyError, match="you asked for none"):
        study.apply(study.advise(), tmp_path / "m.csv", key=load_private_key(private))
    assert not (tmp_path / "m.csv").exists()


def test_no_file_that_a_certificate_names_is_read(released: tuple[Path, dict[str, Any]]) -> None:
    file, certificate = released
    named = copy.deepcopy(certificate)
    named["policy"]["attributes"]["city"]["hierarchy"] = "/etc/passwd"
    with patch("aegis.masks.hierarchy.read_text", side_effect=AssertionError):
        check = check_certificate(file, seal(named))
    assert any(text.startswith("privacy.t_closeness") for text in check.unchecked)


@pytest.mark.parametrize("count", [3, 7])
def test_true_certificates_with_cut_points_of_many_digits_pass(tmp_path: Path, count: int) -> None:
    """Values of sixteen digits, close to each other: the cut points have as many."""
    near = [1 / 3 + i * 1e-12 for i in range(120)]
    table = TABLE.append_column("near", pa.array(near))
    for mask in ("equal_width", "quantiles"):
        masks = [{mask: {"count": count}}]
        attributes = {**POLICY["attributes"], "near": {"role": "feature", "masks": masks}}
        study = aegis.Study(table, {**POLICY, "attributes": attributes})
        file, path = tmp_path / f"{mask}.csv", tmp_path / f"{mask}.json"
        study.apply(study.advise(), file, certificate=path)
        check = check_certificate(file, path)
        assert check.passed, list(map(str, check.mismatches))


@pytest.mark.parametrize(("one", "other"), [(True, 1), (1.0, True), (False, 0)])
def test_a_figure_is_not_the_same_as_yes_or_no(one: Any, other: Any) -> None:
    assert not alike(one, other)
    assert alike(one, one)


@pytest.mark.parametrize("mask", [{"round": {"step": 5}}, {"top_code": {"at": 3}}])
def test_values_that_a_mask_would_show_as_one_are_named(mask: Any, tmp_path: Path) -> None:
    """The file has values that the mask cannot show, several of which it would show as the same."""
    table = pa.table({"pay": [0, 1, 2, 3, 4, 6, 7, 8, 9] * 4, "y": ["a", "b", "b"] * 12})
    rules = aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 2},
            "attributes": {"pay": {"role": "quasi-identifier", "masks": [mask]}},
        }
    )
    best = aegis.advise(table, rules).best
    stated = tmp_path / "c.json"
    aegis.apply(table, rules, best.configuration, output=tmp_path / "r.csv", certificate=stated)
    assert aegis.check_certificate(tmp_path / "r.csv", stated).passed
    check = aegis.check_certificate(table, stated)
    (odd,) = [m for m in check.mismatches if m.what == "configuration.masks.pay"]
    assert "4" in str(odd)


@pytest.mark.parametrize("other", [["x", "y", "z"], [0.5, 1.5, 2.5], [True, False, True]])
def test_a_column_of_another_kind_than_its_mask_shows_is_named(other: Any, tmp_path: Path) -> None:
    days = [date(2020, 1, 1), date(2021, 1, 1), date(2022, 1, 1)]
    table = pa.table({"day": days * 6, "y": ["a", "b"] * 9})
    mask = {"truncate": {"unit": "year"}}
    rules = aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 2},
            "attributes": {"day": {"role": "quasi-identifier", "masks": [mask]}},
        }
    )
    best, stated = aegis.advise(table, rules).best, tmp_path / "c.json"
    aegis.apply(table, rules, best.configuration, output=tmp_path / "r.parquet", certificate=stated)
    check = aegis.check_certificate(table.set_column(0, "day", pa.array(other * 6)), stated)
    (odd,) = [m for m in check.mismatches if m.what == "configuration.masks.day"]
    assert str(other[0]) in str(odd)
