"""The method Mondrian, which cuts the records at medians; the module `mondrian_cuts` makes the
cuts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aegis.anonymizers.base import Anonymizer, Options, Outcome, Style
from aegis.anonymizers.mondrian_cuts import mondrian
from aegis.anonymizers.records import Records
from aegis.progress import Progress


@dataclass(frozen=True)
class MondrianOptions(Options):
    """Options of Mondrian.

    Attributes
    ----------
    relaxed
        Allow records with the median value on both sides of a cut. Aegis can then cut every group
        of 2k or more records, and groups can overlap. By default (strict), equal values stay
        together.
    """

    relaxed: bool = False


def _run(
    records: Records,
    options: MondrianOptions,
    random: np.random.Generator,  # noqa: ARG001 - the same interface for all methods
    progress: Progress,
) -> Outcome:
    with progress.step("mondrian", len(records)) as step:
        labels = mondrian(
            records, options.k, distinct=options.l, relaxed=options.relaxed, step=step
        )
    return Outcome(labels)


MONDRIAN = Anonymizer(
    "mondrian",
    "Cuts the records at the median of the widest attribute, and then cuts each part again.",
    "LeFevre, DeWitt and Ramakrishnan 2006",
    MondrianOptions,
    Style.GENERALISED,
    "N log N",
    True,
    _run,
)

__all__ = ["MONDRIAN", "MondrianOptions", "mondrian"]
