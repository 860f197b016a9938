"""Define privacy models for presence and re-identification, which compare a class of the table with
the same class of the population.

These models are registered next to the models of `aegis.privacy.models`.
"""

from __future__ import annotations

import math

import numpy as np

from aegis.arrays import Flags
from aegis.privacy.classes import ClassTable
from aegis.privacy.diversity import TOLERANCE
from aegis.privacy.model import (
    Comparison,
    Criterion,
    ModelNeed,
    ModelParameter,
    PrivacyModel,
    Window,
)
from aegis.privacy.models import MIXTURE, MODELS, UNION

__all__ = ["MODELS"]

_RISK = ModelParameter(
    "threshold",
    "largest risk of re-identification",
    high=1,
    above=True,
    larger_is_stronger=False,
)
_RISKS = "El Emam: Guide to the De-Identification of Personal Health Information (2013)"
_NERGIZ = "Nergiz, Atzori, Clifton: Hiding the Presence of Individuals from Shared Databases (SIGMOD 2007)"


def _too_lonely(table: ClassTable, criterion: Criterion) -> Flags:
    """Return whether each class must be removed so that the mean risk of the remaining rows meets
    the threshold: all with fewer than m people, for the smallest m that suffices.
    """
    people = table.crowds
    order = np.argsort(-people, kind="stable")
    ordered = people[order]
    mean = np.cumsum(table.sizes[order] / ordered) / np.cumsum(table.sizes[order])
    last_of_size = np.append(ordered[1:] != ordered[:-1], True)[: len(ordered)]
    enough = np.flatnonzero(last_of_size & (mean <= criterion["threshold"] + TOLERANCE))
    smallest = ordered[enough[-1]] if len(enough) else math.inf
    return np.asarray(people < smallest)


def _presence_outside(table: ClassTable, criterion: Criterion) -> Flags:
    share = table.sizes / table.crowds
    fails = (share > criterion["maximum"] + TOLERANCE) | (share < criterion["minimum"] - TOLERANCE)
    if criterion["minimum"] > 0 and table.absent:
        fails = np.ones_like(fails)
    return np.asarray(fails)


MODELS.register_all(
    PrivacyModel(
        name="delta_presence",
        title="delta-presence",
        description=(
            "For every person in the population, the probability that the release contains the "
            "person is at least `minimum` and at most `maximum`. If a class has no released row, "
            "a reader knows that the people of this class are absent. So a minimum above 0 admits "
            "no such class. With `reference: input`, this refers only to classes that have no "
            "rows before suppression."
        ),
        formula="minimum <= |E| / population of E <= maximum",
        reference=_NERGIZ,
        direction=Comparison.AT_MOST,
        parameters=(
            ModelParameter(
                "maximum",
                "largest probability of presence",
                high=1,
                above=True,
                larger_is_stronger=False,
            ),
            ModelParameter(
                "minimum",
                "smallest probability of presence",
                high=1,
                default=0,
                larger_is_stronger=True,
            ),
        ),
        monotone=True,
        argument="The share of a merged class lies between the shares of its parts. " + MIXTURE,
        figures=lambda table, _: table.sizes / table.crowds,
        fails=_presence_outside,
        ordered=("minimum", "maximum"),
        # People in classes without a row have none in any finer class either.
        hopeless=lambda table, criterion: criterion["minimum"] > 0 and table.absent > 0,
        shortfall="whose share of the population lies outside {minimum}..{maximum}",
        needs=frozenset({ModelNeed.POPULATION, ModelNeed.REFERENCE}),
    ),
    PrivacyModel(
        name="max_risk.prosecutor",
        title="prosecutor risk",
        description="The largest probability that an attacker finds a person whom the attacker knows to be in "
        "the table.",
        formula="1 / |E| <= threshold",
        reference=_RISKS,
        direction=Comparison.AT_MOST,
        parameters=(_RISK,),
        monotone=True,
        monotone_with_suppression=True,
        monotone_by_person=True,
        argument=UNION,
        figures=lambda table, _: 1.0 / table.sizes,
        least_size=lambda criterion: math.ceil(1 / (criterion["threshold"] + 1e-9)),
        shortfall="with a risk above {threshold}",
        variant=("kind", "prosecutor"),
        implies=("max_risk.journalist",),
        window=Window.ROWS,
    ),
    PrivacyModel(
        name="max_risk.journalist",
        title="journalist risk",
        description="The largest probability that an attacker identifies any person of the population.",
        formula="1 / population of E <= threshold",
        reference=_RISKS,
        direction=Comparison.AT_MOST,
        parameters=(_RISK,),
        monotone=True,
        monotone_with_suppression=True,
        argument=UNION,
        figures=lambda table, _: 1.0 / table.crowds,
        shortfall="with a risk above {threshold}",
        needs=frozenset({ModelNeed.POPULATION}),
        variant=("kind", "journalist"),
        implies=("max_risk.marketer",),
    ),
    PrivacyModel(
        name="max_risk.marketer",
        title="marketer risk",
        description=(
            "The share of rows that an attacker is expected to identify by matching the whole "
            "release with a register of the population. If the population is unknown, Aegis uses "
            "the table instead. Aegis removes the classes with the fewest people first, until the "
            "share meets the threshold."
        ),
        formula="sum_E |E| / population of E <= threshold * rows",
        reference=_RISKS,
        direction=Comparison.AT_MOST,
        parameters=(_RISK,),
        monotone=True,
        argument=(
            "Merging never increases the mean risk: (a + b) / (A + B) <= a/A + b/B. But it can "
            "increase the number of rows to remove. For example, many classes of one row merge to "
            "classes of two rows. Aegis then removes all classes of two rows, also one that it "
            "kept before."
        ),
        figures=lambda table, _: 1.0 / table.crowds,
        fails=_too_lonely,
        shortfall="in the smallest crowds that have to go for a mean risk of {threshold}",
        needs=frozenset({ModelNeed.REFERENCE, ModelNeed.CROWD}),
        variant=("kind", "marketer"),
    ),
)
