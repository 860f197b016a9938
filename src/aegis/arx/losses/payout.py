"""The publisher's payout for a release: the value of its rows minus the expected cost of attacks.

Wan et al., A game theoretic framework for analyzing re-identification risk, PLoS ONE 10, 2015. A row
whose masks hide the share h of its bits (see `log-width`) is worth benefit (1 - h). Where an attack on
its class pays, gain / n > cost, the publisher expects to lose loss / n on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.search.problem import Box, Problem
from aegis.arx.losses.leaf_volume_losses import AreaLoss
from aegis.arx.losses.loss_options import read_options
from aegis.errors import PolicyError
from aegis.privacy.payoff_models import expected_loss

Floats = npt.NDArray[np.float64]
NAME = "publisher-payout"
_ATTACKERS = ("prosecutor", "journalist")


@dataclass(frozen=True)
class Stakes:
    """The value of a release and of an attack on it, all in one unit, by default that of the
    benefit.

    Attributes
    ----------
    benefit
        What the publisher has of a row that is released as it is.
    loss
        What the publisher loses by a person who is found.
    gain, cost
        What a person found is worth to an adversary, and what an attack on one person costs.
    attacker
        `prosecutor`, with the chance 1 over the size of the class, or `journalist`: over its size in
        the population, where the policy names one.
    """

    benefit: float = 1200.0
    loss: float = 300.0
    gain: float = 300.0
    cost: float = 4.0
    attacker: str = "prosecutor"

    @classmethod
    def parse(cls, text: str) -> Stakes:
        """Read `publisher-payout(benefit=1200, loss=300, gain=300, cost=4, attacker=journalist)`.

        Any of them may be left out.

        Raises
        ------
        PolicyError
            An option is unknown, an amount no number from 0, or the attacker another one.
        """
        _, options = read_options(text, [field.name for field in fields(cls)])
        given: dict[str, Any] = {
            name: _attacker(value) if name == "attacker" else _amount(name, value)
            for name, value in options.items()
        }
        return cls(**given)


def _attacker(text: str) -> str:
    if text not in _ATTACKERS:
        raise PolicyError.unknown(f"attacker of {NAME}", text, _ATTACKERS)
    return text


def _amount(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise PolicyError(
            f"The {name} of {NAME} is {text!r}.", hint="Give a number from 0, as in gain=300."
        )
    return value


class PublisherPayout(AreaLoss):
    """The benefit that a publisher does not receive, summed over rows; suppressed rows pay 0.

    A box is bounded by what masks hide at its finest grouping, as if nobody attacked.
    """

    name = NAME

    def __init__(
        self, problem: Problem, plan: PrivacyPlan, stakes: Stakes, shown: str = NAME
    ) -> None:
        super().__init__(problem, plan)
        self.name = shown
        self._stakes = stakes

    def under(self, plan: PrivacyPlan) -> PublisherPayout:
        """Return the same loss under another rule."""
        return PublisherPayout(self._problem, plan, self._stakes, self.name)

    def _exact(self, box: Box) -> float:
        choice = self._problem.choice(box)
        ids = self._frequency.class_ids({n: choice[n].groups for n in self._frequency.quasi})
        classes = self._plan.classes(choice)
        kept_cells = np.isin(ids, classes.kept_ids(self._plan.rule.check(classes).kept_classes))
        known = np.arange(len(classes)) if classes.ids is None else classes.ids
        stakes = self._stakes
        people = classes.crowds if stakes.attacker == "journalist" else classes.sizes
        crowd = people[np.searchsorted(known, ids)]
        lost = expected_loss(crowd, stakes.gain, stakes.cost, stakes.loss)
        unpaid = np.where(kept_cells, self._hidden(box) + lost, stakes.benefit)
        return float((self._frequency.counts * unpaid).sum())

    def _least(self, box: Box) -> float:
        unpaid = np.minimum(self._hidden(box), self._stakes.benefit)
        return float((self._frequency.counts * unpaid).sum())

    def _hidden(self, box: Box) -> Floats:
        """Return the benefit that masks take of each cell's rows at the least, shape (cells,)."""
        hidden: Floats = self._stakes.benefit * self._areas(box) / (self._whole or 1.0)
        return hidden

    def _loss(
        self,
        ids: npt.NDArray[np.int64],  # noqa: ARG002 - the chances are those of the plan's classes
        areas: Floats,
        kept_cells: npt.NDArray[np.bool_],
    ) -> float:
        unpaid = np.where(kept_cells, areas / (self._whole or 1.0), 1.0)
        return float((self._frequency.counts * unpaid).sum() * self._stakes.benefit)
