"""Association measures: pure functions of count arrays, registered with their properties."""

from __future__ import annotations

from aegis.measures.association import chi_square, corrected_cramers_v, cramers_v, phi_square
from aegis.measures.by_part import PartCounts, in_thresholds
from aegis.measures.catalog import DEFAULT_MEASURE, SEARCHED_MEASURE
from aegis.measures.chance import expected_mutual_information
from aegis.measures.cmim import CmimPath, attribute_information, cmim_path, pair_information
from aegis.measures.contingency import Contingency
from aegis.measures.cooccurrence import Cooccurrence, Need, OrderedCounts
from aegis.measures.dependency import g1, g2, g3, held_out_error
from aegis.measures.discriminant import Scores, naive_bayes, out_of_fold
from aegis.measures.expected_merit import Expected, Learner, Merit, merit_name
from aegis.measures.held_out import PENALTIES, UNPOOLED, held_out_traces
from aegis.measures.information import (
    corrected_mutual_information,
    label_entropy,
    miller_madow_information,
    mutual_information,
    reliable_information,
)
from aegis.measures.mutual import mean_contingency, pair_contingency
from aegis.measures.ordered import ordered_traces, thresholds
from aegis.measures.pillai import PillaiFit, fit_pillai, pillai_trace
from aegis.measures.pooled import pooled_losses
from aegis.measures.reach import reachable_auc
from aegis.measures.record import (
    MEASURES,
    UNLABELLED_MEASURE,
    Direction,
    Margins,
    Measure,
    Scope,
    Trace,
    chosen_measure,
    get,
)
from aegis.measures.target_coded import (
    adjusted_for,
    believed,
    class_codes,
    fitted_freedom,
    held_out_reached,
    trace_of_codes,
)

__all__ = [
    "DEFAULT_MEASURE",
    "MEASURES",
    "PENALTIES",
    "SEARCHED_MEASURE",
    "UNLABELLED_MEASURE",
    "UNPOOLED",
    "CmimPath",
    "Contingency",
    "Cooccurrence",
    "Direction",
    "Expected",
    "Learner",
    "Margins",
    "Measure",
    "Merit",
    "Need",
    "OrderedCounts",
    "PartCounts",
    "PillaiFit",
    "Scope",
    "Scores",
    "Trace",
    "adjusted_for",
    "attribute_information",
    "believed",
    "chi_square",
    "chosen_measure",
    "class_codes",
    "cmim_path",
    "corrected_cramers_v",
    "corrected_mutual_information",
    "cramers_v",
    "expected_mutual_information",
    "fit_pillai",
    "fitted_freedom",
    "g1",
    "g2",
    "g3",
    "get",
    "held_out_error",
    "held_out_reached",
    "held_out_traces",
    "in_thresholds",
    "label_entropy",
    "mean_contingency",
    "merit_name",
    "miller_madow_information",
    "mutual_information",
    "naive_bayes",
    "ordered_traces",
    "out_of_fold",
    "pair_contingency",
    "pair_information",
    "phi_square",
    "pillai_trace",
    "pooled_losses",
    "reachable_auc",
    "reliable_information",
    "thresholds",
    "trace_of_codes",
]
