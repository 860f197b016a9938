"""Which role a column most likely plays, and why."""

from __future__ import annotations

from aegis.masks import Kind
from aegis.policy.model import Role
from aegis.policy.suggest.names import POSTCODE, Concept, names_measure, names_thing
from aegis.policy.suggest.profile import NEARLY_ALL, ColumnFacts

FEWEST_FOR_UNIQUE = 20
"""Below this many values, that all differ says nothing."""
MANY_VALUES = 50
"""Different values from which a name alone makes an identifier."""
FEW_VALUES = 5
"""Up to so many values of a column that is called like an identifier are no identifiers."""
ROWS_PER_VALUE = 20
"""With fewer rows per value, values point at few rows."""
CODE_LENGTHS = range(4, 13)
"""Lengths of digit strings that are read as codes such as postcodes."""

_IDENTIFYING_SHAPES = {
    "email": "e-mail addresses",
    "uuid": "UUIDs",
    "ip": "IP addresses",
    "ssn": "social security numbers",
    "phone": "telephone numbers",
}
_DOUBTFUL_SHAPES = {"person": "names of persons", "record": "record numbers"}
"""What things are called, too: by these forms a column is not released as it is, and a person asked."""
_CHECK = "make it an identifier if they point at persons, a feature if they do not"
_CHECK_FEATURE = (
    "make it a quasi-identifier if others may know them of a person, an identifier if they name one"
)


def propose_role(one: ColumnFacts) -> tuple[Role, str]:
    """Return the role of a column and the reason in half a sentence.

    In this order: what carries no information or no mask works on is ignored; direct identifiers
    by form or name, and near-unique texts and whole numbers, which point at single records; dates,
    and what a name gives away; codes of one length; texts of which one cannot tell (`warn_of`) are
    quasi-identifiers; the rest are features. Floats and decimals are
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
    if _doubt(one) is not None:
        return Role.QUASI_IDENTIFIER, "name or values may point at persons"
    return Role.FEATURE, "neither name nor values point at a person"


def warn_of(one: ColumnFacts, role: Role) -> str:
    """Return what a person must decide about a proposed role, empty where nothing calls for it.

    Texts with fewer than `ROWS_PER_VALUE` rows per value, and values in a form that persons' names
    or record numbers have, are no identifiers for certain; neither may they pass in silence.
    """
    if one.kind is not Kind.TEXT or role not in (Role.FEATURE, Role.QUASI_IDENTIFIER):
        return ""
    if role is Role.QUASI_IDENTIFIER:
        doubt = None if is_code(one) or _speaks(one) else _doubt(one)
        return "" if doubt is None else f"{doubt}: {_CHECK}"
    if one.distinct >= MANY_VALUES and one.distinct * ROWS_PER_VALUE > one.values:
        return f"{one.distinct:,} different texts in {one.values:,} rows: {_CHECK_FEATURE}"
    return ""


def warn_of_label(one: ColumnFacts, *, bins: int | None = None) -> str:
    """Return why a label is hardly one to predict, empty where nothing speaks against it.

    Numbers of persons or records are no measured quantity, however many rows share a bin of them.

    Parameters
    ----------
    one
        What was measured on the label.
    bins
        The bins into which it is cut, None where its values are the classes.
    """
    concept = one.concept
    cut = "" if bins is None else f"; its {bins} bins are ranges of such numbers"
    unique = one.unique_share > NEARLY_ALL and one.values >= FEWEST_FOR_UNIQUE
    many = one.distinct >= MANY_VALUES and concept is not None and not concept.weak
    if concept is not None and concept.role is Role.IDENTIFIER and (unique or many):
        return f"the name speaks of {concept.name}{cut}. Choose a label worth predicting"
    if unique and one.kind in (Kind.TEXT, Kind.INTEGER) and not names_measure(one.spoken):
        return (
            f"nearly every row has a value of its own ({one.distinct:,} in {one.values:,} rows), as "
            f"numbers of records have{cut}. Choose another label unless it is measured"
        )
    return ""


def _speaks(one: ColumnFacts) -> bool:
    """Return whether the name says that a column is a quasi-identifier or sensitive."""
    concept = one.concept
    return concept is not None and concept.role in (Role.QUASI_IDENTIFIER, Role.SENSITIVE)


def _doubt(one: ColumnFacts) -> str | None:
    """Return why the texts of a column may point at persons, though its name does not say so."""
    concept = one.concept
    if one.kind is not Kind.TEXT:
        return None
    named = concept is not None and concept.role is Role.IDENTIFIER and not concept.weak
    if concept is not None and named and one.distinct > FEW_VALUES:
        return f"the name speaks of {concept.name}, but only {one.distinct:,} values occur"
    if one.distinct < MANY_VALUES:
        return None
    for shape, name in _DOUBTFUL_SHAPES.items():
        if one.shape(shape) > NEARLY_ALL and not (shape == "person" and names_thing(one.spoken)):
            return f"{one.distinct:,} different values that look like {name}"
    if one.unique_share > 0.5:
        return f"most values are rare: {one.distinct:,} different ones in {one.values:,} rows"
    return None


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
