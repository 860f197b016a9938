"""Decide whether a column called "... name" contains names of persons or of things.

The word `name`, alone or with words for persons or components of a name, refers to a person:
`name`, `guest_name`, `name_of_child`, `nom complet`, `Kundenname`. Together with a word for a
thing, it refers to the thing: `product_name`, `file name`, `nom_produit`. If there are several such
words, the one next to `name` decides. With any other word, the header is ambiguous, and the values
decide (`aegis.policy.suggest.roles`).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from aegis.policy.suggest.lists import word_list


class NameBearer(Enum):
    """Whether the names in a column belong to persons or to things, or whether this is ambiguous."""

    PERSON = "person"
    THING = "thing"
    UNKNOWN = "unknown"


_ENDINGS = ("names", "namen", "name")


def whose_name(words: Sequence[str]) -> NameBearer | None:
    """Return whose names a column contains; None if the header does not refer to names.

    Parameters
    ----------
    words
        The words of the header in lower case, without accents.
    """
    split = [part for word in words for part in _compound(word)]
    at = next(
        (i for i, word in reversed(list(enumerate(split))) if word in word_list("name")), None
    )
    if at is None:
        return None
    before, after = (
        [
            word
            for word in part
            if not (word in word_list("name_filler") or word in word_list("name") or word.isdigit())
        ]
        for part in (split[:at], split[at + 1 :])
    )
    # "hotel guest name" is the guest's, "nom du client" the client's.
    nearest = before[-1] if before else after[0] if after else None
    if nearest in word_list("thing"):
        return NameBearer.THING
    return (
        NameBearer.PERSON
        if nearest is None or nearest in word_list("person")
        else NameBearer.UNKNOWN
    )


def _compound(word: str) -> tuple[str, ...]:
    """Split a compound such as `guestname` or `Kundenname` in two, if its first word is known."""
    for ending in _ENDINGS:
        start = word.removesuffix(ending)
        if start != word and start in word_list("person") | word_list("thing"):
            return start, "name"
    return (word,)
