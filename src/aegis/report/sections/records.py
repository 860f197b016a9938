"""Write texts on record-level releases and their information loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aegis.report.words import clean, count, figure, measured

if TYPE_CHECKING:
    from aegis.anonymizers import InformationLoss, Recipe

LOSSES: tuple[tuple[str, str, Callable[[InformationLoss], str]], ...] = (
    (
        "IL, scaled",
        "information loss of the centroids on z-scores, 0 to 1",
        lambda loss: measured(loss.scaled),
    ),
    (
        "IL, unscaled",
        "the same on the numbers as they are: the widest attribute dominates",
        lambda loss: measured(loss.unscaled),
    ),
    (
        "NCP",
        "normalised certainty penalty: mean width of the released ranges, 0 to 1",
        lambda loss: measured(loss.penalty),
    ),
    ("Discernibility", "sum of squared group sizes", lambda loss: count(loss.discernibility)),
    ("Class size", "mean records in a group", lambda loss: figure(loss.average_class_size)),
)
"""The title and the meaning of each information loss, and a function that returns its value as
text.
"""


def options_text(recipe: Recipe) -> str:
    """Return the options of a recipe on one line. The option l is left out if the method does not
    use it.
    """
    options = {name: value for name, value in recipe.options.items() if value is not None}
    unused = not recipe.anonymizer.diverse and options.pop("l", None) is not None
    told = ", ".join(f"{name} {value}" for name, value in options.items())
    return clean(told + (" (the method does not use l)" if unused else ""), limit=600)
