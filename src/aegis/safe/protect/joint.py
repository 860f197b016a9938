"""The joint of an attribute and the label, as a protected summary leaves it: with its uncertainty.

A protected label table may hold negative counts, and its classes need not add up to those of the other
tables. What is returned is the nearest table that does: least squares under the constraints that counts
are not negative and that each class has as many rows as all tables together say (consistency as in Hay et
al., Boosting the accuracy of differentially private histograms through consistency, PVLDB 3, 2010). It is
computed from what was published alone, so that it costs nothing and gives nothing more away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.blas import one_blas_thread
from aegis.errors import PolicyError
from aegis.safe.protect.added_variance import added_variance
from aegis.safe.protect.model import ProtectedAttribute, ProtectedSummary
from aegis.safe.protect.scores import FINEST, REPLICATES, ProtectedScorer

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ProtectedJoint:
    """Rows by cell and class of one attribute, estimated.

    Attributes
    ----------
    attribute, label
        The attribute, and the label's column.
    cells
        What each cell is: what every candidate mask shows of it, the finest first.
    classes
        What each class shows.
    table
        Estimated rows, shape (K, C), at least 0; a class adds up to its rows.
    stderr
        Standard error of each, by protection alone, shape (K, C).
    contingency, contingency_stderr
        Mean square contingency of the cells and the label, less what protection adds on average, and
        its standard error by protection.
    """

    attribute: str
    label: str
    cells: tuple[str, ...]
    classes: tuple[str, ...]
    table: Floats
    stderr: Floats
    contingency: float
    contingency_stderr: float

    def to_dict(self) -> dict[str, Any]:
        """Return the documented JSON form (docs/reference/json.md)."""
        return {
            "attribute": self.attribute,
            "label": self.label,
            "values": list(self.cells),
            "classes": list(self.classes),
            "table": self.table.tolist(),
            "stderr": self.stderr.tolist(),
            "contingency": self.contingency,
            "contingency_stderr": self.contingency_stderr,
        }


@one_blas_thread
def reconstruct_protected(summary: ProtectedSummary, attribute: str) -> ProtectedJoint:
    """Return the joint of an attribute and the label as far as protection leaves it.

    Raises
    ------
    PolicyError
        The summary has no such attribute.
    """
    if attribute not in summary.attributes:
        raise PolicyError.unknown("attribute", attribute, summary.attributes)
    own = summary.attributes[attribute]
    place = list(summary.attributes).index(attribute)
    random = np.random.default_rng(0)
    weight = np.maximum(own.units, 1).astype(np.float64)
    error = np.sqrt(added_variance(summary, own))
    published = own.table.astype(np.float64)
    draws = [
        consistent(published + error * random.standard_normal(own.table.shape), summary, weight)
        for _ in range(REPLICATES)
    ]
    strengths = [
        ProtectedScorer(summary, replicate=seed).masked(place, FINEST).strength
        for seed in range(REPLICATES)
    ]
    return ProtectedJoint(
        attribute=attribute,
        label=summary.label,
        cells=tuple(cell_names(own)),
        classes=summary.classes,
        table=consistent(published, summary, weight),
        stderr=np.std(draws, axis=0, ddof=1),
        contingency=ProtectedScorer(summary).masked(place, FINEST).strength,
        contingency_stderr=float(np.std(strengths, ddof=1)),
    )


def consistent(table: Floats, summary: ProtectedSummary, weight: Floats) -> Floats:
    """Return the nearest table without negative counts whose classes have the summary's rows."""
    columns = [
        nearest_with_sum(table[:, label], weight, float(rows))
        for label, rows in enumerate(summary.class_counts)
    ]
    nearest: Floats = np.stack(columns, axis=1) if len(table) else table
    return nearest


def nearest_with_sum(counts: Floats, weight: Floats, total: float) -> Floats:
    """Return x >= 0 with the sum `total` that minimises the sum of (x - counts)^2 / weight.

    By the conditions of Karush, Kuhn and Tucker x = max(counts + s weight, 0) for one number s, which
    grows with the sum; it is found among the breakpoints -counts / weight.

    Parameters
    ----------
    counts, weight
        Shape (K,); weights above 0, in proportion to the variances of the counts.
    total
        The sum, at least 0.
    """
    order = np.argsort(-counts / weight, kind="stable")
    # With the first i cells in that order above 0: sum = counts + s weights over them.
    shifts = (total - np.cumsum(counts[order])) / np.cumsum(weight[order])
    last = np.append((-counts / weight)[order][1:], np.inf)
    place = int(np.argmax(shifts <= last))
    nearest: Floats = np.maximum(counts + shifts[place] * weight, 0.0)
    return nearest


def cell_names(attribute: ProtectedAttribute) -> list[str]:
    """Return each cell in words: the value of its finest mask, with more masks if that value is
    not unique.
    """
    finest_first = sorted(attribute.candidates, key=lambda c: -c.size)
    names = []
    for cell in range(len(attribute.table)):
        shown = [c.shown[int(c.groups[cell])] for c in finest_first]
        names.append(shown[0] if _alone(finest_first[0].groups, cell) else " · ".join(shown))
    return names


def _alone(groups: npt.NDArray[np.int64], cell: int) -> bool:
    return int((groups == groups[cell]).sum()) == 1
