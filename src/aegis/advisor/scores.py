"""Hold scores of configurations, and compute the share of the utility that they keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aegis.array_cache import OnDemand, remembered
from aegis.measures import Measure

_ROUNDING = 1e-9
"""Utility counts as 0 up to this share of the value that a constant prediction reaches (rounding)."""


@dataclass(frozen=True)
class AttributeScore:
    """The score that one attribute has before and after masking.

    Attributes
    ----------
    score
        The score of the masked attribute.
    unmasked
        The score of the unmasked attribute.
    """

    score: float
    unmasked: float

    @property
    def change(self) -> float:
        """The score of the masked attribute minus the score of the unmasked attribute."""
        return self.score - self.unmasked


class AttributeScores(OnDemand[str, AttributeScore]):
    """The score of each attribute by itself. The scores are computed when somebody first reads
    them.

    Few callers need these scores, and for a label with many classes they take longer than the score
    of the configuration.
    """

    @remembered
    def __getitem__(self, name: str) -> AttributeScore:
        return super().__getitem__(name)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(
        self,
    ) -> tuple[type[dict[str, AttributeScore]], tuple[dict[str, AttributeScore]]]:
        """Compute all scores, to copy or pickle them without the table's counts."""
        return dict, (dict(self),)


def mean_change(attributes: Mapping[str, AttributeScore]) -> float:
    """Return the predictive utility deviation: the mean over attributes of |unmasked - masked|, the
    absolute change of an attribute's score by its mask.
    """
    return float(np.mean([abs(scores.change) for scores in attributes.values()]))


@dataclass(frozen=True)
class ConfigurationScore:
    """The score that one configuration has by one measure.

    Attributes
    ----------
    score
        The value of the measure; for an attribute measure, its weighted mean over attributes.
    utility_kept
        Percent of the utility that is kept, at most 100; None if the unmasked utility is 0. See the
        function `utility_kept`.
    attributes
        The score of each attribute alone.
    """

    score: float
    utility_kept: float | None
    attributes: Mapping[str, AttributeScore]

    @cached_property
    def pud(self) -> float:
        """The predictive utility deviation of the configuration (AEGIS paper, equation 1), as
        `mean_change` computes it.
        """
        return mean_change(self.attributes)


def utility_kept(
    score: float,
    reference: float,
    measure: Measure,
    label_rows: Sequence[float] | None = None,
) -> float | None:
    """Return the percentage of a reference's utility that a score keeps, from 0 to 100.

    Utility is the difference between a score and the score of a constant prediction
    (`Measure.worst`), which may depend on the number of rows of each label class (`label_rows`). A
    score above the reference exceeds it only by accident, so it keeps 100 %. A score worse than a
    constant prediction keeps 0 %. The result is None if the reference has no utility, up to
    rounding.
    """
    worst, sign = measure.worst(label_rows), measure.direction.sign
    whole = sign * (reference - worst)
    if not whole > _ROUNDING * abs(worst):
        return None
    return min(max(100.0 * sign * (score - worst) / whole, 0.0), 100.0)
