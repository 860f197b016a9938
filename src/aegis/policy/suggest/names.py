"""Derive the role of a column from its name, which may be in one of several languages, and find the
columns that number persons.

A name is split into words: `dateOfBirth`, `date_of_birth` and `DATE OF BIRTH` are the same three
words, and `dateofbirth` is recognised, too. A concept matches if one of its phrases is in the name
as whole words. The longest phrase decides, so `marital status` is not a `status`. The concepts and
word lists are in the file `words.toml` in this folder.

Keys of persons are columns that determine the sex, race or date of birth. In panels and repeated
measurements, each person has many rows. Then neither a name such as `nr` nor the number of rows per
value distinguishes the key of persons from other codes. But a person has one sex and one date of
birth. So each value of a column that identifies persons occurs with only one sex and one date of
birth.
"""

from __future__ import annotations

import math
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import ibis
import ibis.expr.types as ir

from aegis.masks import Kind
from aegis.policy.model import Role
from aegis.sources import Source


@cache
def read_lists() -> dict[str, Any]:
    """Read the word lists: `concept` is a list of concepts, `words` maps names to lists."""
    text = files("aegis.policy.suggest").joinpath("words.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def word_list(name: str) -> frozenset[str]:
    """Return the word list that has this name."""
    return frozenset(read_lists()["words"][name])


_ENDINGS = ("names", "namen", "name")


@dataclass(frozen=True)
class Concept:
    """A concept to which the name of a column can refer, such as a date of birth.

    Attributes
    ----------
    name
        Name of the concept in reasons.
    phrases
        The spellings of the concept in lower case, with words separated by one space.
    weak
        Whether a name alone is weak evidence. Then the phrase must be at the end of the name, and
        nearly all values must differ.
    codes
        Whether whole numbers in such a column are codes without an order.
    whole_name
        Whether a phrase must be the whole name. For example, `first` refers to a person's name, but
        `first contact` does not.
    trait
        Whether the value stays the same throughout a person's life.
    kinds
        Kinds of columns that can contain the concept; empty if all kinds can.
    parts
        Parts of longer words that refer to the concept: `-ageyr` ends a word such as `ridageyr`,
        `malnutr-` begins one, and `-disorder-` may be anywhere in one.
    """

    name: str
    role: Role
    phrases: tuple[str, ...]
    weak: bool = False
    codes: bool = False
    whole_name: bool = False
    trait: bool = False
    kinds: frozenset[Kind] = frozenset()
    parts: tuple[str, ...] = ()


AGE, POSTCODE, OCCUPATION = "age", "a postcode", "occupation"
"""The concepts on which candidate masks depend."""
EDUCATION = "education"
"""A word for times or costs next to it gives the name another meaning."""
NUMBER = "a number that names one person or record"
"""The concept also applies if a word for a person or record is next to a word for a number, as in
`patient_nbr`.
"""
PERSON_NAME = "a person's name"
"""Also applies to `name`, alone or with words for persons; see `aegis.policy.suggest.names`."""
CONCEPTS: tuple[Concept, ...] = tuple(
    Concept(
        **entry
        | {
            "role": Role(entry["role"]),
            "phrases": tuple(entry["phrases"]),
            "kinds": frozenset(map(Kind, entry.get("kinds", ()))),
            "parts": tuple(entry.get("parts", ())),
        }
    )
    for entry in read_lists()["concept"]
)
_WORD = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z0-9à-ÿ])(?=[A-ZÀ-Þ])")
_GLUED = re.compile(
    r"\b(?!(?:phage|plage|agents?|\w*stage|\w*wage)\d*\b)"
    r"(?:([^\W\d_aeiouy]{1,5})(sex|gender|dob)|([^\W\d_aeiouy]{2,5})(age|zip|educ)"
    r"|(age)([^\W\d_eo]|[^\W\d_aeiouy]{2,4})"
    r"|(hus|husb|husband|wife|spouse|moth|mother|fath|father)(age|educ|race|hisp))(?=\d*\b)"
)
"""An abbreviation without vowels, or a relative, that is joined to a trait: `CLMSEX`, `agecl`, `husage`."""
_LONG_NAME = 6
"""Largest number of words of a name; longer ones are read as sentences."""
_LONG_WORD = 9
"""Smallest number of letters of a word that may be misspelt: shorter ones are other words."""
_MOST_WORDS = 4
"""Largest number of words of a phrase."""
_LONGEST = 200
"""Largest number of characters of a name that matches a concept."""


@dataclass(frozen=True)
class Phrase:
    """Consecutive words of a name: their text without spaces, themselves, their position."""

    text: str
    words: tuple[str, ...]
    start: int
    ends: bool


@dataclass(frozen=True)
class Words:
    """The words of a column's name: once as written, and once without accents."""

    plain: tuple[str, ...]
    bare: tuple[str, ...]

    def phrases(self) -> Iterator[Phrase]:
        """Yield every sequence of consecutive words in the name."""
        for words in dict.fromkeys((self.plain, self.bare)):
            for start in range(len(words)):
                for end in range(start + 1, min(start + _MOST_WORDS, len(words)) + 1):
                    text = "".join(words[start:end])
                    yield Phrase(text, words[start:end], start, end == len(words))


@lru_cache(maxsize=4096)
def read_words(name: str) -> Words:
    """Return the words of a column's name in lower case."""
    split = _CAMEL.sub(" ", unicodedata.normalize("NFC", name[:_LONGEST])).lower()
    split = _GLUED.sub(lambda match: " ".join(filter(None, match.groups())), split)
    plain = tuple(_WORD.findall(split))
    stripped = unicodedata.normalize("NFKD", split)
    bare = tuple(_WORD.findall("".join(c for c in stripped if not unicodedata.combining(c))))
    return Words(plain, bare)


@cache
def _concepts_by_phrase() -> dict[str, list[Concept]]:
    """Return the concepts by phrase without spaces, split into words as names are."""
    by_phrase: dict[str, list[Concept]] = {}
    for concept in CONCEPTS:
        for phrase in concept.phrases:
            by_phrase.setdefault("".join(read_words(phrase).plain), []).append(concept)
    return by_phrase


def _corrected(word: str) -> str:
    """Return the phrase that a long word is with one letter too many (`Lattitude`), else the word."""
    if len(word) < _LONG_WORD:
        return word
    # Without the last letter, plurals such as `households` would count, too: they are often numbers of.
    shorter = (word[:i] + word[i + 1 :] for i in range(1, len(word) - 1))
    return next((text for text in shorter if text in _concepts_by_phrase()), word)


def _by_part(word: str) -> list[Concept]:
    """Return the concepts to which a part of a word refers: `RIDAGEYR` ends with an age."""
    return [
        concept
        for concept in CONCEPTS
        for part in concept.parts
        if len(word) > len(part.strip("-"))
        and (part[0] != "-" or part[-1] == "-" or word.endswith(part[1:]))
        and (part[-1] != "-" or part[0] == "-" or word.startswith(part[:-1]))
        and part.strip("-") in word
    ]


@cache
def _concept(name: str) -> Concept:
    return next(concept for concept in CONCEPTS if concept.name == name)


def names_thing(name: str) -> bool:
    """Return whether a name says that values are names of things, as in `product_name`."""
    return whose_name(read_words(name).bare) is NameBearer.THING


@lru_cache(maxsize=4096)
def find_concept(name: str, kind: Kind | None = None) -> Concept | None:
    """Return the concept to which a column's name refers, found by the longest phrase in the name;
    None if no phrase is known. A `kind` of None ignores conditions on the kind of the column's
    values.

    In a name of more than six words, such as a question, the first phrase decides. A flag
    (`is_mobile`, `has_email`) contains yes or no instead of the value, so it never suggests an
    identifier. The name of a thing is not the name of a person. A rating (`job satisfaction`) or a
    count (`number_diagnoses`) does not contain the values of the concept, so it is not sensitive.
    The age of a thing (`account_age`) and the time of a job (`job_date`) do not identify anybody.
    """
    words = read_words(name)
    flag = bool(words.bare) and words.bare[0] in word_list("flag")
    whose = whose_name(words.bare)
    if whose is NameBearer.PERSON and not flag:
        return _concept(PERSON_NAME)
    matches = [
        (phrase, concept)
        for phrase, concept in _matches(words)
        if not (concept.kinds and kind not in concept.kinds)
        and not (flag and concept.role is Role.IDENTIFIER)
        and not (concept.name == PERSON_NAME and whose is NameBearer.THING)
        and not _only_rated_or_counted(words, phrase, concept, kind)
        and not _of_a_thing_or_time(words, phrase, concept)
    ]
    if not matches:
        return None
    if len(words.bare) > _LONG_NAME:
        return min(matches, key=lambda match: (match[0].start, -len(match[0].text)))[1]
    # The first of the longest: a later phrase of the same length does not replace it.
    return max(matches, key=lambda match: len(match[0].text))[1]


def _matches(words: Words) -> Iterator[tuple[Phrase, Concept]]:
    """Yield every phrase of a column's name together with a concept to which it may refer."""
    by_phrase = _concepts_by_phrase()
    for phrase in words.phrases():
        is_whole_name = phrase.ends and phrase.start == 0
        concepts = by_phrase.get(phrase.text)
        if concepts is None and len(phrase.words) == 1:
            concepts = by_phrase.get(_corrected(phrase.text)) or _by_part(phrase.text)
        for concept in concepts or ():
            if (phrase.ends or not concept.weak) and (is_whole_name or not concept.whole_name):
                yield phrase, concept
        if _numbers_somebody(phrase.words):
            yield phrase, _concept(NUMBER)


def numbers_person(name: str) -> bool:
    """Return whether a name says that values number persons, as in `patient_id`."""
    words = read_words(name).bare
    return not word_list("person_number").isdisjoint(words) or any(
        first in word_list("person") and second in word_list("outright")
        for first, second in pairwise(words)
    )


def _numbers_somebody(words: tuple[str, ...]) -> bool:
    """Return whether `words` name a person or record, and then a number: `patient nr`, for example."""
    if len(words) != 2:
        return False
    numbered = word_list("person") | word_list("record")
    return words[0] in numbered and words[1] in word_list("number")


def _only_rated_or_counted(
    words: Words, phrase: Phrase, concept: Concept, kind: Kind | None
) -> bool:
    others = set(words.bare) - set(phrase.words)
    if concept.role is Role.QUASI_IDENTIFIER and not word_list("rating").isdisjoint(others):
        return True
    counted = not word_list("count").isdisjoint(others)
    return concept.role is Role.SENSITIVE and counted and (kind is None or kind.numeric)


def _of_a_thing_or_time(words: Words, phrase: Phrase, concept: Concept) -> bool:
    """Return whether an age, a job or an education is that of a thing (`account_age`), a time (`job_date`)
    or a cost (`education_cost`).
    """
    others = set(words.bare) - set(phrase.words)
    if concept.name == OCCUPATION:
        return not word_list("tenure").isdisjoint(others)
    if concept.name == EDUCATION:
        return not word_list("school_life").isdisjoint(others)
    if concept.name != AGE:
        return False
    before = words.bare[: phrase.start][-1:]
    after = [word for word in words.bare[phrase.start + len(phrase.words) :] if word != "the"]
    owners = {*before, *(after[1:2] if after[:1] == ["of"] else ())}
    return not word_list("aged_thing").isdisjoint(owners)


def names_codes(name: str) -> bool:
    """Return whether a name says that whole numbers are codes without order."""
    concept = find_concept(name)
    if concept is not None and concept.codes:
        return True
    words = read_words(name).bare
    if not word_list("code_endings").isdisjoint(words[-1:]):
        return True
    return not word_list("code").isdisjoint(words) and word_list("measure").isdisjoint(words)


def names_survey_weight(name: str) -> bool:
    """Return whether a name says survey weights, not weights of bodies or things (`birth_weight`)."""
    words = set(read_words(name).bare)
    if any(word.startswith(start) for word in words for start in word_list("survey_weight_stems")):
        return True
    weighed = words & word_list("weighed") and not words & word_list("of_survey")
    return bool(words & word_list("survey_weight")) and not weighed


def names_measure(name: str) -> bool:
    """Return whether a name refers to a measured quantity, of which all values may differ."""
    words = read_words(name).bare
    measured = not word_list("measure").isdisjoint(words) or any(
        word != start and word.startswith(start)
        for word in words
        for start in word_list("measure_beginnings")
    )
    return measured and not names_moment(name)


def names_moment(name: str) -> bool:
    """Return whether a column's name says that it contains dates or times, as in `social_timestamp`."""
    return not word_list("moment").isdisjoint(read_words(name).bare)


def names_people(name: str) -> bool:
    """Return whether a name has a word for *name* (`loser_name`) or ends in a person (`athlete`)."""
    words = read_words(name).bare
    ends = words[-1:] and words[-1] in word_list("person") - word_list("thing")
    return bool(ends) or whose_name(words) in (NameBearer.PERSON, NameBearer.UNKNOWN)


def names_time(name: str) -> bool:
    """Return whether a column's name says when something was observed, as in `year` or `Visit`."""
    return bool(read_words(name).bare) and set(read_words(name).bare) <= word_list("time_of_row")


def names_date_part(name: str) -> bool:
    """Return whether a word of a column's name ends with `day`, `month` or another part of a date."""
    words = (*read_words(name).bare, "".join(read_words(name).bare))
    return any(word.endswith(part) for word in words for part in word_list("date_part"))


def names_thing_or_time(name: str) -> bool:
    """Return whether a name refers to a thing or a time, as in `school_id` or `day_of_year`."""
    words = read_words(name).bare
    return not (word_list("thing") | word_list("time_of_row")).isdisjoint(words)


class NameBearer(Enum):
    """Who has the names in a column: persons, things, or unclear which."""

    PERSON = "person"
    THING = "thing"
    UNKNOWN = "unknown"


def whose_name(words: Sequence[str]) -> NameBearer | None:
    """Return whose names a column contains by the words of its header; None if these are no names."""
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
    """Return the parts of a compound such as `guestname` if the first is known, else the word."""
    for ending in _ENDINGS:
        start = word.removesuffix(ending)
        if start != word and start in word_list("person") | word_list("thing"):
            return start, "name"
    return (word,)


MOST_KEYS = 20
"""Largest number of columns that are tested as keys: those with the most values."""
MOST_TRAITS = 10
"""Largest number of traits that are tested."""
FIXED = 0.98
"""A key determines a trait if at least this share of its values have a single trait; registers
contain typing errors.
"""
BY_CHANCE = 1e-3
"""Largest allowed probability that an unrelated trait looks determined by chance."""
ALIKE = 0.99
"""A key is also kept if its number of values is at least this share of the finest key's number of
values.
"""
FINER = 3
"""Smallest ratio of the number of values of a key to the number of values of a trait, because a
recoded trait is not a key.
"""
VARIED = 0.9
"""A key does not number persons if less than this share of its values have a single trait."""
MOST_STEADY = 25
"""Largest number of columns that are tested for whether a named key determines them."""
MOST_TIMES = 5
"""Largest number of columns of times that are tested, because each requires one grouping by each
key.
"""
ONCE = 0.999
"""At least this share of the rows must be the only ones with their value and time; tables contain
typing errors.
"""


@dataclass(frozen=True)
class Trait:
    """A column with a lifelong trait of persons, such as sex or date of birth, its number of
    values, and the share of the rows with the most frequent one (`peak`).
    """

    name: str
    distinct: int
    peak: float


def find_fixed(
    source: Source, table: ir.Table, keys: Mapping[str, int], traits: Sequence[Trait]
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """Find the lifelong traits that each column in `keys` (by number of values) determines, with
    one query on the rows of `table`, or a sample of them.

    A column determines a trait if the trait is constant for each value of the column. If several
    columns determine only a single trait, only those with the most values are returned: the others,
    such as the length of a stay, are measurements and not keys.

    Only values that occur in several rows are tested, because a value with a single row determines
    everything. Two rows with the same value agree in the trait by chance with a probability of at
    most `peak`. So if n values occur in several rows, the rows of every value agree by chance with
    a probability of at most peak ** n.

    Returns
    -------
    tuple
        For each column, the traits that it determines; and for each column, the traits that differ
        in more than a tenth of its values, so that it does not number persons. Columns without such
        traits are absent.
    """
    shares = _single_shares(source, table, keys, traits)
    fixed: dict[str, tuple[str, ...]] = {}
    varied: dict[str, tuple[str, ...]] = {}
    for trait in traits:
        tested = {key: share for (key, name), share in shares.items() if name == trait.name}
        fixing = [key for key, share in tested.items() if share >= FIXED]
        most = max((keys[key] for key in fixing), default=0)
        for key in fixing:
            if keys[key] >= ALIKE * most:
                fixed[key] = (*fixed.get(key, ()), trait.name)
        for key, share in tested.items():
            if share < VARIED:
                varied[key] = (*varied.get(key, ()), trait.name)
    return fixed, varied


def find_steady(
    source: Source, table: ir.Table, keys: Sequence[str], columns: Sequence[Trait]
) -> dict[str, tuple[str, ...]]:
    """Return the columns that are constant for each value of a key, by key, on the rows of `table`.

    Only values that occur in several rows count, as in `find_fixed`. One value of the key may be an
    exception, because tables contain typing errors.
    """
    steady: dict[str, tuple[str, ...]] = {}
    pairs = {key: [column for column in columns if column.name != key] for key in keys}
    for (key, name), (same, again) in _single_values(source, table, pairs).items():
        if same >= min(FIXED * again, again - 1):
            steady[key] = (*steady.get(key, ()), name)
    return steady


def _single_shares(
    source: Source, table: ir.Table, keys: Mapping[str, int], traits: Sequence[Trait]
) -> dict[tuple[str, str], float]:
    """Return the share of a key's repeated values that have a single trait, by the names of key and
    trait. Pairs of which so few values repeat that this may be chance are left out.
    """
    pairs = {
        key: [trait for trait in traits if trait.name != key and trait.distinct * FINER <= distinct]
        for key, distinct in keys.items()
    }
    counts = _single_values(source, table, pairs)
    return {pair: same / again for pair, (same, again) in counts.items()}


def _single_values(
    source: Source, table: ir.Table, pairs: Mapping[str, Sequence[Trait]]
) -> dict[tuple[str, str], tuple[int, int]]:
    """Return how many of a key's repeated values have a single trait, and how many values repeat, by
    the names of key and trait. Pairs of which so few values repeat that this may be chance are left
    out.
    """
    compared = {key: listed for key, traits in pairs.items() if (listed := _compared(traits))}
    if not compared:
        return {}
    most = max(map(len, compared.values()))
    counts = [_counts(table, key, traits, most) for key, traits in compared.items()]
    return {
        (row["key"], trait.name): (row[f"same{i}"] or 0, again)
        for row in source.collect(stacked(counts)).to_pylist()
        for i, trait in enumerate(compared[row["key"]])
        if (again := row[f"again{i}"]) and again * math.log(trait.peak) <= math.log(BY_CHANCE)
    }


def stacked(tables: Sequence[ir.Table]) -> ir.Table:
    """Return the rows of all tables by a balanced tree of unions; a chain is too deep to compile."""
    if len(tables) == 1:
        return tables[0]
    middle = len(tables) // 2
    return stacked(tables[:middle]).union(stacked(tables[middle:]))


def _compared(traits: Sequence[Trait]) -> list[Trait]:
    """Return the traits that vary enough to test whether a column determines them."""
    return [trait for trait in traits if trait.distinct > 1 and 0 < trait.peak < 1]


def _counts(table: ir.Table, key: str, traits: Sequence[Trait], width: int) -> ir.Table:
    """Return a query of one row: how many values of `key` repeat beside each trait, and how many of
    these have one trait in all rows. Columns of zeros follow, up to `width` traits.
    """
    keyed = table.filter(table[key].notnull())
    figures: dict[str, ir.Value] = {}
    for i, trait in enumerate(traits):
        column = keyed[trait.name]
        if column.type().is_boolean():  # some engines have no least flag
            column = column.ifelse(1, 0)
        figures |= {f"n{i}": column.count(), f"low{i}": column.min(), f"high{i}": column.max()}
    groups = keyed.group_by(value=keyed[key]).aggregate(**figures)
    sums: dict[str, ir.Value] = {}
    for i in range(len(traits)):
        again = groups[f"n{i}"] > 1
        same = again & (groups[f"low{i}"] == groups[f"high{i}"])
        sums |= {f"again{i}": again.ifelse(1, 0).sum(), f"same{i}": same.ifelse(1, 0).sum()}
    padding = range(len(traits), width)
    zeros = {f"{name}{i}": ibis.literal(0, "int64") for i in padding for name in ("again", "same")}
    counted = groups.aggregate(**sums).mutate(key=ibis.literal(key), **zeros)
    return counted.select(sorted(counted.columns))


def find_once_each(
    source: Source, table: ir.Table, keys: Mapping[str, float], times: Mapping[str, float]
) -> dict[str, str]:
    """Return, for each possible key of persons, a column of times such that no two rows agree in
    both. A key without such a column is absent. `keys` and `times` have the share of pairs of rows
    that agree in each column, from 0 to 1.

    Suppose two columns are unrelated, and p and q are their shares. Then n rows have about
    n (n - 1) / 2 p q pairs that agree in both, and no such pair with a probability of
    exp(-n (n - 1) / 2 p q). Pairs of columns for which this probability is above `BY_CHANCE` are not
    tested, for example any column with a clock time.
    """
    pairs = source.rows * (source.rows - 1) / 2
    key_times = [
        (key, time)
        for key, p in keys.items()
        for time, q in times.items()
        if key != time and pairs * p * q >= -math.log(BY_CHANCE)
    ]
    if not key_times:
        return {}
    counts = [_count(table, key, time) for key, time in key_times]
    rows = source.collect(stacked(counts)).to_pylist()
    once = {(r["key"], r["time"]) for r in rows if r["cells"] and r["cells"] >= ONCE * r["rows"]}
    return {key: time for key, time in reversed(key_times) if (key, time) in once}


def _count(table: ir.Table, key: str, time: str) -> ir.Table:
    """Return a query: how many rows have key and time, and how many different pairs."""
    both = table.filter(table[key].notnull() & table[time].notnull())
    cells = both.group_by(key_value=both[key], time_value=both[time]).aggregate(n=both.count())
    return cells.aggregate(rows=cells["n"].sum(), cells=cells.count()).mutate(
        key=ibis.literal(key), time=ibis.literal(time)
    )
