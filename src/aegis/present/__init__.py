"""What is said of a result, worked out once: terminal, report, workbench and notebook render it."""

from aegis.present.finding import Finding, ranked_words
from aegis.present.label import label_words

__all__ = ["Finding", "label_words", "ranked_words"]
