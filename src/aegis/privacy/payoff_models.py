"""Model an adversary who attacks only if an attack pays, and a publisher who knows that.

These models are registered next to the models of `aegis.privacy.models`. The adversary has a gain
from each person found, and a cost for each attempt. In a class of n people, an attack succeeds with
probability 1 / n, so its expected gain is gain / n. An attack pays if this exceeds the cost. The
publisher has a benefit from each released row, which is smaller if masks hide more information, and
a loss for each person found. Rows whose expected loss exceeds their benefit are suppressed.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from aegis.arrays import Floats
from aegis.privacy.classes import ClassTable, Counts
from aegis.privacy.diversity import TOLERANCE
from aegis.privacy.model import (
    Comparison,
    Criterion,
    ModelNeed,
    ModelParameter,
    PrivacyModel,
    Window,
)
from aegis.privacy.models import UNION
from aegis.privacy.table_models import MODELS

__all__ = ["MODELS", "expected_loss"]

_WAN = "Wan et al.: A Game Theoretic Framework for Analyzing Re-Identification Risk (PLoS ONE 10, 2015)"
_COST = ModelParameter(
    "cost",
    "what the attacker pays for an attack on one person",
    above=True,
    larger_is_stronger=False,
)
_GAIN = ModelParameter(
    "gain", "what the attacker gains by identifying a person", larger_is_stronger=True
)


_BENEFIT = ModelParameter(
    "benefit",
    "what the publisher gains by a row that is released unmasked",
    above=True,
    larger_is_stronger=False,
)
_LOSS = ModelParameter(
    "loss", "what the publisher loses if an attacker identifies a person", larger_is_stronger=True
)
_FREE = ModelParameter(
    "cost", "what the attacker pays for an attack on one person", larger_is_stronger=False
)


def expected_loss(people: Counts, gain: float, cost: float, loss: float) -> Floats:
    """Return how much the publisher can expect to lose by attacks on a row, as an array of the
    shape of `people`.

    The expected loss is loss / n if an attack on one of n people pays (gain / n > cost); otherwise
    it is 0.

    Parameters
    ----------
    people
        Number of people that an adversary cannot distinguish, at least 1; an array of any shape.
    gain, cost
        What the adversary gains from a person found, and what an attack on one person costs the
        adversary.
    loss
        What the publisher loses for each person found.

    Examples
    --------
    >>> import numpy as np
    >>> expected_loss(np.array([1, 5, 6]), gain=120, cost=20, loss=3000).tolist()
    [3000.0, 600.0, 0.0]
    """
    # Compared as a product: gain / n may miss by rounding a cost that it equals.
    attacked = gain > cost * people * (1 + TOLERANCE)
    return np.where(attacked, loss / people, 0.0)


def _reduction(kind: str, table: ClassTable, criterion: Criterion) -> Floats:
    """Return how much masks and expected attacks ("prosecutor" or "journalist") reduce the
    publisher's benefit of a row of each class.
    """
    hidden = np.zeros(len(table)) if table.hidden is None else table.hidden
    people = table.sizes if kind == "prosecutor" else table.crowds
    lost = expected_loss(people, criterion["gain"], criterion["cost"], criterion["loss"])
    return criterion["benefit"] * hidden + lost


def _least_size(criterion: Criterion) -> int:
    """Return the smallest class size at which an attack costs more than its expected gain."""
    return math.floor(criterion["gain"] / (criterion["cost"] * (1 - TOLERANCE))) + 1


for _kind, _title, _people in (
    ("prosecutor", "who knows that a person is in the table", "|E|"),
    ("journalist", "who wants to find anyone in the population", "population of E"),
):
    MODELS.register(
        PrivacyModel(
            name=f"no_attack.{_kind}",
            title=f"no attack by a {_kind}",
            description=(
                f"No attack pays for an adversary {_title}: the gain from identifying a person, times the "
                "probability of success, is below the cost of an attack. Give gain and cost in the same unit."
            ),
            formula=f"gain / {_people} < cost",
            reference=_WAN,
            direction=Comparison.BELOW,
            limit="cost",
            parameters=(_GAIN, _COST),
            monotone=True,
            monotone_with_suppression=True,
            monotone_by_person=_kind == "prosecutor",
            argument=UNION,
            figures=(
                (lambda table, criterion: criterion["gain"] / table.sizes)
                if _kind == "prosecutor"
                else (lambda table, criterion: criterion["gain"] / table.crowds)
            ),
            least_size=_least_size if _kind == "prosecutor" else None,
            shortfall="on which an attack for a gain of {gain} costs only {cost}",
            needs=frozenset() if _kind == "prosecutor" else frozenset({ModelNeed.POPULATION}),
            variant=("attacker", _kind),
            implies=("no_attack.journalist",) if _kind == "prosecutor" else (),
            window=Window.ROWS if _kind == "prosecutor" else None,
        )
    )
    MODELS.register(
        PrivacyModel(
            name=f"profitability.{_kind}",
            title=f"profitability against a {_kind}",
            description=(
                "Every released row is worth more to its publisher than the expected loss by attacks of a "
                f"{_kind}. The worth is the benefit, reduced by the share of information (in bits) that "
                "masks hide. Aegis suppresses every row that is not worth more. Give the four amounts in the same unit."
            ),
            formula=(
                f"benefit * (1 - hidden(E)) > loss / {_people} where gain / {_people} > cost, else > 0; "
                "hidden(E) = sum over quasi-identifiers of log2 of the leaves of the value shown, over that "
                "of all leaves"
            ),
            reference=f"{_WAN}; as a privacy model: Prasser et al., AMIA Annual Symposium 2017",
            direction=Comparison.BELOW,
            parameters=(_BENEFIT, _LOSS, _GAIN, _FREE),
            argument=(
                "A coarser class is worth less to the publisher. But if the class is still so "
                "small that attacks pay, its rows still cause a loss."
            ),
            figures=partial(_reduction, _kind),
            shortfall=("that do not pay: benefit {benefit}, loss {loss}, gain {gain}, cost {cost}"),
            needs=frozenset({ModelNeed.LEAVES})
            | ({ModelNeed.POPULATION} if _kind == "journalist" else set()),
            variant=("attacker", _kind),
            implies=("profitability.journalist",) if _kind == "prosecutor" else (),
        )
    )
