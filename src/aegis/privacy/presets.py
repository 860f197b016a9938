"""List the minimum class sizes set by regulators, by their names in a policy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Preset:
    """A minimum class size that a regulator has set.

    Attributes
    ----------
    name
        The name that a policy writes after `preset:`.
    minimum_class
        Smallest allowed number of rows of a class.
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
"""Minimum class sizes, by the name that a policy writes."""
