"""The published estimate mask by mask, before its rounding and after: what figures 7 and 9 share.

A configuration's figure is the mean over its attributes, and an attribute's depends on its mask
alone: so every mask is estimated once, and 50 configurations are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.advisor import Choice, Scorer
from aegis.measures import MEASURES
from aegis.papers.evaluation import Reconstructed
from aegis.summary import AttributeSummary, Candidate

Table = npt.NDArray[np.float64]


def mutual_information(table: Table) -> float:
    """Return the mutual information of a table of fractions, in bits."""
    rows = table.sum()
    expected = table.sum(axis=1, keepdims=True) @ table.sum(axis=0, keepdims=True) / rows
    full = table > 0
    return float((table[full] / rows * np.log2(table[full] / expected[full])).sum())


def chi_square(table: Table) -> float:
    """Return the chi-square statistic of a table of fractions."""
    rows = table.sum()
    expected = table.sum(axis=1, keepdims=True) @ table.sum(axis=0, keepdims=True) / rows
    full = expected > 0
    return float(rows * ((table[full] / rows) ** 2 / (expected[full] / rows)).sum() - rows)


def g3(table: Table) -> float:
    """Return the share of rows that are not of their value's most frequent class."""
    return float(1 - table.max(axis=1).sum() / table.sum())


MEASURED: Mapping[str, Callable[[Table], float]] = {
    "mi": mutual_information,
    "chi2": chi_square,
    "g3": g3,
}
"""Measures of the paper, of tables that need not hold whole numbers."""


class MaskEstimates:
    """Deviations of every mask of a summary: estimated before and after rounding, and true.

    Parameters
    ----------
    scorer
        Of the summary.
    histogram
        Whether the histogram is known (AEGIS+1D) or not (AEGIS-1D).
    seed
        Of the randomised rounding.
    """

    def __init__(self, scorer: Scorer, *, histogram: bool, seed: int = 1) -> None:
        self.scorer = scorer
        self.estimator = Reconstructed(histogram=histogram)
        self.seed = seed
        self._known: dict[tuple[str, Candidate], dict[tuple[str, str], float]] = {}

    def of(self, attribute: AttributeSummary, candidate: Candidate) -> dict[tuple[str, str], float]:
        """Return |deviation| by (before, rounded or true) and measure, of one mask."""
        key = (attribute.name, candidate)
        if key not in self._known:
            masked = self.scorer.contingency(attribute, candidate)
            tables = {
                "before": self.estimator.fitted(attribute, candidate),
                "rounded": self.estimator.table(attribute, candidate, self.seed + len(self._known)),
                "true": attribute.joint,
            }
            self._known[key] = {
                (what, name): abs(measured(np.asarray(table, float)) - MEASURES.get(name)(masked))
                for what, table in tables.items()
                for name, measured in MEASURED.items()
            }
        return self._known[key]

    def deviations(self, choice: Choice, names: Any = None) -> dict[tuple[str, str], float]:
        """Return the means over the attributes named (all), of one configuration."""
        attributes = [
            one
            for one in self.scorer.summary.attributes.values()
            if names is None or one.name in names
        ]
        found = [self.of(one, choice[one.name]) for one in attributes]
        return {key: float(np.mean([one[key] for one in found])) for key in found[0]}
