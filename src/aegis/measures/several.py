"""Combine the scores for several labels into one figure; the measures of the labels may have
different units.

The share kept of a label is (score - floor) / (reference - floor), limited to the range from 0 to
1. The floor is the score of a constant prediction, and the reference is the score of the unmasked
table. All three are by the measure of the label.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from aegis.errors import InternalError, PolicyError
from aegis.measures.cooccurrence import Cooccurrence
from aegis.measures.record import SHARE_KEPT, LabelKind, Measure, Scope

_SERVED = {
    "mean": ("Mean share kept", "the weighted mean of them", "sum_t w_t kept_t / sum_t w_t"),
    "worst": ("Worst share kept", "the smallest of them", "min_t kept_t"),
}
"""By how labels are served: title, description and formula."""


def share_kept(serve: str) -> Measure:
    """Return the measure that combines the shares kept of all labels, by their mean or by the
    smallest of them (`serve` is `mean` or `worst`). A share kept is the part of a label's score
    that remains after masking, from 0 to 1.

    Raises
    ------
    PolicyError
        `serve` is neither `mean` nor `worst`.
    """
    if serve not in _SERVED:
        raise PolicyError.unknown("way to serve several labels", serve, _SERVED)
    title, combined, formula = _SERVED[serve]
    return Measure(
        name=f"{SHARE_KEPT}({serve})",
        title=title,
        description=f"The share of each of several labels that is kept, and {combined}: each label "
        "is scored by its own measure, between what a constant prediction and the unmasked table reach.",
        formula=f"{formula}; kept_t = (score_t - floor_t) / (reference_t - floor_t)",
        reference="Aegis, theory.md",
        range="0 to 1",
        unit="share",
        scope=Scope.CONFIGURATION,
        cost="that of the measures of all labels",
        compute=_no_single_counts,
        label=LabelKind.SEVERAL,
    )


def combined(serve: str, shares: Sequence[float | None], weights: Sequence[float]) -> float:
    """Return one figure that combines the shares kept of several labels; it is 0 if all shares are
    None.

    A share is None if the label cannot be predicted; such a label is left out.

    Parameters
    ----------
    serve
        `mean` or `worst`.
    shares
        The share of each label, from 0 to 1.
    weights
        The weight of each label in the mean, above zero.

    Examples
    --------
    >>> combined("mean", [0.5, 1.0], [1, 3]), combined("worst", [0.5, None], [1, 1])
    (0.875, 0.5)
    """
    known = [(share, w) for share, w in zip(shares, weights, strict=True) if share is not None]
    if not known:
        return 0.0
    if serve == "worst":
        return min(share for share, _ in known)
    return sum(share * weight for share, weight in known) / sum(weight for _, weight in known)


def _no_single_counts(counts: Cooccurrence) -> NoReturn:
    raise InternalError(
        f"Shares of several labels cannot be computed from {type(counts)}, the counts of one label."
    )
