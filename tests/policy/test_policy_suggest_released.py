"""No identifier is released under an unedited proposal, whatever its column is called."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from aegis import Study
from aegis.policy import Role
from aegis.policy.suggest import ProposedPolicy, init_policy

ROWS, PERSONS = 900, 300
FIRST = ["Åsa", "Göran", "Maj", "Håkan", "Ulla", "Torbjörn", "Gunilla", "Örjan", "Stig", "Inger"]
LAST = ["Bergström", "Ekdahl", "Fors", "Hallberg", "Isaksson", "Kvist", "Lindqvist", "Nyman"]


def rows_of(persons: int, seed: int = 1) -> np.ndarray:
    """Return the person of each row: most have two to four rows, some more."""
    return np.random.default_rng(seed).integers(0, persons, ROWS)


def table(**columns: Any) -> pd.DataFrame:
    random = np.random.default_rng(2)
    rest = {
        "visits": random.integers(0, 5, ROWS),
        "z": random.normal(0, 1, ROWS).round(3),
        "outcome": random.choice(["yes", "no"], ROWS),
    }
    return pd.DataFrame(columns | rest)


def proposal(**columns: Any) -> ProposedPolicy:
    return init_policy(table(**columns), label="outcome")


def role(**column: Any) -> Role:
    return proposal(**column).policy.attributes[next(iter(column))].role


def shown(**column: Any) -> list[str]:
    return list(map(str, proposal(**column).policy.attributes[next(iter(column))].masks))


def test_numbers_of_persons_with_several_rows_in_a_small_table() -> None:
    """Of 900 rows, a person with seven has more than the share of one record number in a large table."""
    assert role(c1=200_013 + 13 * rows_of(PERSONS)) is Role.IDENTIFIER


def test_amounts_that_repeat_are_features() -> None:
    random = np.random.default_rng(3)
    pay = (random.lognormal(10.5, 0.5, ROWS) / 500).round().astype(int) * 500
    assert role(c1=pay) is Role.FEATURE
    assert role(c1=pay.astype(float)) is Role.FEATURE


@pytest.mark.parametrize("share", [0.0, 0.05])
def test_whole_floats_that_repeat_as_numbers_of_persons_do(share: float) -> None:
    """A program that stores numbers beside null as floats hid keys without a telling name."""
    keys = (1_000_003.0 + 11 * np.random.default_rng(4).permutation(9 * ROWS))[:ROWS]
    keys[np.random.default_rng(5).random(ROWS) < share] = np.nan
    assert role(c1=keys) is Role.IDENTIFIER


def test_a_key_with_a_few_nulls_counts_persons() -> None:
    number = 30_000_011.0 + 11 * rows_of(PERSONS)
    number[::25] = np.nan
    assert proposal(Kundennummer=number).person == "Kundennummer"


def test_many_nulls_are_no_persons() -> None:
    number = 30_000_011.0 + 11 * rows_of(PERSONS)
    number[::3] = np.nan
    assert proposal(Kundennummer=number).person is None


def test_a_number_that_some_rows_lack_is_no_person_beside_a_number_of_every_row() -> None:
    """The manager of an employee is not the person of the row."""
    manager = 1.0 + rows_of(40)
    manager[::50] = np.nan
    assert proposal(EmpID=range(10_001, 10_001 + ROWS), ManagerID=manager).person is None


def test_numbers_from_one_on_in_about_equally_many_rows_are_asked_about() -> None:
    proposed = proposal(c1=1 + rows_of(PERSONS))
    attribute = proposed.policy.attributes["c1"]
    assert attribute.role is Role.QUASI_IDENTIFIER
    assert list(map(str, attribute.masks)) == ["suppress"]
    assert "the numbers from 1 to 300 have about equally many rows" in proposed.yaml


def test_counts_and_years_of_a_job_are_features() -> None:
    random = np.random.default_rng(6)
    assert role(c1=random.geometric(0.02, ROWS) - 1) is Role.FEATURE
    assert role(c1=(51 * random.random(ROWS) ** 1.7).astype(int)) is Role.FEATURE


@pytest.mark.parametrize(
    "form",
    [
        lambda n: hashlib.sha1(f"{n}".encode()).hexdigest(),
        lambda n: hashlib.sha256(f"{n}".encode()).hexdigest(),
        lambda n: f"{n % 90 + 10} {n % 7919:04d} {n * 7 % 1000:03d} {n % 97:02d}",
        lambda n: f"{n * 7_919 % 10**11:011d}",
    ],
)
def test_pseudonyms_and_numbers_in_groups_that_repeat(form: Any) -> None:
    assert role(c1=[form(int(n)) for n in 1_000 + rows_of(PERSONS)]) is Role.IDENTIFIER


def test_the_telephone_of_a_household_does_not_count_persons() -> None:
    phones = [f"030 {n * 7_919 % 10**6:06d} {n % 10}" for n in rows_of(PERSONS)]
    proposed = proposal(c1=phones)
    assert proposed.policy.attributes["c1"].role is Role.IDENTIFIER
    assert proposed.person is None


def test_doubtful_texts_are_not_shown_until_you_say_so() -> None:
    """A person with many rows had a frequent name, and a release showed frequent names."""
    full = [f"{FIRST[n % 10]} {LAST[n // 10 % 8]}" for n in rows_of(80)]
    assert shown(c1=full) == ["suppress"]
    streets = [f"{LAST[n % 8].lower()}väg {n}" for n in rows_of(PERSONS)]
    assert shown(c1=streets) == ["suppress"]


def test_a_few_full_names_are_not_shown_either() -> None:
    tutors = [f"{FIRST[n % 10]} {LAST[n % 8]}" for n in rows_of(30)]
    assert shown(c1=tutors) == ["suppress"]
    words = ["good", "very good", "poor"]
    assert shown(c1=[words[n % 3] for n in rows_of(30)]) == ["identity"]


def test_chinese_words_are_no_names_if_there_are_few() -> None:
    grades = [f"优秀{'一二三四五六七八九十'[n % 10]}" for n in rows_of(30)]
    assert shown(c1=grades) == ["identity"]


def test_degrees_named_x_and_y_are_coordinates() -> None:
    home = rows_of(PERSONS)
    random = np.random.default_rng(7)
    points = {
        "X": (18.07 + random.normal(0, 0.3, PERSONS)).round(6)[home],
        "Y": (59.33 + random.normal(0, 0.3, PERSONS)).round(6)[home],
    }
    roles = {n: a.role for n, a in proposal(**points).policy.attributes.items()}
    assert roles["X"] is roles["Y"] is Role.QUASI_IDENTIFIER
    assert role(X=random.normal(0, 1, ROWS).round(2)) is Role.FEATURE


@pytest.mark.parametrize(
    "name",
    [
        "Förnamn",
        "Etternavn",
        "Sukunimi",
        "Imię",
        "Όνομα",
        "Ім'я",
        "שם משפחה",
        "이름",
        "姓",
        "Nume",
        "Név",
    ],
)
def test_headers_of_names_in_the_languages_of_django(name: str) -> None:
    assert role(**{name: [LAST[n % 8] + "abcd"[n // 8] for n in rows_of(32)]}) is Role.IDENTIFIER


@pytest.mark.parametrize("name", ["Postnummer", "PSČ", "Kod pocztowy", "郵便番号", "Postinumero"])
def test_headers_of_postcodes_in_the_languages_of_django(name: str) -> None:
    assert role(**{name: 1_000 + 7 * rows_of(200)}) is Role.QUASI_IDENTIFIER


def test_a_release_shows_no_identifier(tmp_path: Path) -> None:
    person = rows_of(PERSONS)
    given = table(
        c1=200_013.0 + 13 * person,
        c2=[f"{LAST[n % 8]}, {FIRST[n // 8 % 10]}" for n in person],
        c3=[hashlib.sha256(f"{n}".encode()).hexdigest() for n in person],
        c4=1 + person,
        c5=np.where(person % 2, "f", "m"),
    )
    given.to_csv(tmp_path / "table.csv", index=False)
    policy = init_policy(tmp_path / "table.csv", label="outcome").policy
    study = Study(tmp_path / "table.csv", policy)
    study.apply(study.advise(), tmp_path / "release.csv")
    released = pd.read_csv(tmp_path / "release.csv", dtype=str)
    raw = pd.read_csv(tmp_path / "table.csv", dtype=str)
    for name in ("c1", "c2", "c3", "c4"):
        assert name not in released or not released[name].isin(raw[name]).any()
    assert "c5" in released
