"""What column names say about roles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.masks import Kind
from aegis.policy.model import Role
from aegis.policy.suggest.names import (
    CONCEPTS,
    NUMBER,
    find_concept,
    names_codes,
    names_measure,
    read_words,
)


@pytest.mark.parametrize(
    ("name", "concept"),
    [
        ("age", "age"),
        ("AGE", "age"),
        ("patient_age", "age"),
        ("Alter", "age"),
        ("âge", "age"),
        ("età", "age"),
        ("年龄", "age"),
        ("dateOfBirth", "a date of birth"),
        ("date_of_birth", "a date of birth"),
        ("DATE OF BIRTH", "a date of birth"),
        ("dateofbirth", "a date of birth"),
        ("Geburtsdatum", "a date of birth"),
        ("gender", "sex or gender"),
        ("Geschlecht", "sex or gender"),
        ("last_initial", "a person's name"),
        ("block_group", "a place"),
        ("zip", "a postcode"),
        ("zip_code", "a postcode"),
        ("PLZ", "a postcode"),
        ("Código Postal", "a postcode"),
        ("native-country", "nationality"),
        ("marital-status", "marital status"),
        ("workclass", "occupation"),
        ("education-num", "education"),
        ("income", "income"),
        ("Höhe des Einkommens (€)", "income"),
        ("Haushaltsnettoeinkommen", "income"),
        ("Erwerbstätigkeit", "occupation"),
        ("angina", "health"),
        ("Religion", "religion"),
        ("salary", "salary"),
        ("primary_diagnosis", "health"),
        ("eMail", "an e-mail address"),
        ("phone_number", "a telephone number"),
        ("Nachname", "a person's name"),
        ("user_id", "a number that names one person or record"),
        ("destination_id", "a key of the record"),
        ("nombre_enfants", "the household"),
        ("CLMSEX", "sex or gender"),
        ("msex", "sex or gender"),
        ("CLMAGE", "age"),
        ("ageh", "age"),
        ("agecl", "age"),
        ("hage", "age"),
        ("hispan", "race or ethnicity"),
        ("Hisp", "race or ethnicity"),
        ("ptage", "age"),
        ("PTDOB", "a date of birth"),
        ("Easting", "geographic coordinates"),
        ("husage", "age"),
        ("husband_age", "age"),
        ("motheduc", "education"),
        ("hushisp", "race or ethnicity"),
        ("Nat.Am", "race or ethnicity"),
        ("otherrace", "race or ethnicity"),
        ("nativeBorn", "nationality"),
        ("birth", "a date of birth"),
        ("birth_yr", "a date of birth"),
        ("birthCity", "a place"),
        ("birthOrd", "the household"),
    ],
)
def test_a_name_speaks_of_its_concept(name: str, concept: str) -> None:
    found = find_concept(name)
    assert found is not None
    assert found.name == concept


@pytest.mark.parametrize(
    "name",
    [
        "",
        "hours-per-week",
        "mileage",
        "percentage",
        "page",
        "language_model"[9:],
        "zipper",
        "id_type",
        "x",
        "PM2.5",
        "Birth.outcome",
        "BirthWeightGm",
        "hushrs",
        "😀",
    ],
)
def test_a_name_that_only_contains_a_word_inside_another_says_nothing(name: str) -> None:
    assert find_concept(name) is None


def test_a_flag_never_names_an_identifier() -> None:
    assert find_concept("is_phone") is None
    assert find_concept("has_email") is None
    married = find_concept("is_married")
    assert married is not None
    assert married.role is Role.QUASI_IDENTIFIER


def test_roles_of_the_decided_concepts() -> None:
    roles = {c.name: c.role for c in CONCEPTS}
    assert roles["religion"] is Role.SENSITIVE
    assert roles["salary"] is Role.SENSITIVE
    assert roles["income"] is Role.QUASI_IDENTIFIER
    assert roles["race or ethnicity"] is Role.QUASI_IDENTIFIER


def test_every_phrase_is_found_by_its_own_concept_or_a_namesake() -> None:
    for concept in CONCEPTS:
        for phrase in concept.phrases:
            found = find_concept(phrase, next(iter(concept.kinds), None))
            assert found is not None, phrase
            assert phrase.replace(" ", "") in {p.replace(" ", "") for p in found.phrases}, phrase


def test_phrases_are_lower_case_and_none_stands_twice() -> None:
    phrases = [p for c in CONCEPTS for p in c.phrases]
    assert len(phrases) == len(set(phrases))
    assert all(p == p.lower().strip() and "  " not in p for p in phrases)


@given(st.text(max_size=40))
def test_spaces_and_case_do_not_matter(name: str) -> None:
    plain = find_concept(name)
    assert find_concept(f"  {name}__") == plain
    assert len(read_words(name).bare) <= len(name) * 4


@pytest.mark.parametrize(
    ("name", "kind", "concept"),
    [
        ("patient_nbr", None, NUMBER),
        ("c_case_number", None, NUMBER),
        ("customerID", None, NUMBER),
        ("EmployeeNumber", None, NUMBER),
        ("customer", None, NUMBER),
        ("Invoice ID", None, NUMBER),
        ("first", Kind.TEXT, "a person's name"),
        ("last", Kind.TEXT, "a person's name"),
        ("first", Kind.INTEGER, None),
        ("first_contact", Kind.TEXT, None),
        ("c_charge_degree", Kind.TEXT, "a criminal record"),
        ("charge", Kind.TEXT, "a criminal record"),
        ("MonthlyCharges", Kind.NUMBER, None),
        ("degree", Kind.TEXT, "education"),
        ("Kosten", Kind.NUMBER, None),
        ("diag_1", Kind.TEXT, "health"),
        ("Hauptdiagnose", Kind.TEXT, "health"),
        ("fumador", Kind.TEXT, "health"),
        ("number_diagnoses", Kind.INTEGER, None),
        ("days_since_arrest", Kind.INTEGER, None),
        ("diagnosis_number", Kind.TEXT, "health"),
        ("JobSatisfaction", Kind.INTEGER, None),
        ("job", Kind.TEXT, "occupation"),
        ("long", Kind.NUMBER, "geographic coordinates"),
        ("long_stay", Kind.NUMBER, None),
        ("Annual salary one year ago, if you stayed in the same country", Kind.NUMBER, "salary"),
    ],
)
def test_names_that_depend_on_what_stands_beside(
    name: str, kind: Kind | None, concept: str | None
) -> None:
    spoken = find_concept(name, kind)
    assert (spoken and spoken.name) == concept


def test_codes_and_measures() -> None:
    assert names_codes("hotel_cluster")
    assert names_codes("channel")
    assert names_codes("srch_destination_type_id")
    assert not names_codes("orig_destination_distance")
    assert not names_codes("age")
    assert names_measure("credit_amount")
    assert not names_measure("date_time")
    assert not names_measure("x")


@pytest.mark.parametrize(
    "name", ["stage", "tstage", "page", "cage", "swage", "lwage", "gzip", "trace", "middlesex"]
)
def test_an_english_word_is_no_abbreviation_before_a_trait(name: str) -> None:
    assert read_words(name).plain == (name,)
    assert find_concept(name) is None
