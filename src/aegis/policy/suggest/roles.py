"""Propose the most likely role of a column, and give the reason."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import IntEnum

from aegis.masks import Kind
from aegis.masks.base import SECONDS, TIMES
from aegis.policy.model import Role
from aegis.policy.suggest.facts import EVEN, FEWEST_KEYS, NEARLY_ALL, ColumnFacts
from aegis.policy.suggest.names import (
    NUMBER,
    PERSON_NAME,
    POSTCODE,
    Concept,
    names_date_part,
    names_measure,
    names_moment,
    names_people,
    names_survey_weight,
    names_thing,
    names_thing_or_time,
    numbers_person,
    read_words,
    word_list,
)
from aegis.words import counted, percent

FEWEST_FOR_UNIQUE = 20
"""If there are fewer values than this, it means nothing that all of them differ."""
MANY_VALUES = 50
"""Smallest number of different values for which the name alone suggests an identifier."""
FEW_VALUES = 5
"""A column with the name of an identifier is not considered an identifier if it has at most this
many values.
"""
ROWS_PER_VALUE = 20
"""If a column has fewer rows per value than this, each value identifies only a few rows."""
SEPARATED = 0.95
"""Texts with many values distinguish rows if at least this share of the pairs of rows differ."""
FEWEST_NAMES, MOST_CODES, UNKNOWN = 3, 2, 99
"""Of the frequent texts in a column of months or weekdays: the fewest that name one, and the most that
do not; and the number that stands for an unknown day or month.
"""
CODE_LENGTHS = range(4, 13)
"""Lengths of digit strings that are considered codes, such as postcodes."""
SHORTEST_KEY = 5
"""Smallest number of characters of a code that is considered a record number."""
SHORTEST_GROUPED = 9
"""Texts of grouped digits are not amounts if all have the same length and at least this many
characters.
"""
LEAST_KEY = 10_000
"""Smallest median of record numbers. Whole numbers with a smaller median are counts or
measurements.
"""
LEAST_ON_GRID = 10_000
"""Smallest median of map coordinates, in metres from the origin of the grid."""
KEY_UNIQUE = 0.3
"""Smallest number of different values per row for which repeating numbers may identify persons."""
KEY_PEAK = 0.005
"""Largest share of the rows with one record number. A person may have several rows, but not a large
part of the table.
"""
KEY_MOSTLY_UNIQUE, MOST_ROWS_OF_A_KEY = 0.9, 3
"""In a small table, a number may occur in three rows if there are so many different values per row."""
KEY_ROUND = 0.2
"""Largest share of multiples of ten among record numbers. It is about 0.1 for serial numbers, and
much larger for amounts that people state.
"""
DENSE, AS_DRAWN = 0.9, 1.15
"""Of small numbers, which counts and measurements have, too: at least this share of the numbers from the
first to the last occurs, and the evenness (`EVEN`) is at most that of numbers drawn at random.
"""
REPEATED = 0.02
"""Smallest share of rows with a number of another row from which the proposed rule counts persons."""
GIVEN_NAMES = 0.3
"""Texts count as names of persons if at least this share of values contain a common given name."""
GIVEN_IF_NAMED = 0.1
"""This share suffices if the column's name allows names of persons (`loser_name`, `athlete`) and nearly
all values look like them.
"""
MOST_DEGREES = {"x": 180, "y": 90}
"""Largest longitude and latitude. Columns that are called so may have degrees."""
DEGREES_APART = 30
"""Largest range of coordinates in degrees of an area: measurements mostly have larger ranges, or both signs."""
MOSTLY_ALIKE = 0.9
"""A column counts as dates, amounts or codes of a system if more than this share of values have
 this form.
"""
MOSTLY = 0.5
"""A column counts as an identifier if at least this share of values have a form that identifies
persons.

The other values mostly say that the identifier is not known.
"""
PARTLY = 0.1
"""Smallest share of such values for which `init` asks you about the column."""
TIMES_THE_MEAN = 10
"""A value with so many times the rows of a mean value may stand for persons who are unknown."""

DIGITS_OF_DATES = ("%Y%m%d", "%m%d%Y", "%d%m%Y")
"""Forms of dates that are written as whole numbers."""
MISSING_CODES = frozenset((-9, -66, -77, -88, -99, -888, -999, -9999, -99999))
"""Negative numbers that stand for an unknown value in columns whose other numbers are not negative."""

_IDENTIFYING_SHAPES = {
    "email": "e-mail addresses",
    "uuid": "UUIDs",
    "ip": "IP addresses",
    "ssn": "social security numbers",
    "phone": "telephone numbers",
    "iban": "bank accounts (IBAN)",
    "card": "card numbers",
    "url": "addresses on the web",
    "mac": "addresses of devices",
    "hash": "hash values",
}
SPARSE = 2
"""Numbers that leave out at least every other one do not count rows."""
LONGEST_WORD = 4
"""Largest number of characters of a Chinese name. Words of other meanings are as short."""
_CHECK = "make it an identifier if they point at persons, a feature if they do not"


def propose_role(facts: ColumnFacts) -> tuple[Role, str]:
    """Return the role that Aegis proposes for a column, and the reason as part of a sentence.

    The first match decides. Columns without information, or whose type no mask accepts, are
    ignored. Identifiers are columns with the form or name of a direct identifier, keys of persons
    with repeated values, and nearly unique texts or whole numbers, which identify single records.
    Quasi-identifiers are dates, columns whose name suggests this, codes of diseases, codes of one
    length, and texts that distinguish rows (`warn_of`). All other columns are features. Floats and
    decimals are measurements, and not identifiers even if they are all different.
    """
    if (reason := _reason_to_ignore(facts)) is not None:
        return Role.IGNORE, reason
    concept = facts.concept
    if (reason := _reason_to_identify(facts, concept)) is not None:
        return Role.IDENTIFIER, reason
    if facts.kind is Kind.DATE or _is_written_date(facts) or _counts_from_a_date(facts):
        return Role.QUASI_IDENTIFIER, "dates of events are often known to others"
    if _is_date_part(facts):
        return Role.QUASI_IDENTIFIER, "days and months of events are often known to others"
    if concept is not None and concept.role in (Role.QUASI_IDENTIFIER, Role.SENSITIVE):
        return concept.role, f"the name speaks of {concept.name}"
    if (system := code_system(facts)) is not None:
        return Role.SENSITIVE, f"the values are codes of diseases ({system})"
    for role, reason in _by_values(facts):
        return role, reason
    return Role.FEATURE, "neither name nor values point at a person"


def _by_values(facts: ColumnFacts) -> list[tuple[Role, str]]:
    """Return the role that values alone suggest, with the reason, in a list; or an empty list."""
    quasi = Role.QUASI_IDENTIFIER
    if _are_races(facts):
        return [(quasi, "the values are races")]
    if is_code(facts):
        return [(quasi, "digits of one length, as postcodes have them")]
    if facts.shape("coordinates") > NEARLY_ALL or _is_on_a_grid(facts):
        return [(quasi, "the values are geographic coordinates")]
    if _doubt(facts) is not None:
        return [(quasi, "name or values may point at persons")]
    if _tells_apart(facts):
        share = f"{percent(100 * facts.separation)} of the pairs of rows differ"
        return [
            (
                quasi,
                f"distinguishes rows: {facts.distinct:,} values in {facts.values:,} rows, {share}",
            )
        ]
    return []


def warn_of(facts: ColumnFacts, role: Role) -> str:
    """Return the question about a proposed role that the user must answer; empty if there is none.

    Some columns may be identifiers, so you should not release them unnoticed: texts that
    distinguish rows, numbers that occur once at each time, and values in the form of persons' names
    or record numbers. Others may be measurements although they differ in nearly all rows, as
    identifiers do. Other columns show that a few persons have several rows, although the proposed
    rule counts rows. In others, a code such as -99 stands for unknown numbers.
    """
    if role.scored and (code := _missing_code(facts)) is not None:
        return (
            f"{code} looks like a code for an unknown number, because hardly any other number is negative: if it is, "
            f"run init again with --null={code}"
        )
    if role.scored and facts.kind is Kind.TEXT and NEARLY_ALL <= facts.shape("digits") < 1:
        return (
            "nearly all values are whole numbers, but some are not, so it is read as text: if it has numbers, "
            "correct the others in the table, or run init again with --null and the text that means a missing number"
        )
    doubled = facts.values - facts.distinct
    if role is Role.IDENTIFIER and _numbers_rows(facts) and 0 < doubled < REPEATED * facts.values:
        return (
            f"in {counted(doubled, 'row')}, the value is that of another row, but the rule counts rows: "
            f"delete rows that are doubled, or count persons (`person: {facts.name}`)"
        )
    if role is Role.IDENTIFIER and _may_be_measured(facts):
        return (
            f"nearly every row has its own number ({facts.distinct:,} in {counted(facts.values, 'row')}), as keys have, "
            "so a release leaves it out: make it a feature if it is measured"
        )
    if facts.once_each is not None and role is Role.FEATURE:
        often = f"each of its {facts.distinct:,} values comes once with one {facts.once_each}"
        return f"{often}, as those do who are followed: {_CHECK}"
    if role is not Role.QUASI_IDENTIFIER:
        return ""
    if (doubt := doubt_of(facts)) is not None:
        return f"{doubt}: {_CHECK}"
    if _may_be_doubted(facts) and _tells_apart(facts):
        return f"{facts.distinct:,} different texts in {facts.values:,} rows: {_CHECK}"
    return ""


def doubt_of(facts: ColumnFacts) -> str | None:
    """Return why the values of a quasi-identifier may identify persons, or None. Until you answer,
    a release does not show such values.
    """
    return _doubt(facts) if _may_be_doubted(facts) else None


def _may_be_doubted(facts: ColumnFacts) -> bool:
    """Return whether neither name nor form of a column's values says that they are no identifiers."""
    concept = facts.concept
    named = concept is not None and concept.role in (Role.QUASI_IDENTIFIER, Role.SENSITIVE)
    return not (named or is_code(facts) or _is_written_date(facts))


def _missing_code(facts: ColumnFacts) -> int | None:
    """Return the smallest number if it is a usual code for unknown values, in 1 % of the rows or
    more, and other quantiles are not negative; else None.
    """
    quantiles = sorted((facts.quantiles or {}).items())
    if not quantiles or facts.low not in MISSING_CODES or quantiles[0][1] != facts.low:
        return None
    others = [number for _, number in quantiles if number != facts.low]
    return int(facts.low) if others and others[0] >= 0 else None


def _numbers_rows(facts: ColumnFacts) -> bool:
    """Return whether a column, by name, numbers persons or records, and every row has one."""
    concept = facts.concept
    named = concept is not None and concept.role is Role.IDENTIFIER and concept.name != PERSON_NAME
    return named and facts.exact and not facts.nulls


def warn_of_label(facts: ColumnFacts, *, alone: bool = True) -> str:
    """Return why a column may be a bad label, such as numbers that identify persons; or "". If it is
    not the only label (`alone`), a label that others may know counts, too.
    """
    concept = facts.concept
    unique = facts.unique_share > NEARLY_ALL and facts.values >= FEWEST_FOR_UNIQUE
    many = facts.distinct >= MANY_VALUES and concept is not None and not concept.weak
    if concept is not None and concept.role is Role.IDENTIFIER and (unique or many):
        return f"the name speaks of {concept.name}. Choose a label worth predicting"
    if unique and facts.kind in (Kind.TEXT, Kind.INTEGER) and not names_measure(facts.spoken):
        return (
            f"nearly every row has its own value ({facts.distinct:,} in {facts.values:,} rows), as "
            f"numbers of records have. Choose another label unless it is measured"
        )
    if not alone and concept is not None and concept.role is Role.QUASI_IDENTIFIER:
        return (
            f"the name speaks of {concept.name}, and the rule does not cover a label: if others may know it of a person, "
            "also list it under `attributes` with the role quasi-identifier"
        )
    return ""


def _doubt(facts: ColumnFacts) -> str | None:
    """Return why texts may identify persons although the name does not say so, or None."""
    concept = facts.concept
    if concept is not None and _has_many_keys(facts):
        return f"the name speaks of {concept.name}, and {facts.distinct:,} values occur"
    if _numbers_few_rows(facts):
        return f"the numbers from {facts.low} to {facts.high} have about equally many rows, as persons have"
    if facts.kind is not Kind.TEXT or is_amount(facts):
        return None
    named = concept is not None and concept.role is Role.IDENTIFIER and not concept.weak
    if concept is not None and named and (facts.distinct > FEW_VALUES or _bears_names(facts)):
        return f"the name speaks of {concept.name}, but only {facts.distinct:,} values occur"
    return _doubt_of_texts(facts)


def _doubt_of_texts(facts: ColumnFacts) -> str | None:
    """Return why texts may identify persons by forms or repetition, or None."""
    if _look_like_names(facts):
        return f"{facts.distinct:,} different values that look like names of persons"
    rare = f"most values are rare: {facts.distinct:,} different ones in {facts.values:,} rows"
    if facts.distinct < MANY_VALUES:
        # Few rows answer an open question: the others are null.
        few = facts.nulls > facts.values and facts.distinct >= FEWEST_FOR_UNIQUE
        return rare if few and facts.unique_share > 0.5 else None
    share, forms = _identifying_forms(facts)
    if share >= PARTLY:
        return f"{_how_many(share)} of the values look like {forms}"
    if facts.shape("record") > NEARLY_ALL:
        return f"{facts.distinct:,} different values that look like record numbers"
    if facts.unique_share > 0.5:
        return rare
    if facts.evenness <= EVEN and facts.distinct * ROWS_PER_VALUE > facts.values:
        return f"{facts.distinct:,} different texts have about equally many rows, as persons have"
    return None


def _look_like_names(facts: ColumnFacts) -> bool:
    """Return whether nearly all texts look like names of persons; short texts must also be many. If
    most of them contain a common given name, a few texts suffice.
    """
    short = facts.lengths is None or facts.lengths[1] <= LONGEST_WORD
    fewest = FEW_VALUES if facts.shape("given") >= MOSTLY else FEWEST_KEYS
    enough = facts.distinct >= (MANY_VALUES if short else fewest)
    named = facts.shape("person") > NEARLY_ALL and not names_thing(facts.spoken)
    return enough and named and not _are_colours(facts)


def _numbers_few_rows(facts: ColumnFacts) -> bool:
    """Return whether a column has all whole numbers from 0 or 1 to some number, each in a few rows
    and about as often, and its name has no other meaning.
    """
    return (
        facts.integral
        and facts.low in (0, 1)
        and facts.distinct >= max(MANY_VALUES, DENSE * (facts.high - facts.low + 1))
        and facts.distinct * ROWS_PER_VALUE > facts.values
        and 0 < facts.evenness <= AS_DRAWN
        and facts.concept is None
        and not names_measure(facts.spoken)
        and not names_thing_or_time(facts.spoken)
    )


def _has_many_keys(facts: ColumnFacts) -> bool:
    """Return whether values are many, and the name ends in a word for a key, but not of a thing."""
    concept = facts.concept
    keys = concept is not None and concept.weak and concept.role is Role.IDENTIFIER
    many = (facts.integral or facts.kind is Kind.TEXT) and facts.distinct >= MANY_VALUES
    return keys and many and not names_thing_or_time(facts.spoken)


def _bears_names(facts: ColumnFacts) -> bool:
    """Return whether a name says that values are names of persons (`Vorname`), unlike `name` alone."""
    concept = facts.concept
    alone = facts.spoken.strip().lower() in word_list("name")
    return concept is not None and concept.name == PERSON_NAME and not alone


def _tells_apart(facts: ColumnFacts) -> bool:
    """Return whether texts distinguish rows: most occur in few rows, or nearly all pairs of rows differ.
    These are ARX's distinction and separation (Prasser and others 2020, doi 10.1002/spe.2812).
    """
    if facts.kind is not Kind.TEXT or facts.distinct < MANY_VALUES or is_amount(facts):
        return False
    return facts.distinct * ROWS_PER_VALUE > facts.values or facts.separation >= SEPARATED


def is_amount(facts: ColumnFacts) -> bool:
    """Return whether texts are amounts: with point, comma or sign, and not all of one length."""
    low, high = facts.lengths or (0, 0)
    amounts = facts.shape("amount") > MOSTLY_ALIKE and facts.shape("digits") < 0.5
    return amounts and not low == high >= SHORTEST_GROUPED


def _is_on_a_grid(facts: ColumnFacts) -> bool:
    """Return whether `x` or `y` has metres on a national grid, or degrees of an area."""
    most = MOST_DEGREES.get(facts.spoken.strip().lower())
    if most is None:
        return False
    if abs((facts.quantiles or {}).get(0.5, 0.0)) >= LEAST_ON_GRID:
        return True
    few_rows = facts.distinct * ROWS_PER_VALUE > facts.values and facts.distinct >= MANY_VALUES
    if not (facts.fractional and few_rows):
        return False
    low, high = float(facts.low), float(facts.high)
    return max(abs(low), abs(high)) <= most and low * high > 0 and high - low <= DEGREES_APART


def _is_written_date(facts: ColumnFacts) -> bool:
    """Return whether values are dates in texts, or whole numbers such as 20190107."""
    written = facts.kind is Kind.TEXT and facts.shape("date") > MOSTLY_ALIKE
    return written or is_numbered_date(facts)


def is_numbered_date(facts: ColumnFacts) -> bool:
    """Return whether all numbers of a column are dates written as YYYYMMDD."""
    return facts.kind is Kind.INTEGER and facts.shape("date") == 1


def _counts_from_a_date(facts: ColumnFacts) -> bool:
    """Return whether a column of dates, by name but not an amount until one (`spent_to_date`), has
    many numbers: days or seconds since some date.
    """
    dated = (
        names_moment(facts.spoken)
        and " to date" not in f" {' '.join(read_words(facts.spoken).bare)}"
    )
    return facts.numeric and dated and (facts.distinct >= MANY_VALUES or _is_date_in_digits(facts))


def _is_date_in_digits(facts: ColumnFacts) -> bool:
    """Return whether least and largest number are dates such as 20181006 or 10062018."""
    if facts.kind is not Kind.INTEGER or facts.low is None or facts.high is None:
        return False
    ends = [f"{int(end):08d}" for end in (facts.low, facts.high)]
    return any(all(_reads_as(end, form) for end in ends) for form in DIGITS_OF_DATES)


def _reads_as(text: str, form: str) -> bool:
    """Return whether a text of eight digits is a date of this form, since 1800."""
    with suppress(ValueError):
        return len(text) == 8 and time.strptime(text, form).tm_year >= 1800
    return False


def _is_date_part(facts: ColumnFacts) -> bool:
    """Return whether values are months or weekdays by name, or by number if the column is named so."""
    if facts.kind is Kind.TEXT:
        named = sum(_names_part_of_date(text) for text, _ in facts.frequent)
        return named >= max(FEWEST_NAMES, len(facts.frequent) - MOST_CODES)
    if facts.kind is not Kind.INTEGER or not names_date_part(facts.spoken) or facts.low is None:
        return False
    marks_unknown = facts.high == UNKNOWN
    codes = marks_unknown + (marks_unknown and facts.low == 0)
    return any(
        (facts.low == 1 or (marks_unknown and facts.low == 0))
        and (facts.high == last or marks_unknown)
        and fewest <= facts.distinct - codes <= last
        for last, fewest in ((12, 12), (31, 28))
    )


def _are_races(facts: ColumnFacts) -> bool:
    """Return whether the values are races by name, under any name of the column."""
    texts = {text.strip().lower() for text, _ in facts.frequent}
    races = texts & word_list("race_value")
    return (
        facts.kind is Kind.TEXT
        and {"white", "caucasian"} & races != set()
        and len(races) > 1
        and texts <= word_list("race_value") | word_list("other_race_value")
    )


def _are_colours(facts: ColumnFacts) -> bool:
    """Return whether each of the most frequent values has a word for a colour, as in `Blue Eyes`."""
    words = [set(text.lower().split()) for text, _ in facts.frequent]
    return len(words) >= FEWEST_NAMES and not any(map(word_list("colour").isdisjoint, words))


def _names_part_of_date(text: str) -> bool:
    """Return whether a text is the English name of a month or of a day of the week, or its abbreviation."""
    for form in ("%B", "%b", "%A", "%a"):
        with suppress(ValueError):
            return bool(time.strptime(text.strip(), form))
    return False


def code_system(facts: ColumnFacts) -> str | None:
    """Return the system of disease codes, such as ICD-10, to which a column's texts belong; None if
    they are not disease codes.

    Three digits may be an ICD-9 code or something else, so some values must have a point, or begin
    with V or E. One letter and two digits may be a seat or an ICD-10 code, so some values must have
    a point.
    """
    if facts.kind is not Kind.TEXT or facts.distinct < FEWEST_FOR_UNIQUE:
        return None
    for system, name in (("icd10", "ICD-10"), ("icd9", "ICD-9")):
        detailed = facts.shape(system)
        if detailed >= 0.1 and detailed + facts.shape(f"{system}_category") > MOSTLY_ALIKE:
            return name
    return None


def is_code(facts: ColumnFacts) -> bool:
    """Return whether all texts of a column consist of digits and have the same length."""
    return (
        facts.kind is Kind.TEXT
        and facts.lengths is not None
        and facts.lengths[0] == facts.lengths[1]
        and facts.lengths[0] in CODE_LENGTHS
        and facts.shape("digits") > NEARLY_ALL
    )


def _reason_to_ignore(facts: ColumnFacts) -> str | None:
    if facts.kind is None:
        reason = f"no mask works on type {facts.dtype}"
        seconds = f"{SECONDS[0].lower()}{SECONDS[1:]}"
        return f"{reason}: {seconds}" if facts.dtype.startswith(TIMES) else reason
    if facts.values == 0:
        return "null in every row"
    if facts.distinct < 2 and facts.nulls == 0:
        return "the same value in every row"
    return None


def _reason_to_identify(facts: ColumnFacts, concept: Concept | None) -> str | None:
    if facts.kind in (Kind.BOOLEAN, Kind.DATE) or _is_written_date(facts):
        return None
    many = facts.unique_share > 0.5 or facts.distinct >= MANY_VALUES
    share, named = _identifying_forms(facts)
    if many and share > MOSTLY:
        return f"{_how_many(share)} of the values look like {named}"
    if concept is not None and concept.role is Role.IDENTIFIER:
        if _named_to_identify(facts, concept, many=many):
            return f"the name speaks of {concept.name}"
        concept = None
    if concept is None and facts.numbers is not None:
        return f"one value for each value of {facts.numbers}, and about as many"
    tests: tuple[Callable[[ColumnFacts, Concept | None], str | None], ...] = (
        _reason_near_unique,
        _reason_by_traits,
        _reason_by_names,
        _reason_by_keys,
        _reason_by_prose,
    )
    return next((reason for test in tests if (reason := test(facts, concept)) is not None), None)


def _identifying_forms(facts: ColumnFacts) -> tuple[float, str]:
    """Return the share of texts in an identifying form, such as e-mail, and the forms."""
    by_share = sorted(
        ((facts.shape(shape), name) for shape, name in _IDENTIFYING_SHAPES.items()), reverse=True
    )
    frequent = [name for share, name in by_share if share >= PARTLY]
    # One text may have two forms: the share of all is at most their sum.
    return min(1.0, sum(share for share, _ in by_share)), " or ".join(frequent or [by_share[0][1]])


def _how_many(share: float) -> str:
    return "all" if share == 1 else percent(100 * share, 0)


def _named_to_identify(facts: ColumnFacts, concept: Concept, *, many: bool) -> bool:
    """Return whether values fit a name that suggests an identifier; `many`: nearly all differ."""
    if concept.name == PERSON_NAME and facts.kind is Kind.TEXT:
        return many or (facts.distinct > ROWS_PER_VALUE and not facts.coded_name)
    if facts.fractional or (names_measure(facts.spoken) and facts.kind is Kind.NUMBER):
        return False
    if concept.weak and not many:
        return facts.is_bare and facts.distinct >= FEWEST_FOR_UNIQUE and facts.even
    if numbers_person(facts.spoken) and facts.distinct > 1:
        return True
    few = concept.name == NUMBER and facts.distinct >= FEWEST_KEYS and facts.even
    if not concept.weak:
        return many or few
    return facts.unique_share > 0.5 or _comes_back(facts) or (facts.is_bare and facts.even)


def _comes_back(facts: ColumnFacts) -> bool:
    """Return whether an identifier may be of persons with several rows each: many values, none with many
    rows, unlike a column of categories that is also named `id`.
    """
    few_rows = facts.distinct * ROWS_PER_VALUE > facts.values and facts.distinct >= MANY_VALUES
    return few_rows and 0 < facts.peak <= KEY_PEAK and (facts.integral or facts.kind is Kind.TEXT)


def _reason_near_unique(facts: ColumnFacts, concept: Concept | None) -> str | None:
    if facts.unique_share <= NEARLY_ALL or facts.values < FEWEST_FOR_UNIQUE:
        return None
    reason = f"near-unique: {facts.distinct:,} different values in {facts.values:,} rows"
    if facts.kind is Kind.TEXT:
        is_area = concept is not None and (is_code(facts) or concept.name == POSTCODE)
        return None if is_area or is_amount(facts) or facts.shape("coordinates") > 0.5 else reason
    if facts.kind is Kind.INTEGER:
        measured = facts.long_tailed or names_measure(facts.spoken)
        return None if concept is not None or measured else reason
    return None


def _may_be_measured(facts: ColumnFacts) -> bool:
    """Return whether whole numbers that differ in nearly all rows may be measured: no name says what
    they are, and they do not count the rows.
    """
    if facts.kind is not Kind.INTEGER or _reason_near_unique(facts, facts.concept) is None:
        return False
    return bool(facts.high - facts.low + 1 > SPARSE * facts.distinct)


def _reason_by_traits(facts: ColumnFacts, concept: Concept | None) -> str | None:
    """Return why a column identifies persons, because each value has one sex, race or birth date, or
    one value of other columns if it is named as a key; None if it does not, or if its name has
    another known meaning (`concept`).
    """
    if concept is not None or not facts.fixes:
        return None
    return (
        f"a key of persons: each of its {facts.distinct:,} values has one {', '.join(facts.fixes)}"
    )


def _reason_by_names(facts: ColumnFacts, concept: Concept | None) -> str | None:
    """Return why a column with many given names identifies persons, or None."""
    if concept is not None or facts.distinct < FEWEST_FOR_UNIQUE or names_thing(facts.spoken):
        return None
    named = names_people(facts.spoken) and facts.shape("person") > MOSTLY_ALIKE
    least = GIVEN_IF_NAMED if named else GIVEN_NAMES
    if facts.shape("given") < least or facts.shape("prose") > 0.5:
        return None
    return f"{percent(100 * facts.shape('given'), 0)} of the values hold a common given name"


def _reason_by_keys(facts: ColumnFacts, concept: Concept | None) -> str | None:
    """Return why values that repeat as numbers of persons do identify persons, or None."""
    few_rows = facts.distinct * ROWS_PER_VALUE > facts.values and facts.distinct >= MANY_VALUES
    if concept is not None or not few_rows:
        return None
    reason = (
        f"{facts.distinct:,} different {{}} in {facts.values:,} rows, as numbers of persons repeat"
    )
    if facts.integral:
        return reason.format("numbers") if _repeats_like_a_key(facts) else None
    shortest = (facts.lengths or (0, 0))[0]
    are_codes = (facts.shape("code") > NEARLY_ALL and shortest >= SHORTEST_KEY) or (
        facts.shape("grouped") > NEARLY_ALL and shortest >= SHORTEST_GROUPED
    )
    # Codes of things, such as medical terms, repeat in the same way, but persons keep their sex.
    if are_codes and not facts.varies and code_system(facts) is None and not is_amount(facts):
        return reason.format("codes")
    return None


def _repeats_like_a_key(facts: ColumnFacts) -> bool:
    """Return whether integers look like numbers of persons: large, mostly different, and unlike amounts
    neither round, zero nor at typical values.
    """
    return (
        not names_measure(facts.spoken)
        and not facts.long_tailed
        and (facts.quantiles or {}).get(0.5, 0.0) >= LEAST_KEY
        and (_spreads_like_a_key(facts) or (facts.even and not names_moment(facts.spoken)))
        and facts.round_share <= KEY_ROUND
    )


def _spreads_like_a_key(facts: ColumnFacts) -> bool:
    """Return whether the numbers of a column are mostly different and none is common."""
    rare = facts.peak <= KEY_PEAK or _hardly_repeats(facts)
    return facts.unique_share >= KEY_UNIQUE and rare


def _hardly_repeats(facts: ColumnFacts) -> bool:
    """Return whether no value has more than three rows, and most have one."""
    few = round(facts.peak * facts.values) <= MOST_ROWS_OF_A_KEY
    return facts.unique_share >= KEY_MOSTLY_UNIQUE and few and facts.values >= MANY_VALUES


def _reason_by_prose(facts: ColumnFacts, concept: Concept | None) -> str | None:  # noqa: ARG001 - one of several tests
    """Return why a column of different sentences may identify persons, or None."""
    if facts.unique_share > 0.5 and facts.distinct >= MANY_VALUES and facts.shape("prose") > 0.5:
        return f"free text, {facts.distinct:,} different ones in {facts.values:,} rows: it may name anyone"
    return None


def _numbers_every_row(facts: ColumnFacts) -> bool:
    """Return whether a column, by name, numbers persons or records, and each row has its own."""
    concept = facts.concept
    number = concept is not None and (concept.name == NUMBER or concept.weak)
    return number and _numbers_rows(facts) and facts.distinct == facts.rows


class PersonEvidence(IntEnum):
    """How certain it is that an identifier is of persons, who may have several rows."""

    NONE = 0
    """`init` found no evidence, or no person has two rows."""
    REPEATS = 1
    """Its values repeat like numbers of persons; but codes of things may repeat in the same way."""
    RECORD = 2
    """Its name refers to a number of a person or of a record."""
    TRAITS = 3
    """Each of its values occurs with only one sex, race or date of birth, or its name is that of a
    key and each value has one value of three other columns.
    """
    NAME = 4
    """Its name says that it identifies persons, as in `patient_id`."""


def person_evidence(facts: ColumnFacts) -> PersonEvidence:
    """Return how certain it is that an identifier is of persons. If it is certain, the rule can
    count persons by it.
    """
    repeats = 2 <= facts.distinct <= (1 - REPEATED) * facts.values
    # A class counts all its rows without a key as one person: it never has fewer persons than that.
    if not repeats or facts.nulls > PARTLY * facts.rows or names_moment(facts.spoken):
        return PersonEvidence.NONE
    concept = facts.concept
    number = concept is not None and concept.name == NUMBER
    if number and numbers_person(facts.spoken):
        return PersonEvidence.NAME
    of_a_name = concept is not None and concept.name == PERSON_NAME
    # Many persons share a first or last name; a full name or a pseudonym with digits is one person's.
    if of_a_name and max(facts.shape("person"), facts.shape("code")) <= 0.5:
        return PersonEvidence.NONE
    # A first name has one sex anyway, so a single trait does not prove that a name is one person's.
    if len(facts.fixes) > of_a_name:
        return PersonEvidence.TRAITS
    # Of a bare `id`: a word before it says of what, and that is seldom a person.
    if concept is not None and concept.weak and concept.role is Role.IDENTIFIER:
        number = facts.is_bare and (_comes_back(facts) or facts.even)
    if number:
        return PersonEvidence.RECORD
    # In a small table, hardly any number repeats: that says nothing of persons with several rows.
    small = facts.integral and facts.peak > KEY_PEAK and _hardly_repeats(facts)
    # A household shares a telephone.
    keyed = concept is None and not small and facts.shape("phone") <= PARTLY
    keyed = keyed and _reason_by_keys(facts, None) is not None
    if keyed and not names_survey_weight(facts.spoken):
        return PersonEvidence.REPEATS
    return PersonEvidence.NONE


def stands_for_many(person: ColumnFacts) -> bool:
    """Return whether one value of a column of persons has so many rows that it may say that the
    person is unknown, such as -1: more than a tenth of the rows, and ten times the mean of a value.
    """
    return person.peak > max(PARTLY, TIMES_THE_MEAN / max(person.distinct, 1))


def likely_persons(identifiers: Iterable[ColumnFacts]) -> list[ColumnFacts]:
    """Return the identifier columns that may show which rows belong to the same person, the most
    likely first. If the evidence is equal, the one with more distinct values comes first: a column
    of patients has more than a column of their doctors, because a doctor has several patients.
    """
    columns = list(identifiers)
    # Beside numbers of all rows, a number that some rows lack is mostly somebody else's: a manager's.
    numbered = any(_numbers_every_row(facts) for facts in columns)
    keys = [
        (person_evidence(facts), facts.distinct, facts)
        for facts in columns
        if not (numbered and facts.nulls)
    ]
    likely = [key for key in keys if key[0] is not PersonEvidence.NONE]
    return [facts for *_, facts in sorted(likely, key=lambda key: key[:2], reverse=True)]
