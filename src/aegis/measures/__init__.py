"""Compute association measures: pure functions of count arrays, registered with their properties."""

from __future__ import annotations

from aegis.measures.association import Contingency, LabelSpread, chance_of_share
from aegis.measures.by_fold import CountsByFold
from aegis.measures.catalog import FALLBACK_MEASURE
from aegis.measures.cooccurrence import (
    ASSOCIATION_MEASURE,
    DEFAULT_MEASURE,
    MEASURES,
    PENALTIES,
    SHARE_KEPT,
    UNPOOLED,
    Cooccurrence,
    Direction,
    Encoding,
    LabelKind,
    Margins,
    Measure,
    Need,
    OrderedCounts,
    Scope,
    Trace,
    chosen_measure,
    get,
    measures_of,
)
from aegis.measures.discriminant import naive_bayes, out_of_fold
from aegis.measures.held_out import held_out_traces, pooled_losses
from aegis.measures.merits import Expected, Learner, ModelMetric, metric_name
from aegis.measures.pillai import fit_pillai, pillai_trace

__all__ = [
    "ASSOCIATION_MEASURE",
    "DEFAULT_MEASURE",
    "FALLBACK_MEASURE",
    "MEASURES",
    "PENALTIES",
    "SHARE_KEPT",
    "UNPOOLED",
    "Contingency",
    "Cooccurrence",
    "CountsByFold",
    "Direction",
    "Encoding",
    "Expected",
    "LabelKind",
    "LabelSpread",
    "Learner",
    "Margins",
    "Measure",
    "ModelMetric",
    "Need",
    "OrderedCounts",
    "Scope",
    "Trace",
    "chance_of_share",
    "chosen_measure",
    "fit_pillai",
    "get",
    "held_out_traces",
    "measures_of",
    "metric_name",
    "naive_bayes",
    "out_of_fold",
    "pillai_trace",
    "pooled_losses",
]
