"""The example policies: they load, name every column, and leave enough to choose from."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from aegis import advise
from aegis.policy import load_policy
from aegis.policy.suggest import init_policy

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
TABLES = {
    "air_quality": "air_quality/updated_pollution_dataset.csv",
    "hotel": "hotel/hotel_interactions.csv",
    "fars": "fars/fars_subset.csv",
}


def check(name: str, table: Path) -> None:
    """Check that advice on an example has a real choice: 10 to 60 % of 50 configurations pass."""
    policy = load_policy(EXAMPLES / name / "policy.yaml")
    advice = advise(table, policy, generate_count=50, seed=0)
    passing = sum(ranked.admissible for ranked in advice.ranking)
    assert 5 <= passing <= 30
    assert not [warning for warning in advice.warnings if "not in the policy" in warning]
    proposed = init_policy(table, label=policy.label.column)
    assert set(proposed.policy.attributes) == set(policy.attributes)
    assert proposed.policy.label == policy.label


def test_adult() -> None:
    check("adult", ROOT / "data" / "adult.parquet")
    policy = load_policy(EXAMPLES / "adult" / "policy.yaml")
    assert [a.name for a in policy.quasi_identifiers] == [
        "age",
        "workclass",
        "education",
        "marital-status",
        "occupation",
        "race",
        "sex",
        "native-country",
    ]


@pytest.mark.parametrize("name", TABLES)
def test_examples_on_real_tables(shared_data: Path, name: str) -> None:
    check(name, shared_data / TABLES[name])


def test_german_credit_is_prepared_and_advised_on(shared_data: Path, tmp_path: Path) -> None:
    script = runpy.run_path(str(EXAMPLES / "german_credit" / "prepare.py"))
    script["prepare"](shared_data / "german_credit", tmp_path / "made")
    table = tmp_path / "made" / "german_credit.parquet"
    proposed = init_policy(table, label="class")
    assert proposed.profiles["age"].facts.rows == 1000
    assert (
        init_policy(tmp_path / "made" / "german_credit.csv", label="class").policy
        == proposed.policy
    )
    check("german_credit", table)


@pytest.mark.parametrize(
    "folder", sorted(path.parent.name for path in EXAMPLES.glob("*/policy.yaml"))
)
def test_every_example_loads_without_its_data(folder: str) -> None:
    policy = load_policy(EXAMPLES / folder / "policy.yaml")
    assert policy.quasi_identifiers
    assert policy.privacy.suppression == 0.02
