"""Measure how well the other columns of a release predict each column, on held-out rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aegis.advisor.column_roles import ColumnRole
from aegis.advisor.label_leaks import label_leaks
from aegis.measures import Measure, Need
from aegis.words import json_fields

if TYPE_CHECKING:
    from aegis.advisor.scoring import Choice, Scorer


@dataclass(frozen=True)
class ColumnFigure:
    """How well the other columns predict one column, in a release and in the unmasked table.

    Attributes
    ----------
    weight
        Weight of the column in the mean: 0 if the column is left out. A column with twins has a
        share of its weight in the policy.
    score, unmasked
        Score of the prediction by the measure, from 0 to 1, in the release and in the unmasked
        table.
    explained, unmasked_explained
        Share of the variance of the shown values that the other columns explain on held-out rows.
    left_out
        Why the column does not count; empty if it counts.
    twins
        Other columns that almost determine this column and are almost determined by it. They and
        this column together count as one column.
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
        """How many percent of the column's unmasked score the release keeps, at most 100; None if
        the unmasked score is 0.
        """
        return min(100 * self.score / self.unmasked, 100.0) if self.unmasked > 0 else None

    @property
    def role(self) -> ColumnRole:
        """The weight of the column in the measure, and the reason for this weight."""
        return ColumnRole(self.weight, self.left_out, self.twins)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {**json_fields(self), "kept": self.kept}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> ColumnFigure:
        """Rebuild a figure from the JSON values of `to_dict`."""
        known = {key: value for key, value in entries.items() if key != "kept"}
        return cls(**known | {"twins": tuple(entries["twins"])})


def columns_of(
    scorer: Scorer, choice: Choice, measure: Measure, whole: Scorer
) -> dict[str, ColumnFigure]:
    """Return, for each column of a release, how well the other columns predict it.

    The result is empty if the measure does not predict columns.

    Parameters
    ----------
    scorer, choice
        The scorer of the release, and the masks to score.
    measure
        The measure of the release.
    whole
        The scorer of the unmasked table, with whose scores the release is compared.
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
    """Return the weight and the twins of each column from `columns`, the column figures in a
    certificate. Twins are columns that almost determine each other.

    The result is empty if `columns` does not have the form of such figures.
    """
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
    said: Mapping[str, Any], scorer: Scorer, measure: Measure
) -> Iterator[tuple[str, object, object]]:
    """Yield each figure in which a certificate and the released rows differ: its name, the stated
    value and the recomputed value.

    Parameters
    ----------
    said
        The utility section of the certificate, with the figures of each column.
    scorer
        The scorer of the released rows.
    measure
        The measure of the certificate. Column figures are compared only if it predicts every
        column.
    """
    if "value" in said:  # a certificate without this name is older than the figure, too
        leaks = label_leaks(scorer.summary, scorer.unmasked)
        yield "utility.leaks", said.get("leaks", {}), leaks
    columns: Any = said.get("columns")
    if Need.COLUMNS not in measure.needs:
        return
    if not stated_roles(columns):
        yield "utility.columns", columns, "figures of each column"
        return
    for name, shown in scorer.columns(scorer.unmasked).items():
        stated = columns.get(name, {})
        for key, figure in zip(("score", "explained"), shown, strict=True):
            yield f"utility.columns.{name}.{key}", stated.get(key), figure
