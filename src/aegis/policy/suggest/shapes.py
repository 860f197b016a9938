"""Define forms of text, such as e-mail addresses, as regular expressions for every engine.

The expressions use no look-ahead, word boundaries or flags, because engines write these
differently.
"""

from __future__ import annotations

from collections.abc import Mapping

from aegis.policy.suggest.lists import word_list

_DAY = "[0-9]{1,2}"
_GROUPING = "., '’\u00a0\u202f"
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
    "url": r"^([a-z][a-z0-9+.-]*://|www\.)[^\s]+$",
    "mac": r"^[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}$",
    # Two to four words, the first and the last with a capital (or from a script without them), or
    # two to four Chinese characters.
    "person": r"^([^a-z0-9\s!-/:-@\[-`{-~][^\s!-&(),/:-@\[-`{-~]*,?( [^\s!-&(),/:-@\[-`{-~]+){0,2}"
    r" [^a-z0-9\s!-/:-@\[-`{-~][^\s!-&(),/:-@\[-`{-~]*|[一-鿿]{2,4})$",
    "record": r"^[A-Za-z]{1,6}[-_ /]?[0-9]{4,}$",
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
    # A number with a point, a comma, a sign of money or a share, as amounts are written; in other groups
    # than of three digits numbers of persons are: 756.9217.0769.85, 2 85 05 78 006 084 36.
    "amount": rf"^[-+]?[$€£¥]? ?([0-9]+([.,][0-9]*)?|[0-9]{{1,3}}([{_GROUPING}][0-9]{{3}})+([.,][0-9]*)?)"
    r" ?[%$€£¥]?$",
    # Ranges of numbers: [70-80), 18-24, <20, >=65, 90+.
    "range": r"^([\[(]?-?[0-9]+(\.[0-9]+)? ?(-|–|to|bis|,|;) ?-?[0-9]+(\.[0-9]+)?[\])\[]?"
    r"|[<>≤≥]=? ?-?[0-9]+(\.[0-9]+)?|-?[0-9]+(\.[0-9]+)? ?[+])$",
    "prose": r"^[^\s]+([\s]+[^\s]+){5,}",
    "given": r"(^|[^a-zà-ÿ])(" + "|".join(sorted(word_list("given_name"))) + r")($|[^a-zà-ÿ])",
}
"""Regular expressions by name. For each, `init` measures the share of a column's texts that match.
"""
LOWERED = frozenset({"date", "given", "amount", "url"})
"""The forms that are searched in the text after it is converted to lower case and spaces around it
are removed.
"""
