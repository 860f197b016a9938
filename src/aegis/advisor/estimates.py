"""Define estimates of how far masked tables deviate from the unmasked table; they can rank
configurations.

Packages add estimates through the entry points `aegis.estimates`; see `EstimateCase`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from aegis.advisor.scoring import Choice
from aegis.progress import Progress
from aegis.registry import Registry
from aegis.summary import Information, Summary
from aegis.words import json_fields


@dataclass(frozen=True)
class AttributeEstimate:
    """An estimate of the score that an attribute would have unmasked, made from its masked values.

    Attributes
    ----------
    estimate
        The estimated unmasked score: the score of reconstructed counts, which lies within the
        bounds.
    lower, upper
        Bounds of the unmasked score that hold for all possible unmasked counts; None if the measure
        has no bounds.
    masked
        The score of the masked attribute.
    information, method
        The information that this estimate used, and its method; None if both are the same as in the
        whole `Estimate`.
    """

    estimate: float
    lower: float | None
    upper: float | None
    masked: float
    information: Information | None = None
    method: str | None = None

    @property
    def deviation(self) -> float:
        """The estimate of |unmasked - masked|, the absolute difference between both scores."""
        return abs(self.estimate - self.masked)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The smallest and the largest possible |unmasked - masked|, given the bounds of the
        unmasked score; None if there are no bounds.
        """
        if self.lower is None or self.upper is None:
            return None
        ends = abs(self.lower - self.masked), abs(self.upper - self.masked)
        inside = self.lower <= self.masked <= self.upper
        return (0.0 if inside else min(ends)), max(ends)


@dataclass(frozen=True, eq=False)
class Estimate:
    """The predictive utility deviation (PUD) of one configuration, as estimated without the
    unmasked table.

    Attributes
    ----------
    configuration
        Name of the configuration.
    measure, information, method
        The estimated measure, the information used, and the method.
    pud
        Estimated mean over attributes of |unmasked - masked|.
    interval
        Smallest and largest PUD that the information allows; None if the measure has no bounds.
    attributes
        The estimate for each attribute.
    case
        Name of the estimate in `ESTIMATES`, if it was requested by name.
    """

    configuration: str
    measure: str
    information: Information
    method: str
    pud: float
    interval: tuple[float, float] | None
    attributes: dict[str, AttributeEstimate]
    case: str | None = None

    @property
    def place(self) -> float:
        """The estimated deviation (PUD) by which estimates are sorted. It is rounded, so that
        rounding errors do not decide the order.
        """
        parts = (abs(x) for a in self.attributes.values() for x in (a.masked, a.estimate))
        largest = max(parts, default=0.0)
        digits = 9 - math.ceil(math.log10(largest)) if largest > 0 else 9
        return round(self.pud, digits)

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as JSON values, including the deviation of each attribute."""
        shown = ("estimate", "lower", "upper", "masked", "deviation", "interval")
        fields = ("configuration", "case", "measure", "information", "method", "pud", "interval")
        attributes = {
            name: json_fields(own, *shown)
            | {
                "information": str(own.information or self.information),
                "method": own.method or self.method,
            }
            for name, own in self.attributes.items()
        }
        return json_fields(self, *fields) | {"attributes": attributes}


class EstimateCase(Protocol):
    """A way to estimate how far the scores of configurations deviate from the scores of the
    unmasked table.
    """

    @property
    def name(self) -> str:
        """The name under which users request the estimate."""

    @property
    def summary(self) -> str:
        """A sentence that says what is estimated, and what must be known for it."""

    @property
    def caution(self) -> str | None:
        """A warning that the user should read before relying on the estimate; None if there is none."""

    def estimates(
        self,
        summary: Summary,
        choices: Mapping[str, Choice],
        *,
        measure: str | None,
        progress: Progress,
    ) -> Mapping[str, Estimate]:
        """Estimate how far each configuration deviates from the unmasked table, and return the
        estimates by the configuration's name.

        Parameters
        ----------
        summary
            The counts of the table.
        choices
            The candidates of each configuration, by the configuration's name.
        measure
            The measure that the user named; None if none was named.
        progress
            Shows the progress, one step for each configuration.

        Raises
        ------
        PolicyError
            The summary does not have enough information.
        """


ESTIMATES: Registry[EstimateCase] = Registry("estimate")
"""Estimates by name."""
