"""A certificate names no value that only suppressed rows have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import aegis
from aegis.advisor.composition import compose, read_release, summary_of
from aegis.errors import DataError
from aegis.masks import parse_mask
from aegis.policy import (
    dump_configurations,
    dump_policy,
    load_configurations,
    policy_digest,
    policy_mapping,
)
from aegis.release import check_certificate
from aegis.report import render_certificate
from aegis.signing import seal

COMMON = [
    f"{'MF'[i % 2]},{('Oslo', 'Rome')[i // 2 % 2]},{('flu', 'cold')[i // 4 % 2]}" for i in range(60)
]
RARE = [f"X,Nuuk,{('flu', 'cold')[i % 2]}" for i in range(3)]
"""Rows that the rule suppresses; `Nuuk` is among the three most frequent towns."""


def _policy(mask: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "label": "illness",
        "privacy": {"k": 5, "suppression": 0.1},
        "attributes": {
            "sex": {"role": "quasi-identifier", "masks": ["identity"]},
            "town": {"role": "quasi-identifier", "masks": [mask]},
        },
    }


KEEP = {"keep_frequent": {"count": 3}}


def _table(folder: Path, rows: list[str]) -> Path:
    folder.mkdir(exist_ok=True)
    table = folder / "t.csv"
    table.write_text("sex,town,illness\n" + "\n".join(rows) + "\n")
    return table


def _released(
    folder: Path, mask: Any, rows: list[str], configuration: Any = None, **options: Any
) -> tuple[Path, Path, Any]:
    """Release the rows, and return the release, its certificate and the configuration."""
    study = aegis.Study(_table(folder, rows), _policy(mask))
    advice = study.advise() if configuration is None else None
    chosen = configuration or (advice and advice.best and advice.best.configuration)
    masked, certificate = folder / "m.csv", folder / "c.json"
    release = study.apply(chosen, masked, certificate=certificate, **options)
    return masked, certificate, release.configuration


def _stated(certificate: Path) -> Mapping[str, Any]:
    return dict(json.loads(certificate.read_text())["configuration"])


@pytest.mark.parametrize(
    "mask",
    [
        KEEP,
        {"compose": [KEEP, {"keep_frequent": {"count": 2, "other": "elsewhere"}}]},
        {"pram": {"keep": 0.99}},
        {"randomised_response": {"keep": 0.99}},
    ],
)
def test_no_document_for_readers_names_a_value_of_suppressed_rows_only(
    tmp_path: Path, mask: Any
) -> None:
    masked, certificate, applied = _released(tmp_path, mask, [*RARE, *COMMON], seed=7)
    if "Nuuk" in masked.read_text():
        pytest.skip("the noise drew the value for a released row")
    text = certificate.read_text()
    assert "Nuuk" not in text
    assert "Nuuk" not in render_certificate(json.loads(text))
    assert _stated(certificate)["masks"]["town"] == mask
    # The owner keeps the mask as it was applied, for the rows of next month.
    assert "Nuuk" in json.dumps(applied.spec()) or "compose" in mask
    check = check_certificate(masked, certificate)
    assert check.passed
    assert any("masks.town" in text for text in check.unchecked)
    whole = check_certificate(masked, certificate, original=tmp_path / "t.csv")
    assert whole.passed


def test_a_list_that_the_release_shows_is_stated_and_compared(tmp_path: Path) -> None:
    masked, certificate, _ = _released(tmp_path, KEEP, [*RARE, *COMMON, *(["M,Nuuk,flu"] * 9)])
    assert _stated(certificate)["masks"]["town"]["keep_frequent"]["values"] == [
        "Nuuk",
        "Oslo",
        "Rome",
    ]
    masked.write_text(masked.read_text().replace("Oslo", "Bergen"))
    what = [each.what for each in check_certificate(masked, certificate).mismatches]
    assert "configuration.masks.town" in what


def test_the_order_of_a_list_does_not_show_how_frequent_suppressed_rows_made_a_value(
    tmp_path: Path,
) -> None:
    orders = []
    for name, more in (("a", "X,Oslo,flu"), ("b", "X,Rome,flu")):
        _, certificate, _ = _released(tmp_path / name, KEEP, [*COMMON, more])
        orders.append(_stated(certificate)["masks"]["town"])
    assert orders[0] == orders[1]


def test_a_list_that_you_copied_into_the_masks_of_an_attribute_is_stated_if_the_release_shows_it(
    tmp_path: Path,
) -> None:
    digests = set()
    for rare in ("Nuuk", "Thule"):
        declared = {"keep_frequent": {"count": 3, "values": ["Oslo", "Rome", rare]}}
        masked, certificate, _ = _released(tmp_path / rare[0], declared, [*RARE, *COMMON])
        text = certificate.read_text()
        assert rare not in masked.read_text() + text
        for policy in (None, _policy(declared)):
            check = check_certificate(masked, certificate, policy=policy)
            assert check.passed, list(map(str, check.mismatches))
            assert not any("no candidate" in each for each in check.unchecked)
        digests.add(json.loads(text)["policy"]["sha256"])
    assert len(digests) == 1
    declared = {"keep_frequent": {"count": 2, "values": ["Oslo", "Rome"]}}
    _, certificate, _ = _released(tmp_path / "shown", declared, [*RARE, *COMMON])
    assert _stated(certificate)["masks"]["town"] == declared


def test_a_certificate_that_lists_the_values_of_candidates_is_still_compared(
    tmp_path: Path,
) -> None:
    """Earlier versions stated them."""
    declared = {"keep_frequent": {"count": 3, "values": ["Nuuk", "Oslo", "Rome"]}}
    masked, certificate, _ = _released(tmp_path, declared, [*RARE, *COMMON])
    policy = aegis.load_policy(_policy(declared))
    document = json.loads(certificate.read_text())
    document["policy"] = {"sha256": policy_digest(policy), **policy_mapping(policy)}
    document["configuration"]["masks"]["town"] = declared
    earlier = seal(document)
    for given in (None, policy):
        check = check_certificate(masked, earlier, policy=given)
        assert check.passed, list(map(str, check.mismatches))


def test_a_configuration_in_the_policy_is_stated_without_the_values_that_it_learnt(
    tmp_path: Path,
) -> None:
    """You pasted `best.yaml` into the policy. Neither its text nor its digest names a value."""
    table, digests = _table(tmp_path, [*RARE, *COMMON]), set()
    for town in ("Nuuk", "Thule"):
        learnt = {"keep_frequent": {"count": 3, "values": [town, "Oslo", "Rome"]}}
        policy = {**_policy(KEEP), "configurations": {"last": {"sex": "identity", "town": learnt}}}
        study = aegis.Study(table, policy)
        chosen = study.policy.configurations["last"]
        masked, certificate = tmp_path / "m.csv", tmp_path / "c.json"
        study.apply(chosen, masked, certificate=certificate, force=True)
        text = certificate.read_text()
        assert town not in masked.read_text() + text + render_certificate(json.loads(text))
        for checked in (None, policy):
            check = check_certificate(masked, certificate, policy=checked)
            assert check.passed, list(map(str, check.mismatches))
        digests.add(json.loads(text)["policy"]["sha256"])
        if town == "Nuuk":  # the masks learn this list from the table
            assert town not in study.report(study.advise(), values=False)
        assert town in dump_policy(study.policy)
    assert len(digests) == 1


def test_a_list_from_another_table_is_not_stated_and_said_to_be_so(tmp_path: Path) -> None:
    """Last month's configuration names a town that this month has no row of."""
    policy = aegis.load_policy(_policy(KEEP))
    mask = parse_mask({"keep_frequent": {"count": 3, "values": ["Oslo", "Rome", "Thule"]}})
    last = aegis.Configuration("last", {"sex": parse_mask("identity"), "town": mask})
    masked, certificate, _ = _released(tmp_path, KEEP, [*RARE, *COMMON], last)
    assert "Thule" not in certificate.read_text()
    assert _stated(certificate)["learnt_elsewhere"] == ["town"]
    assert check_certificate(masked, certificate).passed
    with pytest.raises(DataError, match="learnt them from another table"):
        read_release(certificate, policy)


def test_earlier_releases_are_known_from_certificate_and_configuration(tmp_path: Path) -> None:
    """The joint classes are the same, whichever of the two names the earlier release."""
    rows = [*RARE, *COMMON]
    policy = aegis.load_policy(_policy(KEEP))
    _, certificate, applied = _released(tmp_path / "one", KEEP, rows)
    file = tmp_path / "best.yaml"
    file.write_text(dump_configurations({"best": applied}))
    by_file = next(iter(load_configurations(file, policy).values()))
    by_certificate = read_release(certificate, policy)
    table = tmp_path / "one" / "t.csv"
    coarse = {"sex": parse_mask("suppress"), "town": parse_mask(KEEP)}
    wide = {**_policy(KEEP), "privacy": {"k": 4, "suppression": 0.2}}
    wide["attributes"] = {**wide["attributes"]}
    wide["attributes"]["sex"] = {"role": "quasi-identifier", "masks": ["suppress"]}
    suppressed = []
    for name, earlier in (("c", by_certificate), ("f", by_file)):
        study = aegis.Study(table, wide)
        second = tmp_path / f"{name}.json"
        release = study.apply(
            aegis.Configuration("second", coarse),
            tmp_path / f"{name}.csv",
            certificate=second,
            after=[earlier],
        )
        suppressed.append(release.suppressed_rows)
        assert "Nuuk" not in second.read_text()
        chain = [earlier, read_release(second, aegis.load_policy(wide))]
        both = summary_of(table, study.policy, chain)
        assert compose(both, chain, study.policy.privacy).admissible
    assert suppressed[0] == suppressed[1] == 3


def test_local_suppression_states_its_masks_without_learnt_values(tmp_path: Path) -> None:
    study = aegis.Study(_table(tmp_path, [*RARE, *COMMON]), _policy(KEEP))
    learnt = {"keep_frequent": {"count": 3, "values": ["Nuuk", "Oslo", "Rome"]}}
    certificate = tmp_path / "c.json"
    study.anonymize(
        "local-suppression",
        output=tmp_path / "m.csv",
        certificate=certificate,
        options={"masks": {"sex": "identity", "town": learnt}},
    )
    assert json.loads(certificate.read_text())["anonymizer"]["options"]["masks"]["town"] == KEEP
