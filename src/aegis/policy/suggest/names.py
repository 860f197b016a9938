"""What a column's name says about its role, in several languages.

A name is read as words: `dateOfBirth`, `date_of_birth` and `DATE OF BIRTH` are the same three, and
`dateofbirth` is found too. A concept applies when one of its phrases stands in the name as whole
words; the longest phrase decides, so `marital status` is not a `status`. The concepts and word
lists are data: `words.toml` in this folder.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from aegis.policy.model import Role
from aegis.policy.suggest.lists import read_lists, word_list
from aegis.policy.suggest.persons import Named, whose_name


@dataclass(frozen=True)
class Concept:
    """Something that column names speak of.

    Attributes
    ----------
    name
        How a reason calls it.
    role
        The role that it suggests.
    phrases
        Spellings, lower case, words separated by one space.
    weak
        Whether the phrases must end the name and nearly every value must be different.
    codes
        Whether whole numbers under this name are codes without an order.
    """

    name: str
    role: Role
    phrases: tuple[str, ...]
    weak: bool = False
    codes: bool = False


AGE, POSTCODE = "age", "a postcode"
"""Concepts that candidate masks depend on."""
PERSON_NAME = "a person's name"
"""Also what `name` says, alone or beside words for persons; see `aegis.policy.suggest.persons`."""
CONCEPTS: tuple[Concept, ...] = tuple(
    Concept(
        entry["name"],
        Role(entry["role"]),
        tuple(entry["phrases"]),
        weak=entry.get("weak", False),
        codes=entry.get("codes", False),
    )
    for entry in read_lists()["concept"]
)
_WORD = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z0-9à-ÿ])(?=[A-ZÀ-Þ])")
_MOST_WORDS = 4
"""Most words of a phrase."""
_LONGEST = 200
"""Characters of a name that are read; a longer one is no name of a concept."""


@dataclass(frozen=True)
class Words:
    """A column's name as words, with and without accents."""

    plain: tuple[str, ...]
    bare: tuple[str, ...]

    def phrases(self) -> Iterator[tuple[str, bool]]:
        """Yield every run of words without spaces, and whether it ends the name."""
        for words in dict.fromkeys((self.plain, self.bare)):
            for start in range(len(words)):
                for end in range(start + 1, min(start + _MOST_WORDS, len(words)) + 1):
                    yield "".join(words[start:end]), end == len(words)


@lru_cache(maxsize=4096)
def read_words(name: str) -> Words:
    """Return the words of a column's name in lower case."""
    split = _CAMEL.sub(" ", unicodedata.normalize("NFC", name[:_LONGEST]))
    plain = tuple(_WORD.findall(split.lower()))
    stripped = unicodedata.normalize("NFKD", split.lower())
    bare = tuple(_WORD.findall("".join(c for c in stripped if not unicodedata.combining(c))))
    return Words(plain, bare)


@cache
def _concepts_by_phrase() -> dict[str, list[Concept]]:
    """Return the concepts of every phrase, spaces left out: `date of birth` is `dateofbirth`."""
    found: dict[str, list[Concept]] = {}
    for concept in CONCEPTS:
        for phrase in concept.phrases:
            found.setdefault(phrase.replace(" ", ""), []).append(concept)
    return found


@cache
def _person_name() -> Concept:
    return next(concept for concept in CONCEPTS if concept.name == PERSON_NAME)


def names_thing(name: str) -> bool:
    """Return whether the column holds names of things, such as `product_name`."""
    return whose_name(read_words(name).bare) is Named.THING


@lru_cache(maxsize=4096)
def find_concept(name: str) -> Concept | None:
    """Return what the name speaks of, by its longest matching phrase; None where it says nothing.

    A flag (`is_mobile`, `has_email`) tells of a yes or no, not of the thing itself, and never
    names an identifier. The name of a thing is no person's, although `name` stands in it.
    """
    words = read_words(name)
    flag = bool(words.bare) and words.bare[0] in word_list("flag")
    whose = whose_name(words.bare)
    if whose is Named.PERSON and not flag:
        return _person_name()
    by_phrase = _concepts_by_phrase()
    best: Concept | None = None
    longest = 0
    for phrase, ends in words.phrases():
        for concept in by_phrase.get(phrase, ()):
            allowed = (ends or not concept.weak) and not (flag and concept.role is Role.IDENTIFIER)
            if concept.name == PERSON_NAME and whose is Named.THING:
                continue
            if allowed and len(phrase) > longest:
                best, longest = concept, len(phrase)
    return best


def names_codes(name: str) -> bool:
    """Return whether whole numbers under this name are codes, so that their order means nothing."""
    concept = find_concept(name)
    if concept is not None and concept.codes:
        return True
    words = read_words(name).bare
    if not word_list("code_endings").isdisjoint(words[-1:]):
        return True
    return not word_list("code").isdisjoint(words) and word_list("measure").isdisjoint(words)


def names_measure(name: str) -> bool:
    """Return whether the name speaks of a measured quantity, whose values may well all differ."""
    words = read_words(name).bare
    return not word_list("measure").isdisjoint(words) and word_list("moment").isdisjoint(words)
