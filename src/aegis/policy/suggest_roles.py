"""Which role a column most likely plays, and why."""

from __future__ import annotations

from aegis.masks import Kind
from aegis.policy.model import Role
from aegis.policy.suggest_names import POSTCODE, Concept, names_measure
from aegis.policy.suggest_profile import NEARLY_ALL, ColumnFacts

FEWEST_FOR_UNIQUE = 20
"""Below this many values, that all differ says nothing."""
MANY_VALUES = 50
"""Different values from which a name alone makes an identifier."""
CODE_LENGTHS = range(4, 13)
"""Lengths of digit strings that are read as codes such as postcodes."""

_IDENTIFYING_SHAPES = {
    "email": "e-mail addresses",
    "uuid": "UUIDs",
    "ip": "IP addresses",
    "ssn": "social security numbers",
}


def propose_role(one: ColumnFacts) -> tuple[Role, str]:
    """Return the role of a column and the reason in half a sentence.

    In this order: what carries no information or no mask works on is ignored; direct identifiers
    by form or name; dates, and what a name gives away; near-unique texts and whole numbers, which
    point at single records; codes of one length; the rest are features. Floats and decimals are
    measured numbers: that they are all different makes no identifier.
    """
    if (reason := _reason_to_ignore(one)) is not None:
        return Role.IGNORE, reason
    concept = one.concept
    if (reason := _reason_to_identify(one, concept)) is not None:
        return Role.IDENTIFIER, reason
    if one.kind is Kind.DATE:
        return Role.QUASI_IDENTIFIER, "dates of events are often known to others"
    if concept is not None and concept.role in (Role.QUASI_IDENTIFIER, Role.SENSITIVE):
        return concept.role, f"the name speaks of {concept.name}"
    if is_code(one):
        return Role.QUASI_IDENTIFIER, "digits of one length, as postcodes have them"
    return Role.FEATURE, "neither name nor values point at a person"


def is_code(one: ColumnFacts) -> bool:
    """Return whether a column holds digit strings of one length."""
    return (
        one.kind is Kind.TEXT
        and one.lengths is not None
        and one.lengths[0] == one.lengths[1]
        and one.lengths[0] in CODE_LENGTHS
        and one.shape("digits") > NEARLY_ALL
    )


def _reason_to_ignore(one: ColumnFacts) -> str | None:
    if one.kind is None:
        return f"no mask works on type {one.dtype}"
    if one.values == 0:
        return "null in every row"
    if one.distinct < 2 and one.nulls == 0:
        return "the same value in every row"
    return None


def _reason_to_identify(one: ColumnFacts, concept: Concept | None) -> str | None:
    if one.kind in (Kind.BOOLEAN, Kind.DATE):
        return None
    many = one.unique_share > 0.5 or one.distinct >= MANY_VALUES
    for shape, name in _IDENTIFYING_SHAPES.items():
        if many and one.shape(shape) > NEARLY_ALL:
            return f"the values are {name}"
    if concept is not None and concept.role is Role.IDENTIFIER:
        if many and (not concept.weak or one.unique_share > 0.5):
            return f"the name speaks of {concept.name}"
        concept = None
    return _reason_near_unique(one, concept)


def _reason_near_unique(one: ColumnFacts, concept: Concept | None) -> str | None:
    if one.unique_share <= NEARLY_ALL or one.values < FEWEST_FOR_UNIQUE:
        return None
    reason = f"near-unique: {one.distinct:,} different values in {one.values:,} rows"
    if one.kind is Kind.TEXT:
        return (
            None if concept is not None and (is_code(one) or concept.name == POSTCODE) else reason
        )
    if one.kind is Kind.INTEGER:
        return None if concept is not None or names_measure(one.spoken) else reason
    return None
