"""Account for differential privacy: add up the stated epsilons of noise masks.

The guarantee covers only the attributes that are noised. The account lists attributes that are
released without noise; `covers_release` is False if there are any.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from aegis.errors import PolicyError
from aegis.words import json_fields


@dataclass(frozen=True)
class PrivacyLoss:
    """The stated guarantee of one noise mask on one attribute.

    Attributes
    ----------
    attribute
        The column that the mask works on.
    epsilon
        Above 0, finite.
    delta
        From 0 up to but below 1; 0 is pure differential privacy.
    mechanism
        Name of the noise mechanism, for example "laplace".
    sensitivity
        How much one person can change the attribute, above 0. None if the mechanism has no
        sensitivity, as in randomised response.
    learnt
        A parameter that was learnt from the data, so that epsilon does not cover it. None if the
        mask shows no such parameter.
    instead
        The mask to use instead if a parameter was learnt, as written in a policy.
    """

    attribute: str
    epsilon: float
    delta: float = 0.0
    mechanism: str = ""
    sensitivity: float | None = None
    learnt: str | None = None
    instead: str = ""

    def __post_init__(self) -> None:
        _check(
            self, "epsilon", self.epsilon, 0 < self.epsilon < math.inf, "a finite number above 0"
        )
        _check(self, "delta", self.delta, 0 <= self.delta < 1, "a number from 0, below 1")
        if self.sensitivity is not None:
            fine = 0 < self.sensitivity < math.inf
            _check(self, "sensitivity", self.sensitivity, fine, "a finite number above 0")


@dataclass(frozen=True)
class PrivacyAccount:
    """Sequential composition of the losses of all noised attributes.

    Epsilons and deltas add up, because a separate mechanism releases each attribute of a person's
    row once (Dwork and Roth 2014, Theorem 3.16). This worst case holds for any dependence between
    the attributes.

    Attributes
    ----------
    losses
        One per noised attribute; an attribute that is noised twice appears twice.
    exact
        Everything that is released without noise: attributes, missing values, parameters learnt
        from the data. If there are any, differential privacy holds neither for them nor for the
        whole release.
    """

    losses: tuple[PrivacyLoss, ...]
    exact: tuple[str, ...] = ()

    @property
    def epsilon(self) -> float:
        """Sum of the epsilons; 0 if nothing is noised."""
        return math.fsum(loss.epsilon for loss in self.losses)

    @property
    def delta(self) -> float:
        """Sum of the deltas, at most 1."""
        return min(math.fsum(loss.delta for loss in self.losses), 1.0)

    @property
    def covers_release(self) -> bool:
        """Whether the guarantee holds for the whole release, because all of it is noised."""
        return bool(self.losses) and not self.exact

    @property
    def notes(self) -> tuple[str, ...]:
        """Reasons why a stated epsilon does not fully hold, each with the mask to use instead."""
        return tuple(
            f"epsilon {loss.epsilon:g} of {loss.attribute!r} does not cover which values occur: the "
            f"{loss.learnt} of {loss.mechanism} were taken from the data. Write them in the "
            f"policy, chosen without looking at the data: {loss.instead}"
            for loss in self.losses
            if loss.learnt is not None
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the account as JSON values."""
        of_each = ("attribute", "epsilon", "delta", "mechanism", "sensitivity")
        return {
            **json_fields(self, "epsilon", "delta", "covers_release"),
            "attributes": [json_fields(loss, *of_each) for loss in self.losses],
            **json_fields(self, "exact", "notes"),
        }


def _check(loss: PrivacyLoss, name: str, given: float, fine: bool, allowed: str) -> None:
    if not fine:
        raise PolicyError(
            f"{name} of the noise on {loss.attribute!r} is {given!r}.", hint=f"Give {allowed}."
        )
