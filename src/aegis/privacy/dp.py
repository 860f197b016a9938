"""Account for differential privacy: add up the stated epsilons of noise masks.

The guarantee covers only the attributes with noise. The account lists attributes that are released
without noise; if there are any, `covers_release` is False.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from aegis.errors import PolicyError
from aegis.words import json_fields


@dataclass(frozen=True)
class PrivacyLoss:
    """The differential-privacy guarantee that one noise mask gives for one attribute.

    Attributes
    ----------
    attribute
        The column to which the mask adds noise.
    epsilon
        Above 0, finite.
    delta
        At least 0 and below 1; 0 is pure differential privacy.
    mechanism
        Name of the noise mechanism, for example "laplace".
    sensitivity
        The largest change of the attribute that one person can cause, above 0. None if the
        mechanism has no sensitivity; for example, randomised response has none.
    learnt
        A parameter that was learnt from the data, so that epsilon does not cover it. None if the
        mask reveals no such parameter.
    instead
        If a parameter was learnt, the mask to use instead, as a policy writes it.
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
    """The guarantee that all noise masks together give: the sequential composition of their privacy
    losses.

    Epsilons and deltas add up, because each attribute of a person's row is released once, by a
    separate mechanism (Dwork and Roth 2014, Theorem 3.16). This worst case holds however the
    attributes depend on each other.

    Attributes
    ----------
    losses
        One loss for each attribute with noise; if an attribute gets noise twice, it has two.
    exact
        Everything that is released without noise: attributes, missing values, and parameters learnt
        from the data. If there is anything of this kind, neither it nor the whole release is
        differentially private.
    """

    losses: tuple[PrivacyLoss, ...]
    exact: tuple[str, ...] = ()

    @property
    def epsilon(self) -> float:
        """The sum of the epsilons of all noise masks; 0 if no attribute has noise."""
        return math.fsum(loss.epsilon for loss in self.losses)

    @property
    def delta(self) -> float:
        """The sum of the deltas of all noise masks, at most 1."""
        return min(math.fsum(loss.delta for loss in self.losses), 1.0)

    @property
    def covers_release(self) -> bool:
        """Whether the guarantee holds for the whole release, because the release shows nothing
        without noise.
        """
        return bool(self.losses) and not self.exact

    @property
    def stated(self) -> str:
        """The total epsilon, and what is not covered, in words."""
        exact = "" if self.covers_release else f"; not covered: {', '.join(self.exact)}"
        return f"epsilon {self.epsilon:g}{exact}"

    @property
    def notes(self) -> tuple[str, ...]:
        """The reasons why an epsilon does not cover everything that a mask reveals, each with the
        mask to use instead.
        """
        return tuple(
            f"epsilon {loss.epsilon:g} of {loss.attribute!r} does not cover which values occur: the "
            f"{loss.learnt} of {loss.mechanism} were taken from the data. Write them in the "
            f"policy, chosen without looking at the data: {loss.instead}"
            for loss in self.losses
            if loss.learnt is not None
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the account as JSON values."""
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
