"""Write the texts about a result that terminal, report, workbench and notebook all show."""

from aegis.present.finding import (
    IN_WORDS,
    ExpectedFigure,
    Finding,
    LabelLine,
    label_lines,
    label_words,
    labels_kept,
    mask_shown,
    ranked_words,
    score_words,
    value_shown,
)

__all__ = [
    "IN_WORDS",
    "ExpectedFigure",
    "Finding",
    "LabelLine",
    "label_lines",
    "label_words",
    "labels_kept",
    "mask_shown",
    "ranked_words",
    "score_words",
    "value_shown",
]
