from __future__ import annotations

import pytest

from aegis.errors import PolicyError
from aegis.privacy import PrivacyAccount, PrivacyLoss
from aegis.privacy.rule import PRESETS


def test_epsilons_and_deltas_add_up() -> None:
    losses = (
        PrivacyLoss("age", 0.1, mechanism="laplace", sensitivity=1),
        PrivacyLoss("hours", 0.2, 1e-6),
        PrivacyLoss("age", 0.3, 1e-6, mechanism="geometric"),
    )
    account = PrivacyAccount(losses)
    assert account.epsilon == pytest.approx(0.6, abs=1e-15)
    assert account.delta == pytest.approx(2e-6)
    assert account.covers_release
    assert account.to_dict()["attributes"][0] == {
        "attribute": "age",
        "epsilon": 0.1,
        "delta": 0.0,
        "mechanism": "laplace",
        "sensitivity": 1,
    }


def test_an_exact_attribute_leaves_the_release_uncovered() -> None:
    account = PrivacyAccount((PrivacyLoss("age", 1.0),), exact=("education",))
    assert not account.covers_release
    assert account.to_dict()["exact"] == ["education"]
    nothing = PrivacyAccount(())
    assert not nothing.covers_release
    assert nothing.epsilon == 0
    assert PrivacyAccount((PrivacyLoss("a", 1, 0.7), PrivacyLoss("b", 1, 0.7))).delta == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilon": 0}, "epsilon of the noise on 'age' is 0. Give a finite number above 0"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"epsilon": float("inf")}, "epsilon"),
        ({"epsilon": 1, "delta": 1}, "delta"),
        ({"epsilon": 1, "sensitivity": 0}, "sensitivity"),
    ],
)
def test_bad_guarantees_are_refused(given: dict[str, float], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        PrivacyLoss("age", **given)


def test_presets_ask_for_classes_of_eleven() -> None:
    assert set(PRESETS.values()) == {11}
