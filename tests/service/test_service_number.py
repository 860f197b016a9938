"""A data set whose label is a number: from its protected summary to a release."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
import service_support
from service_support import House, house, released

import aegis

POLICY = service_support.POLICY.replace(
    "label: income", "label: {column: income, kind: number, bounds: [0, 100]}"
)


def write_numbers(path: Path, rows: int = 400) -> None:
    """Write a table whose income is a number that age predicts."""
    draw = random.Random(1)
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["age", "sex", "canary", "income"])
        for number in range(rows):
            age = draw.randint(20, 79)
            income = round(age + draw.gauss(0, 8), 2)
            out.writerow([age, draw.choice("mf"), f"n{number}", income])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("numbers")
    with patch.object(service_support, "POLICY", POLICY), house(folder) as made:
        write_numbers(folder / "adult.csv")
        made.offer()
        yield made


def test_a_number_is_requested_and_released(place: House, tmp_path: Path) -> None:
    number = released(place)
    with place.client("clara") as clara:
        path = clara.download(number, tmp_path / "masked.parquet")
        assert clara.verify(number)["verified"]
        certificate = json.loads(clara.release(number)["certificate"])
    utility = certificate["utility"]
    assert utility["measure"] == "held-out-r2"
    assert certificate["configuration"]["masks"]["age"] != "suppress"
    checked = aegis.check_certificate(path, certificate)
    assert checked.passed, checked.mismatches
