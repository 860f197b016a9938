"""Estimate joint counts of an attribute and the label, with standard errors, from noisy tables.

A label table of a protected summary may have negative counts, and its class totals may differ from
the class totals of other tables. This module returns the nearest table (by least squares) that has
no negative counts and has the class totals that are estimated from all tables (consistency as in
Hay et al., Boosting the accuracy of differentially private histograms through consistency, PVLDB 3,
2010). It uses only published figures, so it costs no budget and reveals nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from aegis.arrays import Floats
from aegis.blas import one_blas_thread
from aegis.errors import PolicyError
from aegis.safe.protect.added_variance import added_variance
from aegis.safe.protect.model import ProtectedAttribute, ProtectedSummary
from aegis.safe.protect.scores import FINEST, REPLICATES, ProtectedScorer
from aegis.words import json_fields


@dataclass(frozen=True, eq=False)
class ProtectedJoint:
    """The estimated number of rows in each cell of one attribute and each label class, with
    standard errors. A cell is a set of values that no candidate mask distinguishes.

    Attributes
    ----------
    attribute, label
        The attribute, and the label column.
    cells
        Description of each cell: its masked value under every candidate mask, the finest first.
    classes
        The text of each class.
    table
        Estimated numbers of rows in each of the K cells and C classes, shape (K, C), at least 0.
        The numbers of each class add up to the total of the class.
    stderr
        Standard error of each estimate due to protection only, shape (K, C).
    contingency, contingency_stderr
        Mean square contingency of the cells and the label, minus the contribution that protection
        is expected to make; and its standard error due to protection.
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
        tables = {"table": self.table.tolist(), "stderr": self.stderr.tolist()}
        names = json_fields(self, "attribute", "label", "values=cells", "classes")
        return names | tables | json_fields(self, "contingency", "contingency_stderr")


@one_blas_thread
def reconstruct_protected(summary: ProtectedSummary, attribute: str) -> ProtectedJoint:
    """Return the estimated joint counts of an attribute and the label.

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
    """Return the label table (rows by cell and class) without negative counts that has the
    summary's class totals and is nearest to `table`, by least squares. `weight` is proportional to
    the variance of each cell's counts.
    """
    columns = [
        nearest_with_sum(table[:, label], weight, float(rows))
        for label, rows in enumerate(summary.class_counts)
    ]
    return np.stack(columns, axis=1) if len(table) else table


def nearest_with_sum(counts: Floats, weight: Floats, total: float) -> Floats:
    """Return x >= 0 with the sum `total` that minimises the sum of (x - counts)^2 / weight.

    By the Karush-Kuhn-Tucker conditions, x = max(counts + s * weight, 0) for a number s that grows
    with the sum. s lies between two neighbouring breakpoints -counts / weight.

    Parameters
    ----------
    counts, weight
        Counts and weights, shape (K,). Weights are above 0 and proportional to the variances of the
        counts.
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
    """Return a unique name for each cell: its masked value under one mask, or under several."""
    finest_first = sorted(attribute.candidates, key=lambda c: -c.size)
    finest = finest_first[0].groups
    names = []
    for cell in range(len(attribute.table)):
        shown = [c.shown[int(c.groups[cell])] for c in finest_first]
        names.append(shown[0] if (finest == finest[cell]).sum() == 1 else " · ".join(shown))
    return names
