"""Sections that appear only when somebody has computed what they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aegis.report.optional import AgreementRow, EvaluationResult
from aegis.report.palette import CORRELATION_BOUNDS, HEAT_STEPS
from aegis.report.words import clean, count, measured, part, percent

if TYPE_CHECKING:
    from aegis.advisor.advice import Advice
    from aegis.advisor.figures import Binding, Front, FrontPoint, Relaxation


FEWEST = 4
"""Configurations that a rank correlation takes: three stand in the same order once in 6 by chance."""

METRIC_WORDS = {"accuracy": "accuracy", "roc_auc": "area under the ROC curve"}
"""Figures of merit that officers are shown, in words."""


def front_section(front: Front, total: int, objective: str | None = None) -> dict[str, Any] | None:
    """Return the Pareto front as a table and as points; None for a front without points.

    Parameters
    ----------
    front
        The front, from weakest to strictest.
    total
        Rows of the table.
    objective
        What the search optimised, where that is not the measure of the report.
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
    """Return the masks of a configuration, those that mask nothing left out."""
    masking = {name: mask for name, mask in masks.items() if mask != "identity"}
    return _listed(masking) if masking else "nothing masked" if masks else "–"


def _listed(masks: Mapping[str, str]) -> str:
    return clean("; ".join(f"{name}: {mask}" for name, mask in masks.items()), limit=600)


def binding_section(binding: Binding) -> dict[str, Any] | None:
    """Return what keeps the masks from being finer; None when nothing was computed."""
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
                "kept": percent(relaxation.utility_kept),
            }
            for relaxation in binding.relaxations
        ],
    }


def _gaining_masks(relaxation: Relaxation) -> str:
    """Return the masks that a weaker rule would let change, where that gains something."""
    if not relaxation.shows:
        return "–"
    return _listed(relaxation.masks) if relaxation.masks else "the same"


def evaluation_section(
    evaluation: EvaluationResult, advice: Advice, top: int, *, relative: bool
) -> dict[str, Any] | None:
    """Return the trained models' scores, the first `top` configurations, and the agreement."""
    if not evaluation.scores and not evaluation.agreement:
        return None
    names = list(dict.fromkeys(score.configuration for score in evaluation.scores))
    releases = {ranked.name for ranked in advice.ranking if ranked.method is not None}
    enough = len(set(names) - releases) >= FEWEST
    shown = set(names[:top])
    return {
        "metric": METRIC_WORDS.get(evaluation.metric, clean(evaluation.metric, limit=80)),
        "reached": _reached(evaluation, advice),
        "fewest": FEWEST,
        "ranks": _ranks(evaluation.agreement if enough else ()),
        "panels": _panels(evaluation, advice, relative=relative),
        "cut": len(names) > top,
        "shown": len(shown),
        "total": count(len(names)),
        "scores": [
            {
                "model": clean(score.model, limit=80),
                "metric": clean(score.metric, limit=80),
                "configuration": clean(score.configuration, limit=120),
                "value": _with_deviation(score.value, score.deviation),
                "unmasked": measured(score.unmasked),
            }
            for score in evaluation.scores
            if score.configuration in shown
        ],
        "agreement": [
            {
                "measure": clean(agreement_.measure, limit=80),
                "model": clean(agreement_.model, limit=80),
                "spearman": _correlation(agreement_.spearman if enough else None),
                "kendall": _correlation(agreement_.kendall if enough else None),
                "loss": measured(agreement_.loss),
            }
            for agreement_ in evaluation.agreement
        ],
    }


def _reached(evaluation: EvaluationResult, advice: Advice) -> list[dict[str, str]]:
    """Return what each model reaches on the recommendation and unmasked, by figure of merit."""
    best = advice.best
    return [
        {
            "model": clean(score.model, limit=80),
            "metric": METRIC_WORDS[score.metric],
            "masked": _with_deviation(score.value, score.deviation),
            "unmasked": measured(score.unmasked),
            "change": measured(None)
            if score.unmasked is None
            else f"{score.value - score.unmasked:+.4f}",
        }
        for score in evaluation.scores
        if best is not None and score.configuration == best.name and score.metric in METRIC_WORDS
    ]


def _ranks(agreement: Sequence[AgreementRow]) -> dict[str, Any]:
    """Return the rank correlations as the cells of a heat map, measures by models."""
    measures = list(dict.fromkeys(agreement_.measure for agreement_ in agreement))
    models = list(dict.fromkeys(agreement_.model for agreement_ in agreement))
    return {
        "measures": [clean(name, limit=80) for name in measures],
        "models": [clean(name, limit=80) for name in models],
        "cells": [
            {
                "row": measures.index(agreement_.measure),
                "column": models.index(agreement_.model),
                "text": _correlation(agreement_.spearman),
                "step": HEAT_STEPS
                if agreement_.spearman is None
                else sum(agreement_.spearman >= bound for bound in CORRELATION_BOUNDS),
            }
            for agreement_ in agreement
        ],
    }


def _panels(
    evaluation: EvaluationResult, advice: Advice, *, relative: bool
) -> list[dict[str, Any]]:
    """Return, for each model, what it reaches on each configuration against the score."""
    utility = {
        ranked.name: ranked.utility_kept if relative else ranked.score for ranked in advice.ranking
    }
    ranked = {ranked.name: ranked for ranked in advice.ranking if utility[ranked.name] is not None}
    models = dict.fromkeys(s.model for s in evaluation.scores if s.metric == evaluation.metric)
    panels = []
    for model in models:
        points = [
            {
                "utility": utility[s.configuration],
                "reached": s.value,
                "admissible": ranked[s.configuration].admissible,
                "recommended": ranked[s.configuration] is advice.best,
            }
            for s in evaluation.scores
            if (s.model, s.metric) == (model, evaluation.metric) and s.configuration in ranked
        ]
        if len({point["utility"] for point in points}) > 1:
            panels.append({"title": clean(model, limit=80), "points": points})
    return panels


def _correlation(value: float | None) -> str:
    return measured(None) if value is None else f"{value:.2f}"


def _with_deviation(value: float, deviation: float | None) -> str:
    return measured(value) if deviation is None else f"{value:.4f} ± {deviation:.4f}"
