"""Decide whether one privacy rule requires at least as much as another rule, criterion by
criterion.

Rule B is *at least as strong* as rule A if A also allows every release that B allows. Aegis decides
this from the rules, not by trying tables. Each criterion of A must follow from the criteria of B. B
must allow no more suppression than A, and count the same unit, rows or persons. If the steps below
do not show that a criterion follows, Aegis assumes that it does not. So if two rules cannot be
compared, each is *weaker* than the other, which is the safe answer to "is this rule weak?".

A criterion follows from

- a criterion of the same model and attribute, if each of its parameters requires at least as much;
- a criterion of a model that implies it (`PrivacyModel.implies`), with the same parameters;
- the smallest class that B allows, if the criterion is on class sizes only. Criteria such as k,
  prosecutor risk, and a number of values (each value needs a row) imply a smallest class;
- the number of values that B requires of a class, if the criterion requires only a number of
  values. (c,l)-diversity, entropy l-diversity and (alpha,k)-anonymity all require some number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import StrEnum

from aegis.privacy.model import MODELS, Comparison, Criterion, ModelParameter, PrivacyModel
from aegis.privacy.rule import PrivacyRule

_ALIKE = 1e-12


class Strength(StrEnum):
    """Whether one rule is weaker than another rule, as strong, or stronger."""

    SAME = "same"
    """Each rule is at least as strong as the other."""
    STRONGER = "stronger"
    """The rule is at least as strong as the other rule, but the other rule is not as strong as this
    one.
    """
    WEAKER = "weaker"
    """The rule is not at least as strong: it requires less, or the two rules cannot be compared."""


def strength(rule: PrivacyRule, other_rule: PrivacyRule) -> Strength:
    """Return whether `rule` is weaker than `other_rule`, as strong, or stronger."""
    if missing(rule, other_rule):
        return Strength.WEAKER
    return Strength.STRONGER if missing(other_rule, rule) else Strength.SAME


def missing(rule: PrivacyRule, other_rule: PrivacyRule) -> tuple[str, ...]:
    """Return the requirements of `other_rule` that a table may break although it meets `rule`, in
    words.
    """
    return tuple(_missing(rule, other_rule))


def _missing(rule: PrivacyRule, other_rule: PrivacyRule) -> Iterator[str]:
    if rule.person != other_rule.person:
        yield f"it counts {_subjects(other_rule)}, not {_subjects(rule)}"
    for demand in other_rule.criteria:
        if not _follows(demand, rule):
            yield str(demand)
    if rule.suppression > other_rule.suppression + _ALIKE:
        yield f"at most {100 * other_rule.suppression:g} % of the {_subjects(other_rule)} suppressed"


def _subjects(rule: PrivacyRule) -> str:
    return "rows" if rule.person is None else f"persons ({rule.person})"


def _follows(demand: Criterion, rule: PrivacyRule) -> bool:
    """Return whether it is known that every table whose classes all meet `rule` also meets the
    criterion `demand`.
    """
    if any(_asks_for(criterion, demand) for criterion in rule.criteria):
        return True
    least = demand.model.least_size
    if least is not None:
        return least(demand) <= rule.implied_size
    values = demand.model.values
    if values is None or not values.sufficient or rule.person is not None:
        # Of persons, a value that everybody in a class has is certain however many others there are.
        return False
    return demand.values_needed <= max(
        (c.values_needed for c in rule.criteria if c.attribute == demand.attribute), default=1
    )


def _asks_for(asked: Criterion, demand: Criterion) -> bool:
    """Return whether the criterion `asked` implies `demand`: both protect the same attribute, the
    model of `asked` is or implies that of `demand`, and each parameter requires at least as much.
    """
    if asked.attribute != demand.attribute or demand.model not in _implied(asked.model):
        return False
    if demand.model.compares and asked.reference is not demand.reference:
        return False
    given = dict(asked.parameters)
    return all(
        parameter.name in given
        and _as_much(demand.model, parameter, given[parameter.name], demand[parameter.name])
        for parameter in demand.model.parameters
    )


def _implied(model: PrivacyModel) -> list[PrivacyModel]:
    """Return a model and all models that it implies, directly or indirectly."""
    reached = [model]
    for strength in reached:
        reached += [m for m in map(MODELS.get, strength.implies) if m not in reached]
    return reached


def _as_much(model: PrivacyModel, parameter: ModelParameter, given: float, asked: float) -> bool:
    larger = larger_is_stronger(model, parameter)
    if math.isclose(given, asked, rel_tol=_ALIKE, abs_tol=_ALIKE):
        return True
    return larger is not None and (given > asked if larger else given < asked)


def larger_is_stronger(model: PrivacyModel, parameter: ModelParameter) -> bool | None:
    """Return whether a larger value of a privacy model's parameter requires more; None if this is
    not known.
    """
    if parameter.larger_is_stronger is not None:
        return parameter.larger_is_stronger
    if parameter.name == model.limit and model.fails is None:
        return model.direction is Comparison.AT_LEAST
    return None
