"""Whose names a column called "... name" holds: persons', things', or unknown.

`name` alone, or in addition to words for persons and parts of a name, is a person's: `name`, `guest_name`,
`name_of_child`, `nom complet`, `Kundenname`. Beside a word for a thing it is the thing's:
`product_name`, `file name`, `nom_produit`. Of several words the one next to it decides. With any
other word the header does not say, and the values decide (`aegis.policy.suggest.roles`).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from aegis.policy.suggest.lists import word_list


class NameBearer(Enum):
    """The kind of bearer of the names in a column."""

    PERSON = "person"
    THING = "thing"
    UNKNOWN = "unknown"


_ENDINGS = ("names", "namen", "name")


def whose_name(words: Sequence[str]) -> NameBearer | None:
    """Return the kind of bearer of the names in a column; None if the header does not mean names.

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
    """Split `guestname` and `Kundenname` in two, where the first part is known."""
    for ending in _ENDINGS:
        start = word.removesuffix(ending)
        if start != word and start in word_list("person") | word_list("thing"):
            return start, "name"
    return (word,)
