"""What can still be learnt about each column of a release: predicted from the others, row by row held out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from aegis.advisor.column_roles import ColumnRole
from aegis.measures import Measure, Need

if TYPE_CHECKING:
    from aegis.advisor.scoring import Choice, Scorer


@dataclass(frozen=True)
class ColumnFigure:
    """What can still be learnt about one column, and about it in the unmasked table.

    Attributes
    ----------
    weight
        How much the column counts in the mean: 0 where it is left out, less than its weight in the policy
        where it shares it with twins.
    score, unmasked
        How well the other columns predict it, as the measure counts it: from 0 to 1.
    explained, unmasked_explained
        The share of its variance that the other columns explain on rows held out, of the values that are
        shown.
    left_out
        Why it does not count; empty where it does.
    twins
        Columns that tell it exactly and that it tells: all of them count as one.
    """

    weight: float
    score: float
    unmasked: float
    explained: float
    unmasked_explained: float
    left_out: str = ""
    twins: tuple[str, ...] = ()

    @property
    def kept(self) -> float | None:
        """Percent of what can be learnt that is kept, at most 100; None if nothing can."""
        return min(100 * self.score / self.unmasked, 100.0) if self.unmasked > 0 else None

    @property
    def role(self) -> ColumnRole:
        """How much it counts, and why."""
        return ColumnRole(self.weight, self.left_out, self.twins)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {**asdict(self), "twins": list(self.twins), "kept": self.kept}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> ColumnFigure:
        """Return the figure that `to_dict` made."""
        known = {key: value for key, value in entries.items() if key != "kept"}
        return cls(**known | {"twins": tuple(entries["twins"])})


def columns_of(
    scorer: Scorer, choice: Choice, measure: Measure, whole: Scorer
) -> dict[str, ColumnFigure]:
    """Return what can still be learnt about each column; empty of a measure that predicts no column.

    Parameters
    ----------
    scorer, choice
        The release, and its masks if it is of masks on all rows.
    measure
        What measures it.
    whole
        Holds the summary of the unmasked table.
    """
    if Need.COLUMNS not in measure.needs:
        return {}
    released, unmasked = scorer.columns(choice), whole.columns(whole.unmasked)
    figures = {}
    for name, role in whole.column_roles.items():
        score, explained = released.get(name, (0.0, 0.0))
        before, before_explained = unmasked.get(name, (0.0, 0.0))
        figures[name] = ColumnFigure(
            role.weight, score, before, explained, before_explained, role.left_out, role.twins
        )
    return figures


def stated_roles(columns: object) -> dict[str, ColumnRole]:
    """Return how much each column counts by what a certificate states; empty if these are no figures."""
    numbers = ("weight", "score", "unmasked", "explained", "unmasked_explained")
    if not isinstance(columns, Mapping):
        return {}
    for own in columns.values():
        if not isinstance(own, Mapping) or set(own) != {*numbers, "left_out", "twins", "kept"}:
            return {}
        if not isinstance(own["twins"], list) or not all(
            isinstance(own[key], (int, float)) and math.isfinite(own[key]) for key in numbers
        ):
            return {}
    return {name: ColumnFigure.from_dict(own).role for name, own in columns.items()}


def columns_differ(
    columns: Any, scorer: Scorer, measure: Measure
) -> Iterator[tuple[str, object, object]]:
    """Yield each figure of a column that a certificate states, and what a release shows of it."""
    if Need.COLUMNS not in measure.needs:
        return
    if not stated_roles(columns):
        yield "utility.columns", columns, "figures of each column"
        return
    for name, shown in scorer.columns(scorer.unmasked).items():
        stated = columns.get(name, {})
        for key, figure in zip(("score", "explained"), shown, strict=True):
            yield f"utility.columns.{name}.{key}", stated.get(key), figure
