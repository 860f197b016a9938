"""The sections on record-level releases and their information loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aegis.report.words import clean, count, figure, measured, percent

if TYPE_CHECKING:
    from aegis.advisor.advice import Advice
    from aegis.advisor.ranked import Ranked
    from aegis.anonymizers import InformationLoss, Recipe, TradeOff

LOSSES: tuple[tuple[str, str], ...] = (
    ("IL, scaled", "information loss of the centroids on z-scores, 0 to 1"),
    ("IL, unscaled", "the same on the numbers as they are: the widest attribute dominates"),
    ("NCP", "normalised certainty penalty: mean width of the released ranges, 0 to 1"),
    ("Discernibility", "sum of squared group sizes"),
    ("Class size", "mean records in a group"),
)
"""Title and meaning of each information loss, in the order of `losses`."""


def losses(loss: InformationLoss) -> list[str]:
    """Return the measures of information loss as text, in the order of `LOSSES`."""
    return [
        measured(loss.scaled),
        measured(loss.unscaled),
        measured(loss.penalty),
        count(loss.discernibility),
        figure(loss.average_class_size),
    ]


def records_section(advice: Advice) -> dict[str, Any] | None:
    """Return the section on the record-level releases of a ranking; None if there are none."""
    rows = [
        {
            "name": clean(r.name, limit=120),
            "admissible": r.admissible,
            "kept": percent(r.utility_kept),
            "groups": count(r.method.groups),
            "losses": losses(r.method.loss),
            "left_out": count(r.suppressed_rows),
            "seconds": f"{r.method.seconds:.2f}",
            "options": options_text(r.method.recipe),
            "notes": [clean(note, limit=600) for note in r.method.notes],
        }
        for r in advice.ranking
        if r.method is not None
    ]
    return {"lines": rows, "titles": LOSSES} if rows else None


def options_text(recipe: Recipe) -> str:
    """Return the options of a recipe on one line; an l that the method does not use is left out."""
    options = {name: value for name, value in recipe.options.items() if value is not None}
    unused = not recipe.anonymizer.diverse and options.pop("l", None) is not None
    told = ", ".join(f"{name} {value}" for name, value in options.items())
    return clean(told + (" (the method does not use l)" if unused else ""), limit=600)


def method_yaml(subject: Ranked) -> dict[str, Any] | None:
    """Return the recipe of a ranked record-level release, for YAML; None for a configuration."""
    return None if subject.method is None else subject.method.recipe.to_dict()


def tradeoff_section(points: Sequence[TradeOff]) -> dict[str, Any] | None:
    """Return the section on the settings of MO-OBAM, as a table and as points; None if there are none."""
    if not points:
        return None
    return {
        "lines": [
            {
                "clusters": count(point.clusters),
                "weight": f"{point.weight:g}",
                "loss": measured(point.information_loss),
                "entropy": measured(point.entropy),
                "smallest": count(point.smallest),
                "efficient": point.efficient,
            }
            for point in points
        ],
        "points": [
            {"loss": point.information_loss, "entropy": point.entropy, "efficient": point.efficient}
            for point in points
        ],
    }
