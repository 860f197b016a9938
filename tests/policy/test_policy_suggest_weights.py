"""Survey weights are recognised by name and values, and proposed where they are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import aegis
from aegis.errors import DataError
from aegis.policy import load_policy
from aegis.policy.lines import read_yaml

ROWS = 60


def table(**more: Any) -> pa.Table:
    draw = np.random.default_rng(0)
    return pa.table({"age": draw.integers(20, 60, ROWS), "y": ["a", "b"] * 30, **more})


@pytest.mark.parametrize(
    ("name", "least", "likely"),
    [
        ("pw", 3, True),
        ("fnlwgt", 3, True),
        ("sampling_weight", 3, True),
        ("weight", 50, False),  # of bodies
        ("weight", 5_000, True),
        ("birth_weight", 2_500, False),  # in grams
        ("Birth weight (g)", 2_500, False),
        ("person_weight", 2_500, True),
        ("price", 5_000, False),
        ("pw", 0, True),  # some persons of the sample did not take part
        ("pw", -3, False),
    ],
)
def test_weights_are_recognised(name: str, least: float, likely: bool) -> None:
    values = least + np.arange(ROWS) / 4
    proposed = aegis.init_policy(table(**{name: values}), label="y")
    assert proposed.policy.weight is None
    assert (f"# weight: {name}" in proposed.yaml) == likely
    asked = f"{name!r}: does this column say how many people a row represents"
    assert any(text.startswith(asked) for text in proposed.warnings) == likely


def test_weights_of_bodies_differ_less_than_weights_of_a_survey() -> None:
    """In the accidents of nassCDS, they are from 0 to 57,872 with a median of 87."""
    of_survey = aegis.init_policy(table(weight=np.geomspace(1, 6_000, ROWS)), label="y")
    assert "# weight: weight" in of_survey.yaml
    of_bodies = aegis.init_policy(table(weight=np.geomspace(1, 300, ROWS)), label="y")
    assert "# weight: weight" not in of_bodies.yaml


def test_named_weights_are_in_the_policy_and_not_released() -> None:
    rows = table(pw=np.arange(ROWS) + 0.5)
    proposed = aegis.init_policy(rows, label="y", weight="pw")
    assert proposed.policy.weight == "pw"
    read = load_policy(read_yaml(proposed.yaml, "policy").data)
    assert read == proposed.policy
    assert "pw" not in [attribute.name for attribute in read.features]
    assert aegis.Study(rows, read).advise().best.utility_kept > 0


@pytest.mark.parametrize("values", [["a"] * ROWS, [-1.0, *range(1, ROWS)], [None, *range(1, ROWS)]])
def test_what_is_no_weight_is_refused(values: list[Any]) -> None:
    with pytest.raises(DataError, match="The weight 'pw' holds values"):
        aegis.init_policy(table(pw=values), label="y", weight="pw")
