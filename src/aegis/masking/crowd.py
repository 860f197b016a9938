"""Mask the population, with which classes are compared, in the same way as a release."""

from __future__ import annotations

from collections.abc import Mapping

from aegis.masking.masked import masked_table
from aegis.masks import Mask
from aegis.policy import Policy
from aegis.sources import Source
from aegis.summary.classes import ROWS, WEIGHT
from aegis.summary.population import people_of


def masked_population(
    policy: Policy, source: Source | None, masks: Mapping[str, Mask | None]
) -> Source | None:
    """Return the population from which the table's rows come, with the masks applied to its
    quasi-identifiers.

    Return None if there is no population, or if the rule does not depend on one.
    """
    people = people_of(policy, source)
    if people is None:
        return None
    shown: dict[str, Mask | None] = {a.name: masks.get(a.name) for a in policy.quasi_identifiers}
    for name in shown:
        people.require(name, where="in the population")
    for counts in (ROWS, WEIGHT):
        shown.setdefault(counts, None)  # says how many persons a row represents, where it is there
    return Source(masked_table(people, shown), people.origin)
