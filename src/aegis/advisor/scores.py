"""What a score of a configuration says, and what share of the utility is kept by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aegis.measures import Measure

_ROUNDING = 1e-9
"""Share of what a constant prediction reaches up to which what lies beyond it is rounding."""


@dataclass(frozen=True)
class AttributeScore:
    """What a mask does to one attribute's measure.

    Attributes
    ----------
    score
        The measure of the masked attribute.
    unmasked
        The measure of the attribute as it is.
    """

    score: float
    unmasked: float

    @property
    def change(self) -> float:
        """Masked minus unmasked, with its sign."""
        return self.score - self.unmasked


@dataclass(frozen=True)
class ConfigurationScore:
    """The score of one configuration under one measure.

    Attributes
    ----------
    score
        The measure of the configuration; for an attribute measure the weighted mean over
        attributes.
    utility_kept
        Percent of the utility that is kept, at most 100, or None where there was none to keep; see
        `utility_kept`.
    pud
        Predictive utility deviation: the mean over attributes of |unmasked - masked| (AEGIS,
        equation 1).
    attributes
        The measure of each attribute alone.
    """

    score: float
    utility_kept: float | None
    pud: float
    attributes: Mapping[str, AttributeScore]


def utility_kept(
    score: float,
    reference: float,
    measure: Measure,
    label_rows: Sequence[float] | None = None,
) -> float | None:
    """Return the percent of the utility of a reference that is kept, from 0 to 100.

    Utility is what a measure shows beyond what a constant prediction reaches (`Measure.worst`),
    which takes the rows of each class where it depends on them. What seems better than the
    reference is so by chance and keeps all of it; what seems worse than a constant prediction keeps
    nothing. None where there was nothing to keep, but for rounding.
    """
    worst, sign = measure.worst(label_rows), measure.direction.sign
    whole = sign * (reference - worst)
    if not whole > _ROUNDING * abs(worst):
        return None
    return min(max(100.0 * sign * (score - worst) / whole, 0.0), 100.0)
