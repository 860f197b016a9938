"""The view model of a result, computed once for terminal, report, workbench and notebook."""

from aegis.present.finding import Finding, ranked_words
from aegis.present.label import label_words

__all__ = ["Finding", "label_words", "ranked_words"]
