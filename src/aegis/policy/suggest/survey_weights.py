"""Find the column with the weights of a survey, and propose how to treat it."""

from __future__ import annotations

from collections.abc import Iterable

from aegis.errors import DataError
from aegis.policy.model import Role
from aegis.policy.suggest.column_profile import ColumnProfile
from aegis.policy.suggest.facts import ColumnFacts
from aegis.policy.suggest.lists import word_list
from aegis.policy.suggest.names import read_words

FEWEST_WEIGHTS = 5
"""A column with fewer values than this is not considered to contain weights."""
MOST_KILOGRAMS = 400
"""If the median is at most this, a column called weight may contain weights of bodies, in
kilograms.
"""


def declared_weight(facts: ColumnFacts) -> ColumnProfile:
    """Return the profile of the column that the user declares as weights, with the role of a column
    that is not released.

    Raises
    ------
    DataError
        The column does not contain numbers, or some numbers are below 0.
    """
    numeric = facts.kind is not None and facts.kind.numeric
    if not numeric or facts.low is None or facts.low < 0 or facts.nulls or facts.special:
        given = f"of type {facts.dtype}" if not numeric else f"from {facts.low} to {facts.high}"
        missing = f", {facts.nulls:,} of them null" if facts.nulls else ""
        raise DataError(
            f"The weight {facts.name!r} holds values {given}{missing}.",
            hint="A weight is a number of 0 or more in every row. Name another column, or leave "
            "--weight out.",
        )
    reason = "the weight of a row, which can single it out: it weights scores, and is not released"
    return ColumnProfile(facts, Role.IGNORE, reason, (), "")


def likely_weight(facts: Iterable[ColumnFacts]) -> str | None:
    """Return the column that most likely contains survey weights, judged by its name and its
    values; None if no column is likely.
    """
    return next((own.name for own in facts if _is_likely(own)), None)


def _is_likely(facts: ColumnFacts) -> bool:
    """Return whether a column's name suggests survey weights, and all its values are positive numbers."""
    positive = facts.kind is not None and facts.kind.numeric and facts.low is not None
    if not positive or facts.low <= 0 or facts.nulls or facts.special:
        return False
    if facts.distinct < FEWEST_WEIGHTS:
        return False
    words = set(read_words(facts.spoken).bare)
    of_surveys = words & word_list("survey_weight")
    if of_surveys - word_list("body_weight") or (of_surveys and words & word_list("of_survey")):
        return True
    middle = (facts.quantiles or {}).get(0.5)
    return bool(of_surveys) and middle is not None and middle > MOST_KILOGRAMS


__all__ = ["declared_weight", "likely_weight"]
