"""The sections that the report contains only if their content was computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aegis.report.words import clean, count, measured, part, percent

if TYPE_CHECKING:
    from aegis.advisor.figures import Binding, Front, FrontPoint, Relaxation


def front_section(front: Front, total: int, objective: str | None = None) -> dict[str, Any] | None:
    """Return the section on the Pareto front, as a table and as points; None for a front without
    points.

    Parameters
    ----------
    front
        The front, from weakest to strictest.
    total
        Rows of the table.
    objective
        The objective of the search, if it is not the report's measure.
    """
    if not front.points:
        return None
    lines = [
        {
            "value": f"{point.value:g}",
            "masks": _changed(point.declared),
            "objective": measured(point.objective),
            "kept": percent(point.utility_kept),
            "suppressed": part(point.suppressed_rows, total),
            "proven": _proof(point),
            "knee": point.value == front.knee,
        }
        for point in front.points
    ]
    points = [
        {"value": point.value, "kept": point.utility_kept, "knee": point.value == front.knee}
        for point in front.points
        if point.utility_kept is not None
    ]
    return {
        "parameter": clean(front.parameter, limit=80),
        "objective": None if objective is None else clean(objective, limit=80),
        "proven": all(point.proven for point in front.points),
        "lines": lines,
        "points": points,
        "knee": next((line for line in lines if line["knee"]), None),
    }


def _proof(point: FrontPoint) -> str:
    if point.score is None:
        return "none admissible" if point.proven else "none found"
    return "proven best" if point.proven else "best found"


def _changed(masks: Mapping[str, str]) -> str:
    """Return the masks of a configuration as text, without attributes that stay unmasked."""
    masking = {name: mask for name, mask in masks.items() if mask != "identity"}
    return _listed(masking) if masking else "nothing masked" if masks else "–"


def _listed(masks: Mapping[str, str]) -> str:
    return clean("; ".join(f"{name}: {mask}" for name, mask in masks.items()), limit=600)


def binding_section(binding: Binding) -> dict[str, Any] | None:
    """Return the section on the obstacles to finer masks; None if they were not computed."""
    if not binding.finer and not binding.relaxations:
        return None
    return {
        "finer": [
            {
                "attribute": clean(relaxation.attribute, limit=120),
                "mask": clean(relaxation.current, limit=120),
                "finer": clean(relaxation.mask, limit=120),
                "smallest_class": count(relaxation.smallest_class),
                "rows_at_risk": count(relaxation.rows_failing),
                "kept": percent(relaxation.utility_kept),
                "violations": [clean(text, limit=600) for text in relaxation.violations],
            }
            for relaxation in binding.finer
            if relaxation.gain > 0
        ],
        "relaxations": [
            {
                "change": clean(relaxation.change, limit=120),
                "masks": _gaining_masks(relaxation),
                "gain": measured(relaxation.gain) if relaxation.shows else "none",
                # The present best keeps what the headline says, measured on the released rows.
                "kept": percent(relaxation.utility_kept) if relaxation.shows else "–",
            }
            for relaxation in binding.relaxations
        ],
    }


def _gaining_masks(relaxation: Relaxation) -> str:
    """Return, as text, the masks that a weaker rule would change; empty if that gains nothing."""
    if not relaxation.shows:
        return "–"
    return _listed(relaxation.masks) if relaxation.masks else "the same"
