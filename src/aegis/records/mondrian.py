"""The method Mondrian, which cuts the records at medians; the module `mondrian_cuts` makes the
cuts.
"""

from __future__ import annotations

from dataclasses import dataclass

from aegis.anonymizers.base import Anonymizer, Options, Style
from aegis.anonymizers.method import labelled
from aegis.anonymizers.mondrian_cuts import mondrian


@dataclass(frozen=True)
class MondrianOptions(Options):
    """Options of Mondrian.

    Attributes
    ----------
    relaxed
        Allow records with the median value on both sides of a cut. Then every group of 2k or more
        records can be cut, and groups can overlap. By default, equal values stay together.
    """

    relaxed: bool = False


MONDRIAN = Anonymizer(
    "mondrian",
    "Cuts the records at the median of the widest attribute, and then cuts each part again.",
    "LeFevre, DeWitt and Ramakrishnan 2006",
    MondrianOptions,
    Style.GENERALISED,
    "N log N",
    True,
    labelled(
        "mondrian",
        lambda records, options, _, step: mondrian(
            records, options.k, distinct=options.l, relaxed=options.relaxed, step=step
        ),
    ),
)
