"""Write the texts about a result that terminal, report, workbench and notebook all show."""

from aegis.present.expected import ExpectedFigure
from aegis.present.finding import IN_WORDS, Finding, mask_shown, ranked_words
from aegis.present.label import label_words, score_words
from aegis.present.labels import LabelLine, label_lines, labels_kept

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
]
