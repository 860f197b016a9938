"""The figures of merit that models are expected to reach, in their own units.

Two codings of what masks show are held out, as in `held_out_codings`: values, one by one, as linear
models on one-hot columns see them, and thresholds, as trees see numbers and dates. Each is scored
under penalties from weak to strong, since which model will be trained is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from aegis.errors import InternalError
from aegis.measures.discriminant import PENALTIES, Scores, out_of_fold
from aegis.measures.ordered import STRONGER, THRESHOLDS, VALUES

if TYPE_CHECKING:
    from aegis.measures.cooccurrence import Cooccurrence

Floats = npt.NDArray[np.float64]
FLOOR = 0.5
"""AUC of a constant prediction."""


def held_out_scores(counts: Cooccurrence) -> tuple[Scores, Scores]:
    """Return the out-of-fold scores of values and of thresholds, computed once per configuration."""
    if counts.parts is None or counts.parts_in_order is None:
        raise InternalError("The counts by part were not filled in.")
    return (
        out_of_fold(counts.parts),
        out_of_fold(counts.parts_in_order, [STRONGER * penalty for penalty in PENALTIES]),
    )


def _codings(counts: Cooccurrence, without: int | None = None) -> float:
    values, ordered = (scores.auc(without).mean() for scores in counts.held_out)
    return float(VALUES * values + THRESHOLDS * ordered)


def held_out_auc(counts: Cooccurrence) -> float:
    """Return the AUC that models are expected to reach on rows that they were not fitted to.

    Two thirds of the mean over penalties of `out_of_fold` on values and one third of that on
    thresholds; two classes: the AUC itself, several: the mean of each class against the rest. From
    1/2, what a constant reaches, to 1; 1/2 for one class, for constant attributes and without rows.
    """
    return max(_codings(counts), FLOOR)


def held_out_auc_without(counts: Cooccurrence) -> Floats:
    """Return the same without the scores of each part in turn, shape (K,): for its error."""
    parts = range(len(counts.held_out[0].rows))
    found = [_codings(counts, part) for part in parts]
    return np.maximum(found, FLOOR)


def attainable_auc(counts: Cooccurrence) -> float:
    """Return the largest AUC under any of the codings and penalties, at least 1/2."""
    return max(FLOOR, *(float(scores.auc().max()) for scores in counts.held_out))
