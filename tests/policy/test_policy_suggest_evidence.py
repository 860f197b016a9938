"""Values decide where they contradict a name, and a name does where values say nothing."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from aegis.masks import Kind
from aegis.policy import Role
from aegis.policy.suggest import init_policy
from aegis.policy.suggest.names import find_concept

ROWS = 300


def roles(**columns: object) -> dict[str, Role]:
    table = pa.table({**columns, "y": [i % 2 for i in range(ROWS)]})
    proposed = init_policy(table, label="y").policy
    return {name: attribute.role for name, attribute in proposed.attributes.items()}


def test_addresses_with_one_other_text_are_identifiers() -> None:
    mails = [f"u{i}@example.org" if i % 20 > 2 else "not provided" for i in range(ROWS)]
    mixed = [f"u{i}@example.org" if i % 2 else f"+49 30 {10_000_000 + i}" for i in range(ROWS)]
    found = roles(reach_at=mails, either=mixed, x=[i % 7 for i in range(ROWS)])
    assert found["reach_at"] is found["either"] is Role.IDENTIFIER


def test_some_addresses_among_other_texts_are_asked_about() -> None:
    texts = [f"u{i}@example.org" if i % 5 == 0 else f"kind {i % 60}" for i in range(ROWS)]
    table = pa.table({"remark": texts, "y": [i % 2 for i in range(ROWS)]})
    proposed = init_policy(table, label="y")
    assert proposed.policy.attributes["remark"].role is Role.QUASI_IDENTIFIER
    assert "20 % of the values look like e-mail addresses" in proposed.profiles["remark"].warning


def test_measured_shares_are_no_telephones_and_no_streets() -> None:
    draw = random.Random(3)
    shares = [round(draw.random(), 3) for _ in range(ROWS)]
    found = roles(
        phone_share=shares,
        street=[round(draw.gauss(4, 1), 2) for _ in range(ROWS)],
        phone=[float(10_000_000 + 7 * i) if i % 9 else None for i in range(ROWS)],
    )
    assert found == {
        "phone_share": Role.FEATURE,
        "street": Role.FEATURE,
        "phone": Role.IDENTIFIER,  # whole numbers that nulls made floats
    }


@pytest.mark.parametrize(
    "name",
    ["account_age", "AgeOfAccount", "vehicle age", "age of the house", "company_age", "loan age"],
)
def test_ages_of_things_are_no_ages_of_persons(name: str) -> None:
    assert find_concept(name, Kind.INTEGER) is None


@pytest.mark.parametrize(
    "name", ["age", "age at admission", "customer_age", "age_group", "age class", "patient age"]
)
def test_ages_of_persons_stay(name: str) -> None:
    concept = find_concept(name, Kind.INTEGER)
    assert concept is not None
    assert concept.name == "age"


@pytest.mark.parametrize("name", ["job_date", "job_start_year", "months of employment", "position"])
def test_numbers_and_times_of_jobs_are_no_occupations(name: str) -> None:
    assert find_concept(name, Kind.INTEGER) is None


@pytest.mark.parametrize(
    "name",
    ["hours_tv_per_school_day", "school_night_hours_sleep", "2020_edu_exp", "education_loan"],
)
def test_times_and_costs_of_school_are_no_education(name: str) -> None:
    concept = find_concept(name)
    assert concept is None or concept.name != "education"


@pytest.mark.parametrize("name", ["position_x", "position in queue", "leg position"])
def test_a_position_is_an_occupation_under_its_whole_name_alone(name: str) -> None:
    assert find_concept(name, Kind.TEXT) is None


@pytest.mark.parametrize("name", ["job", "Position", "job position", "employment status"])
def test_occupations_stay(name: str) -> None:
    concept = find_concept(name, Kind.TEXT)
    assert concept is not None
    assert concept.name == "occupation"
