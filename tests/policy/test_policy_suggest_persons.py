"""Columns that name persons are never proposed for release in silence."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from aegis.masks import Identity
from aegis.policy.model import Role
from aegis.policy.suggest import ProposedPolicy, init_policy
from aegis.policy.suggest.names import NameBearer, find_concept, names_thing, read_words, whose_name
from aegis.policy.suggest.profile import SHAPES, measure_columns
from aegis.sources import open_table

ROWS = 600


def words(text: str) -> list[str]:
    return text.split()


PERSONS = words(
    "name names Name first_name firstName LAST_NAME surname patient_name guestName customer-name "
    "name_of_child fullName legal_name name_1 hotel_guest_name patientname vorname Nachname Kundenname "
    "Patientenname name_des_kunden nom prénom nom_complet nom_du_patient nom_client nombre "
    "nombre_completo nombre_del_paciente apellidos nome cognome nome_cliente email e_mail correo "
    "phone telephone_number telefono Rufnummer ssn mrn medical_record_number passport passeport dni "
    "codice_fiscale address direccion indirizzo Adresse patient_id numero_client"
)
THINGS = words(
    "product_name productName hotel_name site_name file_name filename hostname country_name city_name "
    "brand_name company_name column_name species_name plant_family_name patient_drug_name "
    "team_member_count nom_produit nom_du_magasin nombre_producto nome_prodotto Firmenname Produktname "
    "nombre_enfants nombre_visites"
)
UNKNOWN = words("scene_name emergency_name xyz_name")


def propose(columns: dict[str, list[Any]], label: str = "y") -> ProposedPolicy:
    rows = len(next(iter(columns.values())))
    more = {"anchor": [i % 3 for i in range(rows)], "y": [i % 2 for i in range(rows)]}
    return init_policy(pa.table(columns | more), label=label)


def drawn(make: Callable[[random.Random], str], rows: int = ROWS) -> list[str]:
    chance = random.Random(7)
    return [make(chance) for _ in range(rows)]


def person(chance: random.Random) -> str:
    first = chance.choice(["Ann", "Zoë", "Jörg", "Íñigo", "Łukasz", "O'Brian", "Anne-Marie"])
    last = chance.choice(["Müller", "Lee", "van der Berg", "García", "Smith-Jones"])
    return f"{first}{chance.randrange(60) or ''} {last}"


def foreign(chance: random.Random) -> str:
    first = chance.choice("BDKLMNPRST") + chance.choice(["aiju", "oelle", "iukka", "uaro"])
    return f"{first} {chance.choice(['Virtanen', 'Nieminen', 'Korhonen'])}"


def chinese(chance: random.Random) -> str:
    return chance.choice("李王张刘陈") + "".join(chance.choices("伟芳敏洋静秀英强", k=2))


@cache
def beside(name: str) -> ProposedPolicy:
    """Propose for a table of a column with this header and of some others, each of 200 texts."""
    names = PERSONS if name in PERSONS else THINGS + UNKNOWN
    count = len(names) // len(TURNS) + 1
    return _proposed(tuple(names[names.index(name) % count :: count]))


@cache
def _proposed(names: tuple[str, ...]) -> ProposedPolicy:
    turns = zip(names, TURNS, strict=False)
    return propose({name: [f"v{i * turn % 200}" for i in range(ROWS)] for name, turn in turns})


TURNS = (1, 3, 7, 9, 11, 13, 17, 19, 21, 23)
"""Numbers that share no factor with 200: columns that are multiplied by them fix each other's values."""


@pytest.mark.parametrize("name", PERSONS)
def test_headers_of_persons_make_identifiers_of_many_values(name: str) -> None:
    assert beside(name).policy.attributes[name].role is Role.IDENTIFIER


@pytest.mark.parametrize("name", THINGS + UNKNOWN)
def test_names_of_things_are_no_identifiers_by_the_word(name: str) -> None:
    proposed = beside(name)
    attribute = proposed.policy.attributes[name]
    assert attribute.role is not Role.IDENTIFIER
    if (
        attribute.role is Role.QUASI_IDENTIFIER
        and "distinguishes rows" in proposed.profiles[name].reason
    ):
        # 200 texts in 600 rows: whoever edits the policy is told.
        assert "200 different texts in 600 rows" in proposed.profiles[name].warning


@pytest.mark.parametrize("name", ["who", "scene_name"])
def test_values_with_common_given_names_are_identifiers(name: str) -> None:
    proposed = propose({name: drawn(person)})
    assert proposed.policy.attributes[name].role is Role.IDENTIFIER
    assert "hold a common given name" in proposed.profiles[name].reason
    streets = [f"Main Street {i % 90}" for i in range(ROWS)]
    assert propose({name: streets}).policy.attributes[name].role is not Role.IDENTIFIER


@pytest.mark.parametrize("make", [chinese, foreign])
@pytest.mark.parametrize("name", ["who", "scene_name"])
def test_values_like_names_are_not_released_as_they_are(
    name: str, make: Callable[[random.Random], str]
) -> None:
    values = drawn(make)
    proposed = propose({name: values})
    attribute, profile = proposed.policy.attributes[name], proposed.profiles[name]
    assert attribute.role is Role.QUASI_IDENTIFIER
    assert Identity() not in attribute.masks
    assert "look like names of persons: make it an identifier" in profile.warning
    assert f"# WARNING: {profile.warning}" in proposed.yaml
    assert proposed.warnings == (f"{name!r}: {profile.warning}",)
    shown = proposed.yaml + str(proposed.to_dict())
    assert not any(value in shown for value in set(values))


@pytest.mark.parametrize("name", ["name", "patient_name"])
@pytest.mark.parametrize("make", [person, chinese])
def test_names_are_identifiers_though_they_repeat(
    name: str, make: Callable[[random.Random], str]
) -> None:
    proposed = propose({name: drawn(make)})
    assert proposed.policy.attributes[name].role is Role.IDENTIFIER
    assert proposed.warnings == ()


def test_names_of_things_may_look_like_names_of_persons() -> None:
    proposed = propose({"product_name": drawn(person)[:200] * 3})
    assert proposed.policy.attributes["product_name"].role is Role.QUASI_IDENTIFIER
    assert "different texts" in proposed.profiles["product_name"].warning


def test_few_names_are_asked_about() -> None:
    proposed = propose({"first_name": [f"name{i % 12}" for i in range(ROWS)]})
    assert proposed.policy.attributes["first_name"].role is Role.QUASI_IDENTIFIER
    assert "only 12 values occur" in proposed.profiles["first_name"].warning
    answers = propose({"telephone": [("yes", "none")[i // 2 % 2] for i in range(ROWS)]})
    assert answers.policy.attributes["telephone"].role is Role.FEATURE
    assert answers.warnings == ()


@pytest.mark.parametrize("share", [0.55, 0.7, 0.9, 1.0])
def test_texts_that_are_mostly_rare_are_no_features(share: float) -> None:
    size = int(share * ROWS)
    proposed = propose({"remark": [f"said so {i % size}" for i in range(ROWS)]})
    role = proposed.policy.attributes["remark"].role
    assert role in (Role.QUASI_IDENTIFIER, Role.IDENTIFIER)
    assert (role is Role.IDENTIFIER) != bool(proposed.warnings)


def test_categories_pass_in_silence() -> None:
    columns = {
        "colour": [f"colour {i % 25}" for i in range(ROWS)],
        "model": [f"Model {i % 60}" for i in range(ROWS)],
        "kind": [f"Big Kind {i % 7}" for i in range(ROWS)],
    }
    profiles = propose(columns).profiles
    assert [name for name in columns if profiles[name].warning] == ["model"]


FORMS = {
    "person": (
        ["Ann Lee", "Ann123 Lee", "Zoë Müller", "李伟", "Müller, Zoë", "J. R. Smith", "Jan van der Berg"],
        ["ann", "Ann", "big house", "Street 12", "A-1", "12 Main St", "ann lee", "", "Some text, more. Words"],
    ),
    "phone": (
        ["+49 30 1234567", "+4930123456", "(212) 555-0123", "212-555-0123", "1-212-555-0123", "030 123456",
         "(030) 12-34-56", "01 23 45 67 89"],
        ["2024-01-31", "01-02-2020", "01.02.2020", "12345678", "00123456", "1.5", "10.0.0.1", "123-45-6789"],
    ),
    "record": (["MRN-00123", "P000123", "AB 12345"], ["E11", "E11.9", "12345", "A1", "room", "Model X 1000"]),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_texts(form: str) -> None:
    fitting, others = FORMS[form]
    columns = {f"c{i}": [text, text + "x"[:0], "z"] for i, text in enumerate([*fitting, *others])}
    facts = measure_columns(open_table(pa.table(columns)))
    found = [round(3 * one.shape(form)) == 2 for one in facts.values()]
    assert found == [True] * len(fitting) + [False] * len(others)
    assert form in SHAPES


def test_whose_name() -> None:
    assert find_concept("is_name") is None
    assert names_thing("product_name")
    assert not names_thing("name")
    for name, whose in {
        "name": NameBearer.PERSON,
        "2nd name": NameBearer.UNKNOWN,
        "hotel_guest_name": NameBearer.PERSON,
        "guest_hotel_name": NameBearer.THING,
        "surnameless": None,
        "rename": None,
        "": None,
    }.items():
        assert whose_name(read_words(name).bare) is whose, name


def label_notes(values: list[Any], label: str, rows: int = ROWS) -> tuple[str, ...]:
    return propose({label: values, "x": [i % 4 for i in range(rows)]}, label).warnings


def test_labels_that_number_rows_are_warned_of() -> None:
    numbers: list[Any] = [10_000 + 3 * i for i in range(ROWS)]
    (note,) = label_notes(numbers, "mrn")
    assert note.startswith("label 'mrn': the name speaks of an official number of a person. Choose")
    (note,) = label_notes(numbers, "reading")
    assert note.startswith("label 'reading': nearly every row has its own value (600 in 600")
    text = init_policy(pa.table({"mrn": numbers, "x": [i % 4 for i in range(ROWS)]}), label="mrn")
    assert "# WARNING: the name speaks of an official number" in text.yaml
    near_key = "600 values in 600 rows, and a release shows them as they are"
    assert near_key in label_notes(numbers, "price")[0]
    assert near_key in label_notes([n / 7 for n in numbers], "reading")[0]
    assert label_notes([f"class {i % 9}" for i in range(ROWS)], "kind") == ()


def test_null_is_counted_as_summaries_count_it() -> None:
    proposed = propose({"mark": [("a", "b", None)[i % 3] for i in range(ROWS)]})
    assert "string, 2 values and null, 200 null (33.3 %)" in proposed.yaml
    assert "string, 2 values, no nulls" in propose({"mark": ["a", "b"] * 300}).yaml


@pytest.mark.parametrize(("people", "person"), [(400, "id"), (50, "id"), (12, None)])
def test_a_bare_id_that_comes_back_is_a_key_of_persons(people: int, person: str | None) -> None:
    drawn = np.random.default_rng(6)
    table = pa.table(
        {
            "id": np.repeat(np.arange(1, people + 1), 1200 // people),
            "age": drawn.integers(20, 60, 1200),
            "y": drawn.integers(0, 2, 1200),
        }
    )
    proposed = init_policy(table, label="y")
    assert proposed.person == person  # so few are codes of things as well
    named = proposed.policy.attributes["id"].role is Role.IDENTIFIER
    assert named == (person is not None)


@pytest.mark.parametrize("header", ["patient_name", "Vorname", "Prénom", "first name"])
def test_few_names_of_persons_are_asked_about_and_not_released(header: str) -> None:
    proposed = propose(
        {header: [f"{['Anna', 'Ben', 'Cleo', 'Dora', 'Emil'][i % 5]}" for i in range(ROWS)]}
    )
    assert proposed.policy.attributes[header].role is Role.QUASI_IDENTIFIER
    assert "the name speaks of a person's name, but only 5 values occur" in proposed.yaml


def test_few_values_under_a_bare_name_may_name_things() -> None:
    proposed = propose({"name": [f"model {i % 5}" for i in range(ROWS)]})
    assert proposed.policy.attributes["name"].role is Role.FEATURE


def test_texts_of_dates_without_a_day_show_month_or_year() -> None:
    dates = [
        f"20{10 + i % 5}-{i % 12 + 1:02d}" + f"-{i % 28 + 1:02d}" * (i % 25 > 0)
        for i in range(ROWS)
    ]
    proposed = propose({"seen": dates})
    masks = [str(mask) for mask in proposed.policy.attributes["seen"].masks]
    assert masks == ["blur(keep=7)", "blur(keep=4)", "suppress"]
    assert "texts of dates show month or year" in proposed.yaml


@pytest.mark.parametrize(("doubled", "asked"), [(0, False), (1, True), (8, True), (60, False)])
def test_a_few_persons_with_several_rows_are_asked_about(doubled: int, asked: bool) -> None:
    """With more of them, the proposed rule counts persons."""
    numbers = [1000 + i for i in range(ROWS - doubled)]
    proposed = propose({"patient_id": numbers + numbers[:doubled]})
    assert (proposed.person == "patient_id") == (doubled == 60)
    says = any("count persons (`person: patient_id`)" in text for text in proposed.warnings)
    assert says == asked


def test_a_code_of_unknown_persons_is_named_next_to_the_proposal() -> None:
    """Half of the rows had -1 as their person, and nobody said that they count as one."""
    chance = random.Random(7)
    keys = [chance.randrange(100_000, 100_150) for _ in range(ROWS)]
    some = propose({"client_ref": [-1 if i % 2 else key for i, key in enumerate(keys)]})
    every = propose({"client_ref": keys})
    few = propose({"patient_id": [f"P-{i % 4}" for i in range(ROWS)]})
    assert (some.person, every.person, few.person) == ("client_ref", "client_ref", "patient_id")
    assert "# One value has 50 % of the rows. If it means that the person is unknown" in some.yaml
    assert not any("of the rows. If it means" in other.yaml for other in (every, few))
