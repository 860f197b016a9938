"""Constants of named privacy standards: HIPAA Safe Harbor and minimum class sizes of regulators."""

from __future__ import annotations

from dataclasses import dataclass

ZIP3_VERSION = "census-2000"
"""Census on which `SMALL_ZIP3` rests; the list changes with the census, the rule does not."""

SMALL_ZIP3: frozenset[str] = frozenset(
    [
        "036",
        "059",
        "063",
        "102",
        "203",
        "556",
        "692",
        "790",
        "821",
        "823",
        "830",
        "831",
        "878",
        "879",
        "884",
        "890",
        "893",
    ]
)
"""Three-digit ZIP prefixes whose areas together hold 20,000 people or fewer.

45 CFR 164.514(b)(2)(i)(B) asks that they be replaced by `ZIP3_REPLACEMENT`. The list is the one in
the guidance of the US Department of Health and Human Services on de-identification (2012), from
census 2000 data.
"""

ZIP3_REPLACEMENT = "000"
"""What takes the place of a prefix in `SMALL_ZIP3`."""

OLDEST_AGE = 89
"""Ages above are put into one category, "90 or older": 45 CFR 164.514(b)(2)(i)(C)."""

SAFE_HARBOR_IDENTIFIERS: tuple[str, ...] = (
    "names",
    "geographic subdivisions smaller than a state, except the first three ZIP digits",
    "all elements of dates except the year, and ages over 89",
    "telephone numbers",
    "fax numbers",
    "email addresses",
    "social security numbers",
    "medical record numbers",
    "health plan beneficiary numbers",
    "account numbers",
    "certificate and licence numbers",
    "vehicle identifiers and serial numbers, including licence plates",
    "device identifiers and serial numbers",
    "web addresses",
    "IP addresses",
    "biometric identifiers, including finger and voice prints",
    "full-face photographs and comparable images",
    "any other unique identifying number, characteristic or code",
)
"""What Safe Harbor removes, in the order of 45 CFR 164.514(b)(2)(i)(A) to (R)."""


@dataclass(frozen=True)
class Preset:
    """A minimum class size that a standard sets.

    Attributes
    ----------
    name
        What a policy writes after `preset:`.
    minimum_class
        Rows that a class has at least.
    reference
        Where the number comes from.
    """

    name: str
    minimum_class: int
    reference: str


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset("ema", 11, "EMA policy 0070: risk of at most 0.09, that is classes of at least 11"),
        Preset(
            "health-canada",
            11,
            "Health Canada, public release of clinical information: risk of at most 0.09",
        ),
        Preset("cms", 11, "CMS cell size suppression policy: no cell of 1 to 10"),
    )
}
"""Minimum class sizes by the name that a policy writes."""
