"""Choose the measure for rankings, searches and releases if the user names none."""

from __future__ import annotations

import numpy as np

from aegis.advisor.fold_counts import MOST_CLASSES
from aegis.errors import PolicyError
from aegis.measures import (
    ASSOCIATION_MEASURE,
    FALLBACK_MEASURE,
    MEASURES,
    SHARE_KEPT,
    LabelKind,
    Measure,
    Need,
    chosen_measure,
)
from aegis.summary import Summary

MOST_LEVELS = 2_000
"""Largest number of encoded columns for which Aegis predicts an AUC of two classes, or an R2."""
MOST_COLUMNS = 800
"""Largest number of encoded columns for which Aegis predicts each attribute from the others."""


def measure_for(summary: Summary, *names: str | None) -> tuple[Measure, tuple[str, ...]]:
    """Return the measure by which to rank: the first of `names` that is not None, or else the
    default measure. The second result has a sentence if another measure must replace the default;
    otherwise it is empty.

    Raises
    ------
    PolicyError
        The measure is unknown, or it needs a label and the table has none. Or the label is a number
        whose R2 would take too long to predict.
    """
    if summary.several is not None:
        return MEASURES.get(f"{SHARE_KEPT}({summary.several.serve})"), ()
    chosen = chosen_measure(*names, label=summary.label.kind)
    if (
        any(names)
        or not {Need.PARTS, Need.COLUMNS} & set(chosen.needs)
        or (why := out_of_reach(summary)) is None
    ):
        return chosen, ()
    if chosen.label is LabelKind.NUMBER:
        raise PolicyError(
            f"Aegis cannot predict an R2: {why}.",
            hint="Give coarser masks or fewer attributes, or cut the number into classes: "
            "`label: {column: NAME, bins: 5}`.",
        )
    none = chosen.label is LabelKind.NONE
    other = MEASURES.get(ASSOCIATION_MEASURE if none else FALLBACK_MEASURE)
    return other, (f"the measure is {other.name} instead of {chosen.name}: {why}",)


def out_of_reach(summary: Summary) -> str | None:
    """Return the reason why the expected metric of models would take too long to compute; None if
    it would not.
    """
    if summary.pairs.folds is None:
        return "the summary has no folds of the rows, so no rows can be held out"
    classes = int(np.count_nonzero(summary.label.counts))
    if classes > MOST_CLASSES:
        return f"the label has {classes:,} classes, and the limit is {MOST_CLASSES}"
    levels = sum(a.unmasked.n_columns for a in summary.attributes.values() if not a.aside)
    if summary.label.kind is LabelKind.NONE:
        many = f"the table has {levels:,} values, and the limit is {MOST_COLUMNS:,}"
        return many if levels > MOST_COLUMNS else None
    if levels**2 * max(classes, 2) > 2 * MOST_LEVELS**2:
        return f"with {levels:,} values and {classes:,} classes it would take too long"
    return None
