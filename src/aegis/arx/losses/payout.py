"""The payout of a publisher for a release: the benefit of released data, minus losses from attacks.

Wan et al., A game theoretic framework for analyzing re-identification risk, PLoS ONE 10, 2015. If
masks hide the share h of a row's bits (see `log-width`), the benefit from the row is benefit * (1 -
h). An attack on a class of n rows pays if gain / n > cost; then the publisher's expected loss for
each row is loss / n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from aegis.advisor.search.problem import Box
from aegis.arrays import Flags, Floats
from aegis.arx.losses.leaf_volume_losses import AreaLoss, Groups
from aegis.arx.losses.loss_options import read_options
from aegis.errors import PolicyError
from aegis.privacy.payoff_models import expected_loss

NAME = "publisher-payout"
_ATTACKERS = ("prosecutor", "journalist")


@dataclass(frozen=True)
class Stakes:
    """The benefit of a release to its publisher, and gains and costs of attacks, in one unit of
    money.

    Attributes
    ----------
    benefit
        The publisher's benefit from a row that is released unmasked.
    loss
        The publisher's loss for each person who is identified.
    gain, cost
        The adversary's gain from identifying a person, and the cost of an attack on one person.
    attacker
        `prosecutor`: the probability of success is 1 / (size of the class). `journalist`: it is 1 /
        (size of the class in the population), if the policy names one.
    """

    benefit: float = 1200.0
    loss: float = 300.0
    gain: float = 300.0
    cost: float = 4.0
    attacker: str = "prosecutor"

    @classmethod
    def parse(cls, text: str) -> Stakes:
        """Read `publisher-payout(benefit=1200, loss=300, gain=300, cost=4, attacker=journalist)`.

        You can leave out any of the options.

        Raises
        ------
        PolicyError
            An option or the attacker is unknown, or an amount is not a number of at least 0.
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
    """The loss that the search minimises: the benefit to the publisher if all rows were released
    unmasked, minus the payout of the release.

    A suppressed row has no payout. The bound for a set of configurations is the loss that its
    finest masks cause, without attacks.
    """

    name = NAME
    _options: Stakes

    def _exact(self, box: Box) -> float:
        choice = self._problem.choice(box)
        groups = {n: choice[n].groups for n in self._frequency.quasi}
        ids = self._frequency.class_ids(groups)
        classes = self._plan.classes(choice)
        kept_cells = np.isin(ids, classes.kept_ids(self._plan.rule.check(classes).kept_classes))
        known = np.arange(len(classes)) if classes.ids is None else classes.ids
        stakes = self._options
        people = classes.crowds if stakes.attacker == "journalist" else classes.sizes
        crowd = people[np.searchsorted(known, ids)]
        lost = expected_loss(crowd, stakes.gain, stakes.cost, stakes.loss)
        attacked = float((self._frequency.counts * np.where(kept_cells, lost, 0.0)).sum())
        return self._loss(groups, self._areas(box), kept_cells) + attacked

    def _loss(
        self,
        groups: Groups,  # noqa: ARG002 - without attacks, the classes do not matter
        areas: Floats,
        kept_cells: Flags,
    ) -> float:
        unpaid = np.where(kept_cells, areas / (self._whole or 1.0), 1.0)
        return float((self._frequency.counts * unpaid).sum() * self._options.benefit)
