"""Compute how much utility is lost by each candidate mask if it is the only mask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aegis.advisor.default import measure_for
from aegis.advisor.scoring import Scorer, utility_kept
from aegis.advisor.several import scorer_of
from aegis.summary import Summary
from aegis.words import json_fields


@dataclass(frozen=True)
class MaskCost:
    """How much utility is lost if one candidate mask, and no other mask, is applied to the whole
    table.

    Attributes
    ----------
    attribute, mask
        The attribute, and its candidate as declared.
    levels
        Number of values that the mask shows.
    score
        The score of the table in which only this attribute is masked.
    utility_kept
        Percent of the unmasked utility that is kept; None if the unmasked utility is 0.
    """

    attribute: str
    mask: str
    levels: int
    score: float
    utility_kept: float | None

    @property
    def lost(self) -> float:
        """How many percent of the unmasked utility the mask costs, at least 0."""
        return 0.0 if self.utility_kept is None else max(0.0, 100.0 - self.utility_kept)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return json_fields(self)


def mask_costs(
    summary: Summary, measure: str | None = None, *, scorer: Scorer | None = None
) -> tuple[MaskCost, ...]:
    """Return how much utility each candidate mask of each attribute costs, in the order of the
    policy.

    All other attributes stay unmasked. So masking an attribute costs little if other attributes
    carry the same information.

    Parameters
    ----------
    summary
        The counts of the table.
    measure
        Name of a measure; by default the measure that rankings use.
    scorer
        A scorer of this summary, if one exists: its cached counts are used.
    """
    chosen, _ = measure_for(summary, measure)
    own = scorer or scorer_of(summary)
    whole = own.value(own.unmasked, chosen)
    costs = []
    for attribute in summary.attributes.values():
        for candidate in attribute.candidates:
            score = own.value({**own.unmasked, attribute.name: candidate}, chosen)
            costs.append(
                MaskCost(
                    attribute.name,
                    str(candidate.declared),
                    candidate.size,
                    score,
                    utility_kept(score, whole, chosen, own.label_rows),
                )
            )
    return tuple(costs)
