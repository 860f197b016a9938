"""Compute association measures: pure functions of count arrays, registered with their properties."""

from __future__ import annotations

from aegis.measures.auc_bound import reachable_auc
from aegis.measures.by_fold import PartCounts
from aegis.measures.catalog import FALLBACK_MEASURE
from aegis.measures.chance import expected_mutual_information
from aegis.measures.cmim import attribute_information, cmim_path
from aegis.measures.columns import column_figures, explained_by_others, weighted
from aegis.measures.contingency import Contingency
from aegis.measures.cooccurrence import Coding, ColumnCounts, Cooccurrence, Need, OrderedCounts
from aegis.measures.counted import PENALTIES, UNPOOLED
from aegis.measures.discriminant import naive_bayes, out_of_fold
from aegis.measures.expected_merit import Expected, Learner, Merit, merit_name
from aegis.measures.held_out import held_out_traces, pooled_losses
from aegis.measures.information import (
    label_entropy,
    mutual_information,
    pair_information,
)
from aegis.measures.mutual import mean_contingency, pair_contingency
from aegis.measures.number import explained_share
from aegis.measures.ordered import ordered_traces, thresholds
from aegis.measures.pillai import PillaiFit, fit_pillai, pillai_trace
from aegis.measures.record import (
    ASSOCIATION_MEASURE,
    DEFAULT_MEASURE,
    MEASURES,
    NUMBER_MEASURE,
    SHARE_KEPT,
    UNLABELLED_MEASURE,
    Direction,
    LabelKind,
    Margins,
    Measure,
    Scope,
    Trace,
    chosen_measure,
    get,
    measures_of,
)
from aegis.measures.target_coded import (
    believed,
    fitted_freedom,
    held_out_reached,
    trace_by_separation,
)

__all__ = [
    "ASSOCIATION_MEASURE",
    "DEFAULT_MEASURE",
    "FALLBACK_MEASURE",
    "MEASURES",
    "NUMBER_MEASURE",
    "PENALTIES",
    "SHARE_KEPT",
    "UNLABELLED_MEASURE",
    "UNPOOLED",
    "Coding",
    "ColumnCounts",
    "Contingency",
    "Cooccurrence",
    "Direction",
    "Expected",
    "LabelKind",
    "Learner",
    "Margins",
    "Measure",
    "Merit",
    "Need",
    "OrderedCounts",
    "PartCounts",
    "PillaiFit",
    "Scope",
    "Trace",
    "attribute_information",
    "believed",
    "chosen_measure",
    "cmim_path",
    "column_figures",
    "expected_mutual_information",
    "explained_by_others",
    "explained_share",
    "fit_pillai",
    "fitted_freedom",
    "get",
    "held_out_reached",
    "held_out_traces",
    "label_entropy",
    "mean_contingency",
    "measures_of",
    "merit_name",
    "mutual_information",
    "naive_bayes",
    "ordered_traces",
    "out_of_fold",
    "pair_contingency",
    "pair_information",
    "pillai_trace",
    "pooled_losses",
    "reachable_auc",
    "thresholds",
    "trace_by_separation",
    "weighted",
]
