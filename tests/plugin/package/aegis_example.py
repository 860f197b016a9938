"""A package outside Aegis that adds a mask, a measure, a privacy model and an anonymiser.

Its entry points stand in `aegis_example-1.0.dist-info/entry_points.txt`, as an installer writes them
from `[project.entry-points]` of a pyproject.toml.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from aegis.anonymizers.base import Anonymizer, Options, Outcome, Style
from aegis.masks.base import Kind, Mask
from aegis.masks.catalog import MaskType
from aegis.measures import Contingency, Direction, Measure, Scope
from aegis.privacy.model import Comparison, ModelParameter, PrivacyModel

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class Initial(Mask):
    """Shows the first letter of a text; null stays null."""

    name: ClassVar[str] = "initial"
    summary: ClassVar[str] = "Shows the first letter of a text."
    fits: ClassVar[frozenset[Kind]] = frozenset({Kind.TEXT})
    example: ClassVar[str] = "initial"

    def expression(self, column: ir.Column) -> ir.Value:
        """Return the first letter."""
        return column.substr(0, 1)


INITIAL = MaskType.of(Initial)


def error_reduction(counts: Contingency) -> float:
    """Return Goodman and Kruskal's lambda: the share of guessing errors that an attribute saves."""
    most = counts.column_totals.max(initial=0)
    if counts.n <= most:
        return 0.0
    # Equal rows of the table stand once, with how many there are.
    right = counts.multiplicity @ counts.table.max(axis=1, initial=0)
    return float((right - most) / (counts.n - most))


ERRORS_SAVED = Measure(
    name="errors-saved",
    title="Goodman and Kruskal's lambda",
    description="The share of errors in guessing the label that knowing the attribute saves.",
    formula="(sum_x max_y n_xy - max_y n_y) / (N - max_y n_y)",
    reference="Goodman, Kruskal: Measures of Association (JASA 49, 1954)",
    range="0 to 1",
    unit="1",
    direction=Direction.HIGHER,
    monotone=True,
    scope=Scope.ATTRIBUTE,
    cost="cells",
    compute=error_reduction,
)

CROWD = PrivacyModel(
    name="crowd",
    title="crowd",
    description="Every class holds more rows than a number.",
    formula="|E| > rows",
    reference="An example of a plug-in",
    direction=Comparison.AT_LEAST,
    limit="rows",
    parameters=(ModelParameter("rows", "rows that a class has at least", low=1, whole=True),),
    monotone=True,
    monotone_with_suppression=True,
    argument="A union of classes has at least the rows of each.",
    figures=lambda table, _: table.sizes,
    shortfall="of fewer than {rows} rows",
)


def group_in_order(records: Any, options: Options, _random: Any, _progress: Any) -> Outcome:
    """Group k records at a time in the order of their codes; the last group takes the rest."""
    order = np.lexsort([attribute.codes for attribute in reversed(records.attributes)])
    labels = np.empty(len(records), dtype=np.int64)
    labels[order] = np.minimum(np.arange(len(records)) // options.k, len(records) // options.k - 1)
    return Outcome(labels)


BLOCKS = Anonymizer(
    name="blocks",
    summary="Groups records in their order.",
    reference="An example of a plug-in",
    options=Options,
    style=Style.CENTROID,
    cost="N log N",
    diverse=False,
    method=group_in_order,
)
