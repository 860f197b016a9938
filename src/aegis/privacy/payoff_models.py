"""Privacy models of an adversary who attacks only where that pays.

They stand in the registry beside those of `aegis.privacy.models`. Who finds a person gains, who tries
has a cost: with the chance 1 / n of a class of n an attack is worth gain / n, and nobody makes one
that is worth less than it costs.
"""

from __future__ import annotations

import math

from aegis.privacy.closeness import TOLERANCE
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

__all__ = ["MODELS"]

_WAN = "Wan et al.: A Game Theoretic Framework for Analyzing Re-Identification Risk (PLoS ONE 10, 2015)"
_COST = ModelParameter(
    "cost", "what an attack on one person costs", above=True, larger_is_stronger=False
)
_GAIN = ModelParameter("gain", "what a person found is worth", larger_is_stronger=True)


def _least_size(criterion: Criterion) -> int:
    """Return the rows of the smallest class on which an attack costs more than it is worth."""
    return math.floor(criterion["gain"] / (criterion["cost"] * (1 - TOLERANCE))) + 1


for _kind, _title, _people in (
    ("prosecutor", "who knows that a person is in the table", "|E|"),
    ("journalist", "who is after anyone of the population", "population of E"),
):
    MODELS.register(
        PrivacyModel(
            name=f"no_attack.{_kind}",
            title=f"no attack by a {_kind}",
            description=(
                f"An adversary {_title} loses by every attack: a person found is worth less, by the "
                "chance to find one, than the attempt costs. Gain and cost are in any one unit."
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
