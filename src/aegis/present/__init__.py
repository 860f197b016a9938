"""What is said of a result, worked out once: terminal, report, workbench and notebook render it."""

from aegis.present.finding import Finding, ranked_words

__all__ = ["Finding", "ranked_words"]
