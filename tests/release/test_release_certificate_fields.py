"""No field of a certificate changes unnoticed: it is found, or named as not checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatch
from itertools import takewhile
from random import Random
from typing import Any

import certificates
import pytest
from certificates import KINDS, Certified, changed, changes, deleted, leaves

from aegis.errors import DataError
from aegis.release import CertificateCheck, check_certificate
from aegis.release.field_words import field_in_words
from aegis.release.possible import Mismatch
from aegis.signing import seal
from aegis.sources import Source, open_table

STATED = {
    "input",
    "created",
    "aegis",
    "output.file",
    "policy.sha256",
    "configuration.name",
    "utility.reference",
    "utility.stderr",
    "utility.lost_classes",
    "utility.kept",
    "privacy.outside.implied",
}
"""Fields that a check of a release under masks takes as they are."""
OF_KIND = {
    "suppressed": set(),
    "grouped": {"anonymizer", "groups", "information_loss", "details", "notes"},
    "persons": {"persons", "suppressed_persons", "privacy", "utility"},
    "noised": {"configuration.masks.age"},
}
"""Fields that it takes as they are for other kinds of release."""


PLAIN = "suppressed"
"""The kind whose fields most others have, too."""


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Certified:
    return KINDS[PLAIN](tmp_path_factory.mktemp(PLAIN))


@pytest.fixture(
    scope="module",
    # A release that only masks has no field that one without some rows lacks.
    params=[
        pytest.param(kind, marks=[pytest.mark.wings] if kind == "grouped" else [])
        for kind in KINDS
        if kind != "masked"
    ],
)
def release(
    request: pytest.FixtureRequest, plain: Certified, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Certified]:
    kind = request.param
    return kind, plain if kind == PLAIN else KINDS[kind](tmp_path_factory.mktemp(kind))


def not_checked(check: CertificateCheck) -> set[str]:
    return {name.strip() for text in check.unchecked for name in text.partition(":")[0].split(",")}


def covered(path: tuple[str | int, ...], names: set[str]) -> bool:
    whole = ".".join(map(str, path))
    return any(
        whole == name or whole.startswith(f"{name}.") or fnmatch(whole, name) for name in names
    )


def checked(source: Source, document: Mapping[str, Any]) -> CertificateCheck | None:
    """Return the check; None where the document is refused as no certificate."""
    try:
        return check_certificate(source, document)
    except DataError:
        return None


def unnoticed(source: Source, path: tuple[str | int, ...], document: Mapping[str, Any]) -> bool:
    """Return whether a forged certificate passes, and does not say that the field is not checked."""
    check = checked(source, document)
    return check is not None and check.passed and not covered(path, not_checked(check))


def test_every_field_has_words(release: tuple[str, Certified]) -> None:
    """Lines of an audit named fields by their path in the JSON, such as `privacy.k`."""
    _, certified = release
    compared = {"configuration": 3, "policy": 0, "anonymizer": 1, "details": 1}
    for path in leaves(certified.document):
        names = [*takewhile(lambda key: isinstance(key, str), path)]  # lists are compared whole
        path = names[: compared.get(names[0], len(names))]
        words = Mismatch(".".join(map(str, path)), "1", "2").in_words
        assert words.endswith(": the certificate says 1, the file shows 2")
        assert not re.search(r"[a-z]\.[a-z]|_", words), (path, words)
    assert field_in_words("configuration.masks.birth_year") == "mask of birth_year"


def test_a_true_certificate_passes(release: tuple[str, Certified]) -> None:
    kind, certified = release
    check = check_certificate(certified.file, certified.document)
    assert check.passed, list(map(str, check.mismatches))
    assert repr(check).startswith("CertificateCheck(matches)\nNot checked: ")
    assert not_checked(check) <= STATED | OF_KIND[kind]
    if certified.policy is not None:
        given = check_certificate(certified.file, certified.document, policy=certified.policy)  # type: ignore[arg-type]
        assert given.passed, list(map(str, given.mismatches))


def test_every_change_breaks_the_digest(release: tuple[str, Certified]) -> None:
    """In the last digit, too: nothing but the digest is looked at."""
    _, certified = release
    with certificates.measured_once():
        source, document = open_table(certified.file), certified.document
        random = Random(7)
        paths = list(leaves(document))
        for path in random.sample(paths, 12):
            value: Any = document
            for key in path:
                value = value[key]
            last = value * (1 + 2**-52) if isinstance(value, float) else changes(value)[0]
            for other in (changed(document, path, last), deleted(document, path)):
                if other == document:  # 0.0 has no last digit
                    continue
                check = checked(source, other)
                assert check is None or not check.passed, path


def test_every_forged_field_is_found_or_named_as_not_checked(
    release: tuple[str, Certified], plain: Certified
) -> None:
    """Who forges a certificate computes its digest, too: each leaf is changed, and deleted.

    A leaf that is changed and deleted in one kind of release is either changed or deleted in others.
    """
    kind, certified = release
    common = set() if kind == PLAIN else set(leaves(plain.document))
    random = Random(31)
    with certificates.measured_once():
        source, document = open_table(certified.file), certified.document
        missed = []
        for path in leaves(document):
            value: Any = document
            for key in path:
                value = value[key]
            forged = [changed(document, path, random.choice(changes(value)))]
            forged.append(deleted(document, path))
            if path in common:
                forged = [random.choice(forged)]
            if path != ("digest",) and any(unnoticed(source, path, seal(f)) for f in forged):
                missed.append(path)
    assert missed == []


URL = "https://aegis.example.org"


@pytest.mark.parametrize(
    ("catalog", "passed", "sentence"),
    [
        ({"url": URL, "request": "4f2c9a1b" * 4}, True, "aegis catalog verify 4f2c9a1b"),
        ({"url": "javascript:alert(1)", "request": "4f2c9a1b" * 4}, False, None),
        ({"url": f"{URL}/\x1b[2J", "request": "4f2c9a1b" * 4}, False, None),
        ({"url": URL, "request": "1; rm -rf"}, False, None),
    ],
)
def test_a_certificate_of_a_catalog_says_whom_to_ask_about_revocation(
    plain, catalog, passed, sentence
):
    check = check_certificate(plain.file, seal({**plain.document, "catalog": catalog}, None))
    assert check.passed is passed
    sentences = [line for line in check.unchecked if line.startswith("catalog")]
    assert [sentence in line and URL in line for line in sentences] == [True] * passed
