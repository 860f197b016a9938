"""Pillai's trace as penalised regressions would reach it on rows that they were not fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from aegis.errors import InternalError
from aegis.measures.banded import FROM, Banded
from aegis.measures.tridiagonal import Tridiagonal

if TYPE_CHECKING:
    from aegis.measures.cooccurrence import Cooccurrence
    from aegis.measures.shared import Shared

Numbers = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

PENALTIES = (3.0, 10.0, 30.0, 100.0, 300.0)
"""Rows that a masked value needs before half of what they say of it is believed."""
UNPOOLED = (1.0, *PENALTIES)
"""And one for a learner that believes a value after one row."""


class Together(NamedTuple):
    """The levels of all configurations that are expected, counted at once.

    Attributes
    ----------
    total
        Their co-occurrence, shape (U, U); of no meaning between two maskings of one attribute.
    at
        Where the levels of one configuration stand among them, shape (d,).
    configurations
        How many configurations are expected.
    """

    total: Floats
    at: npt.NDArray[np.intp]
    configurations: int

    @property
    def shape(self) -> tuple[int, int]:
        """That of the co-occurrence of the levels of the configuration."""
        return len(self.at), len(self.at)

    def diagonal(self) -> Floats:
        """Return the counts of the levels of the configuration, shape (d,)."""
        return self.total.diagonal()[self.at]


Counted = Numbers | Together
"""Co-occurrence of the levels of one configuration, by itself or among those of others."""


def block_of(
    counted: Counted, rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]
) -> Numbers:
    """Return the co-occurrence of some levels of a configuration with others, as a copy."""
    if isinstance(counted, Together):
        rows, columns, counted = counted.at[rows], counted.at[columns], counted.total
    block: Numbers = counted.take(rows, 0).take(columns, 1)
    return block


def total_of(counted: Counted) -> Numbers:
    """Return the co-occurrence of all levels of a configuration."""
    if isinstance(counted, Together):
        every = np.arange(len(counted.at))
        return block_of(counted, every, every)
    return counted


@dataclass(frozen=True, eq=False)
class Centred:
    """Second-order counts of the levels that some rows show and others do not, less their means.

    Attributes
    ----------
    counted
        Co-occurrence of all levels, shape (D, D).
    varying
        Places of the levels that vary, shape (d,).
    count
        Rows of each of these, shape (d,).
    rows
        Rows of each class that occurs, shape (C,).
    label
        Covariance of varying levels and classes, times n, shape (d, C).
    n
        Rows behind the counts.
    """

    counted: Counted
    varying: npt.NDArray[np.intp]
    count: Floats
    rows: Floats
    label: Floats
    n: float

    @classmethod
    def of(
        cls, counted: Counted, joint: Numbers, class_counts: Numbers, n: float
    ) -> Centred | None:
        """Return the centred counts; None where no level varies, or no class."""
        count = counted.diagonal().astype(np.float64)
        varying = np.flatnonzero((count > 0) & (count < n))
        seen = np.flatnonzero(class_counts)
        if not varying.size or seen.size < 2:
            return None
        count, rows = count[varying], class_counts[seen].astype(np.float64)
        label: Floats = joint[np.ix_(varying, seen)] - np.outer(count, rows / n)
        return cls(counted, varying, count, rows, label, n)

    def covariance(
        self,
        rows: npt.NDArray[np.intp] | None = None,
        columns: npt.NDArray[np.intp] | None = None,
    ) -> Floats:
        """Return the covariance of varying levels, times n: of all, or between some and others."""
        above, beside = (
            np.arange(len(self.varying)) if which is None else which for which in (rows, columns)
        )
        block = block_of(self.counted, self.varying[above], self.varying[beside])
        both: Floats = block.astype(np.float64, copy=False)
        both -= np.outer(self.count[above] / self.n, self.count[beside])
        return both


def held_out_traces(
    counted: Counted,
    joint: Numbers,
    class_counts: Numbers,
    n: float,
    penalties: Sequence[float] = PENALTIES,
    *,
    chance: Floats | None = None,
    shared: Shared | None = None,
) -> Floats:
    """Return an estimate of the held-out trace under each penalty, shape (len(penalties),).

    With Z the one-hot indicators of the masked values and U the one-hot label, both centred, the
    ridge regression of U on Z with penalty p leaves the residual sum of squares RSS_c(p) of class
    c; TSS_c = n_c (1 - n_c / N) is what the class's share alone leaves. Generalised
    cross-validation (Golub, Heath and Wahba, Generalized cross-validation as a method for choosing
    a good ridge parameter, Technometrics 21, 1979, equation 1.4) puts the error on rows that took
    no part at RSS_c / (1 - (1 + df) / N)^2, df = trace(Z (Z'Z + p I)^-1 Z'). Hence the trace

        sum_c (TSS_c - RSS_c ((N - 1) / (N - 1 - df))^2) / n_c,

    which without a penalty differs from the adjusted trace only by the square. Where all rows have
    the same leverage it is leave-one-out itself. It is never above the plug-in trace, and negative
    where the regression predicts worse than the shares of the classes do.

    One reduction to tridiagonal form serves all penalties (Elden, Algorithms for the
    regularization of ill-conditioned least squares problems, BIT 17, 1977).

    Parameters
    ----------
    counted
        Co-occurrence counts between levels, shape (d, d), symmetric; may be expected counts.
    joint
        Level by class counts, shape (d, C).
    class_counts
        Rows per class, shape (C,).
    n
        Rows behind the counts.
    penalties
        Ridge penalties, each above 0, in rows.
    chance
        As of `Cooccurrence`, shape (d, k): what drawn rows explain more by chance than expected
        counts do, which takes its share off the residual sum of squares.
    shared
        Levels that other configurations have too, from which these are solved with less work.

    Raises
    ------
    InternalError
        There is NaN in the counts, or LAPACK reports a failure.
    """
    given = Centred.of(counted, joint, class_counts, n)
    if given is None:
        return np.zeros(len(penalties))
    moments = None
    if shared is not None and chance is None:
        moments = shared.moments(given, penalties)
    if moments is None:
        moments = _moments(given, penalties, None if chance is None else chance[given.varying])
    effective, explained = moments
    seen = len(given.rows)
    left = given.rows * (1 - given.rows / n)
    freedom = n - 1 - effective
    traces = np.zeros(len(penalties))
    for place in np.flatnonzero(~(freedom <= 0)):  # else nothing is known of other rows
        charge = ((n - 1) / freedom[place]) ** 2
        drawn = 1 - explained[place, seen:].sum() / (n - 1)
        # No learner does better on rows it did not see than the counts themselves say.
        rest = (left - explained[place, :seen]) * max(drawn * charge, 1.0)
        traces[place] = ((left - rest) / given.rows).sum()
    if not np.isfinite(traces).all():
        raise InternalError(f"Held-out traces {traces.tolist()}: the counts are no numbers.")
    return traces


def _moments(
    given: Centred, penalties: Sequence[float], chance: Floats | None
) -> tuple[Floats, Floats]:
    """Return effective degrees of freedom, shape (P,), and explained squares, shape (P, C + k)."""
    label = given.label if chance is None else np.hstack([given.label, chance])
    covariance, expected = given.covariance(), chance is not None
    form = (Banded if len(covariance) >= FROM else Tridiagonal).of(covariance, label)
    effective = np.array([form.effective(p, expected=expected) for p in penalties])
    explained = np.zeros((len(penalties), label.shape[1]))
    for place in np.flatnonzero(~(given.n - 1 - effective <= 0)).tolist():
        fitted = form.solve(penalties[place])
        explained[place] = ((form.right + penalties[place] * fitted) * fitted).sum(axis=0)
    return effective, explained


def held_out(counts: Cooccurrence) -> float:
    """Return Pillai's trace on rows held out, the mean over learners of different strength.

    `held_out_traces` under the penalties p_1 < ... < p_5; a learner that can penalise by up to p_k
    reaches the largest of the first k, and at least 0. The mean over k is returned: which model
    will be trained on a release is not known, and a mask that only serves models with a strong
    penalty is worth less than one that serves all. From 0 to C - 1, never above the plug-in
    trace; 0 for one class, for constant attributes and without rows.
    """
    return mean_reached(counts.traces[1:])


def mean_reached(traces: Floats) -> float:
    """Return the mean over learners that may penalise up to each penalty in turn, at least 0."""
    return float(np.maximum(np.maximum.accumulate(traces), 0.0).mean())
