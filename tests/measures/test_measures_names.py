"""Names of measures: what they promise, and former names."""

from __future__ import annotations

import pytest

from aegis.errors import PolicyError, RenamedWarning
from aegis.measures import DEFAULT_MEASURE, FALLBACK_MEASURE, MEASURES, get
from aegis.policy import load_policy

FORMER = {
    "pillai": "adjusted-pillai",
    "pillai-held-out": "held-out-pillai-values",
    "pillai-codings": "held-out-pillai",
    "mi-corrected": "adjusted-mi",
    "cramers-v": "adjusted-cramers-v",
    "g3-held-out": "held-out-g3",
}


@pytest.mark.parametrize(("former", "name"), FORMER.items())
def test_a_former_name_is_accepted_and_says_the_new_one(former: str, name: str) -> None:
    with pytest.warns(RenamedWarning, match=f"'{former}' is now called '{name}'"):
        measure = get(former)
    assert measure is MEASURES.get(name)
    assert former not in MEASURES.names()
    assert former in MEASURES


def test_a_policy_goes_on_under_the_new_name() -> None:
    attributes = {"a": {"role": "feature"}}
    document = {"version": 1, "label": "y", "measure": "pillai-codings", "attributes": attributes}
    with pytest.warns(RenamedWarning):
        policy = load_policy(document)
    assert policy.measure == "held-out-pillai"
    assert policy == load_policy(document | {"measure": "held-out-pillai"})


def test_names_say_what_is_taken_off() -> None:
    for measure in MEASURES:
        title = f"{measure.title} {measure.description}".lower()
        if measure.name.startswith("held-out-"):
            assert any(word in title for word in ("held out", "not fitted", "leave-one-out")), title
        if measure.name.startswith("adjusted-"):
            assert any(word in title for word in ("adjusted", "corrected")), title
            assert not measure.monotone


def test_defaults_are_registered_under_their_own_names() -> None:
    assert get(DEFAULT_MEASURE).name == DEFAULT_MEASURE
    assert get(FALLBACK_MEASURE).name == FALLBACK_MEASURE


def test_measures_that_doubt_exist() -> None:
    doubting = [m.doubted_by for m in MEASURES if m.doubted_by is not None]
    assert doubting
    for name in doubting:
        assert get(name).name == name


def test_an_unknown_name_lists_the_new_ones() -> None:
    with pytest.raises(PolicyError, match="adjusted-pillai"):
        get("pilai")
