"""A resealed certificate cannot state what no release can show."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from math import inf, nan
from pathlib import Path
from typing import Any

import certificates
import pytest
from certificates import Certified, changed

import aegis
from aegis.anonymizers import ANONYMIZERS, Recipe
from aegis.errors import NoAdmissibleConfiguration
from aegis.measures import LabelKind, measures_of
from aegis.release import check_certificate
from aegis.release.possible import _SLACK, Mismatch, _between
from aegis.signing import seal


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Certified]:
    @cache
    def made(kind: str) -> Certified:
        return certificates.KINDS[kind](tmp_path_factory.mktemp(kind))

    return made


def _differing(certified: Certified, document: dict[str, Any]) -> list[str]:
    return list(map(str, check_certificate(certified.file, seal(document)).mismatches))


GROUPED = pytest.mark.wings
"""A wing makes releases of grouped records."""


@pytest.mark.parametrize(
    ("kind", "place", "value", "possible"),
    [
        ("suppressed", "utility.kept", 250, "a percent from 0 to 100, or null"),
        ("suppressed", "utility.kept", -0.5, "a percent from 0 to 100, or null"),
        ("suppressed", "utility.kept", nan, "a percent from 0 to 100, or null"),
        ("suppressed", "utility.stderr", -1, "a number of 0 or more, or null"),
        ("masked", "utility.stderr", inf, "a number of 0 or more, or null"),
        ("masked", "utility.stderr", "0.1", "a number of 0 or more, or null"),
        ("masked", "utility.reference", 7.0, "a number from 0.5 to 1"),
        ("masked", "utility.reference", nan, "a number from 0.5 to 1"),
        ("suppressed", "utility.reference", -0.25, "a number of 0 or more"),
        ("suppressed", "utility.lost_classes", {"no": 3}, "classes that the file does not show"),
        ("suppressed", "utility.lost_classes", {"maybe": 16}, "at most 15 rows in all"),
        ("suppressed", "utility.lost_classes", {"maybe": 0}, "a number of rows from 1 to 120"),
        ("masked", "input.sha256", "abc", "64 digits from 0 to f, or null"),
        ("masked", "created", "yesterday", "a time in ISO 8601"),
        ("persons", "persons", 121, "a number from 0 to 120"),
        ("persons", "suppressed_persons", 61, "at most 60"),
        ("persons", "privacy.k", -2, "a number from 0 to 120"),
        ("persons", "privacy.k", 61, "at most 60, the persons of the release"),
        ("persons", "privacy.k", 2, "at least 3, which the rule requires"),
        ("persons", "privacy.risk.marketer.average", 1.5, "a share from 0 to 1, or null"),
        ("persons", "privacy.alpha_k.illness.alpha", nan, "a share from 0 to 1, or null"),
        ("persons", "privacy.beta_likeness.illness.basic", -1, "a number of 0 or more, or null"),
        ("persons", "privacy.class_size_histogram.4.rows", 999, "a number from 0 to 120"),
        pytest.param("grouped", "groups.count", 121, "a number from 0 to 120", marks=GROUPED),
        pytest.param("grouped", "groups.smallest", -4, "a number from 0 to 120", marks=GROUPED),
        pytest.param("grouped", "information_loss.scaled", nan, "a number, or null", marks=GROUPED),
    ],
)
def test_what_cannot_be_is_named_with_what_can(
    release: Callable[[str], Certified], kind: str, place: str, value: Any, possible: str
) -> None:
    certified = release(kind)
    path = tuple(int(key) if key.isdigit() else key for key in place.split("."))
    lines = _differing(certified, changed(certified.document, path, value))
    assert [line for line in lines if line.startswith(place)], lines
    (line,) = [line for line in lines if line.startswith(place)]
    assert "the certificate says" in line
    assert line.endswith(f"; possible: {possible}")


@pytest.mark.parametrize("k", [3, 30])
def test_the_least_and_the_most_that_can_be_are_not_called_impossible(
    release: Callable[[str], Certified], k: int
) -> None:
    certified = release("persons")
    lines = _differing(certified, changed(certified.document, ("privacy", "k"), k))
    assert not [line for line in lines if line.startswith("privacy.k")]


def test_a_range_leaves_room_for_rounding_in_proportion_to_its_end() -> None:
    percent = _between(0.0, 100.0)
    assert percent.holds(100.0 + 50 * _SLACK)
    assert not percent.holds(100.0 + 200 * _SLACK)
    share = _between(0.0, 0.01)
    assert share.holds(0.01 + 0.5 * _SLACK)


def test_no_class_is_lost_where_no_row_was_suppressed(release: Callable[[str], Certified]) -> None:
    certified = release("masked")
    for lost in (None, [], "none"):
        lie = changed(certified.document, ("utility", "lost_classes"), lost)
        assert [line.partition(":")[0] for line in _differing(certified, lie)] == [
            "utility.lost_classes"
        ]


def test_other_sensitive_attributes_than_the_policys_are_named(
    release: Callable[[str], Certified],
) -> None:
    certified = release("persons")
    for sensitive in ([], ["illness", "sex"]):
        lie = changed(certified.document, ("privacy", "sensitive"), sensitive)
        assert any(line.startswith("privacy.sensitive:") for line in _differing(certified, lie))


def test_fewer_rows_read_than_released_cannot_be(release: Callable[[str], Certified]) -> None:
    """Their difference is named once, whatever count of suppressed rows goes with it."""
    certified = release("masked")
    document = changed(certified.document, ("input", "rows"), 100)
    document["suppressed_rows"] = -20
    assert _differing(certified, document) == [
        "input.rows: the certificate says 100; possible: at least 120, the rows of the file"
    ]


def test_utility_kept_follows_from_its_reference(release: Callable[[str], Certified]) -> None:
    """Also where rows were suppressed, unless a constant prediction's score is of the input."""
    certified = release("suppressed")
    lines = _differing(certified, changed(certified.document, ("utility", "kept"), 99.0))
    assert [line.partition(":")[0] for line in lines] == ["utility.kept"]


def test_a_file_with_nan_is_named(release: Callable[[str], Certified], tmp_path: Path) -> None:
    certified = release("masked")
    path = tmp_path / "c.json"
    document = seal(changed(certified.document, ("utility", "stderr"), nan))

    path.write_text(json.dumps(document))
    check = check_certificate(certified.file, path)
    assert [mismatch.what for mismatch in check.mismatches] == ["utility.stderr"]


@pytest.fixture(scope="module")
def ranked() -> tuple[aegis.Study, aegis.Advice]:
    study = aegis.Study(certificates.TABLE, certificates.POLICY)
    return study, study.rank(generate_count=2)


@pytest.mark.parametrize("measure", [m.name for m in measures_of(LabelKind.CLASSES)])
def test_no_true_figure_is_called_impossible(
    ranked: tuple[aegis.Study, aegis.Advice], measure: str, tmp_path: Path
) -> None:
    """The ranges that measures state hold for their figures, also where nothing can be predicted."""
    study, best = ranked
    study.apply(best, tmp_path / "m.csv", certificate=tmp_path / "c.json", measure=measure)
    check = check_certificate(tmp_path / "m.csv", tmp_path / "c.json")
    assert check.passed, list(map(str, check.mismatches))


@pytest.mark.parametrize("method", ANONYMIZERS.names())
def test_no_true_figure_of_a_method_is_called_impossible(method: str, tmp_path: Path) -> None:
    study = aegis.Study(certificates.TABLE, {**certificates.POLICY, "privacy": {"k": 2}})
    recipe = Recipe(method, {"geography": ["city"]} if method == "record-swap" else {})
    try:
        study.anonymize(recipe, output=tmp_path / "m.csv", certificate=tmp_path / "c.json")
    except NoAdmissibleConfiguration as error:
        pytest.skip(error.message)
    check = check_certificate(tmp_path / "m.csv", tmp_path / "c.json")
    assert [str(m) for m in check.mismatches if m.possible] == []


@pytest.mark.parametrize(
    ("what", "certified", "measured", "words"),
    [
        ("privacy.risk.prosecutor.maximum", 1 / 7, 1, "14.3 %, the file shows 100.0 %"),
        ("privacy.risk.prosecutor.average", 0.0042, 0.0123, "0.42 %, the file shows 1.2 %"),
        (
            "privacy.risk.marketer.average",
            1 / 7,
            0.142857,
            "0.14285714285714285, the file shows 0.142857",
        ),
        ("privacy.mean_class_size", 60.41886, 28.46110, "60.42, the file shows 28.46"),
        ("output.rows", 32022, 14999, "32,022, the file shows 14,999"),
        ("output.rows", 32022, "many", "32022, the file shows many"),
        ("output.rows", True, 2, "true, the file shows 2"),
        ("privacy.mean_class_size", nan, 28.46110, "NaN, the file shows 28.4611"),
        ("privacy.mean_class_size", 10**400, 0.5, "1000"),
    ],
)
def test_numbers_that_differ_have_as_many_digits_as_elsewhere(
    what: str, certified: Any, measured: Any, words: str
) -> None:
    assert f"the certificate says {words}" in str(Mismatch(what, certified, measured))
