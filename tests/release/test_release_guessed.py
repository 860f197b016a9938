"""A certificate does not let a reader of the release guess the suppressed rows.

The attack: a reader knows all rows but the suppressed one, tries each position and each value of
this row, builds the table, and looks for its digest in the certificate.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import aegis
from aegis.errors import DataError
from aegis.release import check_certificate
from aegis.release.released import certified_utility, utility_of
from aegis.report import render_certificate
from aegis.safe.protect import audit_document
from aegis.signing import PrivateKey, load_private_key, make_keys, seal
from aegis.sources import open_table

HEADER = "sex,age,illness\n"
COMMON = [f"{'MF'[i % 2]},{(30, 40)[i // 2 % 2]},{('flu', 'cold')[i // 4 % 2]}" for i in range(60)]
SECRET = "F,80,HIV"
PLACE = 23
POLICY: Mapping[str, Any] = {
    "version": 1,
    "label": "illness",
    "privacy": {"k": 5, "suppression": 0.05},
    "attributes": {
        name: {"role": "quasi-identifier", "masks": ["identity"]} for name in ("sex", "age")
    },
}


def _key(folder: Path, name: str = "hospital") -> PrivateKey:
    (folder / f"{name}.key").write_bytes(make_keys()[0])
    return load_private_key(folder / f"{name}.key")


def _released(folder: Path, key: PrivateKey | None = None) -> tuple[Path, Path, Path]:
    """Write the table, release it without its only rare row, and return table, release and certificate."""
    folder.mkdir(exist_ok=True)
    table, masked, certificate = (folder / name for name in ("t.csv", "m.csv", "c.json"))
    rows = [*COMMON[:PLACE], SECRET, *COMMON[PLACE:]]
    table.write_text(HEADER + "\n".join(rows) + "\n")
    study = aegis.Study(table, POLICY)
    release = study.apply(study.advise(), masked, certificate=certificate, key=key)
    assert release.suppressed_rows == 1
    assert masked.read_text().replace('"', "").splitlines()[1:] == COMMON
    return table, masked, certificate


def _guesses(masked: Path) -> Iterator[tuple[str, str]]:
    """Yield each row that may be missing with the digest of the table that it would complete."""
    rows = masked.read_text().replace('"', "").splitlines()[1:]
    values = itertools.product("FM", map(str, range(75, 85)), ("flu", "cold", "HIV"))
    for missing, place in itertools.product(map(",".join, values), range(len(rows) + 1)):
        table = HEADER + "\n".join([*rows[:place], missing, *rows[place:]]) + "\n"
        yield missing, sha256(table.encode()).hexdigest()


def _guessed(masked: Path, stated: str) -> set[str]:
    """Return the missing rows whose digest `stated`, the text of a document, contains."""
    digests = set(re.findall(r"\b[0-9a-f]{64}\b", stated))
    return {missing for missing, digest in _guesses(masked) if digest in digests}


@pytest.mark.parametrize("signed", [False, True])
def test_no_guess_is_confirmed(tmp_path: Path, signed: bool) -> None:
    _, masked, certificate = _released(tmp_path, _key(tmp_path) if signed else None)
    text = certificate.read_text()
    assert _guessed(masked, text) == set()
    assert audit_document(text, "certificate").clean


def test_the_digest_of_earlier_versions_confirms_one_and_leak_says_so(tmp_path: Path) -> None:
    table, masked, certificate = _released(tmp_path)
    document = json.loads(certificate.read_text())
    document["input"]["sha256"] = sha256(table.read_bytes()).hexdigest()
    earlier = seal(document)
    text = json.dumps(earlier)
    assert _guessed(masked, text) == {SECRET}
    leak = audit_document(text, "certificate")
    assert not leak.clean
    assert leak.digests_of_table == 1
    assert "input.sha256" in leak.findings[0]
    assert _guessed(masked, render_certificate(earlier)) == set()
    page = f"<dt>Input, SHA-256</dt><dd>{document['input']['sha256']}</dd>"
    assert audit_document(page, "report").digests_of_table == 1


def test_a_certificate_of_an_earlier_version_is_still_compared(tmp_path: Path) -> None:
    table, masked, certificate = _released(tmp_path)
    document = json.loads(certificate.read_text())
    document["input"]["sha256"] = sha256(table.read_bytes()).hexdigest()
    assert check_certificate(masked, seal(document), original=table).passed
    document["input"]["sha256"] = "0" * 64
    check = check_certificate(masked, seal(document), original=table)
    assert [each.what for each in check.mismatches] == ["input.sha256"]


def test_only_the_owner_of_the_key_recognises_the_table(tmp_path: Path) -> None:
    key = _key(tmp_path)
    table, masked, certificate = _released(tmp_path, key)

    def compared(**given: PrivateKey) -> tuple[list[str], bool]:
        check = check_certificate(masked, certificate, original=table, **given)
        named = any(text.startswith("input.hmac_sha256: ") for text in check.unchecked)
        return [each.what for each in check.mismatches], named

    assert compared() == ([], True)
    assert compared(signing_key=key) == ([], False)
    assert compared(signing_key=_key(tmp_path, "other")) == (["input.hmac_sha256"], False)
    # Another row at the place of the suppressed one changes no figure but the digest.
    table.write_text(table.read_text().replace("F,80,", "F,81,"))
    assert compared() == ([], True)
    assert compared(signing_key=key) == (["input.hmac_sha256"], False)


def test_without_a_signature_the_check_says_that_no_digest_was_compared(tmp_path: Path) -> None:
    table, masked, certificate = _released(tmp_path)
    check = check_certificate(masked, certificate, original=table)
    assert check.passed
    (said,) = (text for text in check.unchecked if text.startswith("input.digest"))
    assert "another table with the same figures passes" in said


def test_two_releases_of_one_table_show_different_digests(tmp_path: Path) -> None:
    key = _key(tmp_path)
    stated = []
    for name, k in (("a", 5), ("b", 40)):
        table, _, _ = _released(tmp_path / name)
        policy = {**POLICY, "privacy": {"k": k, "suppression": 0.05}}
        policy |= {"attributes": {**POLICY["attributes"]}}
        policy["attributes"]["age"] = {
            "role": "feature",
            "masks": ["identity" if k == 5 else "suppress"],
        }
        policy["attributes"]["sex"] = {"role": "feature", "masks": ["identity"]}
        study = aegis.Study(table, policy)
        paper = tmp_path / name / "signed.json"
        study.apply(study.advise(), tmp_path / name / "s.csv", certificate=paper, key=key)
        stated.append(json.loads(paper.read_text())["input"]["hmac_sha256"])
    assert len(set(stated)) == 2


def test_a_table_that_changes_meanwhile_is_not_certified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aegis.release import writing

    def measured(source: Any, *_: Any, **__: Any) -> None:
        table = Path(source.origin)
        table.write_text(table.read_text() + "M,30,flu\n")

    monkeypatch.setattr(writing, "utility_of", measured)
    with pytest.raises(DataError, match="was changed or deleted"):
        _released(tmp_path)
    assert not (tmp_path / "m.csv").exists()


@pytest.mark.parametrize(
    ("column", "mask", "guesses"),
    [
        ("age", {"bucketize": {"width": 25}}, [*range(25, 50)]),
        ("dose", {"randomised_response": {"epsilon": 1.0}}, ["A", "B", "C", "D"]),
    ],
)
def test_no_score_of_the_table_confirms_a_value_that_a_mask_hides(
    tmp_path: Path, column: str, mask: Any, guesses: list[Any]
) -> None:
    """The reader knows everything but one value, computes the score of each guess, and compares. No
    row is suppressed.
    """
    random = Random(5)
    rows = [
        {"sex": random.choice("MF"), "age": random.randint(20, 69), "dose": random.choice("ABCD")}
        for _ in range(300)
    ]
    for row in rows:
        chance = 0.2 + 0.3 * (row["dose"] in ("A", "B")) + int(str(row["age"])) / 200
        row["ill"] = "yes" if random.random() < chance else "no"
    rows[17][column] = guesses[-1]
    masks = {"sex": "identity", "age": "identity", "dose": "identity"} | {column: mask}
    policy = {
        "version": 1,
        "label": "ill",
        "attributes": {name: {"role": "feature", "masks": [own]} for name, own in masks.items()},
    }
    certificate = tmp_path / "c.json"
    stated = {}
    for guess in guesses:
        study = aegis.Study(
            pa.Table.from_pylist([*rows[:17], rows[17] | {column: guess}, *rows[18:]]), policy
        )
        study.apply(study.advise(), tmp_path / "m.csv", certificate=certificate, force=True)
        document = json.loads(certificate.read_text())
        assert document["suppressed_rows"] == 0
        stated[guess] = document["utility"]["reference"]
    assert list(stated.values()).count(stated[guesses[-1]]) >= len(guesses) / 2
    assert stated[guesses[-1]] != document["utility"]["value"]


def _people(seed: int) -> list[dict[str, Any]]:
    """Return 80 people, of whom the first has a town of their own."""
    draw = Random(seed)
    people: list[dict[str, Any]] = []
    for number in range(80):
        age = draw.randint(20, 70)
        ill = "yes" if draw.random() < (age - 10) / 70 else "no"
        pay = round(20 + age / 3 + draw.gauss(0, 4) + 8 * (ill == "no"))
        town = "Nuuk" if not number else draw.choice(["Oslo", "Rome"])
        people.append({"town": town, "age": age, "ill": ill, "pay": pay})
    return people


@pytest.mark.parametrize("label", [{"label": "ill"}, {"labels": ["ill", "pay"]}, {"labels": "any"}])
def test_the_scores_that_a_certificate_states_confirm_few_guesses(label: dict[str, Any]) -> None:
    """A reader tries four ages and both diagnoses of the only row that is suppressed. Without a
    certificate, one guess of eight is right.
    """
    columns = {"town", "age", "ill", "pay"} - set(label.get("labels", [label.get("label")]))
    roles = {name: "quasi-identifier" if name == "town" else "feature" for name in columns}
    attributes = {
        name: {"role": role, "masks": ["identity"]} for name, role in sorted(roles.items())
    }
    policy = aegis.load_policy({"version": 1, "attributes": attributes, **label})
    shares = []
    for seed in range(4):
        people, stated = _people(seed), set()
        released = open_table(pa.Table.from_pylist(people[1:]))
        for age, ill in itertools.product((22, 38, 54, 70), ("yes", "no")):
            guess = pa.Table.from_pylist([{**people[0], "age": age, "ill": ill}, *people[1:]])
            figure = utility_of(open_table(guess), released, policy)
            assert figure is not None
            stated.add(json.dumps(certified_utility(figure)))
        shares.append(len(stated) / 8)  # each guess is equally likely to be true
    assert sum(shares) / len(shares) <= 0.25
