"""The section on a policy with several labels: the utility that the release keeps for each, and a
heat map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aegis.advisor.utility import IN_WORDS, UtilityFigure
from aegis.measures import MEASURES
from aegis.present import label_lines
from aegis.report.palette import HEAT_BOUNDS
from aegis.report.words import clean, measured, percent

if TYPE_CHECKING:
    from aegis.advisor.advice import Advice

SHOWN = 20
"""Configurations of the heat map."""


def labels_section(advice: Advice) -> dict[str, Any] | None:
    """Return the section on several labels: a table for the best configuration, and the ranking by
    label; None for one label.
    """
    lines = label_lines(advice)
    if not lines:
        return None
    utility = None if advice.best is None else advice.best.utility
    figures = {} if utility is None else utility.labels
    return {
        "lines": [
            {
                "label": clean(line.label, limit=80),
                "weight": f"{line.weight:g}",
                "measure": line.measure,
                "unmasked": measured(line.reference),
                "masked": measured(line.value),
                "kept": percent(line.utility_kept),
                "step": _step(line.utility_kept),
                "alone": percent(line.alone),
                "proven": line.proven,
                "price": "–" if line.price is None else f"{line.price:.1f}",
                "headline": _headline(figures.get(line.label)),
            }
            for line in lines
        ],
        "names": [clean(line.label, limit=80) for line in lines],
        "heat": [
            {
                "name": clean(ranked.name, limit=80),
                "cells": [
                    {"kept": percent(share), "step": _step(share)}
                    for share in ranked.labels.values()
                ],
            }
            for ranked in advice.ranking[:SHOWN]
            if ranked.labels
        ],
    }


def _step(share: float | None) -> int | None:
    return None if share is None else sum(share >= bound for bound in HEAT_BOUNDS)


def _headline(figure: UtilityFigure | None) -> str | None:
    """Return a sentence on the utility for one label: the score that models are expected to reach,
    or the measure on the release and the table.
    """
    if figure is None:
        return None
    if MEASURES.get(figure.measure).unit in IN_WORDS:
        return figure.expected(None)
    return figure.detail
