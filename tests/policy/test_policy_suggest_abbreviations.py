"""Names of public tables: abbreviations of surveys, misspelt words, keys of persons, dates as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from suggest_support import check

from aegis.policy import Role
from aegis.policy.suggest.names import find_concept, names_survey_weight

ROWS = 600
QUASI, SENSITIVE, IDENTIFIER, FEATURE, IGNORE = (
    Role.QUASI_IDENTIFIER,
    Role.SENSITIVE,
    Role.IDENTIFIER,
    Role.FEATURE,
    Role.IGNORE,
)
GIVEN = ["Zsombor", "Jumpei", "Alen", "Chien", "Yanick", "Dusan", "Peter", "Michael", "Tsung"]
FAMILY = [
    a + b for a in ("Bar", "Kov", "Lu", "Mit", "Or", "Pav", "Sel") for b in ("an", "ek", "osz")
]


def profiles(**columns: Any) -> dict[str, Any]:
    rows = {name: list(values) for name, values in columns.items()}
    table = pa.table({**rows, "y": [i % 2 for i in range(ROWS)]})
    return dict(check(table, "y").profiles)


@pytest.mark.parametrize(
    ("name", "concept"),
    [
        ("RIAGENDR", "sex or gender"),
        ("RIDAGEYR", "age"),
        ("RIDRETH1", "race or ethnicity"),
        ("DMDMARTZ", "marital status"),
        ("DMDEDUC2", "education"),
        ("DMDBORN4", "a place"),
        ("INDFMPIR", "income"),
        ("INDHHIN2", "income"),
        ("indfm", None),
        ("SEXVAR", "sex or gender"),
        ("_IMPRACE", "race or ethnicity"),
        ("feduc", "education"),
        ("Educational Qualifications", "education"),
        ("Lattitude", "geographic coordinates"),
        ("Longtitude", "geographic coordinates"),
        ("pneum", "health"),
        ("depress", "health"),
        ("substancedependence", "health"),
        ("psychologicaldisordermajor", "health"),
        ("NUTS_2", "a place"),
        ("nuts", "a place"),
        ("GRAPE_NUTS", None),
        ("sentence", "a criminal record"),
        ("PriorSentenceToIncarceration", "a criminal record"),
        ("sentence_range", None),
        ("households", None),  # how many there are in a district
        ("reqeduc", None),
        ("lwage76", None),
    ],
)
def test_names_of_public_tables(name: str, concept: str | None) -> None:
    known = find_concept(name)
    assert (known and known.name) == concept


@pytest.mark.parametrize("name", ["WTINTPRP", "WTMEC2YR", "pspwght", "_LLCPWT"])
def test_public_names_of_survey_weights(name: str) -> None:
    assert names_survey_weight(name)


def test_likely_weights_are_asked_about_and_not_released() -> None:
    drawn = np.random.default_rng(1).lognormal(9, 1, (2, ROWS))
    relative = np.random.default_rng(2).lognormal(-0.05, 0.3, ROWS)
    survey = profiles(WTINTPRP=drawn[0], WTMECPRP=drawn[1], age=[20 + i % 60 for i in range(ROWS)])
    assert survey["WTINTPRP"].role is survey["WTMECPRP"].role is IGNORE
    # Weights with a mean of 1, as of a poll; bodies of persons do not weigh so little.
    age = [20 + i % 60 for i in range(ROWS)]
    assert profiles(weight=relative, age=age)["weight"].role is IGNORE
    assert profiles(weight=70 + 20 * relative, age=age)["weight"].role is FEATURE


def test_keys_and_names_of_players() -> None:
    drawn = np.random.default_rng(3)
    # A few players win often: their numbers do not repeat evenly.
    players = np.minimum(drawn.geometric(0.015, ROWS), 180)
    named = [f"{GIVEN[n % 9]} {FAMILY[n // 9]}" for n in players]
    matches = profiles(
        winner_id=100_000 + players,
        winner_name=named,
        athlete=named[::-1],
        product_id=100_000 + players[::-1],
        stadium_name=[f"{name.split()[1]} Park" for name in named],
        minutes=drawn.integers(50, 190, ROWS),
    )
    assert matches["winner_id"].role is not FEATURE
    assert "make it an identifier if they point at persons" in matches["winner_id"].warning
    assert matches["winner_name"].role is matches["athlete"].role is IDENTIFIER
    assert matches["product_id"].role is FEATURE
    assert matches["stadium_name"].role is not IDENTIFIER


@pytest.mark.parametrize(
    ("numbers", "role"),
    [
        ([20190107 + 100 * (i % 12) + i % 20 for i in range(ROWS)], QUASI),
        ([20190107 + 3 * i for i in range(ROWS)], FEATURE),  # months above 12
    ],
)
def test_whole_numbers_that_all_are_dates_are_dates(numbers: list[int], role: Role) -> None:
    profile = profiles(tourney_date=numbers, price=[i % 40 for i in range(ROWS)])["tourney_date"]
    assert (profile.role is QUASI) == (role is QUASI)
    if role is QUASI:
        assert [str(mask) for mask in profile.masks] == [
            "bucketize(width=100)",
            "suppress",
        ]


def test_numbers_of_a_hospital_in_a_small_table_without_names_of_columns() -> None:
    rows = range(300)
    numbers = [518_476 + 7_919 * (i % 284) for i in rows]
    proposed = check(
        pa.table({"c3": numbers, "c4": [i % 40 for i in rows], "y": [0, 1] * 150}), "y"
    )
    assert proposed.profiles["c3"].role is IDENTIFIER
    assert proposed.person is None  # the few numbers that come back may be chance


def test_times_in_seconds_do_not_number_persons() -> None:
    stamps = [1_400_000_000 + 86_311 * (i % 400) for i in range(ROWS)]
    table = pa.table(
        {"social_timestamp": stamps, "age": [i % 50 for i in range(ROWS)], "y": [0, 1] * 300}
    )
    assert check(table, "y").person is None
