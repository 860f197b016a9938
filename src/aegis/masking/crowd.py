"""Mask the population of a policy in the same way as a release."""

from __future__ import annotations

from collections.abc import Mapping

from aegis.masking.masked import masked_table
from aegis.masks import Mask
from aegis.policy import Policy
from aegis.sources import Source, open_table
from aegis.summary.classes import ROWS


def masked_population(policy: Policy, masks: Mapping[str, Mask | None]) -> Source | None:
    """Apply the masks to the quasi-identifiers of the policy's population.

    None if the policy names no population, or if its rule does not depend on one.
    """
    if policy.population is None or not policy.privacy.by_crowd:
        return None
    people = open_table(policy.population, reading=policy.reading)
    shown: dict[str, Mask | None] = {a.name: masks.get(a.name) for a in policy.quasi_identifiers}
    for name in shown:
        people.require(name, where="of the population")
    if ROWS not in shown:
        shown[ROWS] = None  # says how many persons a row represents, where it is there
    return Source(masked_table(people, shown), people.origin)
