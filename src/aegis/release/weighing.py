"""Measure the total weight of the released rows, and how many people an attacker could find with
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aegis.release.risk_of_records import record_risk
from aegis.sources import Source
from aegis.summary.classes import WEIGHT
from aegis.words import json_fields

MOST_ROWS = 2_000_000
"""Largest number of rows of a release for which the expected number of people found is estimated.
"""


@dataclass(frozen=True)
class KeptWeight:
    """The weight of released rows, and how many people an attacker could find with them.

    Attributes
    ----------
    column
        Column of the weights in the input; the release does not contain it.
    total, released
        Sum of the weights of all rows, and sum of the weights of the released rows.
    expected
        Expected number of people whom an attacker finds by trying all released records. None if
        weights are not numbers of people, or if the quasi-identifiers are not read.
    largest
        Largest probability, over all records, that an attacker finds the person of the record; None
        if `expected` is None.
    """

    column: str
    total: float
    released: float
    expected: float | None = None
    largest: float | None = None

    @property
    def suppressed_share(self) -> float:
        """Share of the weight that was suppressed, from 0 to 1."""
        return 1 - self.released / self.total if self.total else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        figures = ("expected_found=expected", "largest_chance=largest")
        return json_fields(self, "column", "total", "released", "suppressed_share", *figures)


def not_released(weight: str) -> str:
    """Return a warning that the release lacks the weights of its rows, with a remedy."""
    return (
        f"the release does not show the weights in {weight!r}, because a rare weight singles out its row. People who "
        "use the release count each row once. To release rounded weights, give the column masks such as "
        "[{round: {step: 100}}, suppress]"
    )


def kept_weight(source: Source, rows: Source, column: str, quasi: Sequence[str]) -> KeptWeight:
    """Measure the total weight of the released rows, to compare it with the weight of the whole
    table.

    Parameters
    ----------
    source
        The table with its weights in `column`.
    rows
        The released rows, with their weights in the column `WEIGHT`.
    quasi
        Columns of the release that form its classes.
    """
    weights = source.table[column]
    whole = source.collect(source.table.aggregate(total=weights.sum().cast("float64")))
    own = rows.table[WEIGHT]
    left = rows.collect(
        rows.table.aggregate(
            total=own.sum().cast("float64"),
            least=own.min().cast("float64"),
            rows=rows.table.count(),
        )
    )
    total, released = (float(of["total"][0].as_py() or 0.0) for of in (whole, left))
    count, least = int(left["rows"][0].as_py()), float(left["least"][0].as_py() or 0.0)
    # People are counted where each record stands for at least itself.
    if not quasi or not 0 < count <= MOST_ROWS or least < 1 or not rows.engine.in_process:
        return KeptWeight(column, total, released)
    risk = record_risk(rows, quasi_identifiers=tuple(quasi), weight=WEIGHT)
    return KeptWeight(column, total, released, risk.expected, float(risk.risks.max()))
