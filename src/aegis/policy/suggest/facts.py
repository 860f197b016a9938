"""Hold the facts about a column that a first policy needs, measured figures and conclusions from
them, and the proposal for the column. Ranges of numbers in texts, such as `[70-80)`, are sorted.

Forms of text, such as e-mail addresses, are regular expressions for every engine. They use no
look-ahead, word boundaries or flags, because engines write these differently.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from aegis.masks import Kind, Mask
from aegis.policy.model import Role
from aegis.policy.suggest.names import Concept, find_concept, names_codes, word_list

FEWEST_KEYS = 10
"""A column with fewer values than this is not considered a key of persons."""
NEARLY_ALL = 0.95
"""A column is nearly unique if it has at least this many different values per row."""
EVEN = 1.5
"""Largest evenness of a key of persons.

The evenness is the probability that two rows have the same value, divided by this probability if
all values had equally many rows. A study follows its persons for about the same time, so their
evenness is near 1; counts and measurements have larger figures.
"""


LONG_TAIL = 3
"""Numbers have a long tail if one in a hundred is more than so many times the median.

If records are numbered one after the other, or at random up to a largest number, it is at most twice
the median. In the tables of Rdatasets, 9 % of 222 columns of whole numbers that are called a key or
number have a long tail, and 40 % of 786 others in which nearly all whole numbers differ.
"""


@dataclass(frozen=True)
class ColumnFacts:
    """The facts that Aegis measured on one column.

    Attributes
    ----------
    name, dtype
        The column and its Ibis data type as text.
    spoken
        The name of the column, without the prefix that all columns of the table share.
    kind
        Kind of the values in the column, on which masks depend; None if no mask accepts the column.
    rows, nulls
        Number of rows of the table, and number of rows in which the column is null.
    distinct
        Number of different values; null does not count, and NaN counts once. 0 if `kind` is None.
    exact
        Whether `distinct` was counted, not estimated from a sample (`estimate_distinct`).
    low, high
        For numbers and dates, the smallest and the largest finite value; None for other kinds, or
        if there are no values.
    special
        Number of rows with NaN or an infinity.
    whole_numbers
        For numbers that are not integers by type, whether no finite number has a fraction.
    quantiles
        For numbers, the quantiles of finite values, by share of the rows (`SHARES`); empty for
        other kinds.
    frequent
        The most frequent values as text, and their shares of all sampled rows, most frequent first.
        Only values with at least `FEWEST_ROWS` rows are listed.
    shapes
        For texts, the share of values that have each form in `SHAPES`.
    lengths
        For texts, the smallest and the largest number of characters.
    peak
        The share of the most frequent value among rows that are not null; only for texts, whole
        numbers, dates and flags.
    separation
        The share of pairs of rows whose values differ, which shows how well the column alone
        distinguishes rows.
    ranges
        If all texts are ranges of numbers, these ranges, from low to high; else empty.
    round_share
        For whole numbers, the share of multiples of 10. It is about a tenth for record numbers, and
        larger for amounts that people state.
    fixes
        Names of the columns with lifelong traits of persons (`Concept.trait`) that this column
        determines: they are constant for each value of this column, although its values repeat. If
        the name says that the column identifies somebody, other columns count, too.
    numbers
        Name of an identifier for each value of which this column has one, and nearly as many: both
        number the same persons. None if there is none.
    varies
        Names of the columns with lifelong traits that differ in many values of this column, so that
        it does not number persons.
    once_each
        Name of a column of times in which no time occurs twice with the same value of this column;
        None if there is none.
    """

    name: str
    spoken: str
    dtype: str
    kind: Kind | None
    rows: int
    nulls: int
    distinct: int = 0
    exact: bool = True
    low: Any = None
    high: Any = None
    special: int = 0
    whole_numbers: bool = False
    quantiles: Mapping[float, float] | None = None
    frequent: tuple[tuple[str, float], ...] = ()
    shapes: Mapping[str, float] | None = None
    lengths: tuple[int, int] | None = None
    peak: float = 0.0
    separation: float = 0.0
    round_share: float = 0.0
    ranges: tuple[str, ...] = ()
    fixes: tuple[str, ...] = ()
    numbers: str | None = None
    varies: tuple[str, ...] = ()
    once_each: str | None = None

    @property
    def values(self) -> int:
        """The number of rows in which the column is not null."""
        return self.rows - self.nulls

    @property
    def unique_share(self) -> float:
        """The number of different values divided by the number of rows that are not null, from 0 to
        1.
        """
        return min(1.0, self.distinct / self.values) if self.values else 0.0

    @property
    def top_share(self) -> float:
        """The share of all rows that have the column's most frequent value; 0 if Aegis did not
        count it.
        """
        return self.frequent[0][1] if self.frequent else 0.0

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers; False if no mask of Aegis reads values of their type."""
        return self.kind is not None and self.kind.numeric

    @property
    def categorical(self) -> bool:
        """Whether the column's values are categories: texts, or whole numbers that are codes, as
        its name says.
        """
        return self.kind is Kind.TEXT or (self.kind is Kind.INTEGER and self.coded_name)

    @property
    def concept(self) -> Concept | None:
        """The concept to which the column's name refers, such as a date of birth; None if Aegis
        knows no such concept.

        A concept of codes, such as race or place, is not that of numbers with fractions: the name then
        speaks of a share (`share_hispanic`) or a mean.
        """
        concept = find_concept(self.spoken, self.kind) or find_concept(self.name, self.kind)
        return None if concept is not None and concept.codes and self.fractional else concept

    @property
    def coded_name(self) -> bool:
        """Whether the column's name says that its whole numbers are codes, whose order has no
        meaning.
        """
        return names_codes(self.spoken)

    @property
    def even(self) -> bool:
        """Whether each number or code occurs in about equally many rows, as persons do in a study
        with repeated measurements.
        """
        form = self.integral or self.shape("code") > NEARLY_ALL
        return form and 0 < self.evenness <= EVEN

    @property
    def evenness(self) -> float:
        """The probability that two rows have the same value, divided by this probability if all values
        had equally many rows; see `EVEN`.
        """
        return (1 - self.separation) * self.distinct

    @property
    def fractional(self) -> bool:
        """Whether some numbers of the column have a fractional part."""
        return self.kind is Kind.NUMBER and self.low is not None and not self.whole_numbers

    @property
    def long_tailed(self) -> bool:
        """Whether some numbers are much larger than most, as amounts are; see `LONG_TAIL`."""
        quantiles = self.quantiles or {}
        return quantiles.get(0.99, 0.0) > LONG_TAIL * quantiles.get(0.5, 0.0) >= 0

    @property
    def is_bare(self) -> bool:
        """Whether the name is a single word, such as `id`, which does not say whose."""
        return len(self.name.split()) == 1 and self.name.isalpha()

    @property
    def integral(self) -> bool:
        """Whether the column has integers, or floats that are all whole numbers: many programs can store
        a null only beside floats, and keep the floats if the rows with null are gone.
        """
        return self.kind is Kind.INTEGER or self.whole_numbers

    def shape(self, name: str) -> float:
        """Return the share of the column's texts that have the form `name`, which is one of
        `SHAPES`.
        """
        return (self.shapes or {}).get(name, 0.0)


@dataclass(frozen=True)
class ColumnProfile:
    """The facts about one column, and the role and masks that Aegis proposes for it.

    Attributes
    ----------
    facts
        The measured facts.
    role
        The proposed role; None for the label.
    reason
        The reason for the role.
    masks
        Candidate masks, from fine to coarse.
    masks_reason
        The reason for the masks.
    unused
        Other masks that fit but are not proposed, each with the reason.
    warning
        A question that you must answer before you use the policy; empty if there is none.
    question
        For a column that the rule does not cover, a question: could other people know the values?
        Empty if the column hardly helps to find the row of a person.
    alternative
        Masks for the column if you make it a quasi-identifier; empty if `question` is empty.
    """

    facts: ColumnFacts
    role: Role | None
    reason: str
    masks: tuple[Mask, ...] = ()
    masks_reason: str = ""
    unused: tuple[tuple[Mask, str], ...] = ()
    warning: str = ""
    question: str = ""
    alternative: tuple[Mask, ...] = ()

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.facts.name

    @property
    def ordered(self) -> bool:
        """Whether the proposed policy lists the column's values in ascending order.

        This is so if the column is a quasi-identifier whose texts are ranges of numbers.
        """
        return self.role is Role.QUASI_IDENTIFIER and bool(self.facts.ranges)

    @property
    def quoted(self) -> bool:
        """Whether comments in the policy may show values of the column. They may not if the column
        is, or may be, an identifier.
        """
        doubtful = self.role is Role.QUASI_IDENTIFIER and bool(self.warning)
        return self.role is not Role.IDENTIFIER and not doubtful

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as JSON values, without any value of the column that may identify a
        person.
        """
        facts = self.facts
        hidden = not self.quoted
        return {
            "name": facts.name,
            "type": facts.dtype,
            "rows": facts.rows,
            "nulls": facts.nulls,
            "distinct": facts.distinct,
            "distinct_exact": facts.exact,
            "minimum": None if hidden else _plain(facts.low),
            "maximum": None if hidden else _plain(facts.high),
            "special": facts.special,
            "frequent": [] if hidden else [{"value": v, "share": s} for v, s in facts.frequent],
            "role": None if self.role is None else str(self.role),
            "reason": self.reason,
            "warning": self.warning or None,
            "question": self.question or None,
            "masks": [mask.spec() for mask in self.masks],
            "masks_reason": self.masks_reason,
            "unused": [{"mask": mask.spec(), "reason": why} for mask, why in self.unused],
        }


def _plain(value: Any) -> Any:
    """Return `value` in a form that JSON can store: a number as it is, a date as text."""
    return value if value is None or isinstance(value, int | float) else str(value)


_NUMBER = r"(-?[0-9]+(?:\.[0-9]+)?)"
_BOTH = re.compile(rf"([\[(]?){_NUMBER} ?(-|–|to|bis|,|;) ?{_NUMBER}([\])\[]?)")
_BELOW = re.compile(rf"[<≤]=? ?{_NUMBER}")
_ABOVE = re.compile(rf"[>≥]=? ?{_NUMBER}|{_NUMBER} ?[+]")


def bounds(text: str) -> tuple[float, float] | None:
    """Return the smallest and the largest number of a range such as "20-29"; None if the text is
    none.
    """
    text = text.strip()
    if (both := _BOTH.fullmatch(text)) is not None:
        low, high = float(both[2]), float(both[4])
        return (low, high) if low <= high else None
    if (below := _BELOW.fullmatch(text)) is not None:
        return -math.inf, float(below[1])
    if (above := _ABOVE.fullmatch(text)) is not None:
        return float(above[1] or above[2]), math.inf
    return None


def in_order(texts: Sequence[str]) -> tuple[str, ...]:
    """Return texts that are ranges of numbers, sorted from low to high. The result is empty if a
    text is not a range or if two ranges overlap.
    """
    ranges = [(known_bounds, text) for text in texts if (known_bounds := bounds(text)) is not None]
    if len(ranges) < len(texts):
        return ()
    ascending = sorted(ranges)
    if any(low[1] > high[0] for (low, _), (high, _) in pairwise(ascending)):
        return ()
    return tuple(text for _, text in ascending)


def merged(ranges: Sequence[str], size: int) -> dict[str, Any]:
    """Return a mask that merges each `size` neighbouring ranges; the last one may have fewer."""
    groups = [ranges[start : start + size] for start in range(0, len(ranges), size)]
    named = {_name(group): list(group) for group in groups}
    return {"group": {"groups": named, "rest": "other"}}


def _name(group: Sequence[str]) -> str:
    """Return a name for ranges that are merged: from the start of the first to the end of the last."""
    first, last = _BOTH.fullmatch(group[0].strip()), _BOTH.fullmatch(group[-1].strip())
    if first is not None and last is not None:
        return f"{first[1]}{first[2]}{first[3]}{last[4]}{last[5]}"
    return group[0] if len(group) == 1 else f"{group[0]} to {group[-1]}"


_DAY = "[0-9]{1,2}"
_GROUPING = "., '’\u00a0\u202f"
_FIGURE = rf"([0-9]+([.,][0-9]*)?|[0-9]{{1,3}}([{_GROUPING}][0-9]{{3}})+([.,][0-9]*)?)"
_MONEY = r"(us\$|[$€£¥]|usd|eur|gbp|chf|jpy)"
_MAGNITUDE = "(k|m|b|t|bn|mn|mio|mrd|thousand|million|billion|trillion)?"
_TITLE = "((Dr|Prof|Mr|Mrs|Ms|Miss|Sir|Herr|Frau)[.]? )*"
_MONTHS = "(jan|feb|mar|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[a-z]*"

SHAPES: Mapping[str, str] = {
    "digits": r"^[0-9]+$",
    "email": r"^[^@\s]+@[^@\s]+\.[A-Za-z]{2,}$",
    "uuid": r"^[{]?[0-9A-Fa-f]{8}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{12}[}]?$",
    "ip": r"^([0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}|[0-9A-Fa-f]{0,4}(:[0-9A-Fa-f]{0,4}){4,7})$",
    "ssn": r"^[0-9]{3}-[0-9]{2}-[0-9]{4}$",
    # International; North American; with an area code of three digits or more; French.
    "phone": r"^(\+[0-9][0-9 ()./-]{6,18}"
    r"|(1[-. ])?\(?[2-9][0-9]{2}\)?[-. ]{1,2}[0-9]{3}[-. ][0-9]{4}"
    r"|\(?0[0-9]{2,5}\)?[ /.-]{1,2}[0-9][0-9 /.-]{3,14}"
    r"|0[0-9]([ .-][0-9]{2}){4})$",
    # Two letters, two check digits, then groups of four (ISO 13616).
    "iban": r"^[A-Z]{2}[0-9]{2}( ?[A-Z0-9]{4}){2,7} ?[A-Z0-9]{0,4}$",
    "card": r"^[0-9]{4}[ -][0-9]{4}[ -][0-9]{4}[ -][0-9]{2,4}$",
    # SHA-1, and SHA-2 of 224 to 512 bits, in hexadecimal digits; MD5 has the form of a UUID.
    "hash": r"^([0-9A-Fa-f]{40}|[0-9A-Fa-f]{56}|[0-9A-Fa-f]{64}|[0-9A-Fa-f]{96}|[0-9A-Fa-f]{128})$",
    "url": r"^([a-z][a-z0-9+.-]*://|www\.)[^\s]+$",
    "mac": r"^[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}$",
    # Two to four words, the first and the last with a capital (or from a script without them), or
    # two to four Chinese characters; after titles such as Dr. or Mrs., also after a comma.
    "person": rf"^{_TITLE}"
    + r"([^a-z0-9\s!-/:-@\[-`{-~][^\s!-&(),/:-@\[-`{-~]*,?( [^\s!-&(),/:-@\[-`{-~]+){0,2}"
    r" [^a-z0-9\s!-/:-@\[-`{-~][^\s!-&(),/:-@\[-`{-~]*|[一-鿿]{2,4})$",
    "record": r"^[A-Za-z]{1,6}[-_ /]?[0-9]{4,}$",
    # Digits in groups, as telephone numbers and numbers of persons have them: 2 85 05 78 006 084 36.
    "grouped": r"^[+(]*[0-9][0-9 ()./+-]*[0-9]$",
    # Letters and digits mixed, without a space: 13011352CF10A, 7590-VHVEG, M000112.
    "code": r"^[A-Za-z0-9_/.-]*([A-Za-z][A-Za-z_/.-]*[0-9]|[0-9][0-9_/.-]*[A-Za-z])[A-Za-z0-9_/.-]*$",
    # ICD-10 with its point; ICD-9 with its point, or a supplementary code (V27, E950).
    "icd10": r"^[A-Z][0-9][0-9AB]\.[0-9A-Z]{1,4}$",
    "icd10_category": r"^[A-Z][0-9][0-9AB]$",
    "icd9": r"^([0-9]{3}\.[0-9]{1,2}|V[0-9]{2}(\.[0-9]{1,2})?|E[0-9]{3}(\.[0-9])?)$",
    "icd9_category": r"^[0-9]{1,3}$",
    "date": rf"^([0-9]{{4}}[-/.]{_DAY}[-/.]{_DAY}|{_DAY}[-/.]{_DAY}[-/.]([0-9]{{4}}|[0-9]{{2}}))([ t,].*)?$"
    rf"|(^|[^a-z]){_MONTHS}[ .,-]+({_DAY}(st|nd|rd|th)?,? *)?[0-9]{{4}}($|[^0-9])"
    rf"|^{_DAY}[ .-]*{_MONTHS}[ .,-]*([0-9]{{4}}|[0-9]{{2}})($|[^0-9])",
    # Year and month first, with or without a day: 2013-07-15, 2013-07, 2013/07/15 10:30.
    "year_first": r"^[12][0-9]{3}[-/.](0[1-9]|1[0-2])([-/.]([0-9]{2})([ tT].*)?)?$",
    "coordinates": r"^[(]?-?[0-9]{1,3}\.[0-9]{2,}[,; ]+-?[0-9]{1,3}\.[0-9]{2,}[)]?$",
    # A number with a point, a comma, a sign of money or a share, as amounts are written ($177 B); in other
    # groups than of three digits numbers of persons are: 756.9217.0769.85, 2 85 05 78 006 084 36.
    "amount": rf"^[-+]?[$€£¥]? ?{_FIGURE}"
    rf" ?[%$€£¥]?$|^[-+]?{_MONEY} ?{_FIGURE} ?{_MAGNITUDE}$|^[-+]?{_FIGURE} ?{_MAGNITUDE} ?{_MONEY}$",
    # Ranges of numbers: [70-80), 18-24, <20, >=65, 90+.
    "range": r"^([\[(]?-?[0-9]+(\.[0-9]+)? ?(-|–|to|bis|,|;) ?-?[0-9]+(\.[0-9]+)?[\])\[]?"
    r"|[<>≤≥]=? ?-?[0-9]+(\.[0-9]+)?|-?[0-9]+(\.[0-9]+)? ?[+])$",
    # A time of day or a duration: 2:33:01, 14:53.
    "time": r"^[0-9]{1,3}(:[0-5][0-9]){1,2}([.,][0-9]+)?$",
    "prose": r"^[^\s]+([\s]+[^\s]+){5,}",
    "given": r"(^|[^a-zà-ÿ])(" + "|".join(sorted(word_list("given_name"))) + r")($|[^a-zà-ÿ])",
}
"""Regular expressions by name. For each, `init` measures the share of a column's texts that match.
"""
LOWERED = frozenset({"date", "given", "amount", "url"})
"""The forms that are searched in the text after it is converted to lower case and spaces around it
are removed.
"""
