"""Texts about a result that the terminal, report, workbench and notebook all show."""

from aegis.present.finding import Finding, ranked_words
from aegis.present.label import label_words

__all__ = ["Finding", "label_words", "ranked_words"]
