"""Score noise masks from expected counts, without drawing rows.

The result is the score of the expected counts, not the expected score of drawn rows. Plug-in
measures of the expected counts measure the information that passes through the noise. Corrected
measures of single attributes also subtract the effect of chance in drawn rows, which expected
counts do not have. So these measures are slightly too low. Pillai's trace and its held-out forms
take into account that expected counts contain less chance (`Cooccurrence.chance`), and agree with
the mean score of drawn rows. Noise cannot improve MI, chi-square, g3 and the plug-in trace. It can
improve g1 and g2: they count rows with the same value, and noise spreads these rows over more
values. So do not compare noise masks by g1 or g2.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from aegis.arrays import Floats
from aegis.measures import Contingency, Measure
from aegis.measures.rounding import controlled_rounding

_NOTHING = 1e-9
"""Fewer expected rows than this count as 0: rounding can leave them for an impossible report."""


class ExpectedContingency(Contingency):
    """The number of rows by level and class that is expected under a noise mask, which need not be
    an integer.
    """

    @cached_property
    def n(self) -> Any:
        """The number of rows that the table counts. Noise does not change it. If rows have weights,
        it can have a fractional part.
        """
        total = float(self.row_totals @ self.multiplicity)
        whole = round(total)
        return whole if abs(total - whole) <= _NOTHING * max(total, 1.0) else total


def contingency(expected: Floats, measure: Measure | None) -> Contingency:
    """Convert expected counts to a contingency table from which `measure` can be computed.

    Parameters
    ----------
    expected
        Expected number of rows for each of R masked values and C classes, shape (R, C). The totals
        of the classes are whole numbers.
    measure
        A measure with the flag `fractional` gets the counts unchanged. All other measures need
        integers, for example those that permute rows, leave one row out, or count the rows of mixed
        groups, and the measures of other packages. For them, the counts are rounded class by class,
        so that the totals of the classes stay the same.
    """
    if measure is None or not measure.fractional:
        return Contingency.of(controlled_rounding(expected))
    table: Any = expected[expected.sum(axis=1) > _NOTHING]
    table = table[:, table.any(axis=0)]
    return ExpectedContingency(table, np.ones(len(table), dtype=np.int64))
