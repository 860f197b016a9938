"""Keys of persons in panels and repeated measurements are found, whatever they are called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.policy.model import Role
from aegis.policy.suggest import init_policy
from aegis.policy.suggest.names import FINER, FIXED, VARIED, Trait, find_fixed
from aegis.sources import open_table

PERSONS, VISITS = 120, 25


def panel(**columns: Any) -> pd.DataFrame:
    """Return 25 visits of each of 120 persons, who have one sex, and an outcome that changes."""
    random = np.random.default_rng(5)
    rows = PERSONS * VISITS
    person = np.repeat(np.arange(PERSONS), VISITS)
    given = {name: make(person, random) for name, make in columns.items()}
    return pd.DataFrame(
        given
        | {
            "sex": np.where(random.random(PERSONS) < 0.6, "f", "m")[person],
            "visit": np.tile(np.arange(VISITS), PERSONS),
            "pain": random.integers(0, 10, rows),
            "better": random.integers(0, 2, rows),
        }
    )


def role_of(table: pd.DataFrame, column: str) -> tuple[Role, str | None]:
    proposed = init_policy(table, label="better")
    return proposed.policy.attributes[column].role, proposed.person


@pytest.mark.parametrize("name", ["id", "nr", "who", "Subject", "v1"])
def test_a_key_of_persons_is_found_by_what_it_fixes(name: str) -> None:
    table = panel(**{name: lambda person, _: person + 1})
    assert role_of(table, name) == (Role.IDENTIFIER, name)


@pytest.mark.parametrize("name", ["wght", "weights"])
def test_a_weight_of_a_survey_is_no_key_though_persons_fix_it(name: str) -> None:
    weight = lambda person, _: 2_000 + 7 * person  # noqa: E731
    assert role_of(panel(**{name: weight}), name) == (Role.IGNORE, None)


def test_a_first_name_has_one_sex_but_is_no_key_of_persons() -> None:
    table = panel(first_name=lambda person, _: [f"Name{n}" for n in person])
    assert role_of(table, "first_name") == (Role.IDENTIFIER, None)


def test_first_names_are_no_key_of_persons_even_if_they_fix_two_traits() -> None:
    """In a study of job applications, each of 36 first names stood for one sex and one race."""
    race = lambda person, _: [f"group {n % 3}" for n in person]  # noqa: E731
    names = ["Allison", "Kristen", "Lakisha", "Latonya", "Brad", "Tremayne", "Geoffrey", "Ebony"]
    of_one = [f"{name}{ending}" for ending in "abcdefghijklmno" for name in names]
    table = panel(firstname=lambda person, _: [of_one[n] for n in person], race=race)
    assert role_of(table, "firstname") == (Role.IDENTIFIER, None)
    full = panel(name=lambda person, _: [f"{of_one[n]} Smith" for n in person], race=race)
    assert role_of(full, "name") == (Role.IDENTIFIER, "name")


def test_a_name_that_fixes_two_traits_is_a_key_of_persons() -> None:
    race = lambda person, _: [f"group {n % 3}" for n in person]  # noqa: E731
    table = panel(name=lambda person, _: [f"Name{n}" for n in person], race=race)
    assert role_of(table, "name") == (Role.IDENTIFIER, "name")


def test_many_keys_beside_many_traits_are_asked_in_one_query() -> None:
    numbers = {f"q{i}": lambda person, random: random.permutation(person) for i in range(20)}
    traits = ("gender", "race", "dob", "ethnic", "black", "white", "asian", "male", "female")
    fixed = {name: lambda person, _: person % 2 for name in traits}
    assert init_policy(panel(**numbers, **fixed), label="better").person is None


def test_a_trait_that_is_the_label_counts() -> None:
    proposed = init_policy(panel(who=lambda person, _: person), label="sex")
    assert proposed.policy.attributes["who"].role is Role.IDENTIFIER


def test_without_persons_a_number_that_comes_back_stays_a_feature() -> None:
    table = panel(site=lambda person, random: random.integers(0, 120, len(person)))
    assert role_of(table, "site") == (Role.FEATURE, None)


def test_a_recoded_trait_is_no_key() -> None:
    table = panel(code=lambda person, _: person % 40)
    table["race"] = [f"group {code // 2}" for code in table["code"]]
    assert role_of(table.drop(columns="sex"), "code") != (Role.IDENTIFIER, "code")
    table["race"] = [f"group {code % 3}" for code in table["code"]]
    assert role_of(table.drop(columns="sex"), "code") == (Role.IDENTIFIER, "code")


def test_what_is_measured_once_per_person_is_no_second_key() -> None:
    table = panel(
        who=lambda person, _: person,
        stayed=lambda person, random: random.integers(0, 300, PERSONS)[person],
    )
    proposed = init_policy(table, label="better")
    assert proposed.policy.attributes["who"].role is Role.IDENTIFIER
    assert proposed.policy.attributes["stayed"].role is Role.FEATURE


@pytest.mark.parametrize("persons", [12, 18, 30])
def test_few_persons_of_a_study_are_persons(persons: int) -> None:
    rows = persons * 10
    table = pa.table(
        {
            "Subject": [i // 10 for i in range(rows)],
            "reaction": [(i * 37) % 91 + 0.5 for i in range(rows)],
            "better": [i % 2 for i in range(rows)],
        }
    )
    proposed = init_policy(table, label="better")
    assert (proposed.policy.attributes["Subject"].role, proposed.person) == (
        Role.IDENTIFIER,
        "Subject",
    )


@pytest.mark.parametrize("name", ["USUBJID", "patient_id", "Customer ID"])
@pytest.mark.parametrize("texts", [False, True])
def test_what_numbers_persons_outright_is_never_released(name: str, *, texts: bool) -> None:
    numbers = [min(i % 8, 5) for i in range(200)]
    table = pa.table(
        {
            name: [f"01-701-{1000 + n}" for n in numbers] if texts else numbers,
            "pain": [i % 7 for i in range(200)],
            "better": [i % 2 for i in range(200)],
        }
    )
    proposed = init_policy(table, label="better")
    assert (proposed.policy.attributes[name].role, proposed.person) == (Role.IDENTIFIER, name)


def test_the_column_that_says_so_numbers_the_persons_not_a_code_with_more_values() -> None:
    rows = 1200
    table = pa.table(
        {
            "USUBJID": [f"01-701-{1000 + i % 200}" for i in range(rows)],
            "AEHLT": [f"HLT_{(i * 7) % 230:04d}" for i in range(rows)],
            "pain": [i % 7 for i in range(rows)],
            "better": [i % 2 for i in range(rows)],
        }
    )
    proposed = init_policy(table, label="better")
    assert proposed.person == "USUBJID"
    assert "# Name another column if it numbers the persons: AEHLT\n" in proposed.yaml


def test_codes_that_persons_of_both_sexes_share_do_not_identify_persons() -> None:
    """In the adverse events of a trial, AEHLT has codes of medical terms."""
    codes = lambda person, random: [  # noqa: E731
        f"HLT_{number:04d}" for number in random.integers(0, 230, len(person))
    ]
    table = panel(USUBJID=lambda person, _: [f"01-{n}" for n in person], AEHLT=codes)
    proposed = init_policy(table, label="better")
    assert proposed.policy.attributes["AEHLT"].role is Role.QUASI_IDENTIFIER
    assert any("make it an identifier if" in text for text in proposed.warnings)
    assert proposed.person == "USUBJID"
    assert "if it numbers the persons" not in proposed.yaml


def test_a_count_of_persons_is_no_key() -> None:
    random = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "customer": random.poisson(3, 2000).clip(0, 11),
            "key": random.integers(0, 12, 2000),
            "better": random.integers(0, 2, 2000),
        }
    )
    proposed = init_policy(table, label="better")
    assert {a.role for a in proposed.policy.attributes.values()} == {Role.FEATURE}


@st.composite
def small_tables(draw: st.DrawFn) -> pd.DataFrame:
    rows = draw(st.integers(1, 40))
    keys = draw(st.lists(st.one_of(st.none(), st.integers(0, 9)), min_size=rows, max_size=rows))
    owned = draw(st.lists(st.sampled_from("fm"), min_size=10, max_size=10))
    slips = draw(st.sets(st.integers(0, rows - 1), max_size=2))
    sex = [None if key is None else owned[key] for key in keys]
    for place in slips:
        sex[place] = draw(st.sampled_from(["f", "m", None]))
    return pd.DataFrame(
        {"key": pd.array(keys, dtype="Int64"), "sex": pd.array(sex, dtype="string")}
    )


@given(small_tables(), st.floats(0.3, 0.99))
def test_what_is_fixed_is_what_pandas_counts(table: pd.DataFrame, peak: float) -> None:
    source = open_table(table)
    distinct = int(table["key"].nunique())
    fixed, varied = find_fixed(source, source.table, {"key": distinct}, [Trait("sex", 2, peak)])

    known = table.dropna()
    groups = known.groupby("key")["sex"].agg(["size", "nunique"])
    groups = groups[groups["size"] > 1]
    tested = distinct >= 2 * FINER and len(groups) > 0 and peak ** len(groups) <= 1e-3
    share = (groups["nunique"] == 1).mean()
    assert fixed == ({"key": ("sex",)} if tested and share >= FIXED else {})
    assert varied == ({"key": ("sex",)} if tested and share < VARIED else {})


def employees(**columns: Any) -> pd.DataFrame:
    """Return 1 to 119 absences of each of 40 employees, who have one height, shoe size and desk."""
    random = np.random.default_rng(8)
    person = np.repeat(np.arange(40), 1 + random.permutation(40) ** 3 // 500)
    rows = len(person)
    steady = {
        name: random.integers(0, most, 40)[person]
        for name, most in {"height": 30, "shoes": 12, "desk": 4}.items()
    }
    given = {name: make(person) for name, make in columns.items()}
    hours = {"day": random.integers(0, 5, rows), "better": random.integers(0, 2, rows)}
    return pd.DataFrame(given | steady | hours)


def test_a_column_named_as_a_key_is_one_if_it_fixes_other_columns_however_often_it_comes() -> None:
    """Also with a typing error in one value."""
    table = employees(ID=lambda person: person + 1)
    table.loc[table["ID"] == 7, "height"] = np.arange((table["ID"] == 7).sum())
    assert role_of(table, "ID") == (Role.IDENTIFIER, "ID")
    assert init_policy(table, label="better").profiles["ID"].reason.startswith("a key of persons")


def test_a_column_named_as_a_key_is_none_if_other_columns_change_within_it() -> None:
    table = employees(ID=lambda person: person + 1)
    for name in ("height", "shoes", "desk"):
        table[name] = np.random.default_rng(3).permutation(table[name])
    assert role_of(table, "ID") == (Role.FEATURE, None)


def test_a_number_for_each_name_numbers_the_same_persons() -> None:
    table = employees(
        Nome=lambda person: [f"ANA{n} SOUZA{n}" for n in person],
        NumFunc=lambda person: 10_007 + 91 * person,
        grade=lambda person: person // 5,
    )
    assert role_of(table, "NumFunc") == (Role.IDENTIFIER, "Nome")
    reason = init_policy(table, label="better").profiles["NumFunc"].reason
    assert reason == "one value for each value of Nome, and about as many"
    assert role_of(table, "grade")[0] is not Role.IDENTIFIER


def test_measured_whole_numbers_that_all_differ_are_left_out_and_that_is_asked() -> None:
    random = np.random.default_rng(2)
    table = pd.DataFrame(
        {
            "row": np.arange(108),
            "grain": random.choice(np.arange(1_000, 9_000), 108, replace=False),
            "plot": random.integers(0, 6, 108),
            "kind": random.integers(0, 2, 108),
        }
    )
    profiles = init_policy(table, label="kind").profiles
    assert profiles["grain"].role is Role.IDENTIFIER
    assert profiles["grain"].warning.endswith("make it a feature if it is measured")
    assert not profiles["row"].warning


def test_answers_of_few_rows_to_an_open_question_are_asked_about_and_not_released() -> None:
    """Also if they are fewer than texts must be elsewhere."""
    random = np.random.default_rng(4)
    few = [f"it was {a} and {b}" for a in "abcde" for b in "uvwxyz"]
    answers = [*few, *few[:6], *[None] * 264]
    table = pd.DataFrame(
        {
            "other": answers,
            "age": random.integers(18, 80, 300),
            "better": random.integers(0, 2, 300),
        }
    )
    profile = init_policy(table, label="better").profiles["other"]
    assert profile.role is Role.QUASI_IDENTIFIER
    assert profile.warning.startswith("most values are rare: 30 different ones in 36 rows")
    assert list(map(str, profile.masks)) == ["suppress"]


def test_one_of_several_labels_that_others_may_know_is_asked_about() -> None:
    table = panel(education=lambda person, _: person % 5)
    both = init_policy(table, label=["better", "education"]).profiles
    assert "the rule does not cover a label" in both["education"].warning
    assert not both["better"].warning
    assert not init_policy(table, label="education").profiles["education"].warning
