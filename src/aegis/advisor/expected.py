"""Measures of expected counts: the score of a noise mask without drawing a row.

The score of the expectation, not the expectation of the score. Plug-in measures of the expected
table say what the noise lets through; corrected ones of single attributes take the chance that the
released rows add off as well, so they are on the safe side for noise. Pillai's trace and its
held-out forms know how much less chance is in expected counts (`Cooccurrence.chance`), and agree
with what drawn rows score on average. MI, chi-square, g3 and the plug-in trace cannot improve by
noise; g1 and g2 can, because they count rows that show the same value and noise spreads those over
more values: they are no guide among noise masks.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.measures import Contingency, Measure
from aegis.measures.rounding import controlled_rounding

_NOTHING = 1e-9
"""Expected rows that count as none: what rounding leaves of an impossible report."""


class ExpectedContingency(Contingency):
    """A contingency table of expected counts, which need not be whole."""

    @cached_property
    def n(self) -> int:
        """Rows of data behind the table: noise neither adds nor drops any."""
        return round(float(self.row_totals @ self.multiplicity))


def contingency(expected: npt.NDArray[np.float64], measure: Measure | None) -> Contingency:
    """Return expected counts as `measure` can read them.

    Parameters
    ----------
    expected
        Expected rows per report and class, shape (R, C); class totals are whole.
    measure
        A measure that is `fractional` reads the counts as they are. All others (permutation null, leave one
        out, rows in mixed groups, third-party measures) need whole rows: controlled rounding, class
        by class, which keeps the class totals.
    """
    if measure is None or not measure.fractional:
        return Contingency.of(controlled_rounding(expected))
    table: Any = expected[expected.sum(axis=1) > _NOTHING]
    table = table[:, table.any(axis=0)]
    return ExpectedContingency(table, np.ones(len(table), dtype=np.int64))
