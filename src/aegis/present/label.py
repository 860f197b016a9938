"""Describe the label of a table, and how well it is predicted, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aegis.words import counted, percent, short

if TYPE_CHECKING:
    from aegis.advisor.utility import UtilityFigure


def score_words(summary: Mapping[str, Any], figure: UtilityFigure) -> str:
    """Return a sentence, without its full stop, on the scores of a release and of its reference.

    Examples
    --------
    >>> from aegis.advisor.utility import UtilityFigure
    >>> score_words({}, UtilityFigure("held-out-auc", 0.9081, 0.9169))
    'Held-out-auc 0.91 of 0.92 unmasked'
    >>> score_words({"label_rounded": ["0", "9"]}, UtilityFigure("held-out-target-coded", 0.02, 0.03))
    'The masks explain about 2.0 % of the variance of the rounded number, of 3.0 % unmasked'
    """
    if not summary.get("label_rounded"):
        return figure.detail[:1].upper() + figure.detail[1:]
    own, reference = (percent(100 * max(share, 0.0)) for share in (figure.value, figure.reference))
    return (
        f"The masks explain about {own} of the variance of the rounded number, of {reference} "
        f"{figure.reference_name.short}"
    )


def label_words(summary: Mapping[str, Any]) -> str:
    """Return a description of the label of a summary, such as "2 classes".

    Parameters
    ----------
    summary
        The result of `Summary.to_dict`, or of its equivalent for an estimated summary.

    Examples
    --------
    >>> label_words({"classes": {"no": 3, "yes": 2}})
    '2 classes'
    >>> label_words({"classes": {}, "label_number": {"mean": 1250.5, "deviation": 320.25}})
    'a mean of 1,250 and a standard deviation of 320.2'
    """
    if bounds := summary.get("label_rounded"):
        return f"a number, rounded at random to {bounds[0]} or {bounds[1]}"
    number = summary.get("label_number")
    if number is None:
        return counted(len(summary["classes"]), "class", "classes")
    return f"a mean of {short(number['mean'])} and a standard deviation of {short(number['deviation'])}"
