"""Whatever a file or a call has wrong is said in our words, not in those of pydantic."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from aegis.errors import PolicyError, allowed_value, wrong_value
from aegis.policy import load_policy
from aegis.policy.lines import PolicyMapping
from aegis.summary.bundle.read import BundleMapping
from constraint_support import below, errors_of_model

SMALL = {"version": 1, "label": "y", "attributes": {"a": {"role": "quasi-identifier"}}}


@pytest.mark.parametrize("model", [*below(PolicyMapping), *below(BundleMapping)])
def test_each_error_of_a_model_is_said_in_plain_words(model: type[BaseModel]) -> None:
    told = [(each["type"], wrong_value(each)) for each in errors_of_model(model)]
    assert told
    for kind, said in told:
        assert "another value" not in said, kind
        assert "of the form" not in said, kind
        assert "Input should" not in said, kind


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"version": 2}, "version is 2. A policy starts with `version: 1`."),
        ({"label": ""}, "label is ''. Write a text of at least 1 character."),
        ({"label": {"column": "y", "bins": 1}}, "label.bins is 1. Write a number of 2 or more."),
        ({"label": {"column": "y", "bins": 101}}, "bins is 101. Write a number of 100 or less."),
        ({"label": {"column": "y", "bins": 2.5}}, "label.bins is 2.5. Write a whole number."),
        ({"label": {"column": "y", "bounds": [1]}}, "bounds is [1]. Write at least 2 entries."),
        ({"label": {"column": "y", "bounds": [1, 2, 3]}}, "Write at most 2 entries."),
        ({"label": {"column": "y", "cuts": ["x"]}}, "label.cuts.0 is 'x'. Write a number."),
        (
            {"label": {"column": "y", "classes": [None]}},
            "label.classes.0 is None. Write a text or a number or true or false.",
        ),
        (
            {"label": {"column": "y", "kind": "numbers"}},
            "label.kind is 'numbers'. Did you mean 'number'? Allowed: classes, number.",
        ),
        ({"labels": "income"}, "labels is 'income'. Write a list or any."),
        ({"anonymizers": [3]}, "anonymizers.0 is 3. Write a text or a mapping."),
        ({"release": {"purpos": "x"}}, "unknown key 'purpos'. Did you mean 'purpose'?"),
        ({"reading": {"header": "yes"}}, "reading.header is 'yes'. Write true or false."),
        (
            {"attributes": {"a": {"role": "feature", "weight": float("inf")}}},
            "attributes.a.weight is inf. Write a finite number.",
        ),
        (
            {"attributes": {"a": {"role": "feature", "values": [None]}}},
            "attributes.a.values.0 is None. Write a text or a number or true or false.",
        ),
        (
            {"attributes": {"a": {"role": "quasi-identifier", "order": ["x"]}}},
            "attributes.a.order is ['x']. Write at least 2 entries.",
        ),
    ],
)
def test_a_wrong_policy_says_what_it_has_and_what_to_write(
    changed: dict[str, Any], said: str
) -> None:
    with pytest.raises(PolicyError) as caught:
        load_policy({**SMALL, **changed})
    assert said in str(caught.value)


def test_a_text_that_may_be_a_password_is_not_repeated() -> None:
    wrong = {"type": "string_too_long", "input": "secret" * 50, "ctx": {"max_length": 256}}
    assert wrong_value(wrong) == "is a text of 300 characters, not a text of at most 256 characters"


def test_what_a_rule_of_ours_refuses_is_said_in_its_words() -> None:
    wrong = {"type": "value_error", "ctx": {"error": ValueError("a text has a NUL character")}}
    assert allowed_value(wrong) == "a text has a NUL character"
